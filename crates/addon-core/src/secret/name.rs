//! The names of keys whose values are secrets.
//!
//! A name is split into its words, in any spelling: `dbPassword`, `db-password` and `DB_PASSWORD` are
//! one name. Must never look at a part of a word: a `tokenizer` is no token.

/// Words, or several of them written as one, that name a secret; all of them in small letters.
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

/// A name that ends so is about a secret, or says where one is, and is none itself.
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

/// Kubernetes' own field for a list of names.
const REFERENCES: [&str; 2] = ["imagepullsecret", "imagepullsecrets"];

/// One of these is in every such name, which spares us from looking closer at most of all others.
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

/// Whether a stem is in a name, in small letters or large ones.
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

/// The words of a name, in small letters.
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

/// A word begins with a large letter after a small one, with the last large letter of several, and where digits begin
/// or end.
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
