//! A strict reader of HTML: each element is closed in its order, each attribute is quoted, and no text has a bare `<`.

/// Elements that have no end.
const VOID: [&str; 4] = ["meta", "link", "input", "br"];

/// The first problem of a document, if it has one.
pub(super) fn check(html: &str) -> Result<(), String> {
    let mut rest = html.strip_prefix("<!doctype html>").ok_or("no doctype")?;
    let mut open: Vec<&str> = Vec::new();
    while let Some(at) = rest.find('<') {
        let end = end_of_tag(&rest[at..]).ok_or_else(|| format!("a tag without an end: {}", start(&rest[at..])))?;
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> ends <{}>", last.unwrap_or("nothing")));
            }
            continue;
        }
        let name = tag.split([' ', '/', '\n']).next().unwrap_or_default();
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            return Err(format!("no name of an element: <{}", start(tag)));
        }
        if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name);
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("not closed: {open:?}"))
    }
}

/// The texts between tags, with their characters decoded.
pub(super) fn texts(html: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        texts.push(decoded(&rest[..at]));
        let Some(end) = end_of_tag(&rest[at..]) else { break };
        rest = &rest[at + end + 1..];
    }
    texts
}

fn decoded(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#x60;", "`"),
        ("&#x3D;", "="),
        ("&amp;", "&"),
    ];
    pairs
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The place of the `>` that ends a tag, outside of quotes.
fn end_of_tag(tag: &str) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in tag.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'>' if !is_quoted => return Some(at),
            b'<' if at > 0 && !is_quoted => return None,
            _ => {}
        }
    }
    None
}

fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}

#[test]
fn broken_documents_are_seen() {
    for broken in [
        "<p>",
        "<!doctype html><p></b>",
        "<!doctype html><p",
        "<!doctype html><p <b></p>",
        "<!doctype html>a < b",
    ] {
        assert!(check(broken).is_err(), "{broken}");
    }
    check("<!doctype html><p class=\"a>b\">x<br></p>").unwrap();
}
