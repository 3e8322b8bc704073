//! The names of keys whose values are secrets.
//!
//! A name is split into words, in any spelling: `dbPassword`, `db-password` and `DB_PASSWORD` are the same name. Must
//! never match a part of a word: `tokenizer` is no token.

/// Words, or several words written as one, that name a secret; in lower case.
const SECRET: [&str; 33] = [
    "accesskey",
    "accesskeys",
    "apikey",
    "apikeys",
    "apitoken",
    "credential",
    "credentials",
    "creds",
    "dockercfg",
    "dockerconfig",
    "dockerconfigjson",
    "encryptionkey",
    "encryptionkeys",
    "htpasswd",
    "kubeconfig",
    "passphrase",
    "passphrases",
    "passwd",
    "password",
    "passwords",
    "privatekey",
    "privatekeys",
    "psk",
    "pwd",
    "secret",
    "secretkey",
    "secretkeys",
    "secrets",
    "sharedkey",
    "signingkey",
    "signingkeys",
    "token",
    "tokens",
];

/// Endings of names that are about a secret, or say where one is, without being secret.
const ABOUT: [&str; 18] = [
    "enabled",
    "expiry",
    "file",
    "files",
    "length",
    "lifetime",
    "name",
    "names",
    "namespace",
    "namespaces",
    "path",
    "policy",
    "ref",
    "reference",
    "refs",
    "rotation",
    "ttl",
    "type",
];

/// The name of Kubernetes' field for references to pull secrets, which are no secrets.
const REFERENCES: [&str; 2] = ["imagepullsecret", "imagepullsecrets"];

/// Every secret name contains one of these, so that most other names need no closer look.
const STEMS: [&str; 9] = ["cred", "docker", "key", "kube", "pass", "psk", "pwd", "secret", "token"];

/// Whether the name of a key marks the value below it as secret.
pub fn is_secret(name: &str) -> bool {
    if !STEMS.iter().any(|stem| holds(name, stem)) {
        return false;
    }
    let words = words(name);
    let is_about = words.last().is_some_and(|last| ABOUT.contains(&last.as_str()));
    !is_about && !REFERENCES.contains(&words.concat().as_str()) && holds_secret(&words)
}

/// Whether a name contains a stem, in lower or upper case.
fn holds(name: &str, stem: &str) -> bool {
    let mut windows = name.as_bytes().windows(stem.len());
    windows.any(|window| window.eq_ignore_ascii_case(stem.as_bytes()))
}

fn holds_secret(words: &[String]) -> bool {
    (0..words.len()).any(|first| {
        let mut joined = String::new();
        words[first..].iter().any(|word| {
            joined.push_str(word);
            SECRET.contains(&joined.as_str())
        })
    })
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, &letter) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1).copied();
        if before.is_some_and(|before| is_border(before, letter, after)) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a word begins here: at a capital letter behind a small one, at the last of several capital letters, and
/// where digits begin or end.
fn is_border(before: char, letter: char, after: Option<char>) -> bool {
    let ends_capitals = before.is_uppercase() && after.is_some_and(char::is_lowercase);
    letter.is_uppercase() && (before.is_lowercase() || ends_capitals)
        || before.is_alphanumeric() && before.is_numeric() != letter.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_however_they_are_written() {
        let names = [
            "password",
            "dbPassword",
            "DB_PASSWORD",
            "db-password",
            "DBPassword",
            "password2",
            "apiKey",
            "api_key",
            "APIKey",
            "apikey",
            "privateKeyPEM",
            "accessKeyID",
            "clientSecret",
            "oauth2Token",
            ".dockerconfigjson",
            "docker-config-json",
            "dockercfg",
            "kubeconfig",
            "rootPasswd",
            "Credentials",
        ];
        for name in names {
            assert!(is_secret(name), "{name}: {:?}", words(name));
        }
    }

    #[test]
    fn every_word_has_one_of_the_stems() {
        for word in SECRET {
            assert!(is_secret(word), "{word}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        let names = [
            "",
            "user",
            "tokenizer",
            "secretary",
            "key",
            "keys",
            "publicKey",
            "secretName",
            "tokenTTL",
            "passwordLength",
            "password_file",
            "tokenEnabled",
            "secretRef",
            "imagePullSecrets",
            "compass",
        ];
        for name in names {
            assert!(!is_secret(name), "{name}: {:?}", words(name));
        }
    }
}
