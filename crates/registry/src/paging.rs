//! The next page of a list.
//!
//! Must never lead to another host than the page's own.

use hyper::HeaderMap;
use hyper::header::LINK;

use super::error::Problem;
use super::url::Url;

/// The URL of the next page, if there is one.
pub(super) fn next(headers: &HeaderMap, here: &Url) -> Result<Option<Url>, Problem> {
    let mut values = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let Some(target) = values.find_map(link_to_next) else {
        return Ok(None);
    };
    match here.join(target).filter(|next| next.origin == here.origin) {
        Some(next) => Ok(Some(next)),
        None => Err(Problem::Astray {
            to: super::said::line(target.split('?').next().unwrap_or_default()),
            why: "the next page of a list is where the first one was",
        }),
    }
}

/// The target of the link whose relation is `next`.
fn link_to_next(value: &str) -> Option<&str> {
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('<') {
        let (target, after) = after.split_once('>')?;
        let (parameters, others) = match after.find('<') {
            Some(at) => after.split_at(at),
            None => (after, ""),
        };
        let is_next = parameters.split([';', ',']).any(|parameter| {
            let (key, value) = parameter.split_once('=').unwrap_or_default();
            key.trim().eq_ignore_ascii_case("rel") && value.trim().trim_matches('"').eq_ignore_ascii_case("next")
        });
        if is_next {
            return Some(target);
        }
        rest = others;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_where_the_first_one_was() {
        let here = Url::parse("https://a.example/v2/x/tags/list?n=2").unwrap();
        let at = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, value.parse().unwrap());
            next(&headers, &here).map(|next| next.map(|next| next.path))
        };
        for (value, path) in [
            (
                r#"</v2/x/tags/list?last=b&n=2>; rel="next""#,
                "/v2/x/tags/list?last=b&n=2",
            ),
            ("<?last=c>;rel=next", "/v2/x/tags/list?last=c"),
            (r#"<https://a.example:443/y>; title="t"; REL=Next"#, "/y"),
            (r#"</before>; rel="prev", </after>; rel="next""#, "/after"),
        ] {
            assert_eq!(at(value).unwrap().as_deref(), Some(path), "{value}");
        }
        for value in ["</x>; rel=prev", "rel=next", "<x", "</x>"] {
            assert_eq!(at(value).unwrap(), None, "{value}");
        }
        for value in ["<https://b.example/x>; rel=next", "<http://a.example/x>; rel=next"] {
            assert!(matches!(at(value), Err(Problem::Astray { .. })), "{value}");
        }
    }
}
