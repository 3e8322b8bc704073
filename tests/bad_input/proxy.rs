//! A proxy between an operator and its API server that can be closed or send false answers.
//!
//! It reserves its port before it is opened. Until then connections are refused.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use testbed::port::KeptPort;
use testbed::wait::wait_until;

use super::stage::PATIENCE;

/// Returns the false answer to a piece of a request, or nothing. After a false answer the connection ends.
pub(crate) type Lie = fn(request: &str) -> Option<&'static str>;

/// The two connections of one client: to the client and to the server.
struct Pair {
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    /// Ends both connections, so that neither side waits for the other. The errors of a connection that has already
    /// ended are ignored.
    fn cut(&self) {
        drop(self.client.shutdown(Shutdown::Both));
        drop(self.server.shutdown(Shutdown::Both));
    }
}

/// The connections that [`Proxy::close`] cuts.
type Cuts = Arc<Mutex<Vec<Weak<Pair>>>>;

pub(crate) struct Proxy {
    server: SocketAddr,
    port: KeptPort,
    lie: Arc<Mutex<Option<Lie>>>,
    open: Option<Open>,
}

struct Open {
    closing: Arc<AtomicBool>,
    cuts: Cuts,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy that does not listen yet.
    pub(crate) fn closed(server: SocketAddr) -> Self {
        Self {
            server,
            port: KeptPort::keep().unwrap(),
            lie: Arc::default(),
            open: None,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// Sends false answers from now on, also on existing connections; `None` ends that.
    pub(crate) fn lie(&self, lie: Option<Lie>) {
        *self.lie.lock().unwrap_or_else(PoisonError::into_inner) = lie;
    }

    pub(crate) fn open(&mut self) {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, self.port())).map(Some);
        let listener = wait_until(PATIENCE, "the port of the proxy", bind).unwrap();
        let closing = Arc::new(AtomicBool::new(false));
        let cuts = Cuts::default();
        let (server, lie) = (self.server, Arc::clone(&self.lie));
        let (stop, all) = (Arc::clone(&closing), Arc::clone(&cuts));
        let accepting = thread::spawn(move || {
            for client in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // The client may be gone already.
                if let Ok(client) = client {
                    connect(client, server, &all, &lie);
                }
            }
        });
        self.open = Some(Open {
            closing,
            cuts,
            accepting,
        });
    }

    /// Cuts every connection and accepts no more.
    pub(crate) fn close(&mut self) {
        let Some(Open {
            closing,
            cuts,
            accepting,
        }) = self.open.take()
        else {
            return;
        };
        closing.store(true, Ordering::SeqCst);
        // A connection of our own wakes the accepting thread, which then ends.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port())));
        // The thread ends only by returning.
        drop(accepting.join());
        let cuts = std::mem::take(&mut *cuts.lock().unwrap_or_else(PoisonError::into_inner));
        cuts.iter().filter_map(Weak::upgrade).for_each(|pair| pair.cut());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.close();
    }
}

/// Serves one client. If the server cannot be reached, the client's connection is closed.
fn connect(client: TcpStream, server: SocketAddr, cuts: &Cuts, lie: &Arc<Mutex<Option<Lie>>>) {
    let Ok(server) = TcpStream::connect(server) else { return };
    let there = Arc::new(Pair { client, server });
    let back = Arc::clone(&there);
    {
        let mut cuts = cuts.lock().unwrap_or_else(PoisonError::into_inner);
        cuts.retain(|pair| pair.strong_count() > 0);
        cuts.push(Arc::downgrade(&there));
    }
    let lie = Arc::clone(lie);
    let instead = move |piece: &[u8]| {
        let lie = *lie.lock().unwrap_or_else(PoisonError::into_inner);
        lie?(&String::from_utf8_lossy(piece))
    };
    thread::spawn(move || {
        pump(&there.client, &there.server, instead);
        there.cut();
    });
    thread::spawn(move || {
        pump(&back.server, &back.client, |_| None);
        back.cut();
    });
}

/// Copies bytes until one side ends, or until a false answer replaces them.
fn pump(mut from: &TcpStream, mut to: &TcpStream, instead: impl Fn(&[u8]) -> Option<&'static str>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if let Some(lie) = instead(&buffer[..read]) {
            // The client may have closed the connection already.
            drop(from.write_all(lie.as_bytes()));
            return;
        }
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}
