//! The grammar of filters: from tokens to the terms that the engine runs, in the original's dialect.
//!
//! The grammar is ours and not the engine's, because the two languages differ in precedence, in strings, in `?//` and in
//! the texts that they refuse. Must never build a term higher than [`MAX_HEIGHT`]: all code behind the grammar, down to
//! dropping the term, recurses as deep as the term is high.

mod literal;
mod pattern;
mod reader;
mod scope;

use jaq_core::load::Arena;
use jaq_core::load::parse::{Def, Term};

use crate::error::FilterError;
use crate::lexer::{Lexer, Token};
use crate::lower::{self, Node};
pub(crate) use scope::Scopes;

/// The height up to which terms are accepted.
pub(crate) const MAX_HEIGHT: usize = 100;

/// The length of a filter in bytes up to which it is accepted.
pub(crate) const MAX_TEXT: usize = 64 * 1024;

/// The number of levels of a term after which the stack is checked.
const WATCHED: usize = 12;

/// The number of alternative patterns up to which a filter is accepted. Each alternative repeats the body of its
/// binding.
const MAX_ALTERNATIVES: usize = 6;

/// A term with its height.
#[derive(Debug, Clone)]
struct Tree<'s> {
    node: Node<'s>,
    height: usize,
}

impl<'s> Tree<'s> {
    fn leaf(node: Node<'s>) -> Self {
        Self { node, height: 1 }
    }
}

/// The result of reading a text.
#[derive(Debug)]
pub(crate) struct Program<'s> {
    pub(crate) body: Node<'s>,
    /// The regular expressions in the text with their flags, to be compiled once for all runs.
    pub(crate) expressions: Vec<(String, String)>,
}

/// The result of a part of the grammar; the error names a place in the text and the mistake there.
type Parsed<T> = Result<T, FilterError>;

/// Reads one text.
pub(crate) struct Grammar<'s> {
    lexer: Lexer<'s>,
    ahead: Option<(usize, Token<'s>)>,
    /// The place of the last token that was taken.
    taken: usize,
    arena: &'s Arena,
    scopes: Scopes<'s>,
    depth: usize,
    variables: usize,
    alternatives: usize,
    prelude: bool,
    /// The regular expressions in the text, with their flags.
    expressions: Vec<(String, String)>,
}

impl<'s> Grammar<'s> {
    fn new(text: &'s str, arena: &'s Arena, prelude: bool) -> Parsed<Self> {
        let lexer = Lexer::new(text);
        if text.len() > MAX_TEXT {
            return Err(lexer.error(0, format!("a filter of more than {MAX_TEXT} bytes")));
        }
        Ok(Self {
            lexer,
            ahead: None,
            taken: 0,
            arena,
            scopes: Scopes::default(),
            depth: 0,
            variables: 0,
            alternatives: 0,
            prelude,
            expressions: Vec::new(),
        })
    }

    /// Reads the definitions of the prelude. In the prelude a name that begins with `_` means one of our natives.
    pub(crate) fn prelude(
        text: &'s str,
        arena: &'s Arena,
        natives: Scopes<'s>,
    ) -> Parsed<(Vec<Def<&'s str>>, Scopes<'s>)> {
        let mut grammar = Self {
            scopes: natives,
            ..Self::new(text, arena, true)?
        };
        let mut defs = Vec::new();
        while grammar.eat_keyword("def")? {
            defs.push(grammar.definition()?.0);
        }
        grammar.end()?;
        Ok((defs, grammar.scopes))
    }

    /// Reads a filter that may call the names in `scopes`.
    pub(crate) fn program(text: &'s str, arena: &'s Arena, scopes: Scopes<'s>) -> Parsed<Program<'s>> {
        let mut grammar = Self {
            scopes,
            ..Self::new(text, arena, false)?
        };
        if grammar.eat_keyword("module")? {
            grammar.metadata()?;
        }
        if let Token::Keyword("import" | "include") = grammar.peek()? {
            return grammar.fail("no module can be loaded here");
        }
        let body = grammar.query()?;
        grammar.end()?;
        Ok(Program {
            body: body.node,
            expressions: grammar.expressions,
        })
    }

    /// Skips `module {…};`.
    fn metadata(&mut self) -> Parsed<()> {
        if self.peek()? != Token::Sign("{") {
            return self.unexpected("an object");
        }
        self.term()?;
        self.expect(";")
    }

    /// Makes a term of other terms. Fails if it would be too high.
    fn tree(&self, node: Node<'s>, below: usize) -> Parsed<Tree<'s>> {
        let height = below + 1;
        if height > MAX_HEIGHT {
            return self.fail("too deeply nested");
        }
        Ok(Tree { node, height })
    }

    /// Makes a term check the stack before it runs, if its height is a multiple of `WATCHED`.
    fn watched(&self, tree: Tree<'s>) -> Parsed<Tree<'s>> {
        if !tree.height.is_multiple_of(WATCHED) {
            return Ok(tree);
        }
        self.tree(lower::pipe(lower::call("!watch", Vec::new()), tree.node), tree.height)
    }

    /// Runs a part of the grammar one level deeper.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_HEIGHT {
            return self.fail("too deeply nested");
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// A variable that no filter can name.
    fn fresh(&mut self, what: &str) -> &'s str {
        self.variables += 1;
        self.keep(format!("$!{what}{}", self.variables))
    }

    /// Keeps a text that the grammar makes for as long as the text of the filter.
    fn keep(&self, text: String) -> &'s str {
        self.arena.alloc(text)
    }

    /// Reads pipes, commas, and constructs that extend to the end: definitions, bindings, labels.
    fn query(&mut self) -> Parsed<Tree<'s>> {
        self.deeper(|grammar| {
            let mut piped = Vec::new();
            let mut height = 0;
            loop {
                let mut listed = Vec::new();
                loop {
                    let part = grammar.operand()?;
                    height = height.max(part.height);
                    listed.push(part.node);
                    if !grammar.eat(",")? {
                        break;
                    }
                }
                height += levels(listed.len());
                piped.push(lower::join(listed, lower::comma));
                if !grammar.eat("|")? {
                    break;
                }
            }
            let below = height + levels(piped.len());
            let tree = grammar.tree(lower::join(piped, lower::pipe), below)?;
            grammar.watched(tree)
        })
    }

