//! The state of one module: everything about it, or only the reason for which it waits.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use command::CommandError;
use command::paint::{Paint, Tone};
use command::socket::Socket;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::failure::Refusal;
use super::health::Health;

/// The state of a module, as the socket reports it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::cli) struct Status {
    pub(in crate::cli) name: String,
    pub(super) order: u32,
    pub(in crate::cli) enabled: bool,
    /// Whether a source has decided about the module. Earlier versions do not tell it.
    #[serde(default = "yes")]
    pub(super) decided: bool,
    pub(super) enabled_by: String,
    pub(super) state: String,
    pub(super) waits_for: String,
    pub(super) error: Option<String>,
    /// The remedies for the error. Earlier versions do not tell them.
    #[serde(default)]
    pub(super) hints: Vec<String>,
    /// Warnings about the objects of the release. Earlier versions do not tell them.
    #[serde(default)]
    pub(super) remarks: Vec<String>,
    pub(super) failures: u32,
    #[serde(default)]
    pub(super) late: bool,
    pub(in crate::cli) depends_on: Vec<String>,
    pub(super) failing: Vec<Failing>,
    pub(super) after: Vec<String>,
    pub(super) config_problems: Vec<String>,
    pub(super) version: Option<String>,
    pub(super) release: Option<Release>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) amended: Vec<Amended>,
    #[serde(flatten)]
    pub(super) health: Health,
}

fn yes() -> bool {
    true
}

/// A task that failed and is tried again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::cli) struct Failing {
    pub(super) queue: String,
    pub(super) task: String,
    pub(super) hook: String,
    pub(super) failures: u32,
    pub(super) error: String,
    pub(super) retry_in: Option<u64>,
}

/// The deployed revision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::cli) struct Release {
    pub(super) revision: u32,
    pub(super) deployed: i64,
}

/// A record of the release that was rewritten.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::cli) struct Amended {
    pub(super) revision: u32,
    pub(super) before: String,
    pub(super) objects: String,
}

impl Amended {
    fn line(&self) -> String {
        let Self {
            revision,
            before,
            objects,
        } = self;
        let objects = if objects.is_empty() {
            String::new()
        } else {
            format!(": {objects}")
        };
        format!(
            "record of revision {revision} rewritten, it named kinds that the API server does not serve{objects}; the record of \
             before is in Secret {before}"
        )
    }
}

/// All modules, sorted by order and name.
pub(in crate::cli) fn read(socket: &Socket) -> Result<Vec<Status>, CommandError> {
    Ok(socket.read("/module/status.json?releases=true")?)
}

/// The module with this name.
pub(in crate::cli) fn find<'a>(modules: &'a [Status], name: &str) -> Result<&'a Status, CommandError> {
    let found = modules.iter().find(|status| status.name == name);
    Ok(found.ok_or_else(|| Refusal::NoSuchModule { name: name.to_owned() })?)
}

impl Status {
    pub(super) fn tone(&self) -> Tone {
        if self.state == "Held" {
            Tone::Bad
        } else if !self.enabled && self.decided {
            Tone::Faint
        } else if self.error.is_some() || !self.failing.is_empty() || !self.config_problems.is_empty() {
            Tone::Bad
        } else if self.state == "Ready" {
            Tone::Good
        } else {
            Tone::Waiting
        }
    }

    /// The state for people. An enabled module that has not begun is shown as waiting, and a module about which no
    /// source has decided as undecided; neither is shown as off.
    pub(super) fn standing(&self) -> &str {
        match (self.state.as_str(), self.enabled, self.decided) {
            ("Disabled", true, _) => "Waiting",
            ("Disabled", false, false) => "Undecided",
            (state, _, _) => state,
        }
    }

    pub(super) fn is_on(&self) -> &'static str {
        match (self.enabled, self.decided) {
            (true, _) => "yes",
            (false, true) => "no",
            (false, false) => "unknown",
        }
    }

    /// One line: the reason for which the module waits, else its failure.
    pub(super) fn trouble(&self) -> String {
        let beside = self.failing.first().map(Failing::line);
        let text = match beside {
            Some(beside) if self.waits_for.is_empty() => beside,
            None if self.waits_for.is_empty() => self.health.sentence().unwrap_or_default().to_owned(),
            Some(_) | None => self.waits_for.clone(),
        };
        text.lines().next().unwrap_or_default().to_owned()
    }
}

