//! Translates the operators of the original's dialect into terms of the engine.
//!
//! The engine differs from the original in updates, in the order in which operands are tried, and in many filters. Such
//! constructs become calls of our natives here, whose names begin with `!` so that no filter can call them. The engine
//! gets only constructs with the same meaning in both: pipes, commas, variables, definitions, conditions, labels and
//! `try`.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::{Opt, Part, Path};

/// A term of the engine.
pub(crate) type Node<'s> = Term<&'s str>;

/// Makes a call of a native or of a definition.
pub(crate) fn call<'s>(name: &'s str, args: Vec<Node<'s>>) -> Node<'s> {
    Term::Call(name, args)
}

/// Makes a string constant.
pub(crate) fn text(text: &str) -> Node<'_> {
    Term::Str(None, vec![StrPart::Str(text)])
}

/// Makes `l | r`.
pub(crate) fn pipe<'s>(left: Node<'s>, right: Node<'s>) -> Node<'s> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right))
}

/// Makes `l as P | r`.
pub(crate) fn bind<'s>(source: Node<'s>, pattern: Pattern<&'s str>, body: Node<'s>) -> Node<'s> {
    Term::BinOp(Box::new(source), BinaryOp::Pipe(Some(pattern)), Box::new(body))
}

/// Makes `l as $x | r`.
pub(crate) fn bind_var<'s>(source: Node<'s>, name: &'s str, body: Node<'s>) -> Node<'s> {
    bind(source, Pattern::Var(name), body)
}

/// Makes `l, r`.
pub(crate) fn comma<'s>(left: Node<'s>, right: Node<'s>) -> Node<'s> {
    Term::BinOp(Box::new(left), BinaryOp::Comma, Box::new(right))
}

/// Joins many terms with an associative operator, as a tree of the smallest height.
pub(crate) fn join<'s>(mut terms: Vec<Node<'s>>, how: fn(Node<'s>, Node<'s>) -> Node<'s>) -> Node<'s> {
    while terms.len() > 1 {
        let mut halves = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(left) = rest.next() {
            halves.push(match rest.next() {
                Some(right) => how(left, right),
                None => left,
            });
        }
        terms = halves;
    }
    terms.pop().unwrap_or(Term::Id)
}

/// Makes `try f`, which equals `f?`.
pub(crate) fn attempt<'s>(body: Node<'s>, catch: Option<Node<'s>>) -> Node<'s> {
    // There is always a `catch`: the engine's own empty one would iterate over an empty object.
    let catch = catch.unwrap_or_else(|| call("empty", Vec::new()));
    Term::TryCatch(Box::new(body), Some(Box::new(catch)))
}

/// Makes a binary operator. The right operand becomes the outer loop, because of the order of arguments.
pub(crate) fn binary<'s>(sign: &str, left: Node<'s>, right: Node<'s>) -> Node<'s> {
    let native = match sign {
        "//" => return Term::BinOp(Box::new(left), BinaryOp::Alt, Box::new(right)),
        "or" => return Term::BinOp(Box::new(left), BinaryOp::Or, Box::new(right)),
        "and" => return Term::BinOp(Box::new(left), BinaryOp::And, Box::new(right)),
        "=" => return call("!assign", vec![right, left]),
        "|=" => return call("!modify", vec![left, right]),
        "+=" | "-=" | "*=" | "/=" | "%=" | "//=" => return update(sign, left, right),
        "+" => "!add",
        "-" => "!subtract",
        "*" => "!multiply",
        "/" => "!divide",
        "%" => "!modulo",
        "==" => "!equal",
        "!=" => "!differs",
        "<" => "!less",
        "<=" => "!at_most",
        ">" => "!greater",
        _ => "!at_least",
    };
    call(native, vec![right, left])
}

/// Makes `l op= r`: for each output of `r`, updates all paths of `l`.
fn update<'s>(sign: &str, left: Node<'s>, right: Node<'s>) -> Node<'s> {
    const OPERAND: &str = "$!operand";
    let plain = sign.trim_end_matches('=');
    let change = binary(plain, Term::Id, Term::Var(OPERAND));
    bind_var(right, OPERAND, call("!modify", vec![left, change]))
}

/// Makes an entry of an object. The engine computes the value's size when it builds the object; the steps for that are
/// counted here.
pub(crate) fn entry<'s>(key: Node<'s>, value: Option<Node<'s>>) -> (Node<'s>, Option<Node<'s>>) {
    let heft = || call("!heft", Vec::new());
    match (key, value) {
        (Term::Var(name), None) => (
            text(name.get(1..).unwrap_or_default()),
            Some(pipe(Term::Var(name), heft())),
        ),
        (key, None) if constant(&key) => (key.clone(), Some(pipe(index(Term::Id, key), heft()))),
        (key, Some(value)) if !constant(&value) => (key, Some(pipe(value, heft()))),
        plain => plain,
    }
}

