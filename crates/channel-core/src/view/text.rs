//! The report as text: a line for each fact, in aligned columns.
//!
//! Must never shorten a digest: people copy it into the next command.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use super::{Channel, OnTrial, Policy, Replica, Running, View};
use crate::choice::Target;
use crate::policy;
use crate::trial::record::{Failures, Ruling};

/// The width of the column of names: the longest name with its colon and a blank.
const WIDTH: usize = 12;

/// The lines of the text that is being built.
struct Lines(String);

impl Lines {
    /// Adds a line for each text. Only the first line has the name.
    fn add<T: AsRef<str>>(&mut self, name: &str, texts: impl IntoIterator<Item = T>) {
        let mut name = format!("{name}:");
        for text in texts {
            let text = text.as_ref().replace('\n', " ");
            let _ = writeln!(self.0, "{name:WIDTH$}{text}");
            name.clear();
        }
    }
}

impl View {
    /// The report as text.
    pub fn text(&self, now: Timestamp) -> String {
        let Self {
            state,
            why,
            running,
            channel,
            policy,
            approved,
            available,
            waits,
            next,
            check,
            trial,
            stage,
            failed,
            unclear,
            warnings,
            replica,
        } = self;
        let mut lines = Lines(String::new());
        lines.add("state", [state.word()]);
        lines.add("why", why);
        running.show(&mut lines);
        lines.add("channel", channel.as_ref().map(Channel::line));
        lines.add("policy", policy.as_ref().map(Policy::line));
        lines.add("approved", approved.iter().map(ToString::to_string));
        lines.add("available", available.as_ref().map(with_digest));
        lines.add("waits for", waits.iter().map(|wait| &wait.text));
        match trial {
            Some(trial) => trial.show(&mut lines, stage.as_ref(), now),
            None => lines.add("stage", stage),
        }
        lines.add("next", [&next.text]);
        let checked = check.at.map(|at| {
            let again = check.next.filter(|next| replica.leads && *next > now);
            let again = again.map(|next| format!(", again in {}", until(next, now)));
            format!("{} ago{}", until(now, at), again.unwrap_or_default())
        });
        lines.add("checked", checked);
        lines.add("trouble", &check.trouble);
        lines.add("failed", failed.iter().map(|(digest, why)| format!("{digest}: {why}")));
        let unclear = unclear.as_ref().map(|unclear| {
            let again = Some(unclear.again).filter(|again| *again > now);
            let again = again.map_or_else(|| "now".to_owned(), |again| format!("in {}", until(again, now)));
            let (digest, why) = (&unclear.digest, &unclear.why);
            format!(
                "{digest}: {why}; {} without a result, another {again}",
                times(unclear.times)
            )
        });
        lines.add("unclear", unclear);
        lines.add("warning", warnings.iter().map(|warning| &warning.text));
        lines.add("asked", replica.line());
        let mut hints: Vec<&str> = waits.iter().filter_map(|wait| wait.hint).collect();
        hints.dedup();
        for hint in hints {
            let _ = writeln!(lines.0, "hint: {hint}");
        }
        lines.0
    }
}

impl Running {
    fn show(&self, lines: &mut Lines) {
        let Self {
            image,
            former,
            digests,
            version,
            verified,
            not_verified,
        } = self;
        lines.add("running", version);
        lines.add("image", image);
        let is_told = |digest: &str| image.as_ref().is_some_and(|image| image.ends_with(digest));
        let digests = digests.iter().map(ToString::to_string);
        lines.add("digests", digests.filter(|digest| !is_told(digest)));
        lines.add("former", former);
        lines.add(
            "verified",
            verified.map(|verified| match (verified, not_verified) {
                (true, _) => "yes".to_owned(),
                (false, Some(why)) => format!("no: {why}"),
                (false, None) => "no".to_owned(),
            }),
        );
    }
}

impl Channel {
    fn line(&self) -> String {
        let Self { name, kind, from } = self;
        match *from {
            "image" => format!("{name}, the tag of the operator's own image"),
            _ => format!("{name}, a {kind} (releaseChannel)"),
        }
    }
}

