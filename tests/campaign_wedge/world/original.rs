//! The original operator, as a release knows it: one helm upgrade with the flags that the original sets. Its program itself is not
//! there to be run.

use anyhow::{Context, bail, ensure};
use fs_err as fs;
use serde_json::json;
use testbed::plane::User;
use testbed::{process, shared};

use super::chart::Section;
use super::{NAME, Wanted, World};

impl World {
    /// Ends the operator, upgrades the release as the original does, and has the operator take the module over again.
    pub(super) fn come_back(&mut self) -> anyhow::Result<()> {
        let life = self.life.take().context("a release comes free alive")?;
        life.stop(self.bound)?;
        let Wanted::On(section) = &self.wanted else {
            bail!("the original upgrades a module that is on");
        };
        let section = Section {
            word: format!("r{}-original", self.round),
            ..section.clone()
        };
        self.upgrade_as_the_original(&section)?;
        self.ask_for(section)?;
        self.start()?;
        self.wait(self.bound, "the module after the original had it")
    }

    fn upgrade_as_the_original(&self, section: &Section) -> anyhow::Result<()> {
        let (namespace, folder) = (self.stage.namespace(), self.stage.folder());
        let values = folder.join("original.yaml");
        fs::write(&values, json!({ NAME: section.to_value() }).to_string())?;
        let mut command = process::command(shared::program(self.helm));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder);
        command.args(["upgrade", NAME]).arg(folder.join("modules/100-wedge"));
        command.args(["--install", "--skip-crds", "--take-ownership", "--history-max=10"]);
        command
            .args(["--labels=moduleChecksum=of-the-original", "--values"])
            .arg(values);
        command.args(["--namespace", namespace.name(), "--kubeconfig"]);
        command.arg(namespace.kubeconfig(User::Admin));
        let output = process::run(command, None)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "the original could not upgrade the release: {said}"
        );
        Ok(())
    }
}
