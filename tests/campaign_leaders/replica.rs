//! One replica: its processes, its proxy to the API server, its user there, and its wall clock.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use fs_err as fs;
use serde_json::json;
use testbed::namespace::Namespace;
use testbed::process::{self, Bond, Bound};
use testbed::proxy::Proxy;

use crate::LEASE;
use crate::clock::Ahead;
use crate::life;

pub(crate) const REPLICAS: usize = 3;
pub(crate) const NAMES: [&str; REPLICAS] = ["a", "b", "c"];

/// A slow helm with a lock per release. It notes each start, and each time that it finds the lock taken by another
/// helm.
const HELM: &str = r#"#!/bin/bash
if [[ $1 == upgrade || $1 == uninstall ]]; then
  exec 9>>"@NOTES@/$2.lock"
  if flock --nonblock 9; then
    echo "$$" >"@NOTES@/$2.holder"
  else
    echo "$(<"@NOTES@/$2.holder") is at it, and @REPLICA@ begins $*" >>"@NOTES@/overlaps"
  fi
  echo "@REPLICA@ $2" >>"@NOTES@/begun"
  sleep "$((RANDOM % 3)).$((RANDOM % 10))" 9>&-
fi
exec "@HELM@" "$@"
"#;

/// The things that all replicas of a world share.
pub(crate) struct Ground<'a> {
    pub(crate) namespace: &'a Namespace<'static>,
    pub(crate) folder: &'a Path,
    pub(crate) helm: &'a Path,
    pub(crate) clock: &'a Path,
    pub(crate) port: u16,
}

pub(crate) struct Replica {
    pub(crate) name: &'static str,
    /// The user name in the audit log.
    pub(crate) user: String,
    /// The holder name in the lease.
    pub(crate) identity: String,
    pub(crate) proxy: Proxy,
    pub(crate) clock: Ahead,
    bound: Option<Bound>,
    home: PathBuf,
    address: SocketAddr,
    variables: BTreeMap<&'static str, OsString>,
    /// The processes that were stopped in this round, including the replica's own.
    frozen: BTreeSet<u32>,
}

impl Replica {
    /// Prepares a replica without starting it.
    pub(crate) fn prepare(number: usize, ground: &Ground<'_>) -> anyhow::Result<Self> {
        let Ground {
            namespace,
            folder,
            helm,
            clock,
            port,
        } = *ground;
        let name = NAMES[number];
        let home = folder.join(name);
        fs::create_dir(&home)?;
        namespace.kubectl(["create", "serviceaccount", name])?;
        let token = namespace.kubectl(["create", "token", name, "--duration=24h"])?;
        let proxy = Proxy::start_for(namespace.plane(), token.trim())?;
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": proxy.server()}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "namespace": namespace.name()}}],
            "current-context": "proxy",
        });
        fs::write(home.join("kubeconfig"), kubeconfig.to_string())?;
        let notes = folder.join("notes");
        let script = HELM
            .replace("@NOTES@", &notes.display().to_string())
            .replace("@REPLICA@", name)
            .replace("@HELM@", &helm.display().to_string());
        fs::write(home.join("helm"), script)?;
        fs::set_permissions(home.join("helm"), PermissionsExt::from_mode(0o755))?;
        let ahead = Ahead::none(&home.join("ahead"))?;
        let host = u8::try_from(number + 2)?;
        let address = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), port));
        let own = |name: &str| home.join(name).into_os_string();
        let variables = BTreeMap::from([
            ("PATH", "/usr/bin:/bin".into()),
            ("HOME", home.clone().into_os_string()),
            ("LD_PRELOAD", clock.into()),
            ("CLOCK_AHEAD", own("ahead")),
            ("KUBECONFIG", own("kubeconfig")),
            ("HELM_BIN", own("helm")),
            ("IN", namespace.name().into()),
            ("ADDON_OPERATOR_HA", "true".into()),
            ("ADDON_OPERATOR_POD", name.into()),
            ("ADDON_OPERATOR_NAMESPACE", namespace.name().into()),
            ("ADDON_OPERATOR_MODULES_DIR", folder.join("modules").into()),
            ("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", folder.join("global-hooks").into()),
            ("ADDON_OPERATOR_TMP_DIR", own("tmp")),
            ("ADDON_OPERATOR_LISTEN_ADDRESS", address.ip().to_string().into()),
            ("ADDON_OPERATOR_LISTEN_PORT", port.to_string().into()),
            ("ADDON_OPERATOR_LEASE_DURATION", format!("{LEASE}s").into()),
            ("DEBUG_UNIX_SOCKET", own("debug.socket")),
            ("LOG_TYPE", "text".into()),
        ]);
        namespace.show_on_panic(name, &home.join("log"));
        Ok(Self {
            name,
            user: format!("system:serviceaccount:{}:{name}", namespace.name()),
            identity: format!("{name}.127-0-0-{host}.{}.pod", namespace.name()),
            proxy,
            clock: ahead,
            bound: None,
            home,
            address,
            variables,
            frozen: BTreeSet::new(),
        })
    }

    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        // All processes of a replica write to one log.
        let output = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.home.join("log"))?;
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .arg("start")
            .current_dir(&self.home)
            .env_clear()
            .envs(&self.variables)
            .stdout(output.file().try_clone()?)
            .stderr(output.into_parts().0);
        self.bound = Some(Bound::start(command, Bond::Group)?);
        Ok(())
    }

    /// Whether the replica's process has ended. Reaps it, as a kubelet would.
    pub(crate) fn has_ended(&mut self) -> anyhow::Result<bool> {
        let Some(bound) = &mut self.bound else { return Ok(true) };
        let ended = bound.ended()?.is_some();
        if ended {
            self.bound = None;
        }
        Ok(ended)
    }

    pub(crate) fn signal(&self, signal: i32) {
        if let Some(bound) = &self.bound {
            process::signal(bound.id(), signal);
        }
    }

    /// Stops the replica's process, with or without its children.
    pub(crate) fn freeze(&mut self, with_children: bool) -> anyhow::Result<()> {
        let own = self.bound.as_ref().context("it runs")?.id();
        self.frozen = BTreeSet::from([own]);
        process::signal(own, libc::SIGSTOP);
        if with_children {
            self.frozen.extend(self.processes().into_iter().map(|(id, _)| id));
            for id in &self.frozen {
                process::signal(*id, libc::SIGSTOP);
            }
        }
        Ok(())
    }

    /// The processes that were stopped in this round. A stopped helm that still holds its lock is no second helm at
    /// work.
    pub(crate) fn frozen(&self) -> &BTreeSet<u32> {
        &self.frozen
    }

    /// Lets all stopped processes go on.
    pub(crate) fn thaw(&self) {
        self.signal(libc::SIGCONT);
        for id in &self.frozen {
            process::signal(*id, libc::SIGCONT);
        }
    }

    /// Forgets the stopped processes, at the start of a round.
    pub(crate) fn forget(&mut self) {
        self.frozen.clear();
    }

    /// The replica's process and its descendants.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        life::marked(&self.home.join("tmp"))
    }

    /// Whether the replica reports that it leads.
    pub(crate) fn leads(&self) -> anyhow::Result<bool> {
        const SOON: Duration = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&self.address, SOON)?;
        stream.set_read_timeout(Some(SOON))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let said = |value| answer.contains(&format!("addon_operator_leader {value}\n"));
        anyhow::ensure!(said(0) || said(1), "{} does not say whether it leads", self.name);
        Ok(said(1))
    }
}
