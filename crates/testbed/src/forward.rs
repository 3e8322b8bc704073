//! Forwards the bytes of accepted connections to another address.
//!
//! It never looks at the bytes. If the target cannot be reached, the accepted connection is closed, as if the server
//! were down.

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

/// Accepts connections until it is dropped, and asks `target` for the address of each.
pub(crate) async fn serve(listener: TcpListener, target: impl Fn() -> Option<SocketAddr>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((near, _)) => {
                if let Some(target) = target() {
                    connections.spawn(carry(near, target));
                }
            }
            // Probably too many open files; some will be closed soon.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

const PAUSE: Duration = Duration::from_millis(50);

async fn carry(mut near: TcpStream, target: SocketAddr) {
    if let Ok(mut far) = TcpStream::connect(target).await {
        // Small requests must not be delayed by Nagle's algorithm.
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
}

/// Ports on the loopback of this machine that are forwarded to the same ports on the loopback of a network namespace.
#[derive(Debug)]
pub(crate) struct Door {
    /// The sender. Dropping it ends the thread.
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
            // A listener stays in the namespace in which it was made. Connections are made in the namespace that this
            // thread enters.
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
    // The receiver gets an error when the sender is dropped, which is the signal to stop.
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
