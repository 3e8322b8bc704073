//! A small reader of Rust text: it recognises only comments, strings, characters and brackets.
//!
//! That is enough to find functions, test items and inline modules in formatted code. It must never be used for more:
//! it does not see items that macros generate.

use std::ops::Range;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of `fn`, from 1.
    pub(crate) line: usize,
    /// The number of lines from `fn` to the closing brace, both included.
    pub(crate) lines: usize,
}

/// The text with spaces in place of comments, strings and character literals. Its length and line breaks stay the same.
pub(crate) fn blank(source: &str) -> String {
    let parts: Vec<Range<usize>> = parts(source).into_iter().map(|(_, part)| part).collect();
    without(source, &parts)
}

/// The text with spaces in place of everything except string literals. Its length and line breaks stay the same.
pub(crate) fn only_texts(source: &str) -> String {
    let texts = parts(source).into_iter().filter(|(kind, _)| *kind == Part::Text);
    let mut others = Vec::new();
    let mut at = 0;
    for (_, text) in texts {
        others.push(at..text.start);
        at = text.end;
    }
    others.push(at..source.len());
    without(source, &others)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Comment,
    Text,
    Character,
}

/// The comments, strings and character literals, in their order.
fn parts(source: &str) -> Vec<(Part, Range<usize>)> {
    let bytes = source.as_bytes();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end) = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => (Part::Comment, line_end(bytes, at)),
            b'/' if bytes[at..].starts_with(b"/*") => (Part::Comment, comment_end(bytes, at)),
            b'"' => (Part::Text, string_end(bytes, at)),
            b'\'' => (Part::Character, character_end(source, at)),
            byte if is_word(byte) => {
                let word = word_end(bytes, at);
                at = raw_string_end(bytes, at..word).map_or(word, |end| {
                    parts.push((Part::Text, word..end));
                    end
                });
                continue;
            }
            _ => (Part::Character, at + 1),
        };
        if end > at + 1 {
            parts.push((kind, at..end));
        }
        at = end;
    }
    parts
}

/// The items with `#[cfg(test)]`, including the attribute. `code` is blanked text.
pub(crate) fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for (start, _) in code.match_indices("#[cfg(") {
        let attribute = start..closing(code, start + 1) + 1;
        let inside_another = items.last().is_some_and(|item| item.contains(&start));
        if is_test_attribute(&code[attribute.clone()]) && !inside_another {
            items.push(start..item_end(code, attribute.end));
        }
    }
    items
}

/// The text with spaces in place of the given parts.
pub(crate) fn without(code: &str, parts: &[Range<usize>]) -> String {
    let mut out = code.as_bytes().to_vec();
    for part in parts {
        erase(&mut out, part.clone());
    }
    String::from_utf8(out).expect("parts begin and end at ASCII")
}

/// Every function with a body, including nested ones. `code` is blanked text.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let named = words(code, "fn").filter_map(|at| {
        let rest = code[at + 2..].trim_start();
        let name = &rest[..word_end(rest.as_bytes(), 0)];
        let open = body(code, at)?;
        let line = line_of(code, at);
        let lines = line_of(code, closing(code, open)) - line + 1;
        (!name.is_empty()).then(|| Function {
            name: name.to_owned(),
            line,
            lines,
        })
    });
    named.collect()
}

/// The bodies of inline modules. `code` is blanked text.
pub(crate) fn inline_modules(code: &str) -> Vec<Range<usize>> {
    words(code, "mod")
        .filter_map(|at| body(code, at).map(|open| open..closing(code, open)))
        .collect()
}

/// The positions of a word that is not part of a longer one.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let starts = at == 0 || !is_word(bytes[at - 1]);
        starts && !bytes.get(at + word.len()).copied().is_some_and(is_word)
    })
}

/// The line of a position, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The number of lines that the parts touch.
pub(crate) fn lines_in(text: &str, parts: &[Range<usize>]) -> usize {
    parts
        .iter()
        .map(|part| line_of(text, part.end - 1) - line_of(text, part.start) + 1)
        .sum()
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

pub(crate) fn word_end(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|&&byte| is_word(byte)).count()
}

/// The position of the bracket that closes the one at `open`; the end of the text if none does.
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return offset;
        }
    }
    code.len() - 1
}

/// The opening brace of the item at `start`; none if the item ends with a semicolon before one.
fn body(code: &str, start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(offset),
            b';' | b'}' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn is_test_attribute(attribute: &str) -> bool {
    let text: String = attribute.chars().filter(|letter| !letter.is_whitespace()).collect();
    text == "#[cfg(test)]" || text.starts_with("#[cfg(all(test,")
}

/// The end of the item after an attribute and further attributes.
fn item_end(code: &str, mut at: usize) -> usize {
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        if !code[at..].starts_with("#[") {
            break;
        }
        at = closing(code, at + 1) + 1;
    }
    let word = &code[at..word_end(code.as_bytes(), at)];
    if !ITEM_WORDS.contains(&word) {
        // A field, a variant or a match arm: it ends at the comma, or at the end of its list.
        return code[at..].find([',', '}']).map_or(code.len(), |length| at + length);
    }
    body(code, at).map_or_else(
        || code[at..].find(';').map_or(code.len(), |semicolon| at + semicolon + 1),
        |open| closing(code, open) + 1,
    )
}

