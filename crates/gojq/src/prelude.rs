//! The definitions that every filter may use.

use std::collections::BTreeSet;

use jaq_core::load::Arena;
use jaq_core::load::parse::Def;

use crate::error::FilterError;
use crate::grammar::{Grammar, Scopes};

const TEXT: &str = include_str!("prelude.jq");

/// The definitions, and the names that a filter after them can use. `natives` are those that take several values.
pub(crate) fn load<'s>(
    arena: &'s Arena,
    natives: BTreeSet<(&'static str, usize)>,
) -> Result<(Vec<Def<&'s str>>, Scopes<'s>), FilterError> {
    Grammar::prelude(TEXT, arena, Scopes::new(natives))
}

/// Their names with their number of parameters.
pub(crate) fn names() -> BTreeSet<String> {
    let heads = TEXT
        .lines()
        .filter_map(|line| line.strip_prefix("def ")?.split_once(':'));
    heads
        .map(|(head, _)| match head.split_once('(') {
            Some((name, params)) => format!("{name}/{}", params.matches(';').count() + 1),
            None => format!("{head}/0"),
        })
        .collect()
}
