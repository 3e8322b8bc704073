//! `make bench`: what a start, a restart and idling cost, with the shipped modules on a warm control plane.
//!
//! It only measures and is never a test: it compares its figures with the aims that it prints, and fails at none of
//! them. Children are counted from events of the kernel and writes from the audit log, so no figure comes from the
//! operator itself.

#[path = "../examples/demo/cluster.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at objects too")]
mod cluster;
mod execs;
mod idle;
#[path = "../examples/demo/life.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows logs")]
mod life;
mod machine;
#[path = "../examples/demo/metrics.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows metrics")]
mod metrics;
#[path = "../examples/demo/stage.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows where things are")]
mod stage;
mod table;

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use clap::Parser;
use testbed::plane::{ControlPlane, Options};
use testbed::wait::wait_until;

use execs::Execs;
use life::{Life, Program};
use stage::Stage;
use table::Row;

/// Figures of the operator with the shipped modules.
#[derive(Debug, Parser)]
#[command(name = "figures", max_term_width = 100)]
struct Cli {
    /// How often a start and a restart are measured, by turns
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// How often idling is measured
    #[arg(long, default_value_t = 3)]
    idle_runs: usize,
    /// How long idling is measured each time
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle: u64,
    /// Write the table to bench/results.md
    #[arg(long)]
    save: bool,
    /// Cargo passes this flag; it has no effect
    #[arg(long, hide = true)]
    bench: bool,
}

const PATIENCE: Duration = Duration::from_mins(1);

/// The figures of one start.
struct Start {
    /// From the start of the process until it reports that the first converge is done.
    seconds: f64,
    writes: f64,
    /// Programs that the operator started, if this machine lets them be counted.
    children: Option<Vec<String>>,
}

struct Bench<'a> {
    plane: &'a ControlPlane,
    execs: Option<Execs>,
}

/// The table rows of one kind of start.
struct Rows {
    seconds: Row,
    helms: Row,
    children: Row,
    writes: Row,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    say("starting a control plane");
    let plane = ControlPlane::start(&Options::default())?;
    let execs = Execs::listen()
        .inspect_err(|error| say(&format!("children are not counted: {error}; that needs root")))
        .ok();
    let bench = Bench { plane: &plane, execs };
    let table = table::markdown(&bench.measure(&cli)?);
    writeln!(io::stdout(), "\n{table}")?;
    if cli.save {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/results.md");
        let report = machine::report(&table, &plane)?;
        fs_err::write(&file, machine::renewed(&fs_err::read_to_string(&file)?, &report))?;
        say(&format!("written to {}", file.display()));
    }
    Ok(())
}

impl Bench<'_> {
    fn measure(&self, cli: &Cli) -> anyhow::Result<Vec<Row>> {
        let mut first = Rows {
            seconds: Row::new("start to converged", "s"),
            helms: Row::new("start: helm children", ""),
            children: Row::new("start: all children", ""),
            writes: Row::new("start: writes", ""),
        };
        let mut again = Rows {
            seconds: Row::new("restart with nothing changed", "s").aiming_at(1.0),
            helms: Row::new("restart: helm children", "").aiming_at(0.0),
            children: Row::new("restart: all children", ""),
            writes: Row::new("restart: writes but leases and events", "").aiming_at(0.0),
        };
        let mut resident = Row::new("idle: resident memory", "MB").aiming_at(25.0);
        let mut peak = Row::new("idle: peak of resident memory until then", "MB");
        let mut processor = Row::new("idle: processor", "millicores");
        // The first start only warms the caches of the machine and of the API server, and is not counted.
        for run in 0..=cli.runs {
            say(&format!("start and restart {run} of {}", cli.runs));
            let stage = Stage::build(self.plane, "bench", &[])?;
            switch_on(&stage)?;
            let (life, start) = self.start(&stage)?;
            life.stop(PATIENCE)?;
            let (life, restart) = self.start(&stage)?;
            if run > 0 {
                first.add(start);
                again.add(restart);
            }
            if run > 0 && run <= cli.idle_runs {
                say(&format!("idling for {} s", cli.idle));
                processor.add(idle::millicores(life.id(), Duration::from_secs(cli.idle))?);
                let (now, most) = idle::memory(life.id())?;
                resident.add(now);
                peak.add(most);
            }
            life.stop(PATIENCE)?;
        }
        let [first, again] = [first, again].map(|rows| [rows.seconds, rows.helms, rows.children, rows.writes]);
        Ok(first
            .into_iter()
            .chain(again)
            .chain([resident, peak, processor])
            .collect())
    }

    /// Starts an operator and waits until it is ready and quiet.
    fn start(&self, stage: &Stage<'_>) -> anyhow::Result<(Life, Start)> {
        let program = Program {
            path: env!("CARGO_BIN_EXE_addon-operator").into(),
            arguments: vec!["start".into()],
        };
        let mark = self.plane.audit().mark()?;
        if let Some(execs) = &self.execs {
            execs.forget();
        }
        let life = stage.start(&program)?;
        let seconds = until_ready(stage, &life)?.as_secs_f64();
        let releases = cluster::releases(stage.namespace())?;
        let deployed = releases
            .values()
            .filter(|release| release.is_deployed() && release.ours)
            .count();
        ensure!(deployed == MODULES, "ready, but there is {}", cluster::shown(&releases));
        let writes = self.writes(mark)?;
        let children = self.execs.as_ref().map(|execs| execs.below(life.id()));
        Ok((
            life,
            Start {
                seconds,
                writes,
                children,
            },
        ))
    }

    /// Counts the writes after the last one has arrived.
    fn writes(&self, mark: testbed::audit::Mark) -> anyhow::Result<f64> {
        const QUIET: Duration = Duration::from_secs(1);
        let mut last = (0, Instant::now());
        let count = wait_until(PATIENCE, "the operator to have nothing more to write", || {
            let writes = cluster::writes(self.plane, mark)?.len();
            if writes != last.0 {
                last = (writes, Instant::now());
            }
            anyhow::Ok((last.1.elapsed() >= QUIET).then_some(writes))
        })?;
        Ok(f64::from(u32::try_from(count)?))
    }
}

/// Creates a ConfigMap that switches the shipped modules on.
fn switch_on(stage: &Stage<'_>) -> anyhow::Result<()> {
    let flags = cluster::SHIPPED.map(|flag| format!("--from-literal={flag}=true"));
    let create = ["create", "configmap", cluster::CONFIG].map(ToOwned::to_owned);
    stage.namespace().kubectl(create.into_iter().chain(flags))?;
    Ok(())
}

/// The number of modules that this repository ships.
const MODULES: usize = 2;

/// Polls every two milliseconds, because the testbed's own waiting polls too seldom to measure a start.
fn until_ready(stage: &Stage<'_>, life: &Life) -> anyhow::Result<Duration> {
    while !metrics::is_ready(stage.port()) {
        if life.has_ended() || life.age() > PATIENCE {
            bail!("the operator does not get ready:\n{}", life::tail(life.log(), 40));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(life.age())
}

impl Rows {
    fn add(&mut self, start: Start) {
        self.seconds.add(start.seconds);
        self.writes.add(start.writes);
        if let Some(children) = start.children {
            let count = |some: &[String]| f64::from(u32::try_from(some.len()).unwrap_or(u32::MAX));
            let helms: Vec<String> = children.iter().filter(|name| *name == "helm").cloned().collect();
            self.helms.add(count(&helms));
            self.children.add(count(&children));
        }
    }
}

/// Prints a message for the person; it goes to standard error, because standard output holds the data.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "figures: {text}");
}
