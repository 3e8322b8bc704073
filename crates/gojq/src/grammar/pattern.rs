//! Reads bindings: `as` with its patterns, `reduce` and `foreach`.

use std::collections::BTreeSet;

use jaq_core::load::parse::{Pattern, Term};

use super::{Grammar, Parsed, Tree};
use crate::lexer::Token;
use crate::lower::{self, Node};

impl<'s> Grammar<'s> {
    /// Reads `source as pattern | body` after the `as`.
    pub(super) fn binding(&mut self, source: Tree<'s>) -> Parsed<Tree<'s>> {
        let mut patterns = vec![self.pattern()?];
        while self.eat("?//")? {
            patterns.push(self.pattern()?);
        }
        self.expect("|")?;
        let body = self.query()?;
        let below = source.height.max(body.height);
        match <[_; 1]>::try_from(patterns) {
            Ok([pattern]) => self.tree(lower::bind(source.node, pattern, body.node), below),
            Err(patterns) => self.alternatives(source, patterns, &body),
        }
    }

    /// Makes the term for `source as p ?// q | body`: if the first pattern or the body with it fails, the next pattern is
    /// tried. A variable that a pattern does not name is null.
    fn alternatives(&mut self, source: Tree<'s>, patterns: Vec<Pattern<&'s str>>, body: &Tree<'s>) -> Parsed<Tree<'s>> {
        let (value, input) = (self.fresh("value"), self.fresh("input"));
        let all: BTreeSet<&'s str> = patterns.iter().flat_map(names).collect();
        let below = source.height.max(body.height) + all.len() + 3 * patterns.len();
        self.alternatives += patterns.len() - 1;
        if self.alternatives > super::MAX_ALTERNATIVES {
            return self.fail("too many alternative patterns");
        }
        let mut tried: Option<Node<'s>> = None;
        for pattern in patterns.into_iter().rev() {
            let named = names(&pattern);
            let mut node = lower::bind(Term::Var(value), pattern, body.node.clone());
            for missing in all.iter().filter(|name| !named.contains(*name)) {
                node = lower::bind_var(lower::call("!null", Vec::new()), missing, node);
            }
            tried = Some(match tried {
                None => node,
                Some(next) => lower::attempt(node, Some(lower::pipe(Term::Var(input), next))),
            });
        }
        let node = lower::bind_var(Term::Id, input, tried.unwrap_or_default());
        self.tree(lower::bind_var(source.node, value, node), below)
    }

    fn pattern(&mut self) -> Parsed<Pattern<&'s str>> {
        self.deeper(|grammar| match grammar.peek()? {
            Token::Variable(name) => {
                grammar.bump()?;
                Ok(Pattern::Var(name))
            }
            Token::Sign("[") => {
                grammar.bump()?;
                let mut entries = Vec::new();
                loop {
                    let slot = Term::Num(grammar.keep(entries.len().to_string()));
                    entries.push((lower::call("!slot", vec![slot]), grammar.pattern()?));
                    if !grammar.eat(",")? {
                        break;
                    }
                }
                grammar.expect("]")?;
                Ok(Pattern::Obj(entries))
            }
            Token::Sign("{") => {
                grammar.bump()?;
                let mut entries = Vec::new();
                loop {
                    grammar.pattern_entry(&mut entries)?;
                    if !grammar.eat(",")? {
                        break;
                    }
                }
                grammar.expect("}")?;
                Ok(Pattern::Obj(entries))
            }
            _ => grammar.unexpected("a pattern"),
        })
    }

    fn pattern_entry(&mut self, entries: &mut Vec<(Node<'s>, Pattern<&'s str>)>) -> Parsed<()> {
        let key = match self.peek()? {
            Token::Variable(name) => {
                self.bump()?;
                let key = lower::text(&name[1..]);
                entries.push((key.clone(), Pattern::Var(name)));
                if !self.eat(":")? {
                    return Ok(());
                }
                let pattern = self.pattern()?;
                entries.push((key, pattern));
                return Ok(());
            }
            Token::Name(word) | Token::Keyword(word) => {
                self.bump()?;
                lower::text(word)
            }
            Token::Quote => {
                self.bump()?;
                self.string(None)?.node
            }
            Token::Sign("(") => {
                self.bump()?;
                let key = self.query()?.node;
                self.expect(")")?;
                key
            }
            _ => return self.unexpected("a key"),
        };
        self.expect(":")?;
        entries.push((key, self.pattern()?));
        Ok(())
    }

    /// Reads `reduce` and `foreach` after that word.
    pub(super) fn fold(&mut self, word: &'s str) -> Parsed<Tree<'s>> {
        let source = self.expression()?;
        self.expect_keyword("as")?;
        let pattern = self.pattern()?;
        self.expect("(")?;
        let start = self.query()?;
        self.expect(";")?;
        let update = self.query()?;
        let mut below = source.height.max(start.height).max(update.height) + 1;
        let plain = lower::single(&update.node);
        let mut parts = vec![start.node];
        if word == "reduce" {
            parts.push(if plain {
                update.node
            } else {
                lower::call("!last_or_same", vec![update.node])
            });
        } else {
            let extract = if self.eat(";")? { Some(self.query()?) } else { None };
            below = below.max(extract.as_ref().map_or(0, |extract| extract.height));
            let extract = extract.map(|extract| extract.node);
            if plain {
                parts.push(update.node);
                parts.extend(extract);
            } else {
                parts.push(lower::call("!burst", vec![update.node]));
                let outputs = lower::call("!outputs", Vec::new());
                parts.push(match extract {
                    Some(extract) => lower::pipe(outputs, extract),
                    None => outputs,
                });
            }
        }
        self.expect(")")?;
        self.tree(Term::Fold(word, Box::new(source.node), pattern, parts), below)
    }
}

/// The variables of a pattern.
fn names<'s>(pattern: &Pattern<&'s str>) -> Vec<&'s str> {
    match pattern {
        Pattern::Var(name) => vec![name],
        Pattern::Arr(patterns) => patterns.iter().flat_map(names).collect(),
        Pattern::Obj(entries) => entries.iter().flat_map(|(_, pattern)| names(pattern)).collect(),
    }
}
