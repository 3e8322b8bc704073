//! `make demo`: a tour that runs the operator on a real control plane and comments on what happens.
//!
//! Every claim is checked at the API server and in its audit log. The operator's own statements are shown and never
//! used as proof. The exit code is 0 only if all claims came true. No process and no file stays behind, however the
//! tour ends.

mod cluster;
mod draft;
mod installation;
mod life;
mod metrics;
mod modules;
mod narrator;
mod shell;
mod stage;
mod tour;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Parser;
use testbed::find::Source;
use testbed::node::needs;
use testbed::part;
use testbed::plane::{ControlPlane, Options, Pods};
use testbed::{process, report};

use life::Program;
use narrator::{Interruption, Narrator, Stop, seconds};
use tour::Tour;

/// A tour of addon-operator on a control plane of its own.
///
/// On a terminal everything keeps running at the end, to look around, until Ctrl-C. Otherwise the exit code tells: 0 if
/// everything was as it should be, 1 if not.
#[derive(Debug, Parser)]
#[command(name = "demo", max_term_width = 100)]
struct Cli {
    /// The operator to show [default: the one built beside this program]
    #[arg(long, value_name = "PATH")]
    operator: Option<PathBuf>,
    /// Leave out the last chapters, which install the operator on a real node [default: show them, if this machine can
    /// have a node]
    #[arg(long)]
    without_node: bool,
    /// Longest wait for one step of the demo
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
    /// Arguments of the operator: all arguments that follow
    #[arg(long, value_name = "ARG", num_args = 1.., allow_hyphen_values = true, default_value = "start")]
    operator_args: Vec<OsString>,
}

/// An event that the main thread waits for.
enum Event {
    Asked(i32),
    Done(anyhow::Result<()>),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (tell, events) = mpsc::channel();
    let told = tell.clone();
    let listening = process::on_signal(move |asked| drop(told.send(Event::Asked(asked.signal))));
    let interruption = Interruption::default();
    let narrator = Narrator::new(Duration::from_secs(cli.patience), interruption.clone());
    thread::spawn(move || {
        // Without this a panic would leave the main thread waiting for ever.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            listening.context("cannot listen to signals")?;
            show(&cli, &narrator)
        }));
        let outcome = outcome.unwrap_or_else(|_| Err(anyhow!("the tour panicked")));
        if let Err(error) = &outcome {
            tell_failure(&narrator, error);
        }
        drop(tell.send(Event::Done(outcome)));
    });
    let mut asked = None;
    loop {
        match events.recv() {
            Ok(Event::Asked(signal)) => {
                asked.get_or_insert(signal);
                interruption.raise();
                process::interrupt();
            }
            Ok(Event::Done(Ok(()))) => return ExitCode::SUCCESS,
            Ok(Event::Done(Err(_))) | Err(_) => {
                let code = asked.and_then(|signal| u8::try_from(128 + signal).ok());
                return code.map_or(ExitCode::FAILURE, ExitCode::from);
            }
        }
    }
}

fn show(cli: &Cli, narrator: &Narrator) -> anyhow::Result<()> {
    let path = match &cli.operator {
        Some(path) => path.clone(),
        None => beside_us("addon-operator")?,
    };
    let program = Program::new(path, cli.operator_args.iter().cloned());
    let obstacle = if cli.without_node {
        Some("--without-node".to_owned())
    } else {
        needs::obstacle()
    };
    narrator.chapter("addon-operator on a real control plane");
    narrator.say("Only on loopback, and no cluster of yours is touched. Ctrl-C ends it and leaves nothing behind.");
    narrator.say(
        "Every \"ok\" from chapter 1 on was checked at the API server or in its audit log, not by asking the operator.",
    );
    draft::show(narrator, &program)?;
    if let Some(obstacle) = obstacle {
        return tour(narrator, program, Some(&obstacle), || ());
    }
    let (tool, behind) = (beside_us("image")?, narrator.backstage());
    thread::scope(|scope| {
        let (sender, played) = mpsc::channel();
        let (program_of_node, behind) = (program.clone(), &behind);
        // The chapters on the node mostly wait, and so do the others.
        let begin = move || {
            let play = move || drop(sender.send(installation::show(behind, &program_of_node, &tool)));
            drop(scope.spawn(play));
        };
        if let Err(error) = tour(narrator, program, None, begin) {
            tell_failure(narrator, &error);
            // The other chapters end as if a person had interrupted them.
            narrator.interruption().raise();
            process::interrupt();
            return Err(error);
        }
        behind.take_turn();
        played.recv().context("the chapters on the node panicked")?
    })
}

/// The chapters in which the operator runs as a process beside the control plane. Both have ended when this returns.
/// `obstacle` is the reason for which no chapter follows. `begin_others` is called once the control plane is complete.
fn tour(
    narrator: &Narrator,
    program: Program,
    obstacle: Option<&str>,
    begin_others: impl FnOnce(),
) -> anyhow::Result<()> {
    let started = Instant::now();
    // Programs that a later chapter needs may still be built.
    let plane = ControlPlane::begin(&Options {
        pods: Pods::Alive,
        registry: true,
        ..Options::default()
    })?;
    narrator.ok(format_args!(
        "etcd, API server and controllers are ready after {} at {}",
        seconds(started.elapsed()),
        plane.server()
    ));
    for (part, found) in plane.provide(&part::BASIC)? {
        if matches!(found.source, Source::Assets | Source::Path) {
            narrator.say(format_args!(
                "{} is the machine's own: {}",
                part.name(),
                found.file.display()
            ));
        }
    }
    let started = Instant::now();
    plane.enliven()?;
    narrator.ok(format_args!(
        "a scheduler and kwok, whose pods are ready without running, after {}",
        seconds(started.elapsed())
    ));
    begin_others();
    let mut tour = Tour::begin(narrator, &plane, program)?;
    tour.run()?;
    if let Some(obstacle) = obstacle {
        narrator.all_is_well();
        narrator.say(format_args!(
            "Left out: an installation with helm on a real node ({obstacle})."
        ));
        tour.stay();
    }
    tour.leave()
}

/// The path of a program built beside this one. Cargo puts examples into a folder below that of the programs.
fn beside_us(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let built = own.parent().and_then(Path::parent);
    let program = built.map(|folder| folder.join(name)).filter(|path| path.is_file());
    program.with_context(|| format!("there is no {name} beside this program: run `cargo build`, or `make demo`"))
}

fn tell_failure(narrator: &Narrator, error: &anyhow::Error) {
    match error.downcast_ref::<Stop>() {
        // A person who pressed Ctrl-C needs no report of the errors that the interruption has caused.
        _ if narrator.interruption().check().is_err() => {}
        Some(Stop::Interrupted) => {}
        Some(Stop::Unproven { claim, seen }) => {
            narrator.failed(claim);
            narrator.say(seen);
        }
        None => narrator.failed(report::chain(error.as_ref())),
    }
}
