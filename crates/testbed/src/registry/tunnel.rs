//! A proxy that carries TLS by CONNECT, whatever host it is asked for, to one address.
//!
//! So a name that nobody has registered leads to a guard. It must never look at what it carries.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// A tunnel that ends with this value.
#[derive(Debug)]
pub struct Tunnel {
    address: SocketAddr,
    heads: Heads,
    /// Taken at the end, because the end of a runtime must not wait for connections that say nothing.
    runtime: Option<Runtime>,
}

/// The questions that came, as they stood.
type Heads = Arc<Mutex<Vec<String>>>;

impl Tunnel {
    /// Begins to carry to `target`; with a login, only for those who show this value of `Proxy-Authorization`.
    pub fn start(target: SocketAddr, login: Option<&'static str>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let socket = super::guard::bound(Ipv4Addr::LOCALHOST)?;
        let (address, listener) = super::guard::listen(&runtime, socket)?;
        let heads = Heads::default();
        let kept = Arc::clone(&heads);
        // The runtime owns it, and ends it.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The questions that came so far.
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
