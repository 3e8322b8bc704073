//! `module events`: the Kubernetes Events about a module, its objects and their pods.
//!
//! Must never ask the operator: everything is read with the rights of the person. Must never tell a value that its key
//! marks as a secret.

use std::fmt::Write as _;

use clap::Args;
use command::edit::config_map;
use command::paint::{Paint, Tone, columns};
use command::reach::{self, AskError};
use command::table::Table;
use command::{Caller, CommandError, Output, Target, print};
use helm_yaml::yaml;
use jiff::Timestamp;
use serde_json::json;

use crate::events::{self, Told};

/// The largest number of Events that are shown, unless the person names another.
const MOST: usize = 100;

/// The arguments: the module.
#[derive(Debug, Args)]
pub struct Events {
    /// Name of the module
    module: String,
    /// Largest number of Events; the newest are shown
    #[arg(long, value_name = "NUMBER", default_value_t = MOST)]
    tail: usize,
}

impl Events {
    pub fn run(self, target: &Target, output: Option<Output>, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = target.start_args(None);
        let (module, settings, runtime, cluster) =
            reach::with_module(&args, caller.environment, &self.module).map_err(AskError::from)?;
        let config_map = config_map(&settings);
        let found = events::about(&cluster, module.as_str(), &config_map);
        let told = runtime.block_on(found).map_err(AskError::from)?;
        let left_out = told.len().saturating_sub(self.tail);
        let shown = &told[left_out..];
        match output.unwrap_or(Output::Text) {
            Output::Json => print(&json!(shown).to_string()),
            Output::Yaml => print(&yaml::to_string(&json!(shown))),
            Output::Text | Output::Wide if told.is_empty() => print(&format!("No Event is about module '{module}'")),
            Output::Text | Output::Wide => {
                let mut text = String::new();
                if left_out > 0 {
                    let _ = writeln!(text, "{left_out} older ones are left out: --tail shows more");
                }
                text += &table(shown, Timestamp::now()).fitted(Paint::of(caller.environment), columns());
                print(&text)
            }
        }
    }
}

fn table(told: &[Told], now: Timestamp) -> Table<5> {
    let mut table = Table::new(["LAST", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    for one in told {
        let tone = if one.weight == "Warning" {
            Tone::Bad
        } else {
            Tone::Neutral
        };
        let mut message = one.message.split_whitespace().collect::<Vec<_>>().join(" ");
        if one.count > 1 {
            let _ = write!(message, " ({} times)", one.count);
        }
        table.row([
            (
                Tone::Neutral,
                format!("{} ago", age(now.as_second() - one.last.as_second())),
            ),
            (tone, one.weight.clone()),
            (Tone::Neutral, one.reason.clone()),
            (Tone::Neutral, one.object.clone()),
            (Tone::Neutral, message),
        ]);
    }
    table
}

/// A number of seconds as ages of releases are told.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_with_its_age() {
        let told = Told {
            last: Timestamp::from_second(100).unwrap(),
            weight: "Warning".to_owned(),
            reason: "BackOff".to_owned(),
            object: "Pod/web-0".to_owned(),
            message: "it\nends".to_owned(),
            count: 3,
        };
        let expected =
            "LAST    TYPE     REASON   OBJECT     MESSAGE\n2h ago  Warning  BackOff  Pod/web-0  it ends (3 times)\n";
        let now = Timestamp::from_second(100 + 2 * 3_600).unwrap();
        assert_eq!(table(&[told], now).show(Paint::Plain), expected);
        assert_eq!([5, 125, 200_000, -7].map(age), ["5s", "2m", "2d", "0s"]);
    }
}
