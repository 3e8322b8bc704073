//! The environment of this process, read once. No other code reads a variable from the process; a test passes its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Credentials of the operator for other services, which hooks must not get.
const OUR_CREDENTIALS: [&str; 1] = ["TRACING_OTLP_AUTH_TOKEN"];

/// All variables by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The variables of the process.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The value of a variable. An empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// All variables except the operator's own credentials, for hooks: they run in the operator's environment with a
    /// few additional variables.
    pub fn inherited(&self) -> Vec<(OsString, OsString)> {
        let is_ours = |name: &OsString| OUR_CREDENTIALS.iter().any(|ours| name == ours);
        self.0
            .iter()
            .filter(|(name, _)| !is_ours(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_inherit_everything_but_our_credentials() {
        let pairs = [
            ("PATH", "/bin"),
            ("TRACING_OTLP_AUTH_TOKEN", "opensesame"),
            ("TRACING_OTLP_ENDPOINT", "c:1"),
        ];
        let inherited = Environment::from_iter(pairs).inherited();
        let names: Vec<&str> = inherited.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, ["PATH", "TRACING_OTLP_ENDPOINT"]);
    }
}
