//! The definitions in scope, and which of them are recursive.
//!
//! A recursive definition is the only place at which a filter can run for ever or too deep. Its body begins with
//! `!enter`, which counts calls. If it has filters as parameters, it gets an additional parameter that counts its nested
//! calls: each call keeps all parameters of the calls before it alive, even a tail call. Must never change the meaning of
//! a filter.

use std::collections::BTreeSet;

use jaq_core::load::Arena;
use jaq_core::load::parse::Term;

use crate::lower::{self, Node};

/// The meaning of a name at one place.
#[derive(Debug, Clone)]
struct Entry<'s> {
    name: &'s str,
    arity: usize,
    definition: Option<Definition<'s>>,
}

/// A definition in scope. An entry without a definition is a parameter.
#[derive(Debug, Clone)]
struct Definition<'s> {
    /// The name of the definition once it has the counting parameter.
    counted_name: &'s str,
    /// The counting parameter.
    depth: &'s str,
    takes_filters: bool,
    /// Whether the body of the definition is being read.
    open: bool,
    recursive: bool,
}

/// The names in scope, the innermost last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes<'s> {
    entries: Vec<Entry<'s>>,
    /// The natives with more than one value as argument. Their last argument is the outermost loop.
    natives: BTreeSet<(&'static str, usize)>,
}

impl<'s> Scopes<'s> {
    pub(crate) fn new(natives: BTreeSet<(&'static str, usize)>) -> Self {
        Self {
            entries: Vec::new(),
            natives,
        }
    }

    /// A place in the list of names, for `forget`.
    pub(super) fn mark(&self) -> usize {
        self.entries.len()
    }

    /// Removes the names that came into scope after the mark.
    pub(super) fn forget(&mut self, mark: usize) {
        self.entries.truncate(mark);
    }

    /// Begins the body of a definition.
    pub(super) fn open(&mut self, name: &'s str, params: &[&'s str], depth: &'s str, arena: &'s Arena) -> usize {
        let mark = self.mark();
        let takes_filters = params.iter().any(|param| !param.starts_with('$'));
        let counted_name = if takes_filters {
            arena.alloc(format!("{name}!{}", params.len()))
        } else {
            name
        };
        let definition = Definition {
            counted_name,
            depth,
            takes_filters,
            open: true,
            recursive: false,
        };
        self.entries.push(Entry {
            name,
            arity: params.len(),
            definition: Some(definition),
        });
        for param in params.iter().filter(|param| !param.starts_with('$')) {
            self.entries.push(Entry {
                name: param,
                arity: 0,
                definition: None,
            });
        }
        mark
    }

    /// Ends the body of the definition that began at the mark. Returns the name and the body that the definition gets.
    /// If it needs the counting parameter, adds that to `params`.
    pub(super) fn close(&mut self, mark: usize, body: Node<'s>, params: &mut Vec<&'s str>) -> (&'s str, Node<'s>) {
        self.forget(mark + 1);
        let Some(Entry {
            name,
            definition: Some(definition),
            ..
        }) = self.entries.last_mut()
        else {
            return ("", body);
        };
        definition.open = false;
        if !definition.recursive {
            return (name, body);
        }
        if definition.takes_filters {
            params.push(definition.depth);
        }
        (
            definition.counted_name,
            lower::pipe(lower::call("!enter", Vec::new()), body),
        )
    }

    /// Makes a call of the definition or parameter that a name means here.
    pub(super) fn call(&mut self, name: &'s str, mut args: Vec<Node<'s>>) -> Node<'s> {
        let found = self
            .entries
            .iter_mut()
            .rfind(|entry| entry.name == name && entry.arity == args.len());
        let Some(entry) = found else {
            if self.natives.contains(&(name, args.len())) {
                args.reverse();
            }
            return lower::call(name, args);
        };
        let Some(definition) = &mut entry.definition else {
            return lower::call(name, args);
        };
        definition.recursive |= definition.open;
        if !(definition.recursive && definition.takes_filters) {
            return lower::call(name, args);
        }
        args.push(if definition.open {
            lower::call("!deeper", vec![Term::Var(definition.depth)])
        } else {
            Term::Num("0")
        });
        lower::call(definition.counted_name, args)
    }
}
