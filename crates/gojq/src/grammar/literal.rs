//! Reads terms: the operands of operators.

use jaq_core::load::parse::Term;

use super::{Grammar, Parsed, Tree, levels};
use crate::lexer::{Piece, Token};
use crate::lower::{self, Node};

/// The filters whose first argument is a regular expression.
const TAKE_EXPRESSIONS: [&str; 8] = ["test", "match", "capture", "scan", "split", "splits", "sub", "gsub"];

/// A text constant that is longer than this many bytes is counted at each use.
const LONG: usize = 512;

impl<'s> Grammar<'s> {
    /// Reads a term with its suffixes.
    pub(super) fn term(&mut self) -> Parsed<Tree<'s>> {
        self.deeper(|grammar| {
            let bare = grammar.bare()?;
            grammar.suffixes(bare)
        })
    }

    fn bare(&mut self) -> Parsed<Tree<'s>> {
        let leaf = match self.bump()? {
            Token::Sign(".") => return self.dotted(Tree::leaf(Term::Id)),
            Token::Sign("..") => lower::call("recurse", Vec::new()),
            Token::Field(name) => lower::index(Term::Id, lower::text(name)),
            Token::Number(number) => Term::Num(number),
            Token::Variable("$ENV") => lower::call("env", Vec::new()),
            Token::Variable(name) => Term::Var(name),
            Token::Keyword("null") => lower::call("!null", Vec::new()),
            Token::Keyword("true") => lower::call("!true", Vec::new()),
            Token::Keyword("false") => lower::call("!false", Vec::new()),
            Token::Keyword("break") => Term::Break(self.variable()?),
            Token::Quote => return self.string(None),
            Token::Format(name) => {
                if self.peek()? == Token::Quote {
                    self.bump()?;
                    return self.string(Some(name));
                }
                lower::format(name)
            }
            Token::Name(name) => return self.called(name),
            Token::Sign("(") => {
                let inner = self.query()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => return self.array(),
            Token::Sign("{") => return self.object(),
            Token::Sign(sign @ ("-" | "+")) => return self.signed(sign),
            Token::Keyword("if") => return self.condition(),
            Token::Keyword("try") => return self.attempt(),
            Token::Keyword(word @ ("reduce" | "foreach")) => return self.fold(word),
            found => return self.put_back(found, "a term"),
        };
        Ok(Tree::leaf(leaf))
    }

    /// Reads `-t` and `+t`.
    fn signed(&mut self, sign: &str) -> Parsed<Tree<'s>> {
        let operand = self.term()?;
        let operand = self.watched(operand)?;
        let below = operand.height;
        let node = match (sign, operand.node) {
            ("-", Term::Num(number)) if !number.starts_with('-') => Term::Num(self.keep(format!("-{number}"))),
            ("-", node) => Term::Neg(Box::new(node)),
            (_, node) => lower::pipe(node, lower::call("!plus", Vec::new())),
        };
        self.tree(node, below)
    }

    /// Reads a string or a bracket after a dot.
    fn dotted(&mut self, base: Tree<'s>) -> Parsed<Tree<'s>> {
        match self.peek()? {
            Token::Quote => {
                self.bump()?;
                let key = self.string(None)?;
                let below = base.height.max(key.height);
                self.tree(lower::index(base.node, key.node), below)
            }
            Token::Sign("[") => {
                self.bump()?;
                self.bracket(base)
            }
            _ => Ok(base),
        }
    }

    fn suffixes(&mut self, mut base: Tree<'s>) -> Parsed<Tree<'s>> {
        loop {
            base = match self.peek()? {
                Token::Field(name) => {
                    self.bump()?;
                    let below = base.height;
                    let node = lower::index(base.node, lower::text(name));
                    Tree { node, height: below }
                }
                Token::Sign("[") => {
                    self.bump()?;
                    self.bracket(base)?
                }
                Token::Sign("?") => {
                    self.bump()?;
                    let below = base.height;
                    self.tree(lower::optional(base.node), below)?
                }
                Token::Sign(".") => {
                    self.bump()?;
                    if !matches!(self.peek()?, Token::Quote | Token::Sign("[")) {
                        return self.unexpected("a key or a bracket after the dot");
                    }
                    self.dotted(base)?
                }
                _ => return Ok(base),
            };
        }
    }

    /// Reads `[]`, `[i]` and `[i:j]` after the opening bracket.
    fn bracket(&mut self, base: Tree<'s>) -> Parsed<Tree<'s>> {
        let base = self.watched(base)?;
        let mut below = base.height;
        let node = if self.eat("]")? {
            return self.tree(lower::each(base.node), below);
        } else if self.eat(":")? {
            let upto = self.query()?;
            below = below.max(upto.height);
            lower::slice(base.node, None, Some(upto.node))
        } else {
            let first = self.query()?;
            below = below.max(first.height);
            if !self.eat(":")? {
                lower::index(base.node, first.node)
            } else if self.peek()? == Token::Sign("]") {
                lower::slice(base.node, Some(first.node), None)
            } else {
                let upto = self.query()?;
                below = below.max(upto.height);
                lower::slice(base.node, Some(first.node), Some(upto.node))
            }
        };
        self.expect("]")?;
        self.tree(node, below)
    }

    /// Reads a call after its name.
    fn called(&mut self, name: &'s str) -> Parsed<Tree<'s>> {
        let name = self.local_name(name);
        if name.contains("::") {
            return self.fail(format!("no module can be loaded here, for `{name}`"));
        }
        let mut args = Vec::new();
        let mut below = 0;
        if self.eat("(")? {
            loop {
                let arg = self.query()?;
                below = below.max(arg.height);
                args.push(arg.node);
                if !self.eat(";")? {
                    break;
                }
            }
            self.expect(")")?;
        }
        if TAKE_EXPRESSIONS.contains(&name)
            && let Some(expression) = args.first().and_then(lower::constant_text)
        {
            let flags = args
                .get(1..)
                .unwrap_or_default()
                .iter()
                .rev()
                .find_map(lower::constant_text);
            self.expressions
                .push((expression.to_owned(), flags.unwrap_or_default().to_owned()));
        }
        let node = self.scopes.call(name, args);
        self.tree(node, below)
    }

    fn array(&mut self) -> Parsed<Tree<'s>> {
        if self.eat("]")? {
            return Ok(Tree::leaf(lower::call("!nothing", Vec::new())));
        }
        let inner = self.query()?;
        self.expect("]")?;
        self.tree(lower::call("!collect", vec![inner.node]), inner.height)
    }

    fn object(&mut self) -> Parsed<Tree<'s>> {
        let mut entries = Vec::new();
        let mut below = 0;
        while !self.eat("}")? {
            let (key, value) = self.entry()?;
            below = below
                .max(key.height)
                .max(value.as_ref().map_or(0, |value| value.height));
            entries.push(lower::entry(key.node, value.map(|value| value.node)));
            if !self.eat(",")? {
                self.expect("}")?;
                break;
            }
        }
        let below = below + entries.len() / 8;
        self.tree(Term::Obj(entries), below)
    }

    fn entry(&mut self) -> Parsed<(Tree<'s>, Option<Tree<'s>>)> {
        let key = match self.bump()? {
            Token::Name(word) | Token::Keyword(word) => Tree::leaf(lower::text(word)),
            Token::Variable(name) => Tree::leaf(Term::Var(name)),
            Token::Quote => self.string(None)?,
            Token::Sign("(") => {
                let key = self.query()?;
                self.expect(")")?;
                self.expect(":")?;
                return Ok((key, Some(self.entry_value()?)));
            }
            found => return self.put_back(found, "a key"),
        };
        let value = if self.eat(":")? {
            Some(self.entry_value()?)
        } else {
            None
        };
        Ok((key, value))
    }

    /// Reads the value of an object's entry. It may contain pipes, but neither commas nor bindings.
    fn entry_value(&mut self) -> Parsed<Tree<'s>> {
        let mut piped = Vec::new();
        let mut below = 0;
        loop {
            let part = self.deeper(Self::expression)?;
            below = below.max(part.height);
            piped.push(part.node);
            if !self.eat("|")? {
                break;
            }
        }
        let below = below + levels(piped.len());
        self.tree(lower::join(piped, lower::pipe), below)
    }

    /// Reads a string after its quote. Interpolated values go through a format.
    pub(super) fn string(&mut self, format: Option<&'s str>) -> Parsed<Tree<'s>> {
        let mut parts: Vec<Node<'s>> = Vec::new();
        let mut plain = String::new();
        let mut below = 0;
        loop {
            match self.lexer.piece()? {
                Piece::Text(text) => plain.push_str(text),
                Piece::Char(char) => plain.push(char),
                Piece::End => break,
                Piece::Splice => {
                    if !plain.is_empty() {
                        parts.push(lower::text(self.keep(std::mem::take(&mut plain))));
                    }
                    let spliced = self.query()?;
                    below = below.max(spliced.height);
                    self.expect(")")?;
                    parts.push(lower::pipe(spliced.node, lower::format(format.unwrap_or("@text"))));
                }
            }
        }
        if !plain.is_empty() || parts.is_empty() {
            let long = plain.len() > LONG;
            let text = lower::text(self.keep(plain));
            parts.push(if long {
                lower::pipe(text, lower::call("!heft", Vec::new()))
            } else {
                text
            });
        }
        let below = below + 1 + levels(parts.len());
        self.tree(lower::join(parts, |left, right| lower::binary("+", left, right)), below)
    }

    /// Reads the rest of a condition, after the word `if`.
    fn condition(&mut self) -> Parsed<Tree<'s>> {
        let mut branches = Vec::new();
        let mut below = 0;
        loop {
            let test = self.query()?;
            self.expect_keyword("then")?;
            let then = self.query()?;
            below = below.max(test.height).max(then.height);
            branches.push((test.node, then.node));
            if !self.eat_keyword("elif")? {
                break;
            }
        }
        let last = if self.eat_keyword("else")? {
            Some(self.query()?)
        } else {
            None
        };
        self.expect_keyword("end")?;
        below = below.max(last.as_ref().map_or(0, |last| last.height)) + branches.len();
        let last = last.map(|last| Box::new(last.node));
        self.tree(Term::IfThenElse(branches, last), below)
    }

    /// Reads the rest of a `try`, after that word.
    fn attempt(&mut self) -> Parsed<Tree<'s>> {
        let body = self.term()?;
        let body = self.watched(body)?;
        let catch = if self.eat_keyword("catch")? {
            Some(self.term()?)
        } else {
            None
        };
        let below = body.height.max(catch.as_ref().map_or(0, |catch| catch.height));
        self.tree(lower::attempt(body.node, catch.map(|catch| catch.node)), below)
    }
}
