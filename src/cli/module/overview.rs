//! The table of all modules. Reasons that are wider than the terminal stand below their modules.

use command::paint::{Paint, Tone};
use command::table::Table;
use jiff::Timestamp;

use super::status::Status;

/// A table with one line per module. If the reasons make it wider than the terminal, they stand below their modules.
pub(super) fn table(modules: &[Status], now: Timestamp, paint: Paint, columns: Option<usize>) -> String {
    if modules.is_empty() {
        return "No modules.\n".to_owned();
    }
    let mut table = Table::new(HEAD);
    for status in modules {
        table.row(cells(status, now));
    }
    table.fitted(paint, columns)
}

const HEAD: [&str; 9] = [
    "NAME",
    "ORDER",
    "ENABLED",
    "BY",
    "STATE",
    "HEALTH",
    "VERSION",
    "RELEASE",
    "WAITS FOR",
];

fn cells(status: &Status, now: Timestamp) -> [(Tone, String); 9] {
    let plain = |text: &str| (Tone::Neutral, text.to_owned());
    let release = status.release.as_ref();
    let release = release.map(|release| format!("{}, {} ago", release.revision, release.age(now)));
    [
        plain(&status.name),
        plain(&status.order.to_string()),
        plain(status.is_on()),
        plain(&status.enabled_by),
        (status.tone(), status.standing().to_owned()),
        status.health.cell(),
        plain(status.version.as_deref().unwrap_or("-")),
        plain(release.as_deref().unwrap_or("-")),
        (Tone::Neutral, status.trouble()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::status::tests::{now, status};
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let modules = [
            status(
                &json!({"name": "a-long-name", "waits_for": "helm\nmore", "version": "0.1.0",
                "release": {"revision": 3, "deployed": 400}}),
            ),
            status(&json!({"name": "b", "state": "Ready", "health": "RollingOut",
                "unhealthy": "Deployment web: 0 of 1 pods are ready"})),
            status(
                &json!({"name": "c", "state": "Ready", "health": "Healthy", "in_maintenance": true,
                "left": ["ConfigMap c: data.size is left to kubectl"]}),
            ),
        ];
        let expected = "\
NAME         ORDER  ENABLED  BY          STATE      HEALTH                         VERSION  RELEASE     WAITS FOR
a-long-name  20     yes      KubeConfig  Releasing  -                              0.1.0    3, 10m ago  helm
b            20     yes      KubeConfig  Ready      RollingOut                     -        -           Deployment web: 0 of 1 pods are ready
c            20     yes      KubeConfig  Ready      Healthy, maintenance, altered  -        -
";
        assert_eq!(table(&modules, now(), Paint::Plain, None), expected);
        assert_eq!(table(&modules, now(), Paint::Plain, Some(150)), expected);
        let coloured = table(&modules, now(), Paint::Colours, None);
        assert!(
            coloured.contains("  \u{1b}[32mReady\u{1b}[0m      \u{1b}[33mRollingOut\u{1b}[0m"),
            "{coloured}"
        );
    }

    #[test]
    fn reasons_that_are_too_long_stand_below_and_once() {
        let long = json!({"waits_for": "modules before it: the-first, the-second, the-third, the-fourth"});
        let modules = [
            status(&long),
            status(&long),
            status(&json!({"name": "b", "state": "Ready"})),
        ];
        let expected = "\
NAME  ORDER  ENABLED  BY          STATE      HEALTH  VERSION  RELEASE  WAITS FOR
one   20     yes      KubeConfig  Releasing  -       -        -
    modules before it: the-first, the-second, the-third,
    the-fourth
one   20     yes      KubeConfig  Releasing  -       -        -
    as above
b     20     yes      KubeConfig  Ready      -       -        -
";
        assert_eq!(table(&modules, now(), Paint::Plain, Some(60)), expected);
    }
}