/// The keywords at the beginning of an item.
const ITEM_WORDS: [&str; 14] = [
    "async", "const", "enum", "extern", "fn", "impl", "mod", "pub", "static", "struct", "trait", "type", "unsafe",
    "use",
];

fn erase(out: &mut [u8], part: Range<usize>) {
    for byte in &mut out[part] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(bytes.len(), |length| at + length)
}

fn comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The end of a character literal; for a lifetime or a label the position after the quote.
fn character_end(source: &str, quote: usize) -> usize {
    let mut rest = source[quote + 1..].char_indices();
    match rest.next() {
        Some((_, '\\')) => {
            let escaped = quote + 3;
            source
                .get(escaped..)
                .and_then(|tail| tail.find('\''))
                .map_or(source.len(), |found| escaped + found + 1)
        }
        Some(_) => match rest.next() {
            Some((offset, '\'')) => quote + offset + 2,
            _ => quote + 1,
        },
        None => quote + 1,
    }
}

/// The end of the raw string that begins with this word, if one does.
fn raw_string_end(bytes: &[u8], word: Range<usize>) -> Option<usize> {
    if !matches!(&bytes[word.clone()], b"r" | b"br" | b"cr") {
        return None;
    }
    let hashes = bytes[word.end..].iter().take_while(|&&byte| byte == b'#').count();
    let open = word.end + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let length = bytes[open + 1..]
        .windows(close.len())
        .position(|window| window == close)?;
    Some(open + 1 + length + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_become_spaces() {
        let rows = [
            ("a // b {\nc", "a       \nc"),
            ("a /* b /* { */ c */ d", "a                   d"),
            (r#"a("{ \" }") b"#, "a(        ) b"),
            (r##"a(r#"{ " }"#) b"##, "a(r         ) b"),
            (r#"a(br"{\") b"#, "a(br    ) b"),
            ("a('{') b", "a(   ) b"),
            (r"a('\'') b", "a(    ) b"),
            ("a('ß') b", "a(    ) b"),
            ("fn a<'b>(c: &'b str) {}", "fn a<'b>(c: &'b str) {}"),
            ("let r = 1; for \"x\"", "let r = 1; for    "),
            ("r#type", "r#type"),
        ];
        for (source, wanted) in rows {
            assert_eq!(blank(source), wanted, "{source}");
        }
    }

    #[test]
    fn what_is_cut_off_reaches_the_end() {
        for source in ["\"a", "/* a", "'\\", "r#\"a", "'", "fn a() {", "\"\\"] {
            let code = blank(source);
            assert_eq!(code.len(), source.len(), "{source}");
            functions(&code);
            test_items(&code);
        }
    }

    #[test]
    fn functions_are_measured_from_the_keyword_to_the_brace() {
        let code = blank(
            "trait A {\n    fn none(&self);\n    fn some(&self) -> [u8; 3] {\n        b(\"}\")\n    }\n}\ntype F = fn(u8) -> u8;\n\
             fn outer(\n    a: F,\n) where\n    u8: Copy,\n{\n    fn inner() {}\n}\n",
        );
        let found: Vec<(String, usize, usize)> = functions(&code)
            .into_iter()
            .map(|function| (function.name, function.line, function.lines))
            .collect();
        assert_eq!(
            found,
            [
                ("some".to_owned(), 3, 3),
                ("outer".to_owned(), 8, 7),
                ("inner".to_owned(), 13, 1)
            ]
        );
    }

    #[test]
    fn test_items_are_found_with_their_attributes() {
        let code = blank(
            "fn a() {}\n#[cfg(test)]\nuse b::c;\n#[cfg(not(test))]\nfn d() {}\n#[cfg(test)]\n#[expect(x)]\nmod tests {\n    \
             #[cfg(test)]\n    fn e() {}\n}\nfn f() {}\n",
        );
        let items = test_items(&code);
        assert_eq!(lines_in(&code, &items), 2 + 6);
        let left = without(&code, &items);
        let names: Vec<String> = functions(&left).into_iter().map(|function| function.name).collect();
        assert_eq!(names, ["a", "d", "f"]);
        assert_eq!(left.lines().count(), code.lines().count());
    }

    #[test]
    fn modules_in_place_are_found() {
        let code = blank("mod a;\nmod b { mod c { } }\n");
        assert_eq!(inline_modules(&code).len(), 2);
    }
}
