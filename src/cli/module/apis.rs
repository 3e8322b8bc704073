//! `module apis`: the kinds in releases that a version of Kubernetes calls deprecated or does not have.

use std::fmt::Write as _;

use clap::Args;
use command::paint::{Paint, Tone, columns};
use command::socket::{Socket, SocketError, encode};
use command::table::Table;
use command::{CommandError, Output, print};
use report::apis::{ApisAnswer, ChartOfNow, OutdatedRow, UnreadRelease};
use report::plural;

use super::super::failure::Refusal;

#[derive(Debug, Args)]
pub(super) struct Apis {
    /// Version of Kubernetes to judge for, for example 1.38 [default: that of the API server]
    #[arg(long = "target", value_name = "VERSION")]
    kubernetes: Option<String>,
}

impl Apis {
    pub(super) fn run(&self, socket: &Socket, output: Option<Output>, paint: Paint) -> Result<(), CommandError> {
        let target = self.kubernetes.as_deref().map(encode);
        let query = target.map_or_else(String::new, |version| format!("?target={version}"));
        let get = |form: &str| socket.get_patiently(&format!("/module/apis.{form}{query}"));
        let answer = get("json").map_err(|error| match error {
            // For other commands a refusal ends with exit code 0. Here that would mean that no kind is gone.
            SocketError::Refused { message, .. } => Refusal::NotJudged { message }.into(),
            error => CommandError::Socket(error),
        })?;
        let report: ApisAnswer = serde_json::from_str(&answer).map_err(SocketError::from)?;
        match output {
            None | Some(Output::Text | Output::Wide) => print(&shown(&report, paint, columns()))?,
            Some(Output::Json) => print(&answer)?,
            Some(Output::Yaml) => print(&get("yaml")?)?,
        }
        if report.is_fit() {
            Ok(())
        } else {
            Err(Refusal::Unfit {
                version: report.target.to_string(),
            }
            .into())
        }
    }
}

const HEAD: [&str; 8] = [
    "MODULE",
    "RELEASE",
    "KIND",
    "OBJECTS",
    "STATE",
    "DEPRECATED",
    "GONE",
    "REMEDY",
];

/// The table of the outdated kinds, and the extent of the search.
fn shown(report: &ApisAnswer, paint: Paint, columns: Option<usize>) -> String {
    let mut text = String::new();
    if !report.outdated.is_empty() {
        let mut table = Table::new(HEAD);
        for row in &report.outdated {
            table.row(cells(row));
        }
        text = table.fitted(paint, columns) + "\n";
    }
    for UnreadRelease { release, error } in &report.unread {
        let _ = writeln!(text, "The record of release '{release}' cannot be read: {error}");
    }
    let ApisAnswer {
        server,
        target,
        releases,
        kinds,
        ..
    } = report;
    let (kinds, releases) = (plural(*kinds, "kind"), plural(*releases, "release"));
    let looked_at = format!("looked at {kinds} in {releases}, with their helm hooks");
    let _ = match report.outdated.len() {
        0 if report.unread.is_empty() => writeln!(text, "All fine for Kubernetes {target}: {looked_at}."),
        number => writeln!(text, "{number} outdated for Kubernetes {target}; {looked_at}."),
    };
    if !report.is_running {
        let _ = writeln!(
            text,
            "The API server is of version {server}, so kinds of CRDs are not judged: leave out --target for them."
        );
    }
    let newest = &report.newest_known;
    if target > newest {
        let _ = writeln!(
            text,
            "This program knows what Kubernetes had announced up to {newest}; {target} may take away more."
        );
    }
    text
}

fn cells(row: &OutdatedRow) -> [(Tone, String); 8] {
    let plain = |text: &str| (Tone::Neutral, text.to_owned());
    let tone = if row.is_gone() { Tone::Bad } else { Tone::Waiting };
    let judged = &row.outdated;
    let version = |version: Option<String>| (Tone::Neutral, version.unwrap_or_else(|| "-".to_owned()));
    [
        plain(&row.module),
        plain(&format!("{}.v{}", row.release, row.revision)),
        plain(&format!("{} {}", row.api_version, row.kind)),
        plain(&row.objects.to_string()),
        (tone, judged.state.word().to_owned()),
        version(judged.deprecated.map(|version| version.to_string())),
        version(judged.gone.map(|version| version.to_string())),
        plain(&remedy(row)),
    ]
}

