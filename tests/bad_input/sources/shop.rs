//! A module in a registry, and an operator that takes it from there through a guard.

use std::sync::OnceLock;

use fs_err as fs;
use serde_json::{Value, json};
use testbed::registry::guard::{Aim, Guard, Trouble};
use testbed::wait::wait_until;

use crate::bad_input::stage::{Operator, PATIENCE, Stage};

const TEMPLATE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {size: {{ .Values.shop.size | quote }}}\n";
/// The address of the registry of all tests in this file.
fn registry() -> &'static str {
    static REAL: OnceLock<testbed::registry::Registry> = OnceLock::new();
    REAL.get_or_init(|| testbed::registry::Registry::start().unwrap())
        .address()
}

/// A stage whose operator may ask a registry through a guard, which can be made to fail.
pub(crate) struct Shop {
    pub(crate) stage: Stage,
    pub(crate) guard: Guard,
}

impl Shop {
    pub(crate) fn open(prefix: &str) -> Self {
        let guard = Guard::start_plain(registry()).unwrap();
        let mut stage = Stage::build(prefix);
        stage.set("ADDON_OPERATOR_CHANNEL_PLAIN_HTTP", guard.address().to_string());
        Self { stage, guard }
    }

    pub(crate) fn repository(&self) -> String {
        format!("{}/{}/shop", self.guard.address(), self.stage.namespace().name())
    }

    /// Writes the module's files with this size, and more files.
    pub(crate) fn write(&self, version: &str, size: &str, more: &[(&str, &str)]) {
        let _ = fs::remove_dir_all(self.stage.path("made"));
        let chart = format!("apiVersion: v2\nname: shop\nversion: {version}\n");
        self.stage.write("made/100-shop/Chart.yaml", &chart);
        self.stage.write("made/100-shop/templates/a.yaml", TEMPLATE);
        let values = format!("shop: {{size: {size}}}\n");
        self.stage.write("made/100-shop/values.yaml", &values);
        for (file, text) in more {
            self.stage.write(&format!("made/100-shop/{file}"), text);
        }
    }

    /// Pushes the module under a tag, and returns its digest.
    pub(crate) fn push(&self, tag: &str, version: &str, size: &str, more: &[(&str, &str)]) -> String {
        self.write(version, size, more);
        self.push_written(tag, &[])
    }

    /// Pushes the files that were written last, with more arguments.
    pub(crate) fn push_written(&self, tag: &str, arguments: &[&str]) -> String {
        let dir = self.stage.path("made/100-shop");
        let reference = format!("{}:{tag}", self.repository());
        let push = ["module", "push", dir.to_str().unwrap(), &reference];
        let said = Stage::tell(&[&push, arguments].concat());
        said.trim().rsplit('@').next().unwrap().to_owned()
    }

    /// The text of the source, with more fields.
    pub(crate) fn source(&self, version: &str, more: &str) -> String {
        format!(
            "shop: {{repository: '{}', version: '{version}'{more}}}\n",
            self.repository()
        )
    }

    pub(crate) fn configure(&self, source: &str) {
        self.stage.configure(&json!({"moduleSources": source}));
    }

    /// Names the source with more fields, starts an operator, and waits until the first version, which is small, is installed.
    pub(crate) fn install(&self, version: &str, more: &str) -> Operator<'_> {
        self.configure(&self.source(version, more));
        let operator = self.stage.start();
        self.stage.wait_for_sizes("good:small shop:small victim:small");
        operator
    }

    pub(crate) fn lose_registry(&self) {
        self.guard.impose(vec![Aim::at("", Trouble::Status(500, None))]);
    }

    /// Removes the files of all versions from the operator's disk.
    pub(crate) fn lose_disk(&self) {
        fs::remove_dir_all(self.stage.path("tmp/module-sources")).unwrap();
    }

    /// Waits until this many Secrets hold the record of the source and the copies of its versions.
    pub(crate) fn wait_for_secrets(&self, number: usize) {
        let kept = || {
            let secrets = self
                .stage
                .kubectl("get secrets -l addon-operator/module-source=shop -o=name");
            if secrets.lines().count() == number {
                Ok(Some(()))
            } else {
                Err(secrets)
            }
        };
        wait_until(PATIENCE, "a record and copies", kept).unwrap();
    }
}

pub(crate) fn status(operator: &Operator<'_>) -> Value {
    let text = operator.ask("module source status shop -o json");
    serde_json::from_str::<Value>(&text).unwrap()["shop"].clone()
}

/// Waits until the report about the source has this text somewhere.
pub(crate) fn wait_for_status(operator: &Operator<'_>, words: &str) -> String {
    let look = || {
        let text = operator.try_ask("module source status shop");
        if text.contains(words) {
            Ok(Some(text))
        } else {
            Err(text)
        }
    };
    wait_until(PATIENCE, words, look).unwrap()
}
