//! Rewrites an expression before it runs: resolves names, limits the depth, and counts every value whose size determines
//! the time of a step.
//!
//! Must never change the meaning of an expression.

use std::collections::BTreeSet;

use cel::common::ast::operators::{
    ADD, CONDITIONAL, DIVIDE, INDEX, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, MODULO, MULTIPLY, NEGATE,
    NOT_STRICTLY_FALSE, SUBSTRACT,
};
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr};

/// The names that an expression may use, beside those of types and of its own macros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// The checked value and the old one.
    Values,
    /// The top-level fields of an object. They are not known before it is there.
    Fields,
}

/// The name of the checked value.
pub(super) const SELF: &str = "self";

/// The name of the old value.
pub(super) const BEFORE: &str = "oldSelf";

/// The function that returns its argument and counts its parts. An expression cannot contain this name.
pub(super) const WEIGH: &str = "@weigh";

/// The function that replaces `matches`.
pub(super) const MATCHES: &str = "@matches";

/// The function that replaces `has`.
pub(super) const HAS: &str = "@has";

/// The function that replaces `string`.
pub(super) const TEXT: &str = "@string";

/// The depth to which a rewritten expression may be nested: without optimization a level takes up to 50 KB of the stack.
const MAX_DEPTH: usize = 30;

/// The names of types, which are values, too.
const KINDS: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "dyn",
    "google",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

/// Operators that take a fixed time, or whose operands were counted already.
const CHEAP: [&str; 7] = [
    CONDITIONAL,
    INDEX,
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_OR,
    NEGATE,
    NOT_STRICTLY_FALSE,
];

/// Operators whose result is a number, or no larger than their counted operands.
const WEIGHED: [&str; 6] = [ADD, DIVIDE, MODULO, MULTIPLY, NEGATE, SUBSTRACT];

/// A rewritten expression, which may run.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) expression: IdedExpr,
    /// Whether the expression reads the old value.
    pub(super) looks_back: bool,
    /// The top-level fields that the expression reads.
    pub(super) fields: BTreeSet<String>,
    /// The regular expressions that are literals in the expression.
    pub(super) patterns: BTreeSet<String>,
}

pub(super) fn guard(mut expression: IdedExpr, names: Names) -> Result<Guarded, String> {
    let mut guard = Guard {
        names,
        scope: Vec::new(),
        looks_back: false,
        fields: BTreeSet::new(),
        patterns: BTreeSet::new(),
    };
    guard.visit(&mut expression, 0)?;
    Ok(Guarded {
        expression,
        looks_back: guard.looks_back,
        fields: guard.fields,
        patterns: guard.patterns,
    })
}

#[derive(Debug)]
struct Guard {
    names: Names,
    /// The names that macros introduced, innermost last.
    scope: Vec<String>,
    looks_back: bool,
    fields: BTreeSet<String>,
    patterns: BTreeSet<String>,
}

impl Guard {
    fn visit(&mut self, node: &mut IdedExpr, depth: usize) -> Result<(), String> {
        if depth >= MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        let below = depth + 1;
        match &mut node.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                self.visit(&mut select.operand, below)?;
                if select.test {
                    node.expr = has(std::mem::take(select));
                }
                Ok(())
            }
            Expr::List(list) => list.elements.iter_mut().try_for_each(|item| self.visit(item, below)),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&mut entry.key, below)?;
                    self.visit(&mut entry.value, below)
                }
                EntryExpr::StructField(_) => Err("messages have no fields here".to_owned()),
            }),
            Expr::Call(call) => self.call(call, below),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, below),
            Expr::Struct(message) => Err(format!("undeclared reference to '{}'", message.type_name)),
            Expr::Unspecified => Err("it is empty".to_owned()),
        }
    }

    fn name(&mut self, name: &str) -> Result<(), String> {
        let plain = name.strip_prefix('.').unwrap_or(name);
        let is_local = self.scope.iter().any(|known| known == plain);
        match self.names {
            Names::Values => {
                self.looks_back |= plain == BEFORE;
                if is_local || plain == SELF || plain == BEFORE || KINDS.contains(&plain) {
                    return Ok(());
                }
                Err(format!("undeclared reference to '{plain}'"))
            }
            // A field may be called as a type is, such as `type` of a Secret.
            Names::Fields => {
                if !is_local {
                    self.fields.insert(plain.to_owned());
                }
                Ok(())
            }
        }
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<(), String> {
        if call.func_name == "matches" {
            // A call on a value and a call with two arguments mean the same.
            if let Some(target) = call.target.take() {
                call.args.insert(0, *target);
            }
            MATCHES.clone_into(&mut call.func_name);
            if let Some(Expr::Literal(LiteralValue::String(text))) = call.args.last().map(|last| &last.expr) {
                self.patterns.insert(text.inner().to_owned());
            }
        }
        if call.func_name == "string" && call.target.is_none() {
            TEXT.clone_into(&mut call.func_name);
        }
        let is_cheap = CHEAP.contains(&call.func_name.as_str());
        for operand in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
            let weighed = !is_cheap && is_of_any_size(&operand.expr);
            self.visit(operand, depth + usize::from(weighed))?;
            if weighed {
                weigh(operand);
            }
        }
        Ok(())
    }

    fn comprehension(&mut self, macro_: &mut ComprehensionExpr, depth: usize) -> Result<(), String> {
        self.visit(&mut macro_.iter_range, depth + 1)?;
        weigh(&mut macro_.iter_range);
        self.visit(&mut macro_.accu_init, depth)?;
        let known = self.scope.len();
        self.scope.push(macro_.iter_var.clone());
        self.scope.extend(macro_.iter_var2.clone());
        self.scope.push(macro_.accu_var.clone());
        for part in [&mut macro_.loop_cond, &mut macro_.loop_step, &mut macro_.result] {
            self.visit(part, depth)?;
        }
        self.scope.truncate(known);
        Ok(())
    }
}

/// Replaces a `has` by a call of our function.
fn has(select: SelectExpr) -> Expr {
    let field = IdedExpr {
        id: select.operand.id,
        expr: Expr::Literal(LiteralValue::String(select.field.into())),
    };
    Expr::Call(CallExpr {
        func_name: HAS.to_owned(),
        target: None,
        args: vec![*select.operand, field],
    })
}

/// Wraps an expression so that the parts of its value are counted.
fn weigh(node: &mut IdedExpr) {
    let id = node.id;
    let weighed = std::mem::take(node);
    *node = IdedExpr {
        id,
        expr: Expr::Call(CallExpr {
            func_name: WEIGH.to_owned(),
            target: None,
            args: vec![weighed],
        }),
    };
}

/// Whether the result of the expression may be large and was not counted.
fn is_of_any_size(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => false,
        // The result of a macro grows by values that were counted.
        Expr::Ident(name) => !name.starts_with('@'),
        Expr::Call(call) => !WEIGHED.contains(&call.func_name.as_str()),
        Expr::Select(_) | Expr::Comprehension(_) => true,
    }
}
