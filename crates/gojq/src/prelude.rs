//! The definitions that every filter may use.

use std::collections::BTreeSet;

use jaq_core::load::Arena;
use jaq_core::load::parse::Def;

use super::grammar::{Grammar, Scopes};
use crate::filter::FilterError;
use crate::natives;

const TEXT: &str = include_str!("prelude.jq");

/// The definitions, and what a filter that follows them can see.
pub(super) fn load(arena: &Arena) -> Result<(Vec<Def<&str>>, Scopes<'_>), FilterError> {
    Grammar::prelude(TEXT, arena, Scopes::new(natives::of_many_values()))
}

/// Their names with their number of parameters.
pub(super) fn names() -> BTreeSet<String> {
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