impl Failing {
    fn line(&self) -> String {
        let Self {
            queue,
            task,
            hook,
            failures,
            error: _,
            retry_in,
        } = self;
        let who = if hook.is_empty() {
            task.clone()
        } else {
            format!("{task} of hook '{hook}'")
        };
        let retry = retry_in.map_or_else(|| "under way".to_owned(), |seconds| format!("in {seconds}s"));
        format!("{who} in queue '{queue}', failed {failures} times, next attempt {retry}")
    }
}

impl Release {
    pub(super) fn age(&self, now: Timestamp) -> String {
        let seconds = now.as_second().saturating_sub(self.deployed).max(0);
        match seconds {
            0..120 => format!("{seconds}s"),
            120..7200 => format!("{}m", seconds / 60),
            7200..172_800 => format!("{}h", seconds / 3600),
            _ => format!("{}d", seconds / 86400),
        }
    }
}

/// Everything that is known about a module.
pub(super) fn full(status: &Status, now: Timestamp, paint: Paint) -> String {
    let mut text = head(status, paint) + &status.health.lines(paint);
    let _ = writeln!(text, "version: {}", status.version.as_deref().unwrap_or("none"));
    let _ = match &status.release {
        Some(release) => writeln!(
            text,
            "release: revision {}, deployed {} ago",
            release.revision,
            release.age(now)
        ),
        None => writeln!(text, "release: none"),
    };
    if !status.depends_on.is_empty() {
        let _ = writeln!(text, "needs: {}", status.depends_on.join(", "));
    }
    text + &hindrances(status, paint) + &remarks(status) + &rewritten(status)
}

/// The state of a module and the reason for which it waits, and the same for every module that it waits for.
pub(in crate::cli) fn why(modules: &[Status], status: &Status, paint: Paint) -> String {
    let held_up = hindrances(status, paint);
    let mut text = head(status, paint) + &status.health.lines(paint);
    text += if held_up.is_empty() {
        "waits for: nothing\n"
    } else {
        &held_up
    };
    text += &remarks(status);
    text += &rewritten(status);
    let mut told = BTreeSet::from([status.name.as_str()]);
    let mut ahead: Vec<&str> = status.after.iter().map(String::as_str).collect();
    while let Some(name) = ahead.pop() {
        let Some(other) = modules
            .iter()
            .find(|other| other.name == name)
            .filter(|_| told.insert(name))
        else {
            continue;
        };
        let beside = other.health.lines(paint) + &hindrances(other, paint);
        let _ = writeln!(text, "\n{}{}", head(other, paint), beside.trim_end());
        ahead.extend(other.after.iter().map(String::as_str));
    }
    text
}

fn head(status: &Status, paint: Paint) -> String {
    let Status { name, order, .. } = status;
    let (enabled, by) = (status.is_on(), &status.enabled_by);
    let by = if status.decided { format!("by {by}") } else { by.clone() };
    let state = paint.paint(status.tone(), status.standing());
    format!("module: {name}\norder: {order}\nenabled: {enabled}, {by}\nstate: {state}\n")
}

/// The rewritten records, a line each.
fn rewritten(status: &Status) -> String {
    let lines = status.amended.iter().map(|amended| amended.line() + "\n");
    lines.collect()
}

fn remarks(status: &Status) -> String {
    status.remarks.iter().fold(String::new(), |mut text, remark| {
        let _ = writeln!(text, "warning: {remark}");
        text
    })
}