    fn operand(&mut self) -> Parsed<Tree<'s>> {
        match self.peek()? {
            Token::Keyword("def") => {
                self.bump()?;
                let mark = self.scopes.mark();
                let (def, below) = self.definition()?;
                let body = self.query()?;
                self.scopes.forget(mark);
                self.tree(Term::Def(vec![def], Box::new(body.node)), below.max(body.height))
            }
            Token::Keyword("label") => {
                self.bump()?;
                let name = self.variable()?;
                self.expect("|")?;
                let body = self.query()?;
                self.tree(Term::Label(name, Box::new(body.node)), body.height)
            }
            _ => {
                let term = self.term()?;
                if self.eat_keyword("as")? {
                    self.binding(term)
                } else {
                    self.expression_from(term, 0)
                }
            }
        }
    }

    fn expression(&mut self) -> Parsed<Tree<'s>> {
        let term = self.term()?;
        self.expression_from(term, 0)
    }

    /// Reads the binary operators that bind at least as strongly as `floor`, and their operands, after the first operand.
    fn expression_from(&mut self, first: Tree<'s>, floor: u8) -> Parsed<Tree<'s>> {
        let mut left = first;
        let mut closed = None;
        while let Token::Sign(sign) | Token::Keyword(sign) = self.peek()? {
            let Some((strength, side)) = strength(sign).filter(|(strength, _)| *strength >= floor) else {
                break;
            };
            if closed == Some(strength) {
                return self.unexpected("parentheses before this operator");
            }
            self.bump()?;
            let next = self.term()?;
            let right_floor = if side == Side::Right { strength } else { strength + 1 };
            let right = self.deeper(|grammar| grammar.expression_from(next, right_floor))?;
            let below = left.height.max(right.height) + usize::from(sign.ends_with('=') && strength == UPDATES);
            left = self.tree(lower::binary(sign, left.node, right.node), below)?;
            left = self.watched(left)?;
            closed = (side == Side::Neither).then_some(strength);
        }
        Ok(left)
    }

    /// Reads `name(params): body;` after a `def`. Returns the height of the body, too.
    fn definition(&mut self) -> Parsed<(Def<&'s str>, usize)> {
        self.deeper(|grammar| {
            let Token::Name(name) = grammar.peek()? else {
                return grammar.unexpected("a name");
            };
            grammar.bump()?;
            let mut params = Vec::new();
            if grammar.eat("(")? {
                loop {
                    let (Token::Name(param) | Token::Variable(param)) = grammar.peek()? else {
                        return grammar.unexpected("a parameter");
                    };
                    grammar.bump()?;
                    params.push(param);
                    if !grammar.eat(";")? {
                        break;
                    }
                }
                grammar.expect(")")?;
            }
            grammar.expect(":")?;
            let name = grammar.local_name(name);
            let depth = grammar.fresh("depth");
            let mark = grammar.scopes.open(name, &params, depth, grammar.arena);
            let body = grammar.query()?;
            grammar.expect(";")?;
            let height = body.height + 2;
            let (name, body) = grammar.scopes.close(mark, body.node, &mut params);
            Ok((
                Def {
                    name,
                    args: params,
                    body,
                },
                height,
            ))
        })
    }

    /// The name of a native: `_name` in the prelude means `!name`.
    fn local_name(&self, name: &'s str) -> &'s str {
        match name.strip_prefix('_').filter(|_| self.prelude) {
            Some(native) => self.keep(format!("!{native}")),
            None => name,
        }
    }

    fn variable(&mut self) -> Parsed<&'s str> {
        let Token::Variable(name) = self.peek()? else {
            return self.unexpected("a variable");
        };
        self.bump()?;
        Ok(name)
    }
}

/// The strength of the update operators.
const UPDATES: u8 = 2;

/// The side to which an operator associates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Neither,
}

/// The strength of an operator's binding, from weak to strong.
fn strength(sign: &str) -> Option<(u8, Side)> {
    Some(match sign {
        "//" => (1, Side::Right),
        "=" | "|=" | "+=" | "-=" | "*=" | "/=" | "%=" | "//=" => (UPDATES, Side::Neither),
        "or" => (3, Side::Left),
        "and" => (4, Side::Left),
        "==" | "!=" | "<" | "<=" | ">" | ">=" => (5, Side::Neither),
        "+" | "-" => (6, Side::Left),
        "*" | "/" | "%" => (7, Side::Left),
        _ => return None,
    })
}

/// The number of levels below the root of a balanced tree with this many leaves.
fn levels(leaves: usize) -> usize {
    leaves.next_power_of_two().trailing_zeros() as usize
}
