//! The health of modules under a version on trial, and the ruling that follows from it.
//!
//! Must never blame the version for objects that it did not touch: if these get unhealthy, too, the cluster is at fault.

use super::record::{Ailment, Report, Ruling, Trial};

/// The modules that are not healthy under the version on trial, and were healthy under the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ailing {
    /// The worst of the modules that the version upgraded.
    upgraded: Option<(String, Ailment)>,
    /// The sentence about a module that the version did not touch.
    untouched: Option<String>,
}

impl Ailing {
    /// The modules in a report; `None` if none of those that the version upgraded is ailing. A revision tells that also
    /// after the pod of the version was replaced.
    pub(super) fn of(trial: &Trial, report: &Report) -> Option<Self> {
        let new = || {
            let all = report.unhealthy.iter();
            all.filter(|(module, _)| !trial.unwell.contains(*module))
        };
        let is_upgraded = |module: &String, ailment: &Ailment| trial.revisions.get(module) != Some(&ailment.revision);
        let upgraded = new().filter(|(module, ailment)| is_upgraded(module, ailment));
        let untouched = new().find(|(module, ailment)| !is_upgraded(module, ailment));
        let ailing = Self {
            upgraded: upgraded
                .max_by_key(|(_, ailment)| (!ailment.is_hindered, ailment.has_failed))
                .map(|(module, ailment)| (module.clone(), ailment.clone())),
            untouched: untouched.map(|(module, ailment)| format!("module {module} {}", told(ailment))),
        };
        ailing.upgraded.is_some().then_some(ailing)
    }

    /// The reason for which the version has failed; `None` while the module may still get healthy.
    pub(super) fn failure(&self) -> Option<String> {
        let (module, ailment) = self.upgraded.as_ref()?;
        let is_its_fault = ailment.has_failed && !ailment.is_hindered && self.untouched.is_none();
        is_its_fault.then(|| format!("module {module} {}", told(ailment)))
    }

    /// The ruling after the limit of the trial.
    pub(super) fn end(&self, limit: &str) -> Option<(Ruling, String)> {
        let (module, ailment) = self.upgraded.as_ref()?;
        if let Some(other) = &self.untouched {
            let why = format!(
                "module {module} {}, but {other} too, which it did not touch",
                told(ailment)
            );
            return Some((Ruling::Unclear, why));
        }
        let ruling = if ailment.is_hindered {
            Ruling::Unclear
        } else {
            Ruling::Failed
        };
        Some((ruling, format!("within {limit} module {module} {}", told(ailment))))
    }

    /// The module that the version upgraded and that is not healthy.
    pub(super) fn trouble(&self) -> Option<String> {
        let (module, ailment) = self.upgraded.as_ref()?;
        Some(format!("module {module} {}", told(ailment)))
    }
}

fn told(ailment: &Ailment) -> String {
    if ailment.sentence.is_empty() {
        "is not healthy".to_owned()
    } else {
        format!("is not healthy: {}", ailment.sentence)
    }
}
