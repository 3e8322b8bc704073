//! The document of a plan, for programs; its texts are for people.
//!
//! Must never hold a secret: values and objects are compared whole, and shown masked.

use serde::{Deserialize, Serialize};

use crate::fields::Field;

/// The plan of a change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The modules to which something would happen, in the order in which it begins.
    pub modules: Vec<ModulePlan>,
    /// The changes of global values.
    pub global: Vec<Field>,
    /// The global hooks that would run.
    pub hooks: Vec<HookPlan>,
    /// Keys of the ConfigMap that would not be applied, and modules whose files would not be used, each with the reason.
    pub refused: Vec<Refused>,
    /// Releases whose removal would wait for a person, each with the reason.
    pub held: Vec<Refused>,
    /// Work that had not come to its end when the plan was made. More may follow from it than the plan says.
    pub unfinished: Vec<String>,
    /// Warnings of the executables that check settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Differences of the change that the plan leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A thing that would not be done, and the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// The key of the ConfigMap, the module or the release.
    pub name: String,
    pub reason: String,
}

/// The part of a plan about one module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModulePlan {
    /// The module's name.
    pub name: String,
    pub act: Act,
    /// The source of the decision that the module is on or off, and the source's reason.
    pub because: String,
    /// Its new files, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// The changes of its values, as the release gets them.
    pub values: Vec<Field>,
    /// The changes of its CRDs, which come before all else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crds: Vec<ObjectPlan>,
    /// The hooks that would run.
    pub hooks: Vec<HookPlan>,
    /// The end of the run, if the module would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleasePlan>,
    /// The obstacle that the module would wait for; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waits_for: String,
    /// The error for which the module would not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The remedies for that error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// The act of the operator on a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// The module is switched on, and runs.
    SwitchOn,
    /// The module runs again.
    Run,
    /// The module is switched off, and its release is removed if it has one.
    Remove,
    /// The module would run, and waits.
    Wait,
}

/// A hook that would run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookPlan {
    /// The hook's name.
    pub hook: String,
    /// The kind of the binding for which it runs.
    pub binding: String,
    /// The run from which its values in this plan are.
    pub values: ValuesOf,
    /// The patches of objects that it asked for when it was tried, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<String>,
}

/// The run of a hook from which the values in a plan are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ValuesOf {
    /// The hook was tried for this plan.
    Try,
    /// The hook's last run in earnest.
    LastRun,
    /// The hook has not run, so that its values are missing.
    NoRun,
}

impl ModulePlan {
    /// Whether nothing would happen to the module, and nothing is in its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.act == Act::Wait
            && self.crds.is_empty()
            && self.hooks.is_empty()
            && self.release.is_none()
            && self.waits_for.is_empty()
            && self.error.is_none()
    }
}

impl HookPlan {
    /// Notes that the hook has not run in earnest.
    pub(crate) fn has_not_run(&mut self) {
        if self.values == ValuesOf::LastRun {
            self.values = ValuesOf::NoRun;
        }
    }
}

/// The part of a plan about one release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePlan {
    /// The end of the run.
    pub end: End,
    /// The reason of the end, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Remedies, if the run fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// The changes of objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectPlan>,
    /// The hooks of the chart that helm would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chart_hooks: Vec<ChartHookPlan>,
}

/// A hook of a chart: an object that helm makes at certain events, and waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartHookPlan {
    pub kind: String,
    pub name: String,
    /// The events, as in `pre-upgrade`.
    pub events: Vec<String>,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Nothing changes.
    Unchanged,
    /// People maintain the objects.
    LeftAlone,
    /// Helm makes a new revision.
    Upgrade,
    /// The records of helm are repaired first.
    Repair,
    /// The revision that does not do its work is taken back.
    Return,
    /// The release is removed.
    Removal,
    /// The run fails, or waits for a person.
    Fails,
}

/// The part of a plan about one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectPlan {
    /// The object's API version.
    pub api_version: String,
    pub kind: String,
    /// Its namespace; none for one that the manifest leaves to the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
    pub act: ObjectAct,
    /// The changed fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// For a refused object the reason; for a replaced one the field; for a new one the step of the plan that makes it possible.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The act of helm or of the operator on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ObjectAct {
    /// The object is made.
    Create,
    /// Some of its fields change.
    Change,
    /// It is deleted and made anew.
    Replace,
    /// It is deleted.
    Delete,
    /// It is no longer rendered, and stays.
    Leave,
    /// The API server refuses it.
    Refused,
    /// Its kind is not served when its turn comes.
    Unserved,
    /// Its namespace does not exist when its turn comes.
    NoNamespace,
}

impl Plan {
    /// Whether the change has no effect, and leaves nothing undone.
    pub fn is_empty(&self) -> bool {
        let Self {
            modules,
            global,
            hooks,
            refused,
            held,
            unfinished,
            left_out,
            warnings: _,
        } = self;
        modules.is_empty()
            && global.is_empty()
            && hooks.is_empty()
            && refused.is_empty()
            && held.is_empty()
            && unfinished.is_empty()
            && left_out.is_empty()
    }
}
