//! Settings of the originals: unsupported ones are refused, and those without effect lead to a warning. A setting that
//! would change nothing is never refused.

use super::LogLevel;
use super::said::Setting;
use super::words::{Checked, Words};

impl Words<'_> {
    /// Refuses settings that would change the operator's behaviour in an unsupported way.
    pub(super) fn refuse_unsupported(&self) -> Checked<()> {
        let driver = Setting::look_up(self.environment, "", None, &["HELM_DRIVER"])?;
        let known = |text: &str| matches!(text, "secret" | "secrets").then_some(());
        driver.parsed("secrets: releases are read from their Secrets", known)?;

        let variables = ["ADDON_OPERATOR_SHELL_CHROOT_DIR"];
        let said = self.said("--shell-chroot-dir", self.args.shell_chroot_dir.as_ref(), &variables)?;
        said.parsed("left out: hooks run in our own root directory", |_| None::<()>)?;
        Ok(())
    }

    /// The warnings about settings that both programs accept and ignore.
    pub(super) fn common_remarks(&self) -> Checked<Vec<String>> {
        let level = self.said("--log-level", self.args.shared.log_level.as_ref(), &["LOG_LEVEL"])?;
        let unknown = level.0.filter(|said| LogLevel::parse(&said.text).is_none());
        let remark = unknown.map(|said| format!("{} is '{}', which is no level: info is taken", said.name, said.text));
        Ok(remark.into_iter().chain(self.leadership_remark()?).collect())
    }

    /// The warnings about settings without an effect. They are accepted only so that an installation can be taken over.
    pub(super) fn remarks(&self) -> Checked<Vec<String>> {
        let args = self.args;
        let mut remarks = self.common_remarks()?;
        let enabled = &["ADDON_OPERATOR_ADMISSION_SERVER_ENABLED"];
        if self
            .said(
                "--admission-server-enabled",
                args.admission_server_enabled.as_ref(),
                enabled,
            )?
            .flag()?
        {
            remarks.push("the admission server is asked for, but has nothing to serve".to_owned());
        }
        let inert: [(&'static str, &Option<String>, &[&'static str]); 4] = [
            (
                "--helm-monitor-kube-client-qps",
                &args.helm_monitor_kube_client_qps,
                &["HELM_MONITOR_KUBE_CLIENT_QPS"],
            ),
            (
                "--helm-monitor-kube-client-burst",
                &args.helm_monitor_kube_client_burst,
                &["HELM_MONITOR_KUBE_CLIENT_BURST"],
            ),
            (
                "--admission-server-listen-port",
                &args.admission_server_listen_port,
                &["ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT"],
            ),
            (
                "--admission-server-certs-dir",
                &args.admission_server_certs_dir,
                &["ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR"],
            ),
        ];
        for (flag, value, variables) in inert {
            if let Some(said) = self.said(flag, value.as_ref(), variables)?.0 {
                remarks.push(format!("{} has no effect", said.name));
            }
        }
        Ok(remarks)
    }
}
