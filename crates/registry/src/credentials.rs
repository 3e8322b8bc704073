//! The logins for registries: pull secrets in the form of `docker login`, and the repositories that each is for.
//!
//! Must never show a password, nor use one for another repository than its own.

use std::collections::BTreeMap;
use std::fmt;

use addon_core::failure::Failure;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures::future::BoxFuture;
use serde::Deserialize;
use thiserror::Error;

use super::place::{Host, ImagePlace};

/// Reads the present credentials. Called when they are first needed, and whenever they are refused.
pub type ReadCredentials = Box<dyn Fn() -> BoxFuture<'static, Result<Credentials, Failure>> + Send + Sync>;

/// Why a pull secret cannot be read. Never shows its contents.
#[derive(Debug, Error)]
pub enum BadCredentials {
    /// The text is not valid JSON of the expected form.
    #[error("it is no configuration of docker: line {line}, column {column}")]
    Syntax { line: usize, column: usize },
    /// One of the logins is invalid.
    #[error("its field 'auth' for '{of}' is not the base64 of a name, a colon and a password")]
    Auth { of: String },
}

/// The credentials for a registry or its token issuer.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// A name and a password.
    Password { user: String, password: String },
    /// A refresh token, with which other tokens are requested.
    Refresh(String),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password",
            Self::Refresh(_) => "Refresh",
        })
    }
}

/// Logins, each with its registry or repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    logins: Vec<(Scope, Login)>,
}

/// The repositories that a login is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Scope {
    /// The parts of the host's name; `*` stands for any characters within a part.
    labels: Vec<String>,
    port: Option<u16>,
    /// The prefix of the repositories' names; empty for all.
    folder: String,
}

#[derive(Deserialize)]
struct Config {
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    username: String,
    password: String,
    auth: String,
    identitytoken: String,
}

impl Credentials {
    /// Parses a Secret's `.dockerconfigjson`.
    pub fn config(text: &[u8]) -> Result<Self, BadCredentials> {
        let config: Config = serde_json::from_slice(text).map_err(|error| syntax(&error))?;
        Self::of(config.auths)
    }

    /// Parses a Secret's older `.dockercfg`.
    pub fn old_config(text: &[u8]) -> Result<Self, BadCredentials> {
        Self::of(serde_json::from_slice(text).map_err(|error| syntax(&error))?)
    }

    /// Adds the logins of another Secret. For the same scope the earlier ones take precedence.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.logins.extend(others.logins);
        self
    }

    fn of(entries: BTreeMap<String, Entry>) -> Result<Self, BadCredentials> {
        let mut logins = Vec::new();
        for (of, entry) in entries {
            // An entry without a valid host, or with a credential helper instead of a login, is skipped.
            let (Some(scope), Some(login)) = (Scope::parse(&of), entry.login(&of)?) else {
                continue;
            };
            logins.push((scope, login));
        }
        Ok(Self { logins })
    }

    /// The login for a repository: the one with the most specific scope.
    pub fn for_place(&self, place: &ImagePlace) -> Option<&Login> {
        let mut best: Option<&(Scope, Login)> = None;
        for candidate in self.logins.iter().filter(|(scope, _)| scope.covers(place)) {
            if best.is_none_or(|(scope, _)| candidate.0.rank() > scope.rank()) {
                best = Some(candidate);
            }
        }
        best.map(|(_, login)| login)
    }
}

/// An error without the parser's text, which would quote the secret.
fn syntax(error: &serde_json::Error) -> BadCredentials {
    BadCredentials::Syntax {
        line: error.line(),
        column: error.column(),
    }
}