fn hindrances(status: &Status, paint: Paint) -> String {
    let mut text = String::new();
    if !status.waits_for.is_empty() {
        let _ = writeln!(text, "waits for: {}", status.waits_for);
    }
    if status.late {
        let _ = writeln!(text, "late: other modules go on without it, except those that need it");
    }
    // The reason often contains the error already.
    if let Some(error) = status.error.as_ref().filter(|error| !status.waits_for.contains(*error)) {
        let failures = status.failures;
        let _ = writeln!(
            text,
            "last failure, {failures} in a row: {}",
            paint.paint(Tone::Bad, error)
        );
    }
    for hint in &status.hints {
        let _ = writeln!(text, "hint: {hint}");
    }
    // The failure of the module's own run was printed above.
    for failing in status.failing.iter().filter(|failing| !failing.hook.is_empty()) {
        let _ = writeln!(text, "failing: {}", failing.line());
        let _ = writeln!(
            text,
            "  {}",
            paint.paint(Tone::Bad, &failing.error.replace('\n', "\n  "))
        );
    }
    for problem in &status.config_problems {
        let _ = writeln!(
            text,
            "ConfigMap, the last good one is in force: {}",
            paint.paint(Tone::Bad, problem)
        );
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(in crate::cli::module) fn status(more: &Value) -> Status {
        let mut all = json!({"name": "one", "order": 20, "enabled": true, "enabled_by": "KubeConfig", "state": "Releasing",
            "waits_for": "", "error": null, "failures": 0, "depends_on": [], "failing": [], "after": [],
            "config_problems": [], "version": null, "release": null});
        let more = more.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        serde_json::from_value(all).unwrap()
    }

    pub(in crate::cli::module) fn now() -> Timestamp {
        Timestamp::from_second(1000).unwrap()
    }

    #[test]
    fn a_module_that_has_not_begun_is_not_told_as_off() {
        let told = |enabled, decided, by: &str| {
            let status =
                status(&json!({"state": "Disabled", "enabled": enabled, "decided": decided, "enabled_by": by}));
            head(&status, Paint::Plain)
                .lines()
                .skip(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            told(true, true, "ConfigMap"),
            "enabled: yes, by ConfigMap state: Waiting"
        );
        assert_eq!(
            told(false, true, "ConfigMap"),
            "enabled: no, by ConfigMap state: Disabled"
        );
        assert_eq!(
            told(false, false, "not decided yet"),
            "enabled: unknown, not decided yet state: Undecided"
        );
    }

    #[test]
    fn why_tells_everything_that_holds_a_module_up() {
        let failing = json!([{"queue": "side", "task": "ModuleHookRun", "hook": "hooks/a.sh", "failures": 2,
            "error": "exit status 1", "retry_in": 5}]);
        let problem = "bad yaml at key 'one'";
        let one = status(
            &json!({"waits_for": "the next try in 5s", "error": "no such chart", "failures": 3, "hints": ["write one"],
            "failing": failing, "config_problems": [problem]}),
        );
        assert_eq!(
            why(&[], &one, Paint::Plain),
            "module: one\norder: 20\nenabled: yes, by KubeConfig\nstate: Releasing\nwaits for: the next try in 5s\n\
             last failure, 3 in a row: no such chart\nhint: write one\n\
             failing: ModuleHookRun of hook 'hooks/a.sh' in queue 'side', failed 2 times, next attempt in 5s\n  \
             exit status 1\nConfigMap, the last good one is in force: bad yaml at key 'one'\n"
        );
        assert!(why(&[], &status(&json!({})), Paint::Plain).ends_with("state: Releasing\nwaits for: nothing\n"));
        let warned = status(&json!({"remarks": ["a webhook"]}));
        assert!(why(&[], &warned, Paint::Plain).ends_with("waits for: nothing\nwarning: a webhook\n"));
        assert!(full(&warned, now(), Paint::Plain).ends_with("release: none\nwarning: a webhook\n"));
    }

    #[test]
    fn why_tells_of_a_rewritten_record_of_a_module_that_waits_for_nothing() {
        let one = status(&json!({"amended": [{"revision": 3, "before": "one.v3.before",
            "objects": "Widget/w of t/v1 (no longer served)"}]}));
        let expected = "waits for: nothing\nrecord of revision 3 rewritten, it named kinds that the API server does not serve: \
                        Widget/w of t/v1 (no longer served); the record of before is in Secret one.v3.before\n";
        let text = why(&[], &one, Paint::Plain);
        assert!(text.ends_with(expected), "{text}");
        assert!(full(&one, now(), Paint::Plain).contains("record of revision 3 rewritten"));
    }

    #[test]
    fn why_follows_the_modules_that_are_waited_for_once() {
        let one = status(&json!({"waits_for": "modules before it: two", "after": ["two"]}));
        let two = status(&json!({"name": "two", "waits_for": "helm", "after": ["one", "gone"]}));
        let text = why(&[one.clone(), two], &one, Paint::Plain);
        assert!(
            text.ends_with(
                "\n\nmodule: two\norder: 20\nenabled: yes, by KubeConfig\nstate: Releasing\nwaits for: helm\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn all_that_is_known_has_version_release_and_needs() {
        let one =
            status(&json!({"version": "0.1.0", "release": {"revision": 3, "deployed": 999}, "depends_on": ["a", "b"]}));
        let text = full(&one, now(), Paint::Plain);
        assert!(
            text.ends_with("version: 0.1.0\nrelease: revision 3, deployed 1s ago\nneeds: a, b\n"),
            "{text}"
        );
    }
}