/// Whether a term is an index that is known before the filter runs.
fn constant(term: &Node<'_>) -> bool {
    match term {
        Term::Num(_) => true,
        Term::Str(None, parts) => parts.iter().all(|part| !matches!(part, StrPart::Term(_))),
        _ => false,
    }
}

/// The text of a string constant.
pub(crate) fn constant_text<'s>(term: &Node<'s>) -> Option<&'s str> {
    match term {
        Term::Str(None, parts) => match parts.as_slice() {
            [StrPart::Str(text)] => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Makes `t[i]` and `t.i`.
pub(crate) fn index<'s>(base: Node<'s>, at: Node<'s>) -> Node<'s> {
    if !constant(&at) {
        return call("!index", vec![at, base]);
    }
    let part = (Part::Index(at), Opt::Essential);
    match base {
        Term::Path(inner, mut path) => {
            path.0.push(part);
            Term::Path(inner, path)
        }
        base => Term::Path(Box::new(base), Path(vec![part])),
    }
}

/// Makes `t[from:upto]`.
pub(crate) fn slice<'s>(base: Node<'s>, from: Option<Node<'s>>, upto: Option<Node<'s>>) -> Node<'s> {
    let or_null = |bound: Option<Node<'s>>| bound.unwrap_or_else(|| call("!null", Vec::new()));
    call("!slice", vec![or_null(from), or_null(upto), base])
}

/// Makes `t[]`.
pub(crate) fn each(base: Node<'_>) -> Node<'_> {
    match base {
        Term::Id => call("!each", Vec::new()),
        base => pipe(base, call("!each", Vec::new())),
    }
}

/// Makes `t?`: only errors of the last step are ignored.
pub(crate) fn optional(base: Node<'_>) -> Node<'_> {
    match base {
        Term::Path(inner, mut path) => {
            if let Some(last) = path.0.last_mut() {
                last.1 = Opt::Optional;
            }
            Term::Path(inner, path)
        }
        Term::BinOp(inner, BinaryOp::Pipe(None), last) if matches!(&*last, Term::Call("!each", _)) => {
            pipe(*inner, attempt(*last, None))
        }
        Term::Call(name @ ("!index" | "!slice"), mut args) => {
            let Some(inner) = args.pop() else {
                return call(name, args);
            };
            args.push(Term::Id);
            pipe(inner, attempt(call(name, args), None))
        }
        base => attempt(base, None),
    }
}

/// Makes a call of the native for `@name`.
pub(crate) fn format(name: &str) -> Node<'_> {
    let native = match name {
        "@text" => "tostring",
        "@json" => "tojson",
        "@html" => "!html",
        "@uri" => "!uri",
        "@urid" => "!urid",
        "@csv" => "!csv",
        "@tsv" => "!tsv",
        "@sh" => "!sh",
        "@base64" => "!base64",
        "@base64d" => "!base64d",
        unknown => return call("format", vec![text(unknown.get(1..).unwrap_or_default())]),
    };
    call(native, Vec::new())
}

/// Whether a term certainly has exactly one output for every input. The term is not run to find out.
pub(crate) fn single(term: &Node<'_>) -> bool {
    match term {
        Term::Id
        | Term::Num(_)
        | Term::Var(_)
        | Term::Call("!collect" | "!modify" | "!watch" | "!heft" | "!null" | "!true" | "!false" | "!nothing", _) => {
            true
        }
        Term::Str(_, parts) => parts.iter().all(|part| !matches!(part, StrPart::Term(_))),
        Term::Obj(entries) => entries
            .iter()
            .all(|(key, value)| single(key) && value.as_ref().is_none_or(single)),
        Term::Path(base, path) => single(base) && path.0.iter().all(|(_, optional)| matches!(optional, Opt::Essential)),
        Term::BinOp(left, BinaryOp::Pipe(None), right) => single(left) && single(right),
        Term::IfThenElse(branches, last) => {
            branches.iter().all(|(test, then)| single(test) && single(then)) && last.as_deref().is_none_or(single)
        }
        Term::Call("!add" | "!subtract" | "!multiply" | "!divide" | "!assign" | "!index", args) => {
            args.first().is_some_and(single) && args.last().is_some_and(single)
        }
        _ => false,
    }
}
