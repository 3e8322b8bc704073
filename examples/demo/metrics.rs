//! Reads the operator's own HTTP endpoints. The demo only shows these texts; no claim is checked with them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

/// The metrics that the tour shows, without the prefix that all names share.
const SHOWN: [&str; 6] = [
    "convergence_total",
    "convergence_seconds",
    "module_run_errors_total",
    "modules_helm_release_redeployed_total",
    "mm_module_info",
    "process_resident_memory_bytes",
];

/// How many series of one metric are shown.
const EACH: usize = 2;

/// A few lines of `/metrics`.
pub(crate) fn excerpt(port: u16) -> anyhow::Result<Vec<String>> {
    let (status, body) = get(port, "/metrics")?;
    if status != 200 {
        bail!("/metrics answered {status}");
    }
    let series = |name: &&str| {
        let of_name = body.lines().filter(|line| !line.starts_with('#')).filter(|line| {
            let full = line.split(['{', ' ']).next().unwrap_or_default();
            full.ends_with(*name)
        });
        of_name.take(EACH).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    Ok(SHOWN.iter().flat_map(series).collect())
}

/// Whether the operator reports that its first converge is done.
pub(crate) fn is_ready(port: u16) -> bool {
    get(port, "/readyz").is_ok_and(|(status, _)| status == 200)
}

/// Status and body of a request.
pub(crate) fn get(port: u16, path: &str) -> anyhow::Result<(u16, String)> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("nothing listens there")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // HTTP/1.0: the server sends the answer in one piece and closes the connection at its end.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok((status.context("the answer is no HTTP")?, body.to_owned()))
}
