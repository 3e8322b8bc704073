//! The definitions in scope, and which of them call themselves.
//!
//! A definition that calls itself is where a filter can run for ever or too deep. Such a body begins with `!enter`, which
//! counts; and where it takes filters as parameters it gets one parameter more, which counts how often the definition was
//! re-entered: every such call keeps all parameters before it alive, even a tail call. Must never change what a filter
//! means.

use std::collections::BTreeSet;

use jaq_core::load::Arena;
use jaq_core::load::parse::Term;

use crate::lower::{self, Node};

/// What a name means at one place.
#[derive(Debug, Clone)]
struct Entry<'s> {
    name: &'s str,
    arity: usize,
    definition: Option<Definition<'s>>,
}

/// A definition in sight; an entry without one is a parameter.
#[derive(Debug, Clone)]
struct Definition<'s> {
    /// Its name with the parameter that counts.
    counted_name: &'s str,
    /// The parameter that counts.
    depth: &'s str,
    takes_filters: bool,
    /// Whether its body is being read.
    open: bool,
    recursive: bool,
}

/// The names in sight, the nearest last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes<'s> {
    entries: Vec<Entry<'s>>,
    /// The natives that take more than one value: their last argument is tried in the outermost loop.
    natives: BTreeSet<(&'static str, usize)>,
}

impl<'s> Scopes<'s> {
    pub(crate) fn new(natives: BTreeSet<(&'static str, usize)>) -> Self {
        Self {
            entries: Vec::new(),
            natives,
        }
    }

    /// A place to come back to.
    pub(super) fn mark(&self) -> usize {
        self.entries.len()
    }

    /// Forgets what came in sight since.
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

    /// Ends the body of the definition that began at a mark; gives it its name, its body and its parameters.
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

    /// A call of what a name means here.
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
