//! The two programs in this binary, as far as names of their settings differ. Never validates anything: it only knows
//! names and defaults.

/// The program by whose name the binary was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Modules and global hooks.
    AddonOperator,
    /// A directory of hooks, without modules.
    ShellOperator,
}

type Names = &'static [&'static str];

impl Program {
    pub fn name(self) -> &'static str {
        match self {
            Self::AddonOperator => "addon-operator",
            Self::ShellOperator => "shell-operator",
        }
    }

    pub(super) fn tmp_dir(self) -> &'static str {
        match self {
            Self::AddonOperator => "/tmp/addon-operator",
            Self::ShellOperator => "/tmp/shell-operator",
        }
    }

    pub(super) fn tmp_dir_variables(self) -> Names {
        match self {
            Self::AddonOperator => &["ADDON_OPERATOR_TMP_DIR", "SHELL_OPERATOR_TMP_DIR"],
            Self::ShellOperator => &["SHELL_OPERATOR_TMP_DIR"],
        }
    }

    pub(super) fn namespace_variables(self) -> Names {
        match self {
            Self::AddonOperator => &["ADDON_OPERATOR_NAMESPACE", "SHELL_OPERATOR_NAMESPACE"],
            Self::ShellOperator => &["SHELL_OPERATOR_NAMESPACE"],
        }
    }

    /// The variables that ask for several replicas, and that name the operator's pod.
    pub(super) fn leadership_variables(self) -> [&'static str; 2] {
        match self {
            Self::AddonOperator => ["ADDON_OPERATOR_HA", "ADDON_OPERATOR_POD"],
            Self::ShellOperator => ["SHELL_OPERATOR_HA", "SHELL_OPERATOR_POD"],
        }
    }

    /// The variable with the label of the leader's pod.
    pub(super) fn leader_label_variable(self) -> &'static str {
        match self {
            Self::AddonOperator => "ADDON_OPERATOR_LEADER_LABEL",
            Self::ShellOperator => "SHELL_OPERATOR_LEADER_LABEL",
        }
    }

    /// The variable that names the Services which lead to the leader.
    pub(super) fn leader_services_variable(self) -> &'static str {
        match self {
            Self::AddonOperator => "ADDON_OPERATOR_LEADER_SERVICES",
            Self::ShellOperator => "SHELL_OPERATOR_LEADER_SERVICES",
        }
    }

    /// The name of the lease.
    pub fn lease(self) -> &'static str {
        match self {
            Self::AddonOperator => "addon-operator-leader-election",
            Self::ShellOperator => "shell-operator-leader-election",
        }
    }

    /// The variables with the duration of the lease, the time for which it is held without a renewal, and the interval
    /// of renewals.
    pub(super) fn lease_variables(self) -> [&'static str; 3] {
        match self {
            Self::AddonOperator => [
                "ADDON_OPERATOR_LEASE_DURATION",
                "ADDON_OPERATOR_LEASE_RENEW_DEADLINE",
                "ADDON_OPERATOR_LEASE_RETRY_PERIOD",
            ],
            Self::ShellOperator => [
                "SHELL_OPERATOR_LEASE_DURATION",
                "SHELL_OPERATOR_LEASE_RENEW_DEADLINE",
                "SHELL_OPERATOR_LEASE_RETRY_PERIOD",
            ],
        }
    }

    pub(super) fn listen_address(self) -> (&'static str, Names) {
        match self {
            Self::AddonOperator => (
                "--prometheus-listen-address",
                &["ADDON_OPERATOR_LISTEN_ADDRESS", "SHELL_OPERATOR_LISTEN_ADDRESS"],
            ),
            Self::ShellOperator => ("--listen-address", &["SHELL_OPERATOR_LISTEN_ADDRESS"]),
        }
    }

    pub(super) fn listen_port(self) -> (&'static str, Names) {
        match self {
            Self::AddonOperator => (
                "--prometheus-listen-port",
                &["ADDON_OPERATOR_LISTEN_PORT", "SHELL_OPERATOR_LISTEN_PORT"],
            ),
            Self::ShellOperator => ("--listen-port", &["SHELL_OPERATOR_LISTEN_PORT"]),
        }
    }

    pub(super) fn port(self) -> u16 {
        match self {
            Self::AddonOperator => 9650,
            Self::ShellOperator => 9115,
        }
    }

    pub(super) fn metrics_prefix(self) -> &'static str {
        match self {
            Self::AddonOperator => "addon_operator_",
            Self::ShellOperator => "shell_operator_",
        }
    }

    pub(super) fn metrics_prefix_variables(self) -> Names {
        match self {
            Self::AddonOperator => &[
                "ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX",
                "SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX",
            ],
            Self::ShellOperator => &["SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX"],
        }
    }

    pub(super) fn debug_socket(self) -> &'static str {
        match self {
            Self::AddonOperator => "/var/run/addon-operator/debug.socket",
            Self::ShellOperator => "/var/run/shell-operator/debug.socket",
        }
    }
}
