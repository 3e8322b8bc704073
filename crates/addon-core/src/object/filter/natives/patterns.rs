//! Regular expressions, in the dialect of the original: RE2 with ASCII classes.

use jaq_core::Exn;
use regex::{Regex, RegexBuilder};

use super::super::fault as say;
use super::super::value::{Res, Val, fault};
use super::objects::object;
use super::strings::text;
use super::{Cv, Outs, Row, budget, one, paid, values};
use crate::object::filter::budget::Budget;

/// How large a compiled expression may be, in bytes.
const MAX_COMPILED: usize = 1 << 20;

pub(super) fn rows() -> Vec<Row> {
    vec![("!match", values(3), matches), ("split", values(2), split)]
}

fn compile<'a>(budget: &Budget, expression: &str, flags: &str) -> Res<'a, Regex> {
    if let Some(unknown) = flags.chars().find(|flag| !"gim".contains(*flag)) {
        return Err(fault(format!(
            "unsupported regular expression flag: {unknown:?} in {flags:?}"
        )));
    }
    let (insensitive, dots) = (flags.contains('i'), flags.contains('m'));
    budget.pattern(&format!("{insensitive}{dots}{expression}"), || {
        RegexBuilder::new(&translate(expression))
            .case_insensitive(insensitive)
            .dot_matches_new_line(dots)
            .size_limit(MAX_COMPILED)
            .nest_limit(50)
            .build()
            .map_err(|error| fault(format!("invalid regular expression {expression:?}: {error}")))
    })
}

/// Where the two dialects write the same thing differently: `\d`, `\w`, `\s` and `\b` mean ASCII, and a bracket inside a
/// class is a bracket.
fn translate(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len());
    let mut chars = expression.chars().peekable();
    let mut class = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('Q') if !class => quoted(&mut chars, &mut out),
                Some(escaped) => escape(escaped, class, &mut out),
                None => out.push('\\'),
            },
            '[' if class && chars.peek() == Some(&':') => posix(&mut chars, &mut out),
            '[' if class => out.push_str("\\["),
            '&' | '~' | '-' if class && chars.peek() == Some(&char) => {
                out.push('\\');
                out.push(char);
            }
            '[' => {
                class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' => {
                class = false;
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
}

/// `\Q…\E`.
fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut literal = String::new();
    while let Some(char) = chars.next() {
        if char == '\\' && chars.next_if_eq(&'E').is_some() {
            break;
        }
        literal.push(char);
    }
    out.push_str(&regex::escape(&literal));
}

/// `[:name:]`, after its bracket.
fn posix(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    out.push('[');
    for char in chars.by_ref() {
        out.push(char);
        if char == ']' {
            break;
        }
    }
}

fn escape(char: char, class: bool, out: &mut String) {
    let (inside, negated) = match char {
        'd' => ("0-9", false),
        'D' => ("0-9", true),
        'w' => ("0-9A-Za-z_", false),
        'W' => ("0-9A-Za-z_", true),
        's' => ("\\t\\n\\f\\r ", false),
        'S' => ("\\t\\n\\f\\r ", true),
        'b' if !class => return out.push_str("(?-u:\\b)"),
        'B' if !class => return out.push_str("(?-u:\\B)"),
        other => {
            out.push('\\');
            return out.push(other);
        }
    };
    match (class, negated) {
        (true, false) => out.push_str(inside),
        (_, true) => out.push_str(&format!("[^{inside}]")),
        (false, false) => out.push_str(&format!("[{inside}]")),
    }
}

/// `match` and, with a true last argument, `test`.
fn matches(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (expression, flags) = (cv.0.pop_var().plain(), cv.0.pop_var().plain());
    let testing = cv.0.pop_var().truth();
    let input = cv.1.plain();
    let name = if testing { "test" } else { "match" };
    let flag_text = match &flags {
        Val::Null => Some(""),
        other => other.as_str(),
    };
    let (Some(haystack), Some(pattern), Some(flag_text)) = (input.as_str(), expression.as_str(), flag_text) else {
        return one(Err(Exn::from(say::with_two(name, &input, &expression, &flags))));
    };
    let regex = match budget
        .work(10 + haystack.len() / 8)
        .and_then(|()| Ok(compile(budget, pattern, flag_text)?))
    {
        Ok(regex) => regex,
        Err(error) => return one(Err(error)),
    };
    if testing {
        return one(Ok(Val::Bool(regex.is_match(haystack))));
    }
    let limit = if flag_text.contains('g') { usize::MAX } else { 1 };
    one(paid(budget, found(&regex, haystack, limit)))
}

fn found<'a>(regex: &Regex, haystack: &str, limit: usize) -> Res<'a> {
    let names: Vec<Val<'a>> = regex
        .capture_names()
        .skip(1)
        .map(|name| name.map_or(Val::Null, Val::text))
        .collect();
    let mut counted = (0, 0);
    // Matches come in order, so that characters need counting once only.
    let mut offset = |byte: usize| {
        counted = if byte >= counted.0 {
            (byte, counted.1 + haystack[counted.0..byte].chars().count())
        } else {
            (byte, haystack[..byte].chars().count())
        };
        counted.1
    };
    let mut all = Vec::new();
    for captures in regex.captures_iter(haystack).take(limit) {
        let Some(whole) = captures.get(0) else { continue };
        let start = offset(whole.start());
        let mut groups = Vec::new();
        for (group, name) in captures.iter().skip(1).zip(&names) {
            let (at, length, string) = match group {
                Some(group) => {
                    let at = offset(group.start());
                    (
                        Val::count(at),
                        group.as_str().chars().count(),
                        Val::text(group.as_str()),
                    )
                }
                None => (Val::int(-1), 0, Val::Null),
            };
            let length = Val::count(length);
            groups.push(object([
                ("name", name.clone()),
                ("offset", at),
                ("length", length),
                ("string", string),
            ])?);
        }
        all.push(object([
            ("offset", Val::count(start)),
            ("length", Val::count(whole.as_str().chars().count())),
            ("string", Val::text(whole.as_str())),
            ("captures", Val::array(groups)?),
        ])?);
        if all.len() as u64 > super::super::value::MAX_WEIGHT / 8 {
            return Err(fault("match: too many matches"));
        }
    }
    Val::array(all)
}

/// `split` with flags: the separator is a regular expression.
fn split(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (expression, flags) = (cv.0.pop_var().plain(), cv.0.pop_var().plain());
    let input = cv.1.plain();
    let parts = || {
        let haystack = text("split", &input)?;
        let pattern = text("split", &expression)?;
        let flags = if matches!(flags, Val::Null) {
            ""
        } else {
            text("split", &flags)?
        };
        let regex = compile(budget, pattern, flags)?;
        Val::array(pieces(&regex, pattern, haystack).into_iter().map(Val::text).collect())
    };
    one(budget
        .work(10 + input.as_str().map_or(0, str::len) / 8)
        .and_then(|()| paid(budget, parts())))
}

/// Between the matches; one at the very beginning that is empty separates nothing.
fn pieces<'t>(regex: &Regex, pattern: &str, haystack: &'t str) -> Vec<&'t str> {
    if !pattern.is_empty() && haystack.is_empty() {
        return vec![""];
    }
    let mut parts = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for found in regex.find_iter(haystack) {
        end = found.start();
        if found.end() != 0 {
            parts.push(&haystack[begin..end]);
        }
        begin = found.end();
    }
    if end != haystack.len() {
        parts.push(&haystack[begin..]);
    }
    parts
}
