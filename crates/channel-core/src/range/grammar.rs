//! The parser of ranges.
//!
//! Must never skip a text between two rules.

use super::{Fault, Group, Open, Rule, Sign};
use crate::version::{Version, Written, number};

/// The largest accepted length of a text, as in the original.
pub(super) const LONGEST: usize = 512;
/// The largest accepted number of groups in a range, as in the original.
pub(super) const MOST_GROUPS: usize = 32;

/// The signs. A longer sign comes before a shorter one that it begins with.
const SIGNS: [(&str, Sign); 11] = [
    ("!=", Sign::NotEqual),
    (">=", Sign::AtLeast),
    ("=>", Sign::AtLeast),
    ("<=", Sign::AtMost),
    ("=<", Sign::AtMost),
    ("~>", Sign::Tilde),
    ("=", Sign::Equal),
    (">", Sign::Above),
    ("<", Sign::Below),
    ("~", Sign::Tilde),
    ("^", Sign::Caret),
];

pub(super) fn groups(text: &str) -> Result<Vec<Group>, Fault> {
    if text.len() > LONGEST {
        return Err(Fault::Long);
    }
    if text.split("||").count() > MOST_GROUPS {
        return Err(Fault::Groups);
    }
    text.split("||").map(group).collect()
}

/// The text before a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Before the rule stands nothing, a comma or a span.
    Clear,
    /// Before the rule stand another rule and blanks. A span is not allowed here, because the original does not read it
    /// either.
    Rule,
}

fn group(text: &str) -> Result<Group, Fault> {
    let mut rest = text.trim_matches(is_blank);
    let mut rules = Vec::new();
    let mut before = Before::Clear;
    loop {
        let found = rule(rest, before)?;
        let is_span = found.is_span();
        rules.extend(found.rules);
        let behind = found.rest.trim_start_matches(is_blank);
        if behind.is_empty() {
            return Ok(Group::new(rules));
        }
        (rest, before) = match behind.strip_prefix(',') {
            Some(next) => (next.trim_start_matches(is_blank), Before::Clear),
            None if behind.len() == found.rest.len() => return Err(Fault::NotApart(behind.to_owned())),
            None => (behind, if is_span { Before::Clear } else { Before::Rule }),
        };
    }
}

/// The rules of one piece of text, and the text behind it.
struct Found<'t> {
    rules: Vec<Rule>,
    rest: &'t str,
}

impl Found<'_> {
    fn is_span(&self) -> bool {
        self.rules.len() > 1
    }
}

fn rule(text: &str, before: Before) -> Result<Found<'_>, Fault> {
    let sign = SIGNS.iter().find(|(sign, _)| text.starts_with(sign));
    let behind = sign.map_or(text, |(sign, _)| text[sign.len()..].trim_start_matches(is_blank));
    let split = |text| Written::split(text).ok_or_else(|| Fault::NoRule(text.to_owned()));
    let (written, rest) = split(behind)?;
    let Some(upper) = upper_end(rest) else {
        let sign = sign.map_or(Sign::Equal, |(_, sign)| *sign);
        let rules = vec![Rule::new(sign, &written, behind)?];
        return Ok(Found { rules, rest });
    };
    if sign.is_some() || before == Before::Rule {
        return Err(Fault::Span(text.to_owned()));
    }
    let (last, rest) = split(upper)?;
    let rules = vec![
        Rule::new(Sign::AtLeast, &written, behind)?,
        Rule::new(Sign::AtMost, &last, upper)?,
    ];
    Ok(Found { rules, rest })
}

/// The text behind a dash with blanks on both sides.
fn upper_end(text: &str) -> Option<&str> {
    let behind = text.trim_start_matches(is_blank).strip_prefix('-')?;
    let upper = behind.trim_start_matches(is_blank);
    (text.starts_with(is_blank) && upper.len() < behind.len()).then_some(upper)
}

/// Whether a character is a blank in Go's regular expressions.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

impl Rule {
    /// Makes a rule. Parts of the version behind a wildcard are ignored.
    fn new(sign: Sign, written: &Written<'_>, text: &str) -> Result<Self, Fault> {
        let mut numbers = [0; 3];
        let mut open = Open::Nothing;
        let fault = || Fault::Version(text.to_owned());
        for (at, from_here_on) in [Open::Major, Open::Minor, Open::Patch].into_iter().enumerate() {
            match written.parts[at] {
                None | Some("x" | "X" | "*") => {
                    open = from_here_on;
                    break;
                }
                Some(part) => numbers[at] = number(part).ok_or_else(fault)?,
            }
        }
        let version = Version::new(numbers, written.pre).ok_or_else(fault)?;
        Ok(Self { sign, version, open })
    }
}
