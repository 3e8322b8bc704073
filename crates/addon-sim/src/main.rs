//! The simulator's command: run seeds, replay a case, step through one.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use addon_sim::generate;
use addon_sim::record::{self, Extent};
use addon_sim::run::{Case, Entry, Report, run};
use addon_sim::shrink::shrink;
use clap::{Parser, Subcommand};

/// Drives the core through random worlds and checks what must hold.
#[derive(Debug, Parser)]
#[command(name = "addon-sim")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run seed after seed; a violation is shrunk and written to a file.
    Run {
        /// Seconds to run; 0 for no limit.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Largest number of cases; 0 for no limit.
        #[arg(long, default_value_t = 0)]
        cases: u64,
        /// The most actions in one case.
        #[arg(long, default_value_t = 24)]
        actions: usize,
        /// Go on after a violation.
        #[arg(long)]
        keep_going: bool,
        /// Do not make failing cases smaller.
        #[arg(long)]
        no_shrink: bool,
        /// Directory for shrunk cases and their logs.
        #[arg(long, default_value = "target/sim")]
        out: PathBuf,
    },
    /// Write a record of the core's behaviour: a digest for each hundred cases.
    Record {
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many cases.
        #[arg(long, default_value_t = 100_000)]
        cases: u64,
        /// The most actions in one case.
        #[arg(long, default_value_t = 24)]
        actions: usize,
        /// The file to write.
        file: PathBuf,
    },
    /// Play the cases of a record again, and name the first hundred whose behaviour differs.
    Compare {
        /// The record.
        file: PathBuf,
    },
    /// Show all steps of the case of a seed, for a comparison with those of another build.
    Log {
        /// The seed.
        seed: u64,
        /// The most actions in the case.
        #[arg(long, default_value_t = 24)]
        actions: usize,
    },
    /// Run a case from a file again.
    Replay {
        /// The case.
        file: PathBuf,
    },
    /// Go through a case step by step.
    Step {
        /// The case.
        file: PathBuf,
        /// Show all steps up to this one at once.
        #[arg(long)]
        to: Option<usize>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run {
            seconds,
            seed,
            cases,
            actions,
            keep_going,
            no_shrink,
            out,
        } => {
            let hunt = Hunt {
                seconds,
                seed,
                cases,
                actions,
                keep_going,
                no_shrink,
                out,
            };
            hunt.go(&mut io::stdout().lock())
        }
        Command::Record {
            seed,
            cases,
            actions,
            file,
        } => record(Extent { seed, cases, actions }, &file),
        Command::Compare { file } => compare(&file, &mut io::stdout().lock()),
        Command::Log { seed, actions } => log(&generate::case(seed, actions), &mut io::stdout().lock()),
        Command::Replay { file } => replay(&file, &mut io::stdout().lock()),
        Command::Step { file, to } => step(&file, to, &mut io::stdout().lock()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "addon-sim: {error}");
            ExitCode::from(64)
        }
    }
}

struct Hunt {
    seconds: u64,
    seed: u64,
    cases: u64,
    actions: usize,
    keep_going: bool,
    no_shrink: bool,
    out: PathBuf,
}

