//! Stands between an operator and its API server, and can be absent or lie.
//!
//! Keeps its port before it is opened, and nobody answers there until then.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use testbed::port::KeptPort;
use testbed::wait::wait_until;

use super::stage::PATIENCE;

/// What is answered instead of the server to a piece of a request, after which the connection ends.
pub(crate) type Lie = fn(request: &str) -> Option<&'static str>;

/// One connection through us.
struct Pair {
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    /// Whoever ended first, nobody is to wait for the other. What has ended by itself cannot be cut.
    fn cut(&self) {
        drop(self.client.shutdown(Shutdown::Both));
        drop(self.server.shutdown(Shutdown::Both));
    }
}

/// Everything that is cut at a close.
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
    /// Nobody listens yet.
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

    /// Lies from now on, also on connections that exist; `None` ends that.
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
                // A client that has gone already needs nothing.
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

    /// Cuts every connection and takes no more.
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
        // Wakes it up; it takes no connection after this one.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port())));
        // It ends in no other way than by returning.
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

/// Takes up one client; without a server there is nothing to say to it.
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

/// Copies until one side ends, or until something else is to be said.
fn pump(mut from: &TcpStream, mut to: &TcpStream, instead: impl Fn(&[u8]) -> Option<&'static str>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if let Some(lie) = instead(&buffer[..read]) {
            // Whoever does not wait for the answer has already got what it deserves.
            drop(from.write_all(lie.as_bytes()));
            return;
        }
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}
