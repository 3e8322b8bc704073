//! An HTTP proxy for CONNECT that connects every host name to one address.
//!
//! So an unregistered name leads to a guard. It must never look at the bytes that it forwards.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// A running tunnel; dropping it stops it.
#[derive(Debug)]
pub struct Tunnel {
    address: SocketAddr,
    heads: Heads,
    /// Taken out when the tunnel is dropped, because dropping a runtime would wait for silent connections.
    runtime: Option<Runtime>,
}

/// The heads of the CONNECT requests, as received.
type Heads = Arc<Mutex<Vec<String>>>;

impl Tunnel {
    /// Starts a tunnel to `target`. With a login it serves only clients with this value of `Proxy-Authorization`.
    pub fn start(target: SocketAddr, login: Option<&'static str>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let socket = super::guard::bound(Ipv4Addr::LOCALHOST)?;
        let (address, listener) = super::guard::listen(&runtime, socket)?;
        let heads = Heads::default();
        let kept = Arc::clone(&heads);
        // The task ends with the runtime.
        drop(runtime.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                connections.spawn(carry(near, target, login, Arc::clone(&kept)));
                while connections.try_join_next().is_some() {}
            }
        }));
        Ok(Self {
            address,
            heads,
            runtime: Some(runtime),
        })
    }

    /// The address on which the tunnel listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of the CONNECT requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn carry(mut near: TcpStream, target: SocketAddr, login: Option<&'static str>, heads: Heads) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(near.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let shown = login.is_none_or(|login| head.contains(&format!("Proxy-Authorization: {login}\r\n")));
    let is_connect = head.starts_with("CONNECT ");
    heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    if !is_connect || !shown {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        return near.write_all(refusal).await;
    }
    let mut far = TcpStream::connect(target).await?;
    near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    copy_bidirectional(&mut near, &mut far).await.map(drop)
}
