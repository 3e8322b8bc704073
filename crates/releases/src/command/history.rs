//! `module history`: the revisions of a module's release, from helm's records.
//!
//! Must never ask the operator: the records are read with the rights of the person.

use std::fmt::Write as _;

use clap::Args;
use command::paint::{Paint, Tone, columns};
use command::reach::{self, AskError};
use command::table::Table;
use command::{Caller, CommandError, Output, Target, print};
use helm_yaml::yaml;
use serde_json::json;

use crate::revisions::history::{Past, history};

/// The arguments: the module.
#[derive(Debug, Args)]
pub struct History {
    /// Name of the module
    module: String,
}

/// The number of characters of a digest that tell two of them apart for people.
const SHORT: usize = 8;

impl History {
    pub fn run(self, target: &Target, output: Option<Output>, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = target.start_args(None);
        let (module, _, runtime, cluster) =
            reach::with_module(&args, caller.environment, &self.module).map_err(AskError::from)?;
        let (past, left_out) = runtime
            .block_on(history(&cluster, module.as_str()))
            .map_err(AskError::from)?;
        match output.unwrap_or(Output::Text) {
            Output::Json => print(&json!(past).to_string()),
            Output::Yaml => print(&yaml::to_string(&json!(past))),
            Output::Text | Output::Wide if past.is_empty() => print(&format!("Module '{module}' has no release")),
            Output::Text | Output::Wide => {
                let mut text = table(&past).fitted(Paint::of(caller.environment), columns());
                if left_out > 0 {
                    let _ = writeln!(text, "and {left_out} older ones");
                }
                print(&text)
            }
        }
    }
}

fn table(past: &[Past]) -> Table<6> {
    let mut table = Table::new(["REVISION", "UPDATED", "STATUS", "CHART", "CONFIG", "NOTES"]);
    for one in past {
        let tone = match one.status.as_str() {
            "deployed" => Tone::Good,
            "failed" => Tone::Bad,
            "superseded" => Tone::Faint,
            _ => Tone::Waiting,
        };
        let short = |digest: &String| digest.chars().take(SHORT).collect();
        table.row([
            (Tone::Neutral, one.revision.to_string()),
            (Tone::Neutral, format!("{:.0}", one.updated)),
            (tone, one.status.clone()),
            (Tone::Neutral, one.chart.clone()),
            (Tone::Neutral, one.config.as_ref().map_or_else(|| "-".to_owned(), short)),
            (Tone::Neutral, one.notes.join("; ")),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_revision_is_a_line() {
        let past = Past {
            revision: 2,
            updated: Timestamp::UNIX_EPOCH,
            status: "failed".to_owned(),
            chart: "web-1.2.0".to_owned(),
            app_version: String::new(),
            config: Some("0123456789".to_owned()),
            inputs: None,
            notes: vec!["a".to_owned(), "b".to_owned()],
        };
        let expected = "REVISION  UPDATED               STATUS  CHART      CONFIG    NOTES\n\
                        2         1970-01-01T00:00:00Z  failed  web-1.2.0  01234567  a; b\n";
        assert_eq!(table(&[past]).show(Paint::Plain), expected);
    }
}
