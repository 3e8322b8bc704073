//! A wire between the operator and the API server that a test can cut, close, or make swallow what it carries.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the wire does to what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Connections of an earlier age are closed.
    age: u32,
    /// New connections are closed at once.
    closed: bool,
    /// Connections of this age and of earlier ones stay open, and bring nothing back.
    mute: Option<u32>,
}

/// See the head of this file. Dropped, it is gone.
pub(crate) struct Wire {
    state: Arc<watch::Sender<State>>,
    address: SocketAddr,
    _carriers: JoinSet<()>,
}

impl Wire {
    /// A wire to a server of this URL.
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

    /// Closes all connections, and new ones at once, until it is mended.
    pub(crate) fn close(&self) {
        self.state.send_modify(|state| {
            state.age += 1;
            state.closed = true;
        });
    }

    /// Closes new connections at once, until it is mended; those that there are stay.
    pub(crate) fn refuse(&self) {
        self.state.send_modify(|state| state.closed = true);
    }

    pub(crate) fn mend(&self) {
        self.state.send_modify(|state| state.closed = false);
    }

    /// Swallows whatever the server sends over the connections that there are; new ones are whole.
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