impl Policy {
    fn line(&self) -> String {
        let Self {
            mode,
            delay,
            trial_limit,
            windows,
        } = self;
        let mut parts = vec![format!("mode {mode}")];
        if *delay > 0 {
            parts.push(format!("delay {}", span(Duration::from_secs(*delay))));
        }
        if windows.is_empty() {
            parts.push("at any time".to_owned());
        } else {
            parts.push(windows.join(" or "));
        }
        let default = policy::Policy::default().trial_limit;
        if *trial_limit != default.as_secs() {
            parts.push(format!("trials up to {}", span(Duration::from_secs(*trial_limit))));
        }
        parts.join(", ")
    }
}

impl OnTrial {
    fn show(&self, lines: &mut Lines, stage: Option<&String>, now: Timestamp) {
        let Self {
            of,
            begun,
            limit: _,
            pod,
            pod_is,
            converged,
            failing,
            failed_before,
            verdict,
            steps: _,
        } = self;
        lines.add(
            "trial",
            [format!("of {}, begun {} ago", with_digest(of), until(now, *begun))],
        );
        lines.add("stage", stage);
        let pod = pod.as_ref().zip(pod_is.as_ref());
        lines.add("pod", pod.map(|(pod, is)| format!("{pod}, {is}")));
        let converged = converged.map(|at| format!("its first converge was over {} ago", until(now, at)));
        lines.add("reports", converged);
        let failing = failing.iter().map(|(subject, failures)| {
            let before = failed_before.contains(subject).then_some(", as it did before");
            format!("{subject}, {}{}", fails(*failures), before.unwrap_or_default())
        });
        lines.add("fails", failing);
        let verdict = verdict.as_ref().map(|verdict| {
            let ruling = match verdict.ruling {
                Ruling::Passed => "passed",
                Ruling::Failed => "failed",
                Ruling::Unclear => "unclear",
                Ruling::Void => "void",
            };
            let ago = until(now, verdict.at);
            format!("{ruling}, {ago} ago, by {}: {}", verdict.judge, verdict.why)
        });
        lines.add("verdict", verdict);
    }
}

impl Replica {
    fn line(&self) -> Option<String> {
        match (self.leads, &self.leader) {
            (true, _) => None,
            (false, Some(leader)) => Some(format!(
                "a standby; {leader} leads, and the leader alone asks the registry"
            )),
            (false, None) => Some("a standby; nobody leads, and the leader alone asks the registry".to_owned()),
        }
    }
}

/// The name of a version for people: its version, else its tag, else its digest.
pub(super) fn name(target: &Target) -> String {
    let version = target.version.as_ref().map(ToString::to_string);
    let tag = || target.tag.as_ref().map(ToString::to_string);
    version.or_else(tag).unwrap_or_else(|| target.digest.to_string())
}

fn with_digest(target: &Target) -> String {
    match (&target.version, &target.tag) {
        (None, None) => target.digest.to_string(),
        (Some(_), _) | (None, Some(_)) => format!("{}, {}", name(target), target.digest),
    }
}

fn until(later: Timestamp, earlier: Timestamp) -> String {
    let between = later.duration_since(earlier);
    span(if between.is_negative() {
        Duration::ZERO
    } else {
        between.unsigned_abs()
    })
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn fails(failures: Failures) -> String {
    match failures {
        Failures::InARow(count) => times(count),
        Failures::ForGood => "not to be run as it is declared".to_owned(),
    }
}

/// A duration in its two largest units.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let of = |large: u64, small: u64, names: [&str; 2]| {
        let rest = seconds % large / small;
        let rest = Some(rest)
            .filter(|rest| *rest > 0)
            .map(|rest| format!(" {rest}{}", names[1]));
        format!("{}{}{}", seconds / large, names[0], rest.unwrap_or_default())
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => of(60, 1, ["m", "s"]),
        3600..86400 => of(3600, 60, ["h", "m"]),
        _ => of(86400, 3600, ["d", "h"]),
    }
}
