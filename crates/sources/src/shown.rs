//! The report about one source, for `module source status`.
//!
//! Programs use the keys of the report, so no key is ever renamed. Must never show an unknown fact as an absent one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use channel_core::choice::{Choice, Subject, Target};
use channel_core::following::Status;
use channel_core::reference::ImageDigest;
use channel_core::source::ModuleSource;
use jiff::Timestamp;
use serde::Serialize;

use super::record::Record;

/// The report about one source.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub(super) repository: String,
    /// The wanted version as people write it.
    pub(super) version: String,
    /// The digest that a person has pinned.
    pub(super) pin: Option<ImageDigest>,
    /// The version in use; none before the first files have come.
    pub(super) running: Option<Target>,
    /// Whether this process has handed over the files of that version.
    pub(super) in_use: bool,
    /// The version with which the module did well last.
    pub(super) good: Option<Target>,
    pub(super) former: Option<Target>,
    /// The wanted version, if it is not in use.
    pub(super) available: Option<Target>,
    /// The reasons for which the wanted version waits.
    pub(super) waits: Vec<String>,
    /// The reason why no version is wanted.
    pub(super) idle: Option<String>,
    /// The version whose files cannot be used.
    pub(super) unfit: Option<Unfit>,
    /// The versions that failed where another did well.
    pub(super) bad: BTreeMap<ImageDigest, String>,
    /// The end of the last complete round of questions.
    pub(super) checked: Option<Timestamp>,
    /// The time of the next round.
    pub(super) next: Option<Timestamp>,
    /// The error of the last round, or of the last look at the values of the source.
    pub(super) trouble: Option<String>,
}

/// A version whose files cannot be used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Unfit {
    pub(super) digest: ImageDigest,
    pub(super) why: String,
}

impl Shown {
    pub(super) fn of(
        source: &ModuleSource,
        record: &Record,
        in_use: bool,
        status: &Status,
        unfit: Option<(Target, String)>,
        unread: Option<&String>,
    ) -> Self {
        let (available, waits, idle) = match &status.choice {
            None => (None, Vec::new(), None),
            Some(Choice::Nothing(idle)) => (None, Vec::new(), Some(idle.to_string())),
            Some(Choice::Begin(target)) => (Some(target.clone()), Vec::new(), None),
            Some(Choice::Waits { target, reasons, .. }) => {
                let told = reasons.iter().map(|reason| reason.told(Subject::Module));
                (Some(target.clone()), told.collect(), None)
            }
        };
        let is_in_use =
            |target: &Target| in_use && record.running.as_ref().is_some_and(|it| it.digest == target.digest);
        Self {
            repository: source.repository.to_string(),
            version: source.version.to_string(),
            pin: source.pin.clone(),
            running: record.running.clone(),
            in_use,
            good: record.good.clone(),
            former: record.former.clone(),
            available: available.filter(|target| !is_in_use(target)),
            waits,
            idle,
            unfit: unfit.map(|(target, why)| Unfit {
                digest: target.digest,
                why,
            }),
            bad: record.bad.clone(),
            checked: status.checked,
            next: status.next,
            trouble: status.trouble.as_ref().or(unread).cloned(),
        }
    }

    /// The files that a start would use if no version can be learned, and the reason; none if one was learned.
    pub(super) fn lack(&self) -> Option<String> {
        if self.in_use {
            let trouble = self.trouble.as_ref()?;
            return Some(format!("a start would use its kept files: {trouble}"));
        }
        let unfit = || {
            self.unfit
                .as_ref()
                .map(|Unfit { digest, why }| format!("{digest}: {why}"))
        };
        let waits = || (!self.waits.is_empty()).then(|| self.waits.join("; "));
        let why = self
            .trouble
            .clone()
            .or_else(unfit)
            .or_else(waits)
            .or_else(|| self.idle.clone());
        let why = why.unwrap_or_else(|| "no version was there in time".to_owned());
        Some(format!("a start would have no files for it: {why}"))
    }

    /// The report as text for people.
    pub(super) fn text(&self, module: &str) -> String {
        let mut lines = format!("module '{module}' from {}, version {}\n", self.repository, self.version);
        let mut line = |name: &str, text: String| {
            let _ = writeln!(lines, "  {:<11}{text}", format!("{name}:"));
        };
        if let Some(pin) = &self.pin {
            line("pinned", pin.as_str().to_owned());
        }
        match &self.running {
            Some(running) if self.in_use => line("in use", named(running)),
            Some(running) => line(
                "in use",
                format!("none; {} was, and no copy of it is left", named(running)),
            ),
            None => line("in use", "none: no files have come yet".to_owned()),
        }
        if let Some(good) = self.good.as_ref().filter(|good| Some(*good) != self.running.as_ref()) {
            line(
                "good",
                format!("{}, to which the module returns if it fails", named(good)),
            );
        }
        if let Some(available) = &self.available {
            line("available", named(available));
        }
        for wait in &self.waits {
            line("waits", wait.clone());
        }
        if let Some(idle) = &self.idle {
            line("version", idle.clone());
        }
        if let Some(unfit) = &self.unfit {
            line(
                "unusable",
                format!(
                    "{}: {}",
                    unfit.digest.as_str(),
                    unfit.why.replace('\n', "\n             ")
                ),
            );
        }
        for (digest, why) in &self.bad {
            line("failed", format!("{}: {why}", digest.as_str()));
        }
        if let Some(checked) = &self.checked {
            line("checked", format!("{checked:.0}"));
        }
        if let Some(trouble) = &self.trouble {
            line("trouble", trouble.clone());
        }
        lines
    }
}

fn named(target: &Target) -> String {
    let tag = target.tag.as_ref().map(|tag| format!("{} ", tag.as_str()));
    format!("{}{}", tag.unwrap_or_default(), target.digest.as_str())
}
