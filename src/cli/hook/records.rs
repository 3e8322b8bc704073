//! `hook record`, `hook records` and `hook replay`: has runs of a hook recorded, fetches the records, and repeats a run.

use std::fmt::Write as _;
use std::path::PathBuf;

use authoring::replaying;
use clap::Args;
use command::paint::{Paint, Tone};
use command::socket::{Socket, SocketError, encode};
use command::table::Table;
use command::{Caller, CommandError, Output, print};
use serde_json::Value;

use crate::cli::failure::Refusal;

/// The arguments of `hook record`.
#[derive(Debug, Args)]
pub(super) struct Record {
    /// Name of the hook, as in the answer of `hook list`, or of `module snapshots` for a hook of a module
    name: String,
    /// Name of the hook's module; without it a hook of no module is recorded
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// Number of runs to record; 0 ends the recording
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    runs: u32,
}

/// The arguments of `hook records`.
#[derive(Debug, Args)]
pub(super) struct Records {
    /// Identifier of a record to print, as in the list; without it the records are listed
    id: Option<String>,
}

/// The arguments of `hook replay`.
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// File with the record, as `hook records ID` prints it
    case: PathBuf,
    /// Program to run; without it the one at the recorded path
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

impl Record {
    pub(super) fn run(&self, socket: &Socket) -> Result<(), CommandError> {
        let runs = self.runs.to_string();
        let mut fields = vec![("hook", self.name.as_str()), ("runs", &runs)];
        fields.extend(self.module.as_deref().map(|module| ("module", module)));
        match socket.post("/hook/record", &fields) {
            Ok(answer) => print(&answer),
            Err(SocketError::Refused { message, .. }) => Err(Refusal::NotRecorded { message }.into()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Records {
    pub(super) fn run(&self, socket: &Socket, output: Output, caller: &Caller<'_>) -> Result<(), CommandError> {
        match &self.id {
            Some(id) => {
                // A record is copied into a file, so its text is JSON, too.
                let form = if output == Output::Yaml { "yaml" } else { "json" };
                let answer = socket.get_patiently(&format!("/hook/records/{}.{form}", encode(id)));
                let answer = answer.map_err(not_shown)?;
                let in_lines = |record: Value| serde_json::to_string_pretty(&record).ok();
                let shown = serde_json::from_str(&answer).ok().and_then(in_lines);
                print(&shown.unwrap_or(answer))
            }
            None if matches!(output, Output::Text | Output::Wide) => {
                let answer: Value = socket.read("/hook/records.json")?;
                print(&told(&answer, Paint::of(caller.environment)))
            }
            None => print(&socket.get(&format!("/hook/records.{}", output.extension()))?),
        }
    }
}

fn not_shown(error: SocketError) -> CommandError {
    match error {
        SocketError::Refused { message, .. } => Refusal::NoRecord { message }.into(),
        error => error.into(),
    }
}

/// The records as a table, and a line for each hook that is recorded.
fn told(answer: &Value, paint: Paint) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let items = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
    let records = items("records");
    let mut told = if records.is_empty() {
        "there are no records; `hook record NAME` makes one\n".to_owned()
    } else {
        let mut table = Table::new(["ID", "HOOK", "MODULE", "BINDING", "SECONDS", "END", "BYTES"]);
        for record in &records {
            let failed = record["failure"].is_string();
            let seconds = record["seconds"].as_f64();
            let cells = [
                text(&record["id"]),
                text(&record["hook"]),
                text(&record["module"]),
                text(&record["cause"]),
                seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.3}")),
                end(&record["end"]),
                record["bytes"].to_string(),
            ];
            let tone = if failed { Tone::Bad } else { Tone::Neutral };
            table.row(cells.map(|cell| (tone, cell)));
        }
        table.show(paint)
    };
    for wanted in items("recorded") {
        let of = wanted["module"]
            .as_str()
            .map_or_else(String::new, |module| format!(" of module '{module}'"));
        let (hook, runs) = (text(&wanted["hook"]), &wanted["runs"]);
        let _ = writeln!(told, "runs to come that are recorded: {runs} of hook '{hook}'{of}");
    }
    told
}

/// The end of a run in a word.
fn end(end: &Value) -> String {
    match (end["exitCode"].as_i64(), end["signal"].as_i64(), end.as_str()) {
        (Some(code), _, _) => format!("exit code {code}"),
        (_, Some(number), _) => format!("signal {number}"),
        (_, _, Some("deadline")) => "deadline".to_owned(),
        (_, _, Some("notStarted")) => "not started".to_owned(),
        _ => "-".to_owned(),
    }
}

impl Replay {
    pub(super) fn run(&self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let report = replaying::replay(&self.case, self.program.as_deref(), caller.environment)?;
        print(&report.to_string())?;
        if report.is_same() {
            Ok(())
        } else {
            Err(Refusal::Differs.into())
        }
    }
}
