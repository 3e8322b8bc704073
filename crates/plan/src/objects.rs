//! The part of the document about a release and its objects.
//!
//! Must never show the data of a Secret: of these only the names of changed keys are told.

use std::collections::BTreeSet;

use masking::secret::MASK;
use masking::secret::object::is_secret;
use releases::sync::foresight::chart_hook::ChartHook;
use releases::sync::foresight::{Act, Change, Foreseen, Removal};
use serde_json::Value;

use crate::document::{ChartHookPlan, End, ObjectAct, ObjectPlan, ReleasePlan};
use crate::fields::{self, Field};

/// Fields that the API server writes by itself.
const OWN_FIELDS: [&str; 5] = [
    "metadata.generation",
    "metadata.resourceVersion",
    "metadata.uid",
    "metadata.creationTimestamp",
    "status",
];

/// The foreseen end of a run, for people and programs.
pub(crate) fn release(foreseen: Foreseen) -> ReleasePlan {
    let of = |end, reason: String| ReleasePlan {
        end,
        reason,
        hints: Vec::new(),
        objects: Vec::new(),
        chart_hooks: Vec::new(),
    };
    match foreseen {
        Foreseen::Nothing | Foreseen::Marks => of(End::Unchanged, String::new()),
        Foreseen::LeftAlone => of(End::LeftAlone, "people maintain its objects".to_owned()),
        Foreseen::Repair => of(
            End::Repair,
            "records of helm are damaged, and what follows their repair is not known".to_owned(),
        ),
        Foreseen::Return(to) => of(End::Return, format!("revision {to} comes back")),
        Foreseen::Fails(failure) => ReleasePlan {
            hints: failure.hints,
            ..of(End::Fails, failure.report)
        },
        Foreseen::Upgrade {
            reason, objects, hooks, ..
        } => ReleasePlan {
            hints: hints(&objects),
            objects: objects.into_iter().map(object).collect(),
            chart_hooks: hooks.into_iter().map(chart_hook).collect(),
            ..of(End::Upgrade, reason)
        },
    }
}

/// The steps that a person can take for objects that are refused.
fn hints(objects: &[Change]) -> Vec<String> {
    let hints: BTreeSet<&String> = objects
        .iter()
        .flat_map(|change| match &change.act {
            Act::Refused(failure) => &failure.hints[..],
            _ => &[],
        })
        .collect();
    hints.into_iter().cloned().collect()
}

/// The objects of a release that is removed.
pub(crate) fn removal(gone: Removal) -> ReleasePlan {
    ReleasePlan {
        end: End::Removal,
        reason: String::new(),
        hints: Vec::new(),
        objects: gone.objects.into_iter().map(object).collect(),
        chart_hooks: gone.hooks.into_iter().map(chart_hook).collect(),
    }
}

fn chart_hook(hook: ChartHook) -> ChartHookPlan {
    ChartHookPlan {
        kind: hook.object.kind,
        name: hook.object.name,
        events: hook.events,
    }
}

pub(crate) fn object(change: Change) -> ObjectPlan {
    let Change { object, act } = change;
    let (act, fields, reason) = match act {
        Act::Create => (ObjectAct::Create, Vec::new(), String::new()),
        Act::Change { live, applied } => (ObjectAct::Change, fields_of(&live, &applied), String::new()),
        Act::Delete => (ObjectAct::Delete, Vec::new(), String::new()),
        Act::Leave => (ObjectAct::Leave, Vec::new(), String::new()),
        Act::Replace(field) => (ObjectAct::Replace, Vec::new(), field),
        Act::Refused(failure) => (ObjectAct::Refused, Vec::new(), failure.report),
        Act::Unserved => (ObjectAct::Unserved, Vec::new(), String::new()),
        Act::NoNamespace => (ObjectAct::NoNamespace, Vec::new(), String::new()),
    };
    ObjectPlan {
        api_version: object.api_version,
        kind: object.kind,
        namespace: object.namespace,
        name: object.name,
        act,
        fields,
        reason,
    }
}

/// The fields in which two states of an object differ; of a Secret only their paths.
pub(crate) fn fields_of(live: &Value, applied: &Value) -> Vec<Field> {
    let is_own = |field: &Field| {
        OWN_FIELDS.iter().any(|own| {
            field
                .path
                .strip_prefix(own)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut changed = fields::changed(live, applied);
    changed.retain(|field| !is_own(field));
    if is_secret(applied) {
        // An annotation may hold a copy of the whole object.
        for value in changed
            .iter_mut()
            .flat_map(|field| [&mut field.before, &mut field.after])
            .flatten()
        {
            *value = MASK.into();
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_secret_the_names_of_changed_keys_are_told() {
        let secret = |word: &str, version: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "resourceVersion": version}, "data": {"user": word}});
        let expected = Field {
            path: "data.user".to_owned(),
            before: Some(MASK.into()),
            after: Some(MASK.into()),
        };
        assert_eq!(fields_of(&secret("b25l", "1"), &secret("dHdv", "2")), [expected]);
    }
}
