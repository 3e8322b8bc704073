//! The environment we were started with, read once.
//! Nothing else in the program asks the process for a variable; a test brings its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables by which we speak to others: no business of hooks.
const OUR_CREDENTIALS: [&str; 1] = ["TRACING_OTLP_AUTH_TOKEN"];

/// All variables by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// A variable that is set to something. One that is set to nothing says nothing.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// Everything but our own credentials, for the hooks: they run in the operator's environment with a few variables on
    /// top.
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
