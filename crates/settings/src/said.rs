//! The source of a setting (the flag, or the first of its variables that is set) and the parsing of its text. Knows no
//! single setting. Only here a bad value becomes an error that names its source.

use std::ffi::OsStr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use super::{ConfigurationError, Environment, boolean, duration};

/// The text of a setting and its source.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The name of the flag or variable, for example `--helm-timeout` or `HELM_TIMEOUT`.
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// A setting before its validation: nothing, or the text that counts.
#[derive(Debug, Clone)]
pub(super) struct Setting(pub(super) Option<Said>);

impl Setting {
    /// Finds the text that counts: the flag, or the first variable that is set.
    pub(super) fn look_up(
        environment: &Environment,
        flag: &'static str,
        said: Option<&str>,
        variables: &[&'static str],
    ) -> Result<Self, ConfigurationError> {
        if let Some(text) = said {
            // An empty flag overrides a variable.
            let said = Said {
                name: flag,
                text: text.to_owned(),
            };
            return Ok(Self(Some(said).filter(|said| !said.text.is_empty())));
        }
        let set = variables.iter().find_map(|name| Some((*name, environment.get(name)?)));
        let Some((name, value)) = set else {
            return Ok(Self(None));
        };
        let text = value
            .to_str()
            .ok_or(ConfigurationError::NotUnicode { name })?
            .to_owned();
        Ok(Self(Some(Said { name, text })))
    }

    /// The parsed text, if the setting is set.
    pub(super) fn parsed<T>(
        self,
        allowed: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigurationError> {
        let Some(Said { name, text }) = self.0 else {
            return Ok(None);
        };
        match parse(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(ConfigurationError::NotAllowed {
                name,
                value: text,
                allowed,
            }),
        }
    }

    pub(super) fn text(self) -> Option<String> {
        self.0.map(|said| said.text)
    }

    pub(super) fn path(self) -> Option<PathBuf> {
        self.text().map(PathBuf::from)
    }

    pub(super) fn flag(self) -> Result<bool, ConfigurationError> {
        self.flag_or(false)
    }

    /// The setting as a boolean; `default` if it is not set.
    pub(super) fn flag_or(self, default: bool) -> Result<bool, ConfigurationError> {
        Ok(self.parsed("true or false", boolean::parse)?.unwrap_or(default))
    }

    pub(super) fn duration(self) -> Result<Option<Duration>, ConfigurationError> {
        self.parsed("a duration above zero such as 90s, 20m or 1h30m", |text| {
            duration::parse(text).filter(|read| !read.is_zero())
        })
    }

    pub(super) fn count(self) -> Result<Option<NonZero<usize>>, ConfigurationError> {
        self.parsed("a whole number above zero", |text| text.parse().ok())
    }

    pub(super) fn rate(self) -> Result<Option<f64>, ConfigurationError> {
        self.parsed("a number above zero", |text| {
            text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
        })
    }
}

/// Whether the text is a valid name of an object: one or more DNS labels with dots between them.
pub(super) fn is_object_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

pub(super) fn is_dns_label(text: &str) -> bool {
    let letters = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().all(|c| letters(c) || c == b'-')
        && text.bytes().next().is_some_and(letters)
        && text.bytes().last().is_some_and(letters)
}

/// The first executable with this name in a `PATH`.
pub(super) fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    std::env::split_paths(path?)
        .map(|dir| dir.join(name))
        .find(|candidate| {
            fs_err::metadata(candidate).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}
