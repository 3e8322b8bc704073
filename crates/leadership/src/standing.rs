//! The answers of a standby.
//!
//! A standby must never answer for the leader: it asks the leader for its readiness.

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

use listeners::text;

/// The timeout of asking the leader; the same as the original's.
const PATIENCE: Duration = Duration::from_secs(3);

/// The role of this replica.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ActingRole {
    /// This replica leads.
    #[default]
    Leads,
    /// This replica does not lead and knows no leader; with the reason that keeps it from leading, if there is one.
    Seeks { trouble: Option<String> },
    /// Another replica leads.
    Standby(Leader),
}

/// The leader, which is another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// The leader's name in the lease.
    pub name: String,
    /// The leader's address, if the name contains it.
    pub address: Option<IpAddr>,
}

/// A watch of the role.
pub type Told = watch::Receiver<ActingRole>;

/// The readiness of a standby: it is ready while the leader is. A leader that cannot be asked counts as ready as long
/// as it renews its lease.
pub async fn readyz(leader: &Leader, port: u16) -> Response {
    let Some(address) = leader.address else {
        return ready();
    };
    match timeout(PATIENCE, ask(SocketAddr::new(address, port))).await {
        Ok(Some(StatusCode::OK)) => ready(),
        Ok(Some(_)) => not_ready("the leader's status response code isn't OK"),
        Ok(None) | Err(_) => not_ready("couldn't send a request to the leader"),
    }
}

/// The answer of a standby that could take over.
pub fn ready() -> Response {
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

/// The status of the leader's answer; none if the leader does not answer.
async fn ask(leader: SocketAddr) -> Option<StatusCode> {
    let stream = TcpStream::connect(leader).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let request = Request::get("/readyz").header(header::HOST, leader.to_string());
    let request = request.body(Empty::<Bytes>::new()).ok()?;
    tokio::select! {
        answer = sender.send_request(request) => Some(answer.ok()?.status()),
        // The connection's future ends first only if the connection broke.
        _ = connection => None,
    }
}

impl Leader {
    /// The answer to a question that only the leader can answer.
    pub fn instead_of_us(&self) -> Response {
        text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("this replica is a standby and does nothing: {} leads\n", self.name),
        )
    }
}
