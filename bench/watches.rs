//! `cargo bench --bench watches`: the memory that watches of many objects take, and the delay until a change is
//! reported.
//!
//! Each way of keeping objects is measured in a process of its own. It only measures and is never a test. The API
//! server and its objects are real.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::operator::effect::MonitorStart;
use addon_core::operator::event::Event;
use anyhow::{Context, ensure};
use clap::Parser;
use fs_err as fs;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use gojq::filter::Filter;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ObjectMeta;
use kube::{Api, Client, Config};
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
use names::{HookId, HookName, MonitorId, Owner};
use serde_json::{Value, json};
use telling::meters::Meters;
use testbed::plane::{ControlPlane, Options, User};
use tokio::sync::mpsc;
use watches::lens::Sieve;
use watches::{Monitors, Settings};

/// Figures of watches.
#[derive(Debug, Parser)]
#[command(name = "watches", max_term_width = 100)]
struct Cli {
    /// How many objects are watched
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// The size of each in bytes
    #[arg(long, default_value_t = 4096)]
    size: usize,
    /// How many changes are timed
    #[arg(long, default_value_t = 500)]
    changes: usize,
    /// Measure one way of keeping objects in this process
    #[arg(long, hide = true)]
    way: Option<String>,
    #[arg(long, hide = true, default_value = ".")]
    kubeconfig: PathBuf,
    #[arg(long, hide = true, default_value = "default")]
    namespace: String,
    /// Said by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// The configuration of the bindings for each way of keeping objects.
const WAYS: [(&str, &str); 4] = [
    (
        "filter, no objects kept",
        r#"[{"jqFilter": ".data.short", "keepFullObjectsInMemory": false}]"#,
    ),
    ("filter and objects kept", r#"[{"jqFilter": ".data.short"}]"#),
    ("objects kept, no filter", "[{}]"),
    (
        "ten equal bindings, objects kept",
        r#"[{"jqFilter": ".data.short"}, {"jqFilter": ".data.short"}, {"jqFilter": ".data.short"}, {"jqFilter": ".data.short"},
            {"jqFilter": ".data.short"}, {"jqFilter": ".data.short"}, {"jqFilter": ".data.short"}, {"jqFilter": ".data.short"},
            {"jqFilter": ".data.short"}, {"jqFilter": ".data.short"}]"#,
    ),
];

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    if let Some(way) = &cli.way {
        return runtime.block_on(measure(&cli, way));
    }
    let mut out = io::stdout();
    let plane = ControlPlane::start(&Options::default())?;
    let namespace = plane.namespace("watches")?;
    runtime.block_on(fill(&cli, namespace.kubeconfig(User::Admin)))?;
    writeln!(
        out,
        "| {} ConfigMaps of {} bytes | above idle, MiB | peak, MiB | first list, s | change p50, ms | p99 |",
        cli.objects, cli.size
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for (way, _) in WAYS {
        let mut child = testbed::process::command(std::env::current_exe()?);
        child.args([
            "--objects",
            &cli.objects.to_string(),
            "--changes",
            &cli.changes.to_string(),
        ]);
        child.args(["--way", way, "--namespace", namespace.name(), "--kubeconfig"]);
        child.arg(namespace.kubeconfig(User::Operator));
        let output = testbed::process::run(child, None)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        write!(out, "{}", String::from_utf8_lossy(&output.stdout))?;
    }
    Ok(())
}

async fn client(kubeconfig: PathBuf) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn config_map(name: String, size: usize) -> ConfigMap {
    let data = [
        ("long".to_owned(), "x".repeat(size)),
        ("short".to_owned(), name.clone()),
    ];
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            ..ObjectMeta::default()
        },
        data: Some(data.into()),
        ..ConfigMap::default()
    }
}

async fn fill(cli: &Cli, kubeconfig: PathBuf) -> anyhow::Result<()> {
    let client = client(kubeconfig).await?;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    // The object's name, its resource version and the fields that the server adds take up the remaining bytes.
    let size = cli.size.saturating_sub(400);
    let creating = (0..cli.objects).map(|n| {
        let api = api.clone();
        async move {
            let object = config_map(format!("object-{n:05}"), size);
            api.create(&PostParams::default(), &object).await
        }
    });
    stream::iter(creating)
        .buffer_unordered(16)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}

