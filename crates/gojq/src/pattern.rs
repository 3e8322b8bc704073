//! Rewrites regular expressions of Go: RE2, with ASCII classes. Filters use them, and so do schemas, because the original
//! evaluates both in Go.
//!
//! Must never compile an expression: the caller does, and sets the limits.

/// The text of an RE2 expression, rewritten for the crate `regex`. In RE2 `\d`, `\w`, `\s` and `\b` mean ASCII, and a
/// bracket inside of a class is a plain character. An invalid expression stays invalid, so that the crate reports the
/// error.
pub fn translate(expression: &str) -> String {
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

/// Rewrites `\Q…\E`.
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

/// Rewrites `[:name:]` after its bracket.
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
        (_, true) => out.extend(["[^", inside, "]"]),
        (false, false) => out.extend(["[", inside, "]"]),
    }
}
