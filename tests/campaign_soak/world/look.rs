//! The state of the world and the operator's use of the machine, read from the API server, the kernel and the
//! operator's endpoints.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use fs_err as fs;
use testbed::reader::Only;

use super::World;
use crate::cluster;
use crate::figures::Usage;

/// Prefixes of the names of threads that pools keep for ever: those of the runtime, and those that start children.
const POOLS: [&str; 2] = ["tokio-rt", "forker-"];

impl World<'_> {
    /// Checks that all releases are deployed, that all deleted objects are back, and that each page shows the last
    /// value.
    pub(super) fn in_force(&self) -> anyhow::Result<()> {
        let namespace = self.stage.namespace();
        let pages = namespace.objects("configmaps", Only::Labels("soak=page"))?;
        for (name, word) in &self.words {
            let page = pages.iter().find(|page| page["metadata"]["name"] == **name);
            let page = page.with_context(|| format!("the page of {name} is gone"))?;
            ensure!(
                page["data"]["word"] == **word,
                "the page of {name} should say '{word}': {}",
                page["data"]
            );
        }
        let accounts = namespace.metadata("serviceaccounts", Only::All)?;
        let is_there = |name: &String| accounts.iter().any(|account| account["metadata"]["name"] == **name);
        let missing = self.words.keys().find(|name| !is_there(name));
        ensure!(missing.is_none(), "the account of {missing:?} is gone");
        let releases = cluster::releases(namespace)?;
        let is_good = |name: &String| releases.get(name).is_some_and(cluster::Release::is_deployed);
        ensure!(
            releases.len() == self.words.len() && self.words.keys().all(is_good),
            "not all are deployed: {}",
            cluster::shown(&releases)
        );
        Ok(())
    }

    /// Checks that the operator is ready and that its queues are empty.
    pub(super) fn is_at_rest(&self) -> anyhow::Result<()> {
        let (code, said) = self.get("/readyz")?;
        ensure!(code == 200, "it is not ready: {said}");
        let (_, metrics) = self.get("/metrics")?;
        let waiting = metrics.lines().find(|line| {
            // The queue of the scheduled hook is left out: the schedule fills it again and again.
            let is_length = line.starts_with("addon_operator_tasks_queue_length{") && !line.contains("\"beat\"");
            is_length && !line.ends_with(" 0")
        });
        ensure!(waiting.is_none(), "not all queues are empty: {waiting:?}");
        Ok(())
    }

    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let id = self.life.id();
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let number = |field: &str| -> anyhow::Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            let word = line.and_then(|line| line.split_whitespace().next());
            Ok(word.with_context(|| format!("the kernel tells no {field}"))?.parse()?)
        };
        let mut usage = Usage {
            memory: number("VmRSS:")?,
            children: self.stage.children().len().saturating_sub(1) as u64,
            temporary: count(&self.stage.tmp()),
            watches: self.watches()?,
            ..Usage::default()
        };
        for thread in fs::read_dir(format!("/proc/{id}/task"))? {
            let name = thread.and_then(|thread| fs::read_to_string(thread.path().join("comm")));
            let name = name.unwrap_or_default();
            let is_pooled = POOLS.iter().any(|pool| name.starts_with(pool));
            *(if is_pooled {
                &mut usage.pooled
            } else {
                &mut usage.threads
            }) += 1;
        }
        for file in fs::read_dir(format!("/proc/{id}/fd"))? {
            usage.files += 1;
            // A file that was closed meanwhile has no target and is not counted.
            let target = file.and_then(|file| fs::read_link(file.path())).unwrap_or_default();
            usage.connections += u64::from(target.to_string_lossy().starts_with("socket:"));
        }
        Ok(usage)
    }

    /// The number of watches within one namespace. Those of controllers are for all namespaces, and are not counted.
    fn watches(&self) -> anyhow::Result<u64> {
        let metrics = self.stage.plane().kubectl(["get", "--raw", "/metrics"])?;
        let of_one = |line: &&str| {
            line.starts_with("apiserver_longrunning_requests{")
                && line.contains("verb=\"WATCH\"")
                && !line.contains("scope=\"cluster\"")
        };
        let counts = metrics.lines().filter(of_one);
        let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(counts.sum())
    }

    fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        const SOON: Duration = Duration::from_secs(5);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.stage.port()));
        let mut stream = TcpStream::connect_timeout(&address, SOON)?;
        stream.set_read_timeout(Some(SOON))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer has a body")?;
        Ok((code.context("an answer has a status")?, body.to_owned()))
    }
}

/// The number of files and folders below `folder`.
fn count(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            1 + if is_folder { count(&entry.path()) } else { 0 }
        })
        .sum()
}