impl Hunt {
    fn go(&self, out: &mut impl Write) -> io::Result<bool> {
        let began = Instant::now();
        let (mut cases, mut steps, mut lives, mut failed) = (0, 0, 0, 0);
        while (self.cases == 0 || cases < self.cases) && (self.seconds == 0 || began.elapsed().as_secs() < self.seconds)
        {
            let case = generate::case(self.seed + cases, self.actions);
            let report = run(&case, false);
            cases += 1;
            steps += report.steps;
            lives += report.lives;
            if report.violation.is_some() {
                failed += 1;
                self.failure(&case, &report, out)?;
                if !self.keep_going {
                    break;
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = steps as f64 / seconds;
        writeln!(
            out,
            "{cases} cases, {lives} lives, {steps} steps in {seconds:.1}s: {rate:.0} steps per second; {failed} failed"
        )?;
        Ok(failed == 0)
    }

    fn failure(&self, case: &Case, report: &Report, out: &mut impl Write) -> io::Result<()> {
        let Some(violation) = &report.violation else {
            return Ok(());
        };
        writeln!(
            out,
            "seed {} violates {}: {}",
            case.seed, violation.invariant, violation.text
        )?;
        if self.no_shrink {
            return Ok(());
        }
        let small = shrink(case, violation.invariant, Duration::from_secs(30));
        std::fs::DirBuilder::new().recursive(true).create(&self.out)?;
        let stem = format!("{}-{}", violation.invariant, case.seed);
        let (json, log) = (
            self.out.join(format!("{stem}.json")),
            self.out.join(format!("{stem}.log")),
        );
        let text = serde_json::to_string_pretty(&small).map_err(io::Error::other)?;
        writeln!(File::create(&json)?, "{text}")?;
        let mut file = File::create(&log)?;
        for (index, entry) in run(&small, true).log.iter().enumerate() {
            show(index, entry, &mut file)?;
        }
        let (actions, modules) = (small.actions.len(), small.setup.modules.len());
        writeln!(
            out,
            "  shrunk to {actions} actions and {modules} modules: {}, told in {}",
            json.display(),
            log.display()
        )
    }
}

fn record(extent: Extent, file: &Path) -> io::Result<bool> {
    let out = File::create(file).map_err(|error| named(file, &error))?;
    extent.record(&mut io::BufWriter::new(out))?;
    Ok(true)
}

fn compare(file: &Path, out: &mut impl Write) -> io::Result<bool> {
    let difference = record::compare(&text(file)?).map_err(|error| named(file, &io::Error::other(error)))?;
    match &difference {
        Some(seeds) => writeln!(
            out,
            "a case of the seeds {} to {} is not as it was",
            seeds.start,
            seeds.end - 1
        )?,
        None => writeln!(out, "all cases are as they were")?,
    }
    Ok(difference.is_none())
}

fn log(case: &Case, out: &mut impl Write) -> io::Result<bool> {
    let report = run(case, true);
    for (index, entry) in report.log.iter().enumerate() {
        show(index, entry, out)?;
    }
    Ok(report.violation.is_none())
}

fn text(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut opened = File::open(file).map_err(|error| named(file, &error))?;
    opened.read_to_string(&mut text).map_err(|error| named(file, &error))?;
    Ok(text)
}

fn named(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

fn read(file: &Path) -> io::Result<Case> {
    serde_json::from_str(&text(file)?).map_err(|error| named(file, &io::Error::other(error)))
}

fn replay(file: &Path, out: &mut impl Write) -> io::Result<bool> {
    let report = run(&read(file)?, false);
    match &report.violation {
        Some(violation) => writeln!(out, "violates {}: {}", violation.invariant, violation.text)?,
        None => writeln!(out, "holds: {} steps in {} lives", report.steps, report.lives)?,
    }
    Ok(report.violation.is_none())
}

fn step(file: &Path, to: Option<usize>, out: &mut impl Write) -> io::Result<bool> {
    let report = run(&read(file)?, true);
    let stdin = io::stdin();
    let interactive = to.is_none() && stdin.is_terminal();
    for (index, entry) in report.log.iter().enumerate() {
        if to.is_some_and(|to| index > to) {
            break;
        }
        show(index, entry, out)?;
        if interactive {
            out.flush()?;
            let mut line = String::new();
            if stdin.lock().read_line(&mut line)? == 0 || line.trim() == "q" {
                break;
            }
        }
    }
    Ok(report.violation.is_none())
}

fn show(index: usize, entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{index:>4}  {:>10.3}s  {}", entry.at, entry.event)?;
    let lists = [("->", &entry.effects), ("is", &entry.states), ("waits", &entry.waits)];
    for (mark, lines) in lists {
        for line in lines {
            writeln!(out, "                     {mark} {line}")?;
        }
    }
    Ok(())
}
