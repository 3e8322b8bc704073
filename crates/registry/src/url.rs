//! URLs of requests, and the resolution of redirects.
//!
//! A URL with a user, or with another scheme than `https` and `http`, must never be accepted.

use std::fmt;
use std::fmt::Write as _;

use hyper::Uri;

use super::place::Host;

/// Whether the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scheme {
    Tls,
    Plain,
}

/// Scheme, host and port of a request. Secrets for one origin are never sent to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    pub(super) scheme: Scheme,
    /// The host; an IPv6 address is in brackets.
    pub(super) name: String,
    pub(super) port: u16,
}

impl Origin {
    pub(super) fn new(scheme: Scheme, host: &Host) -> Self {
        let usual = match scheme {
            Scheme::Tls => 443,
            Scheme::Plain => 80,
        };
        Self {
            scheme,
            name: host.name().to_owned(),
            port: host.port().unwrap_or(usual),
        }
    }

    /// The value of the header `Host`.
    pub(super) fn authority(&self) -> String {
        match (self.scheme, self.port) {
            (Scheme::Tls, 443) | (Scheme::Plain, 80) => self.name.clone(),
            (_, port) => format!("{}:{port}", self.name),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) origin: Origin,
    /// The path with the query; begins with `/`.
    pub(super) path: String,
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.origin.scheme {
            Scheme::Tls => "https",
            Scheme::Plain => "http",
        };
        // The query may contain signatures that give access, so it is not shown.
        let path = self.path.split('?').next().unwrap_or_default();
        write!(f, "{scheme}://{}{path}", self.origin.authority())
    }
}

impl Url {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = match uri.scheme_str()? {
            "https" => Scheme::Tls,
            "http" => Scheme::Plain,
            _ => return None,
        };
        let host: Host = uri.authority()?.as_str().parse().ok()?;
        // The host of a URL is used as it is: the aliases of Docker Hub apply only to image references.
        let mut origin = Origin::new(scheme, &host);
        origin.name = uri.host()?.to_ascii_lowercase();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Some(Self { origin, path })
    }

    /// Resolves a reference relative to this URL.
    pub(super) fn join(&self, reference: &str) -> Option<Self> {
        let reference = reference.split('#').next().unwrap_or_default().trim();
        if reference.contains("://") && !reference.starts_with(['/', '?']) {
            return Self::parse(reference);
        }
        let Self { origin, path } = self;
        let scheme = match origin.scheme {
            Scheme::Tls => "https",
            Scheme::Plain => "http",
        };
        if let Some(elsewhere) = reference.strip_prefix("//") {
            return Self::parse(&format!("{scheme}://{elsewhere}"));
        }
        let bare = path.split('?').next().unwrap_or_default();
        let path = match reference.chars().next()? {
            '/' => reference.to_owned(),
            '?' => format!("{bare}{reference}"),
            _ => format!("{}/{reference}", bare.rsplit_once('/').map_or("", |(folder, _)| folder)),
        };
        Self::parse(&format!("{scheme}://{}{path}", origin.authority()))
    }

    /// Adds a parameter to the query.
    pub(super) fn with(mut self, key: &str, value: &str) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(key);
        self.path.push('=');
        self.path.push_str(&escaped(value));
        self
    }
}

/// Percent-encodes a text for a query or a form.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn references_lead_where_browsers_would_go() {
        let base = Url::parse("https://a.example:5000/v2/x/tags/list?n=1").unwrap();
        for (reference, path) in [
            ("/v2/y?n=2", "https://a.example:5000/v2/y?n=2"),
            ("?n=2", "https://a.example:5000/v2/x/tags/list?n=2"),
            ("other?n=2", "https://a.example:5000/v2/x/tags/other?n=2"),
            ("//b.example/z", "https://b.example/z"),
            (
                "http://c.example/z?u=https://d.example",
                "http://c.example/z?u=https://d.example",
            ),
            ("https://c.example", "https://c.example/"),
            (
                "/z?u=https://d.example#f",
                "https://a.example:5000/z?u=https://d.example",
            ),
        ] {
            assert_eq!(base.join(reference).unwrap(), Url::parse(path).unwrap(), "{reference}");
        }
        for reference in [
            "",
            "ftp://a.example/",
            "https://user@a.example/",
            "https://",
            "https:///x",
            "/a b",
        ] {
            assert_eq!(base.join(reference), None, "{reference}");
        }
    }

    #[test]
    fn an_address_is_shown_without_what_lets_people_in() {
        let url = Url::parse("https://a.example/x").unwrap().with("signature", "a b&c");
        assert_eq!(url.path, "/x?signature=a%20b%26c");
        assert_eq!(url.to_string(), "https://a.example/x");
        assert_eq!(
            Url::parse("https://A.example:443").unwrap(),
            Url::parse("https://a.example/").unwrap()
        );
    }

    proptest! {
        #[test]
        fn no_reference_is_too_strange(reference in "\\PC*") {
            let base = Url::parse("https://a.example/v2/").unwrap();
            if let Some(url) = base.join(&reference) {
                prop_assert!(url.path.starts_with('/'));
            }
        }
    }
}
