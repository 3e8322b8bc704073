//! The first lines of a plan, as warnings for the person who edits the ConfigMap.
//!
//! Must never hold up the edit for longer than the API server waits, and never refuse it.

use std::time::Duration;

use addon_core::operator::edit::Edited;
use command::paint::Paint;
use report::secrets::Secrets;

use crate::document::Plan;
use crate::planner::{Change, NoPlan, Planner};
use crate::text::text;

/// The number of lines.
const LINES: usize = 8;

/// The first lines of the plan of an edit, with masked secrets; or the reason why there is no plan within this time.
pub async fn of_edit(planner: &Planner, edited: Edited, within: Duration, secrets: &Secrets) -> Vec<String> {
    match planner.plan_soon(Change::Edit(edited), within).await {
        Ok((plan, known)) => {
            let of_change = Secrets::default();
            of_change.learn(known);
            shortened(&text(&masked(&plan, &[&of_change, secrets]), Paint::Plain))
        }
        Err(error @ NoPlan::Late(_)) => vec![format!("{error}: `addon-operator plan -f FILE` takes its time")],
        Err(error) => vec![secrets.masked(&format!("there is no plan: {error}")).into_owned()],
    }
}

/// The plan with masked secrets. Its text cuts long values, and half of a secret could not be recognised.
fn masked(plan: &Plan, secrets: &[&Secrets]) -> Plan {
    let mut document = serde_json::to_value(plan).expect("a plan is plain data with text keys");
    for secrets in secrets {
        secrets.mask(&mut document);
    }
    serde_json::from_value(document).expect("masking replaces texts by texts")
}

/// The first lines, and the number of the others.
fn shortened(text: &str) -> Vec<String> {
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut lines: Vec<String> = all.iter().take(LINES).map(|line| (*line).to_owned()).collect();
    let rest = all.len() - lines.len();
    if rest > 0 {
        lines.push(format!("{rest} more lines: `addon-operator plan -f FILE`"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lines_are_shown_and_the_others_counted() {
        assert_eq!(shortened("1. a runs\n\nmodules: 1\n"), ["1. a runs", "modules: 1"]);
        let many = "line\n".repeat(20);
        let lines = shortened(&many);
        assert_eq!(
            (lines.len(), lines[8].as_str()),
            (9, "12 more lines: `addon-operator plan -f FILE`")
        );
    }
}
