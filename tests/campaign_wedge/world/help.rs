//! The ways out of a state that the operator names to a person, and the person who goes them.

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use testbed::plane::User;
use testbed::process;

use super::{NAME, Wanted, World};
use crate::plan::{Kind, Plan, State};
use crate::tally::Help;

/// A way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A command of ours, or of kubectl, in words.
    Command(Vec<String>),
    /// The changed field gets its former value.
    PutBack,
    /// The webhook that is named is deleted.
    DeleteWebhook,
}

impl Way {
    pub(super) fn help(&self) -> Help {
        match self {
            Self::Command(_) => Help::Command,
            Self::PutBack | Self::DeleteWebhook => Help::Deed,
        }
    }
}

/// The commands in a hint, complete with the flag that the hint names after them.
fn commands(hint: &str) -> Vec<Vec<String>> {
    let is_deed = |text: &&str| {
        ["addon-operator module ", "kubectl delete "]
            .iter()
            .any(|start| text.starts_with(start))
    };
    let quoted = hint.split('`').skip(1).step_by(2).filter(is_deed);
    let command = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if hint.contains("with --confirm") {
            words.push("--confirm".to_owned());
        }
        words
    };
    quoted.map(command).collect()
}

impl World {
    /// The operator's explanation of the module.
    pub(super) fn why(&self) -> anyhow::Result<Value> {
        let text = self.run_ours(&["module", "why", NAME, "-o", "json"])?;
        serde_json::from_str(&text).with_context(|| format!("an explanation is JSON: {text}"))
    }

    /// The way out that the operator names, if it names one.
    pub(super) fn way_out(&self, plan: &Plan) -> anyhow::Result<Option<Way>> {
        let why = self.why()?;
        let texts: Vec<&str> = why["hints"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut named: Vec<_> = texts.iter().flat_map(|hint| commands(hint)).collect();
        if self.wanted == Wanted::Off {
            // The hints of an upgrade stay for as long as the removal has not begun.
            named.retain(|command| command.iter().any(|word| word == "release"));
        }
        if !named.is_empty() {
            return Ok(Some(Way::Command(named[plan.choice % named.len()].clone())));
        }
        if plan.state == State::Refused && why["error"].to_string().contains(&self.webhook()) {
            let exists = self
                .kubectl()
                .run(["get", "validatingwebhookconfiguration", &self.webhook()]);
            return Ok(exists.is_ok().then_some(Way::DeleteWebhook));
        }
        let is_of_claim = plan.state == State::Fixed(Kind::PersistentVolumeClaim);
        let is_named = texts
            .iter()
            .any(|hint| hint.starts_with("or put ") && hint.ends_with(" back as it was"));
        Ok((is_of_claim && is_named).then_some(Way::PutBack))
    }

    /// Goes the way, as a person.
    pub(super) fn go(&mut self, way: &Way) -> anyhow::Result<()> {
        match way {
            Way::Command(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                match words.split_first() {
                    Some((&"addon-operator", rest)) => self.said = self.run_ours(rest)?,
                    Some((&"kubectl", rest)) => drop(self.kubectl().run(rest)?),
                    _ => bail!("a command of no known program: {words:?}"),
                }
            }
            Way::PutBack => {
                let Wanted::On(mut section) = self.wanted.clone() else {
                    bail!("a field is put back while the module is on");
                };
                section.changed = None;
                self.ask_for(section)?;
            }
            Way::DeleteWebhook => {
                self.kubectl()
                    .run(["delete", "validatingwebhookconfiguration", &self.webhook()])?;
            }
        }
        Ok(())
    }

    /// The output of one of our commands, which has to succeed.
    fn run_ours(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let namespace = self.stage.namespace();
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.stage.folder())
            .env("KUBECONFIG", namespace.kubeconfig(User::Operator))
            .env("ADDON_OPERATOR_NAMESPACE", namespace.name())
            .env("DEBUG_UNIX_SOCKET", self.stage.socket());
        let output = process::run(command, None)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`addon-operator {}` failed: {said}",
            arguments.join(" ")
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}
