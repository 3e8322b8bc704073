//! Probes: the agent's checks whether a container has started, is alive, and is ready.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, ContainerPort, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::board::Board;
use super::child::Inside;

/// The container that is probed.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: Ipv4Addr,
    pub(super) ports: Vec<ContainerPort>,
    pub(super) inside: Inside,
}

/// Probes a container and writes the results to the board. Returns only when the container must be restarted, with the
/// reason.
pub(super) async fn watch(container: &Container, target: Target, board: &Board, index: usize) -> String {
    if let Some(probe) = &container.startup_probe
        && let Err(reason) = until_success(probe, &target).await
    {
        return format!("startup probe failed: {reason}");
    }
    let ready_at_once = container.readiness_probe.is_none();
    board.change(index, |view| {
        view.started = true;
        view.ready = ready_at_once;
    });
    let alive = async {
        match &container.liveness_probe {
            Some(probe) => until_failure(probe, &target).await,
            None => std::future::pending().await,
        }
    };
    let ready = async {
        if let Some(probe) = &container.readiness_probe {
            judge(probe, &target, |ready| board.change(index, |view| view.ready = ready)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        reason = alive => format!("liveness probe failed: {reason}"),
        () = ready => String::new(),
    }
}

/// The timing of a probe, with Kubernetes' defaults for absent fields.
struct Pace {
    period: Duration,
    failures: i32,
    successes: i32,
}

impl Pace {
    fn of(probe: &Probe) -> Self {
        Self {
            period: seconds(probe.period_seconds, 10),
            failures: probe.failure_threshold.unwrap_or(3).max(1),
            successes: probe.success_threshold.unwrap_or(1).max(1),
        }
    }
}

fn seconds(asked: Option<i32>, otherwise: u64) -> Duration {
    let asked = asked
        .and_then(|seconds| u64::try_from(seconds).ok())
        .filter(|&seconds| seconds > 0);
    Duration::from_secs(asked.unwrap_or(otherwise))
}

/// Probes until the failure threshold is reached, and returns the last failure.
async fn until_failure(probe: &Probe, target: &Target) -> String {
    let pace = Pace::of(probe);
    sleep(seconds(probe.initial_delay_seconds, 0)).await;
    let mut failed = 0;
    loop {
        match once(probe, target).await {
            Ok(()) => failed = 0,
            Err(reason) => {
                failed += 1;
                if failed >= pace.failures {
                    return reason;
                }
            }
        }
        sleep(pace.period).await;
    }
}

async fn until_success(probe: &Probe, target: &Target) -> Result<(), String> {
    let pace = Pace::of(probe);
    sleep(seconds(probe.initial_delay_seconds, 0)).await;
    let mut failed = 0;
    loop {
        match once(probe, target).await {
            Ok(()) => return Ok(()),
            Err(reason) => {
                failed += 1;
                if failed >= pace.failures {
                    return Err(reason);
                }
            }
        }
        sleep(pace.period).await;
    }
}

/// Probes for ever. Calls `tell` when enough successes or failures have come in a row.
async fn judge(probe: &Probe, target: &Target, tell: impl Fn(bool)) {
    let pace = Pace::of(probe);
    sleep(seconds(probe.initial_delay_seconds, 0)).await;
    let (mut fine, mut failed) = (0, 0);
    loop {
        (fine, failed) = if once(probe, target).await.is_ok() {
            (fine + 1, 0)
        } else {
            (0, failed + 1)
        };
        if fine == pace.successes {
            tell(true);
        } else if failed == pace.failures {
            tell(false);
        }
        sleep(pace.period).await;
    }
}

async fn once(probe: &Probe, target: &Target) -> Result<(), String> {
    let patience = seconds(probe.timeout_seconds, 1);
    let attempt = async {
        if let Some(asked) = &probe.http_get {
            get(asked, target).await
        } else if let Some(asked) = &probe.tcp_socket {
            let address = address(&asked.port, asked.host.as_deref(), target)?;
            TcpStream::connect(address)
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        } else if let Some(asked) = &probe.exec {
            let words = asked.command.clone().unwrap_or_default();
            match target.inside.run(&words, patience).await {
                Ok(0) => Ok(()),
                Ok(code) => Err(format!("the command ended with {code}")),
                Err(error) => Err(error.to_string()),
            }
        } else {
            Err("a probe of a kind that is not known here".to_owned())
        }
    };
    // A command is killed at its own deadline, so this one is a little later.
    let late = patience + Duration::from_millis(200);
    let late = if probe.exec.is_some() { late } else { patience };
    timeout(late, attempt)
        .await
        .unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

fn address(port: &IntOrString, host: Option<&str>, target: &Target) -> Result<SocketAddr, String> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let named = target.ports.iter().find(|port| port.name.as_ref() == Some(name));
            let named = named.map(|port| port.container_port).or_else(|| name.parse().ok());
            named.ok_or_else(|| format!("the container has no port {name}"))?
        }
    };
    let number = u16::try_from(number).map_err(|_| format!("{number} is no port"))?;
    let host = match host {
        None | Some("") => target.address,
        Some(host) => host.parse().map_err(|_| format!("{host} is no address"))?,
    };
    Ok(SocketAddr::from((host, number)))
}

async fn get(asked: &HTTPGetAction, target: &Target) -> Result<(), String> {
    let address = address(&asked.port, asked.host.as_deref(), target)?;
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    if asked.scheme.as_deref() == Some("HTTPS") {
        let stream = super::tls::trusting_anyone(stream, address)
            .await
            .map_err(|error| error.to_string())?;
        return ask(stream, asked, address).await;
    }
    ask(stream, asked, address).await
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    asked: &HTTPGetAction,
    address: SocketAddr,
) -> Result<(), String> {
    let path = asked.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let mut request = Request::get(path).header(USER_AGENT, "kube-probe/testbed");
    let headers = asked.http_headers.iter().flatten();
    let own_host = headers.clone().any(|header| header.name.eq_ignore_ascii_case("host"));
    for header in headers {
        request = request.header(&header.name, &header.value);
    }
    if !own_host {
        request = request.header(HOST, address.to_string());
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // The other probes end with this function.
    let mut side = JoinSet::new();
    side.spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    if (200..400).contains(&status) {
        Ok(())
    } else {
        Err(format!("the answer is {status}"))
    }
}
