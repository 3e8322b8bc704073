//! Bytes carried from connections that are accepted here to somebody who listens elsewhere.
//!
//! It never looks at what it carries, and forgets a connection whose other end is not to be had: whoever made it sees
//! it end, as with a server that is down.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as Listener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::space::Network;

/// Accepts until it is dropped, and asks `target` anew for each connection.
pub(crate) async fn serve(listener: TcpListener, target: impl Fn() -> Option<SocketAddr>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((near, _)) => {
                if let Some(target) = target() {
                    connections.spawn(carry(near, target));
                }
            }
            // Out of files, most likely: some will be closed.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

const PAUSE: Duration = Duration::from_millis(50);

async fn carry(mut near: TcpStream, target: SocketAddr) {
    if let Ok(mut far) = TcpStream::connect(target).await {
        // Requests of a few bytes must not wait for one another.
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
}

/// Ports on the loopback of this machine that lead to the same ports on the loopback of a network namespace.
#[derive(Debug)]
pub(crate) struct Door {
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    pub(crate) fn open(network: &Network, ports: &[u16]) -> io::Result<Self> {
        let listeners: io::Result<Vec<Listener>> = ports.iter().map(|&port| listen(port)).collect();
        let (listeners, network) = (listeners?, network.clone());
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::Builder::new().name("testbed-door".to_owned()).spawn(move || {
            // The listeners stay in the namespace they were made in; connections are made in the one that is entered.
            let entered = network.enter().map_err(io::Error::other);
            let runtime = entered.and_then(|()| Builder::new_current_thread().enable_all().build());
            let (runtime, outcome) = match runtime {
                Ok(runtime) => (Some(runtime), Ok(())),
                Err(error) => (None, Err(error)),
            };
            drop(tell.send(outcome));
            if let Some(runtime) = runtime {
                runtime.block_on(stand(listeners, stopped));
            }
        })?;
        told.recv()
            .map_err(|_| io::Error::other("the thread of the door panicked"))??;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

fn listen(port: u16) -> io::Result<Listener> {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn stand(listeners: Vec<Listener>, stopped: oneshot::Receiver<()>) {
    let mut doors = JoinSet::new();
    for listener in listeners {
        let same = listener.local_addr().ok();
        if let Ok(listener) = TcpListener::from_std(listener) {
            doors.spawn(serve(listener, move || same));
        }
    }
    // It ends with an error, which is the word.
    let _ = stopped.await;
}

impl Drop for Door {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
