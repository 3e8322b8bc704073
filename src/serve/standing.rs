//! The answers of a standby.
//!
//! Must never answer for the leader: the readiness of the leader is read from the leader itself.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::text;

/// The original waits as long for its leader.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether it is for us to act.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ActingRole {
    /// It is.
    #[default]
    Leads,
    /// Nobody is known to lead; this keeps us from it, if anything does.
    Seeks { trouble: Option<String> },
    /// Another one leads.
    Standby(Leader),
}

/// Who leads instead of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// As it stands in the lease.
    pub name: String,
    /// Where it answers, if its name tells.
    pub address: Option<IpAddr>,
}

/// Told whenever it changes.
pub type Told = watch::Receiver<ActingRole>;

/// Whether we are ready to take over: we are while the leader does well. One that cannot be asked is taken for well as
/// long as it renews its lease.
pub(super) async fn readyz(leader: &Leader, port: u16) -> Response {
    let Some(address) = leader.address else {
        return ready();
    };
    match timeout(PATIENCE, ask(SocketAddr::new(address, port))).await {
        Ok(Some(StatusCode::OK)) => ready(),
        Ok(Some(_)) => not_ready("the leader's status response code isn't OK"),
        Ok(None) | Err(_) => not_ready("couldn't send a request to the leader"),
    }
}

/// What a standby says that could take over.
pub(super) fn ready() -> Response {
    text(
        StatusCode::OK,
        "HA mode is enabled and waiting for acquiring the lock.\n",
    )
}

fn not_ready(why: &str) -> Response {
    text(
        StatusCode::INTERNAL_SERVER_ERROR,
        format!("HA mode is enabled but {why}\n"),
    )
}

/// The status with which the leader answers; none if it does not.
async fn ask(leader: SocketAddr) -> Option<StatusCode> {
    let stream = TcpStream::connect(leader).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let request = Request::get("/readyz").header(header::HOST, leader.to_string());
    let request = request.body(Empty::<Bytes>::new()).ok()?;
    tokio::select! {
        answer = sender.send_request(request) => Some(answer.ok()?.status()),
        // The connection moves the bytes; that it ends first means that it broke.
        _ = connection => None,
    }
}

impl Leader {
    /// What is said to those who want to know what only the leader knows.
    pub(super) fn instead_of_us(&self) -> Response {
        text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("this replica is a standby and does nothing: {} leads\n", self.name),
        )
    }
}
