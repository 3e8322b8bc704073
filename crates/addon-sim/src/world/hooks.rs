//! The programs of hooks and enabled scripts.

use addon_core::failure::{Class, Failure};
use addon_core::hook::output::{HookOutput, Written};
use addon_core::operator::event::ScriptAnswer;
use addon_core::values::patch::PatchFile;
use serde_json::{Value, json};

use super::World;
use crate::schema::WRONG;
use crate::setup::{Deed, HookSpec, Script, Source, key_of};

/// A number in a document of values; a missing one counts as zero.
fn number(values: &Value, section: &str, key: &str) -> i64 {
    values
        .get(section)
        .and_then(|section| section.get(key))
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

fn failed(report: &str) -> Failure {
    Failure::new(Class::HookFailed, report)
}

/// A forbidden deed of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misdeed {
    /// The hook sets a value of another owner.
    Trespass,
    /// The hook sets a value that the schema of its owner's values refuses.
    BreakValues,
    /// The hook sets a config value that the schema of its owner's section refuses.
    BreakConfig,
}

fn misdeed(spec: &HookSpec, runs: u32) -> Option<Misdeed> {
    let trespasses = spec.fails + spec.trespasses;
    match runs {
        runs if runs <= spec.fails => None,
        runs if runs <= trespasses => Some(Misdeed::Trespass),
        runs if runs > trespasses + spec.breaks => None,
        runs if (runs - trespasses) % 2 == 1 => Some(Misdeed::BreakValues),
        _ => Some(Misdeed::BreakConfig),
    }
}

fn wrong(section: &str) -> Value {
    json!({"op": "add", "path": format!("/{section}/{WRONG}"), "value": 1})
}

impl World {
    /// Runs a hook of `global` or of a module.
    pub(super) fn run_hook(&mut self, owner: &str, hook: &str, values: &Value) -> Result<HookOutput, Failure> {
        let what = format!("hook/{owner}/{hook}");
        self.fault(&what, Class::HookFailed)?;
        let Some(spec) = self.hooks(owner).iter().find(|spec| spec.name == hook).cloned() else {
            return Err(failed("no such file"));
        };
        let runs = self.runs.entry(what).or_default();
        *runs += 1;
        let runs = *runs;
        if runs <= spec.fails {
            return Err(failed("exit status 1"));
        }
        let section = if owner == "global" {
            owner.to_owned()
        } else {
            key_of(owner)
        };
        let (mut patch, mut config) = (Vec::new(), Vec::new());
        for deed in &spec.does {
            let tick = if self.healed { 0 } else { i64::from(runs) };
            let (op, file) = operation(deed, &section, values, tick);
            if file == PatchFile::Config {
                config.push(op);
            } else {
                patch.push(op);
            }
        }
        match misdeed(&spec, runs) {
            Some(Misdeed::Trespass) => {
                let root = if section == "global" { "alpha" } else { "global" };
                patch.push(json!({"op": "add", "path": format!("/{root}/trespass"), "value": 1}));
            }
            Some(Misdeed::BreakValues) => patch.push(wrong(&section)),
            Some(Misdeed::BreakConfig) => config.push(wrong(&section)),
            None => {}
        }
        let (values_patch, config_patch) = (Value::from(patch).to_string(), Value::from(config).to_string());
        let written = Written {
            values_patch: &values_patch,
            config_patch: &config_patch,
        };
        HookOutput::parse(written).map_err(|error| failed(&error.to_string()))
    }

    /// The forbidden deed of a hook's next run. To be asked before the run is counted.
    pub fn next_misdeed(&self, owner: &str, hook: &str) -> Option<Misdeed> {
        let runs = self
            .runs
            .get(&format!("hook/{owner}/{hook}"))
            .copied()
            .unwrap_or_default()
            + 1;
        let spec = self.hooks(owner).iter().find(|spec| spec.name == hook)?;
        misdeed(spec, runs)
    }

    /// Runs an enabled script.
    pub(super) fn run_script(&mut self, module: &str, values: &Value) -> Result<ScriptAnswer, Failure> {
        self.fault(&format!("script/{module}"), Class::HookFailed)?;
        let Some(script) = self.files(module).and_then(|spec| spec.script.clone()) else {
            return Err(failed("no such file"));
        };
        let enabled = match &script {
            Script::Always(answer) => *answer,
            Script::OwnKey(key) => number(values, &key_of(module), key) % 2 == 0,
            Script::GlobalKey(key) => number(values, "global", key) % 2 == 0,
            Script::With(other) => {
                let enabled = values.get("global").and_then(|global| global.get("enabledModules"));
                let Some(enabled) = enabled.and_then(Value::as_array) else {
                    return Err(failed("global.enabledModules is not there"));
                };
                enabled.iter().any(|name| name == other)
            }
        };
        Ok(ScriptAnswer {
            enabled,
            reason: Some("it is so".to_owned()),
            ..ScriptAnswer::default()
        })
    }
}

/// The operation of a deed, and its patch file.
fn operation(deed: &Deed, section: &str, values: &Value, tick: i64) -> (Value, PatchFile) {
    match deed {
        Deed::Tick { key } => (
            json!({"op": "add", "path": format!("/{section}/{key}"), "value": tick}),
            PatchFile::Values,
        ),
        Deed::Set { key, to } => {
            let to = match to {
                Source::Number(number) => *number,
                Source::Own(key) => number(values, section, key) + 1,
                Source::Global(key) => number(values, "global", key) + 1,
            };
            (
                json!({"op": "add", "path": format!("/{section}/{key}"), "value": to}),
                PatchFile::Values,
            )
        }
        Deed::SetConfig { key, to } => (
            json!({"op": "add", "path": format!("/{section}/{key}"), "value": to}),
            PatchFile::Config,
        ),
        Deed::Flag { module, on } => (flag(module, *on), PatchFile::Values),
        Deed::FlagFrom { module, key } => (
            flag(module, Some(number(values, "global", key) % 2 == 0)),
            PatchFile::Values,
        ),
    }
}

fn flag(module: &str, on: Option<bool>) -> Value {
    let path = format!("/{}Enabled", key_of(module));
    match on {
        Some(on) => json!({"op": "add", "path": path, "value": on}),
        None => json!({"op": "remove", "path": path}),
    }
}