/// A fixed function in the place of the jq filter, whose cost is not measured here.
fn compile(text: &str) -> Result<Sieve, String> {
    let filter = Filter::compile(text).map_err(|error| error.to_string())?;
    Ok(Arc::new(move |object: &Value| {
        filter.apply(object).map_err(|error| error.to_string())
    }))
}

async fn measure(cli: &Cli, way: &str) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let address = Address {
        kube_config: vec![cli.kubeconfig.clone()],
        ..Address::default()
    };
    let cluster = Cluster::connect(
        &address,
        &cli.namespace,
        Some(dir.path()),
        Arc::new(Meters::new("bench_")),
    )
    .await?;
    let kinds = Kinds::new(cluster.clone());
    let (door, mut changes) = mpsc::channel(256);
    let settings = Settings {
        bound: Settings::BOUND,
        patience: Duration::from_secs(30),
        compile,
    };
    let monitors = Monitors::new(&cluster, &kinds, door, settings, Arc::new(|_| {}));
    // A connected client that has looked up one kind: this is the idle state whose memory is measured.
    kinds.resolve(None, "ConfigMap").await?;
    let (idle, _) = memory()?;
    let starts = starts(way, &cli.namespace)?;
    let ids: Vec<MonitorId> = starts.iter().map(|start| start.id).collect();
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("bench")?,
    };
    let begin = Instant::now();
    monitors
        .start(&hook, starts)
        .await
        .map_err(|failure| anyhow::anyhow!(failure.report))?;
    let listed = begin.elapsed();
    let (after, peak) = memory()?;
    for reading in monitors.snapshot(&ids) {
        let held = reading.context("a monitor does not run")?.objects.len();
        ensure!(held >= cli.objects, "{held} objects were listed");
    }
    monitors.stop(&ids[1..]);
    let mut took = time_changes(cli, &mut changes).await?;
    took.sort_unstable();
    let at = |percent: usize| {
        took.get(took.len() * percent / 100)
            .map_or(0.0, |took| took.as_secs_f64() * 1000.0)
    };
    writeln!(
        io::stdout(),
        "| {way} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} |",
        after - idle,
        peak - idle,
        listed.as_secs_f64(),
        at(50),
        at(99)
    )?;
    Ok(())
}

fn starts(way: &str, namespace: &str) -> anyhow::Result<Vec<MonitorStart>> {
    let (_, bindings) = WAYS.iter().find(|(name, _)| *name == way).context("no such way")?;
    let mut bindings: Vec<Value> = serde_json::from_str(bindings)?;
    for binding in &mut bindings {
        binding["kind"] = "ConfigMap".into();
        binding["namespace"] = json!({"nameSelector": {"matchNames": [namespace]}});
    }
    let config = json!({"configVersion": "v1", "kubernetes": bindings}).to_string();
    let config = HookConfig::parse(&config, HookKind::Global)?;
    let numbered = config.kubernetes.into_iter().zip(0..);
    Ok(numbered
        .map(|(binding, id)| MonitorStart {
            id: MonitorId(id),
            binding,
        })
        .collect())
}

/// For each created object, the time from the request to create it until the API server has answered and the monitor has
/// reported the object, whichever is later.
async fn time_changes(cli: &Cli, changes: &mut mpsc::Receiver<Event>) -> anyhow::Result<Vec<Duration>> {
    let api: Api<ConfigMap> = Api::default_namespaced(client(cli.kubeconfig.clone()).await?);
    let way = std::process::id();
    let mut took = Vec::new();
    for n in 0..cli.changes {
        let object = config_map(format!("changed-{way}-{n}"), 100);
        let (params, begin) = (PostParams::default(), Instant::now());
        let creating = api.create(&params, &object);
        let (created, change) = tokio::join!(creating, changes.recv());
        let heard = begin.elapsed();
        created?;
        change.context("nobody tells changes any more")?;
        took.push(heard);
    }
    Ok(took)
}

/// Resident memory in MiB: now, and at its peak.
fn memory() -> anyhow::Result<(f64, f64)> {
    let status = fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let number = line.trim_start_matches(':').split_whitespace().next()?;
        number.parse::<f64>().ok()
    };
    let (now, peak) = field("VmRSS")
        .zip(field("VmHWM"))
        .context("no figures of our own memory")?;
    Ok((now / 1024.0, peak / 1024.0))
}
