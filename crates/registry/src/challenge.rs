//! Parses the header `WWW-Authenticate`: the ways to authenticate that a registry offers.
//!
//! One or several headers may have several challenges. It must never fail: an invalid challenge is skipped.

use hyper::HeaderMap;
use hyper::header::WWW_AUTHENTICATE;

/// A way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password, sent directly.
    Basic,
    /// A token, which another host may issue.
    Bearer(Issuer),
}

/// The token issuer, and the service that the tokens are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Issuer {
    /// The issuer's URL.
    pub(super) realm: String,
    pub(super) service: Option<String>,
    /// The scope that the registry demands.
    pub(super) scope: Option<String>,
}

/// All challenges of the headers, in their order.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(parse).collect()
}

fn parse(text: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = token(rest);
        if word.is_empty() {
            break;
        }
        let after = after.trim_start();
        if let Some(value) = after.strip_prefix('=') {
            let (value, left) = value_of(value.trim_start());
            if let Some((_, parameters)) = found.last_mut() {
                parameters.push((word.to_ascii_lowercase(), value));
            }
            rest = left;
        } else {
            found.push((word.to_ascii_lowercase(), Vec::new()));
            rest = after;
        }
    }
    found.into_iter().filter_map(known).collect()
}

fn known((scheme, parameters): (String, Vec<(String, String)>)) -> Option<Challenge> {
    let get = |name: &str| {
        let found = parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    match scheme.as_str() {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer(Issuer {
            realm: get("realm")?,
            service: get("service"),
            scope: get("scope"),
        })),
        _ => None,
    }
}

/// A token of the grammar, and the text after it.
fn token(text: &str) -> (&str, &str) {
    let is_within = |letter: char| letter.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}".contains(letter);
    let end = text.find(|letter| !is_within(letter)).unwrap_or(text.len());
    text.split_at(end)
}

/// A value after an equals sign, quoted or not, and the text after it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        Challenge::Bearer(Issuer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        })
    }

    #[test]
    fn what_registries_really_say() {
        let realm = "https://auth.example/token";
        for (text, ways) in [
            (
                r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull""#,
                vec![bearer(realm, Some("registry.example"), Some("repository:a/b:pull"))],
            ),
            (
                r#"Basic realm="a, b", Bearer realm=https://auth.example/token , service="x""#,
                vec![Challenge::Basic, bearer(realm, Some("x"), None)],
            ),
            (
                r#"bearer Realm = "https://auth.example/\token",error="invalid_token",scope="""#,
                vec![bearer(realm, None, None)],
            ),
            (r#"Negotiate, NTLM, BASIC realm="x""#, vec![Challenge::Basic]),
            (r#"Bearer service="x""#, vec![]),
            (r#"realm="x""#, vec![]),
            (
                r#"Bearer realm="https://auth.example/token"#,
                vec![bearer(realm, None, None)],
            ),
            ("", vec![]),
        ] {
            assert_eq!(parse(text), ways, "{text}");
        }
    }

    #[test]
    fn several_headers_are_several_ways() {
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, "Basic realm=x".parse().unwrap());
        headers.append(WWW_AUTHENTICATE, "Bearer realm=y".parse().unwrap());
        assert_eq!(challenges(&headers), [Challenge::Basic, bearer("y", None, None)]);
    }

    proptest! {
        #[test]
        fn nothing_is_too_strange(text in "[ -~]{0,60}|\\PC*") {
            prop_assert!(parse(&text).len() <= text.len());
        }

        #[test]
        fn what_is_quoted_comes_back(realm in "[ -~]{1,30}") {
            let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(parse(&format!("Bearer realm=\"{quoted}\"")), [bearer(&realm, None, None)]);
        }
    }
}
