//! A TCP forwarder between the operator and the API server. A test can close its connections, refuse new ones, or stop
//! the data of the server.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The current faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Connections with a lower number are closed.
    age: u32,
    /// New connections are closed at once.
    closed: bool,
    /// Connections with this number or a lower one stay open and carry no data from the server.
    mute: Option<u32>,
}

/// A running forwarder; dropping it closes it.
pub(crate) struct Wire {
    state: Arc<watch::Sender<State>>,
    address: SocketAddr,
    _carriers: JoinSet<()>,
}

impl Wire {
    /// Starts a forwarder to the server of this URL.
    pub(crate) async fn to(server: &str) -> Self {
        let target: SocketAddr = server.trim_start_matches("https://").parse().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(watch::Sender::new(State {
            age: 0,
            closed: false,
            mute: None,
        }));
        let mut carriers = JoinSet::new();
        carriers.spawn(accept(listener, target, Arc::clone(&state)));
        Self {
            state,
            address,
            _carriers: carriers,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Closes all connections, and new ones at once, until [`Wire::mend`].
    pub(crate) fn close(&self) {
        self.state.send_modify(|state| {
            state.age += 1;
            state.closed = true;
        });
    }

    /// Closes new connections at once, until [`Wire::mend`]; existing ones stay open.
    pub(crate) fn refuse(&self) {
        self.state.send_modify(|state| state.closed = true);
    }

    pub(crate) fn mend(&self) {
        self.state.send_modify(|state| state.closed = false);
    }

    /// Drops all data that the server sends over the existing connections; new connections are not affected.
    pub(crate) fn mute(&self) {
        self.state.send_modify(|state| {
            state.mute = Some(state.age);
            state.age += 1;
        });
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, state: Arc<watch::Sender<State>>) {
    let mut carried = JoinSet::new();
    loop {
        let Ok((near, _)) = listener.accept().await else {
            return;
        };
        let now = *state.borrow();
        if !now.closed {
            carried.spawn(carry(near, target, now.age, state.subscribe()));
        }
    }
}

async fn carry(near: TcpStream, target: SocketAddr, age: u32, mut state: watch::Receiver<State>) {
    let Ok(far) = TcpStream::connect(target).await else {
        return;
    };
    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
    let muted = state.clone();
    let both = async {
        let there = copy(near_read, far_write, || false);
        let back = copy(far_read, near_write, || {
            muted.borrow().mute.is_some_and(|mute| age <= mute)
        });
        let _ = tokio::join!(there, back);
    };
    tokio::select! {
        () = both => {}
        _ = state.wait_for(|state| state.closed && age < state.age) => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    swallow: impl Fn() -> bool,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        if !swallow() {
            to.write_all(&buffer[..read]).await?;
        }
    }
}
