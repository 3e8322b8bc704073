//! Limits open connections: in all, for each address, and by a deadline for silent ones.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum_server::accept::Accept;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep};

use super::shares::{Exhausted, Pool, Share};

/// The limit for one listener. An API server uses a few connections, a scraper one.
const CONNECTIONS: usize = 512;
const CONNECTIONS_EACH: usize = 64;
/// How long a new connection may stay silent.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// A connection with a peer.
pub trait Peer {
    /// The peer's address; none for a process of this machine that may open the socket, which is not limited.
    fn peer(&self) -> io::Result<Option<IpAddr>>;
}

impl Peer for TcpStream {
    fn peer(&self) -> io::Result<Option<IpAddr>> {
        Ok(Some(self.peer_addr()?.ip()))
    }
}

impl Peer for UnixStream {
    fn peer(&self) -> io::Result<Option<IpAddr>> {
        Ok(None)
    }
}

/// Accepts connections up to the limits, and passes them to the inner acceptor.
#[derive(Debug, Clone)]
pub struct Gate<A> {
    inner: A,
    seats: Arc<Pool>,
    first_word: Duration,
}

impl<A> Gate<A> {
    pub fn before(inner: A) -> Self {
        Self::with(inner, CONNECTIONS_EACH)
    }

    /// A gate for clients that may all come from one address, because a proxy or a forwarded port is between.
    pub fn before_one_address(inner: A) -> Self {
        Self::with(inner, CONNECTIONS)
    }

    fn with(inner: A, each: usize) -> Self {
        Self {
            inner,
            seats: Pool::new(CONNECTIONS, each),
            first_word: FIRST_WORD,
        }
    }
}

impl<A, I, S> Accept<I, S> for Gate<A>
where
    A: Accept<I, S, Future: Send + 'static>,
    I: Peer,
{
    type Stream = Seated<A::Stream>;
    type Service = A::Service;
    type Future = BoxFuture<'static, io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let seat = stream.peer().and_then(|peer| match peer {
            None => Ok(None),
            Some(peer) => {
                let full = |Exhausted| io::Error::from(io::ErrorKind::QuotaExceeded);
                self.seats.take(peer, 1).map(Some).map_err(full)
            }
        });
        // A stream without a seat is dropped, and thereby closed.
        let accepted = seat.map(|seat| (seat, self.inner.accept(stream, service)));
        let patience = self.first_word;
        Box::pin(async move {
            let (seat, accepting) = accepted?;
            let (stream, service) = accepting.await?;
            let first_word = seat.is_some().then(|| Box::pin(sleep(patience)));
            let seated = Seated {
                stream,
                first_word,
                _seat: seat,
            };
            Ok((seated, service))
        })
    }
}

/// An accepted connection.
#[derive(Debug)]
pub struct Seated<T> {
    stream: T,
    /// The deadline for the first byte of the connection.
    first_word: Option<Pin<Box<Sleep>>>,
    _seat: Option<Share>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Seated<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, buffer) {
            this.first_word = None;
            return Poll::Ready(read);
        }
        if let Some(late) = &mut this.first_word {
            ready!(late.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Seated<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