impl Entry {
    fn login(self, of: &str) -> Result<Option<Login>, BadCredentials> {
        let Self {
            username,
            password,
            auth,
            identitytoken,
        } = self;
        if !identitytoken.is_empty() {
            return Ok(Some(Login::Refresh(identitytoken)));
        }
        if auth.is_empty() {
            let is_there = !username.is_empty();
            return Ok(is_there.then_some(Login::Password {
                user: username,
                password,
            }));
        }
        let bytes = LENIENT.decode(auth.trim()).ok();
        let pair = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = pair.as_deref().and_then(|pair| pair.split_once(':'));
        let (user, password) = pair.ok_or_else(|| BadCredentials::Auth { of: of.to_owned() })?;
        Ok(Some(Login::Password {
            user: user.to_owned(),
            password: password.trim_end_matches('\0').to_owned(),
        }))
    }
}

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Scope {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (host, folder) = bare.split_once('/').unwrap_or((bare, ""));
        // Docker itself adds the API version to the host.
        let folder = match folder.trim_end_matches('/') {
            "v1" | "v2" => "",
            folder => folder,
        };
        // A star is not valid in a host; for this check it is replaced by a letter.
        let parsed: Host = host.replace('*', "x").parse().ok()?;
        let name = match host.rsplit_once(':') {
            Some((name, _)) if parsed.port().is_some() => name,
            _ => host,
        };
        let name = if name.contains('*') {
            name.to_ascii_lowercase()
        } else {
            parsed.name().to_owned()
        };
        Some(Self {
            labels: name.split('.').map(str::to_owned).collect(),
            port: parsed.port(),
            folder: folder.to_owned(),
        })
    }

    fn covers(&self, place: &ImagePlace) -> bool {
        let labels: Vec<&str> = place.host.name().split('.').collect();
        let is_host = self.port == place.host.port()
            && self.labels.len() == labels.len()
            && self
                .labels
                .iter()
                .zip(labels)
                .all(|(pattern, label)| matches(pattern, label));
        let below = || place.repository.as_str().strip_prefix(self.folder.as_str());
        is_host && (self.folder.is_empty() || below().is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    /// The rank of a scope: a longer prefix is better, and a host's name is better than a pattern.
    fn rank(&self) -> (usize, bool) {
        let is_exact = !self.labels.iter().any(|label| label.contains('*'));
        (self.folder.len(), is_exact)
    }
}

/// Whether a part of a name matches a pattern.
fn matches(pattern: &str, label: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|begin| label.strip_prefix(begin)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((end, middles)) = parts.split_last() else {
        return rest.is_empty();
    };
    for middle in middles {
        match rest.split_once(middle) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login<'a>(credentials: &'a Credentials, place: &str) -> Option<&'a str> {
        credentials.for_place(&place.parse().unwrap()).map(|login| match login {
            Login::Password { user, .. } => user.as_str(),
            Login::Refresh(token) => token.as_str(),
        })
    }

    #[test]
    fn the_longest_beginning_of_a_name_wins() {
        let text = br#"{"auths": {
            "registry.example": {"username": "all", "password": "p"},
            "https://registry.example/team/": {"username": "team", "password": "p"},
            "registry.example/team/app": {"username": "app", "password": "p"},
            "registry.example:5000": {"username": "port", "password": "p"},
            "*.wild.example": {"username": "wild", "password": "p"},
            "a.wild.example": {"username": "tame", "password": "p"},
            "https://index.docker.io/v1/": {"auth": "ZG9ja2VyOnA6cQ=="},
            "token.example": {"auth": "eDp5", "identitytoken": "refresh"},
            "empty.example": {},
            "no host": {"username": "x", "password": "p"}
        }, "credHelpers": {"gcr.example": "gcloud"}}"#;
        let credentials = Credentials::config(text).unwrap();
        for (place, wanted) in [
            ("registry.example/other", Some("all")),
            ("registry.example/teamwork/x", Some("all")),
            ("registry.example/team", Some("team")),
            ("registry.example/team/x", Some("team")),
            ("registry.example/team/app", Some("app")),
            ("registry.example/team/app/y", Some("app")),
            ("registry.example:5000/team/app", Some("port")),
            ("registry.example:5001/team/app", None),
            ("b.wild.example/x", Some("wild")),
            ("a.wild.example/x", Some("tame")),
            ("a.b.wild.example/x", None),
            ("docker.io/library/x", Some("docker")),
            ("index.docker.io/library/x", Some("docker")),
            ("token.example/x", Some("refresh")),
            ("empty.example/x", None),
            ("gcr.example/x", None),
        ] {
            assert_eq!(login(&credentials, place), wanted, "{place}");
        }
    }

    #[test]
    fn stars_stand_for_any_letters_of_one_part() {
        for (pattern, label, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*a", "a", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXcYbZ", false),
            (&"*a".repeat(30), &"a".repeat(63), true),
            (&"*a".repeat(30), &"b".repeat(63), false),
        ] {
            assert_eq!(matches(pattern, label), fits, "{pattern} {label}");
        }
    }

    #[test]
    fn passwords_are_as_they_were_given_and_not_shown() {
        let password = |text: &str| {
            let credentials = Credentials::old_config(text.as_bytes()).unwrap();
            assert!(!format!("{credentials:?}").contains("secret"), "{credentials:?}");
            credentials.logins.into_iter().next().map(|(_, login)| login)
        };
        let wanted = Login::Password {
            user: "u".to_owned(),
            password: "secret:x".to_owned(),
        };
        // The second has no padding; the third has zero bytes at its end, as old versions of docker wrote them.
        for auth in ["dTpzZWNyZXQ6eA==", "dTpzZWNyZXQ6eA", "dTpzZWNyZXQ6eAAA"] {
            let text = format!(r#"{{"a.example": {{"auth": "{auth}", "username": "other", "email": "e"}}}}"#);
            assert_eq!(password(&text).as_ref(), Some(&wanted), "{auth}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_what_is_in_it() {
        let bad = Credentials::config(br#"{"auths": {"a.example": {"auth": "secret!"}}}"#).unwrap_err();
        assert_eq!(
            bad.to_string(),
            "its field 'auth' for 'a.example' is not the base64 of a name, a colon and a password"
        );
        let bad = Credentials::config(br#"{"auths": {"a.example": {"auth": 7777}}}"#).unwrap_err();
        assert!(!bad.to_string().contains("7777"), "{bad}");
        assert!(matches!(Credentials::config(b"{}"), Err(BadCredentials::Syntax { .. })));
    }

    #[test]
    fn the_first_secret_counts_where_two_say_the_same() {
        let secret = |user: &str| {
            let text = format!(r#"{{"auths":{{"a.example":{{"username":"{user}","password":"p"}}}}}}"#);
            Credentials::config(text.as_bytes()).unwrap()
        };
        let both = secret("one").and(secret("two"));
        assert_eq!(login(&both, "a.example/x"), Some("one"));
    }
}
