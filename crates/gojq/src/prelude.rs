//! The definitions that every filter may call.

use std::collections::BTreeSet;

use jaq_core::load::Arena;
use jaq_core::load::parse::Def;

use crate::error::FilterError;
use crate::grammar::{Grammar, Scopes};

const TEXT: &str = include_str!("prelude.jq");

/// The definitions, and the names that are then in scope for a filter. `natives` are those with several values as arguments.
pub(crate) fn load<'s>(
    arena: &'s Arena,
    natives: BTreeSet<(&'static str, usize)>,
) -> Result<(Vec<Def<&'s str>>, Scopes<'s>), FilterError> {
    Grammar::prelude(TEXT, arena, Scopes::new(natives))
}

/// The names of the definitions with their numbers of parameters.
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
