//! Regular expressions, in the dialect of the original: RE2 with ASCII classes.

use std::collections::BTreeMap;

use jaq_core::{Bind, Exn};
use regex::{Regex, RegexBuilder};

use super::objects::{capture, object};
use super::strings::text;
use super::{Cv, Out, Outs, Row, budget, one, paid, values};
use crate::budget::Budget;
use crate::pattern::translate;
use crate::value::wording as say;
use crate::value::{Res, Val, fault};

/// The size limit of a compiled expression in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// The number of compiled expressions that a filter keeps.
const MAX_KNOWN: usize = 32;

/// The number of cells for a match, or for a group in it.
const CELLS_OF_A_MATCH: usize = 24;

pub(super) fn rows() -> Vec<Row> {
    let replacing = [Bind::Var(()), Bind::Fun(())].into();
    vec![
        ("!match", values(3), matches),
        ("split", values(2), split),
        ("!replace", replacing, replace),
    ]
}

fn compile<'a>(budget: &Budget<'_>, expression: &str, flags: &str) -> Res<'a, Regex> {
    if let Some(unknown) = flags.chars().find(|flag| !"gim".contains(*flag)) {
        return Err(fault(format!(
            "unsupported regular expression flag: {unknown:?} in {flags:?}"
        )));
    }
    budget.pattern(&key(expression, flags), || {
        build(expression, flags).map_err(|error| fault(format!("invalid regular expression {expression:?}: {error}")))
    })
}

/// The key under which a compiled expression is kept. The flag `g` does not matter for it.
fn key(expression: &str, flags: &str) -> String {
    format!(
        "{}{}{expression}",
        u8::from(flags.contains('i')),
        u8::from(flags.contains('m'))
    )
}

fn build(expression: &str, flags: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translate(expression))
        .case_insensitive(flags.contains('i'))
        .dot_matches_new_line(flags.contains('m'))
        .size_limit(MAX_COMPILED)
        .nest_limit(50)
        .build()
}

/// The compiled expressions in a filter's text. Invalid ones are left out, and fail when they are used.
pub(crate) fn known(expressions: &[(String, String)]) -> BTreeMap<String, Regex> {
    let built = |(expression, flags): &(String, String)| Some((key(expression, flags), build(expression, flags).ok()?));
    expressions.iter().take(MAX_KNOWN).filter_map(built).collect()
}

/// `match`; if the last argument is true, `test`.
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
    one(found(budget, &regex, haystack, limit))
}

fn found<'a>(budget: &Budget<'_>, regex: &Regex, haystack: &str, limit: usize) -> Out<'a> {
    let names: Vec<Val<'a>> = regex
        .capture_names()
        .skip(1)
        .map(|name| name.map_or(Val::Null, Val::text))
        .collect();
    let mut counted = (0, 0);
    // Matches come in order, so that each character is counted only once.
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
        budget.memory(CELLS_OF_A_MATCH * (names.len() + 1))?;
    }
    Ok(Val::array(all)?)
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

/// The texts between the matches. An empty match at the very beginning separates nothing.
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

/// `sub`, given the matches: each is replaced by an output of the filter for its captures. If the filter has several
/// outputs, all combinations are output; the outputs for the first match vary first.
fn replace(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (filter, context) = cv.0.pop_fun();
    let matches = cv.0.pop_var().plain();
    let input = cv.1.plain();
    let prepare = || -> Out<'_, _> {
        let text: Vec<char> = text("sub", &input)?.chars().collect();
        let mut between = Vec::new();
        let mut choices = Vec::new();
        let mut end = 0;
        for found in matches.children().unwrap_or_default() {
            let (start, length) = extent(&found);
            between.push(text.get(end..start).unwrap_or_default().iter().collect::<String>());
            end = start + length;
            let mut outputs = Vec::new();
            for output in filter.run((context.clone(), capture(&found)?)) {
                outputs.push(match output?.plain() {
                    Val::Null => String::new(),
                    Val::Str(text) => String::from(&*text),
                    other => return Err(Exn::from(say::binary("add", &other, &input))),
                });
                budget.memory(2)?;
            }
            choices.push(outputs);
        }
        between.push(text.get(end..).unwrap_or_default().iter().collect());
        Ok((between, choices))
    };
    match prepare() {
        Ok((between, choices)) => Box::new(texts(budget, between, choices)),
        Err(error) => one(Err(error)),
    }
}

/// The place and the length of a match, in characters.
fn extent(found: &Val<'_>) -> (usize, usize) {
    let number = |key: &str| {
        let number = found
            .as_dict()
            .and_then(|dict| dict.get(key))
            .and_then(|value| Some(value.as_num()?.int()));
        usize::try_from(number.unwrap_or(0)).unwrap_or(0)
    };
    (number("offset"), number("length"))
}

/// All texts for a choice of replacements at each place.
fn texts<'a>(
    budget: &'a Budget<'a>,
    between: Vec<String>,
    choices: Vec<Vec<String>>,
) -> impl Iterator<Item = Out<'a>> + 'a {
    let mut turn = choices
        .iter()
        .all(|outputs| !outputs.is_empty())
        .then(|| vec![0; choices.len()]);
    std::iter::from_fn(move || {
        let chosen = turn.as_mut()?;
        let mut text = between.first().cloned().unwrap_or_default();
        for ((outputs, index), after) in choices.iter().zip(chosen.iter()).zip(between.iter().skip(1)) {
            text.push_str(&outputs[*index]);
            text.push_str(after);
        }
        let place = chosen
            .iter()
            .zip(&choices)
            .position(|(index, outputs)| index + 1 < outputs.len());
        match place {
            Some(place) => {
                chosen[..place].fill(0);
                chosen[place] += 1;
            }
            None => turn = None,
        }
        Some(
            budget
                .work(choices.len())
                .and_then(|()| paid(budget, Val::string(text))),
        )
    })
}