/// The action that a person has to take, if there is one.
fn remedy(row: &OutdatedRow) -> String {
    let chart = match row.chart {
        ChartOfNow::Renders => "change the chart, which still renders it".to_owned(),
        ChartOfNow::Cured => "none: the chart does not render it any more, so the next upgrade cures it".to_owned(),
        ChartOfNow::Absent => "none: the release has no module any more".to_owned(),
        ChartOfNow::Unknown => format!(
            "unknown: the chart cannot be rendered: {}",
            row.chart_error
                .as_deref()
                .and_then(|error| error.lines().next())
                .unwrap_or_default()
        ),
    };
    let replacement = row.outdated.replacement.as_ref();
    let replacement = replacement.map_or_else(|| "no replacement".to_owned(), |kind| format!("use {kind}"));
    let warning = row.outdated.warning.as_ref();
    let warning = warning.map_or_else(String::new, |warning| format!("; the API server says: {warning}"));
    format!("{chart}; {replacement}{warning}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report(more: &Value) -> ApisAnswer {
        let mut all = json!({"server": "1.37.2", "target": "1.37", "is_running": true, "newest_known": "1.37",
            "releases": 12, "kinds": 40, "outdated": [], "unread": []});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn budget() -> Value {
        json!({"module": "site", "release": "site", "revision": 3, "api_version": "policy/v1beta1",
            "kind": "PodDisruptionBudget", "objects": 2, "state": "gone", "deprecated": "1.21", "gone": "1.25",
            "replacement": "policy/v1 PodDisruptionBudget", "warning": null, "chart": "renders", "chart_error": null})
    }

    fn widget(chart: &str) -> Value {
        json!({"module": "mail", "release": "mail", "revision": 1, "api_version": "t/v1beta1", "kind": "Widget",
            "objects": 1, "state": "deprecated", "deprecated": null, "gone": null, "replacement": null,
            "warning": "t/v1beta1 Widget is deprecated", "chart": chart, "chart_error": "no values\nmore"})
    }

    #[test]
    fn kinds_that_are_outdated_stand_in_a_table_with_their_remedies() {
        let found = report(&json!({"outdated": [budget(), widget("cured")]}));
        let expected = "\
MODULE  RELEASE  KIND                                OBJECTS  STATE       DEPRECATED  GONE  REMEDY
site    site.v3  policy/v1beta1 PodDisruptionBudget  2        gone        1.21        1.25  change the chart, which still renders it; use policy/v1 PodDisruptionBudget
mail    mail.v1  t/v1beta1 Widget                    1        deprecated  -           -     none: the chart does not render it any more, so the next upgrade cures it; no replacement; the API server says: t/v1beta1 Widget is deprecated

2 outdated for Kubernetes 1.37; looked at 40 kinds in 12 releases, with their helm hooks.
";
        assert_eq!(shown(&found, Paint::Plain, None), expected);
        assert!(!found.is_fit());
        assert!(report(&json!({"outdated": [widget("cured")]})).is_fit());
    }

    #[test]
    fn remedies_stand_below_where_the_terminal_is_narrow() {
        let found = report(&json!({"outdated": [budget(), widget("unknown")], "target": "1.38", "is_running": false}));
        let expected = "\
MODULE  RELEASE  KIND                                OBJECTS  STATE       DEPRECATED  GONE  REMEDY
site    site.v3  policy/v1beta1 PodDisruptionBudget  2        gone        1.21        1.25
    change the chart, which still renders it; use policy/v1 PodDisruptionBudget
mail    mail.v1  t/v1beta1 Widget                    1        deprecated  -           -
    unknown: the chart cannot be rendered: no values; no replacement; the API server says: t/v1beta1
    Widget is deprecated

2 outdated for Kubernetes 1.38; looked at 40 kinds in 12 releases, with their helm hooks.
The API server is of version 1.37.2, so kinds of CRDs are not judged: leave out --target for them.
This program knows what Kubernetes had announced up to 1.37; 1.38 may take away more.
";
        assert_eq!(shown(&found, Paint::Plain, Some(100)), expected);
    }

    #[test]
    fn without_a_find_the_extent_of_the_look_is_told() {
        let fine = "All fine for Kubernetes 1.37: looked at 40 kinds in 12 releases, with their helm hooks.\n";
        assert_eq!(shown(&report(&json!({})), Paint::Plain, None), fine);
        let unread = report(&json!({"unread": [{"release": "one", "error": "it is no YAML"}]}));
        assert_eq!(
            shown(&unread, Paint::Plain, None),
            "The record of release 'one' cannot be read: it is no YAML\n\
             0 outdated for Kubernetes 1.37; looked at 40 kinds in 12 releases, with their helm hooks.\n"
        );
        assert!(!unread.is_fit());
    }
}
