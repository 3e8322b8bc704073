//! Control flow: constants, counting, generators, errors, `halt`.

use jaq_core::box_iter::box_once;
use jaq_core::{Bind, Error, Exn};

use super::{Cv, Out, Outs, Row, binary, budget, filters, one, public_names, unary, values};
use crate::budget::{Stop, cells, weighing};
use crate::number::{Num, whole};
use crate::prelude;
use crate::value::wording as say;
use crate::value::{Burst, MAX_WEIGHT, Val, compare, fault};
use std::rc::Rc;

/// The number of nested calls up to which a definition with filters as parameters may recurse.
const MAX_REENTRIES: i64 = 2_000;

pub(super) fn rows() -> Vec<Row> {
    let counted = || [Bind::Var(()), Bind::Fun(())].into();
    vec![
        ("!null", values(0), |_| one(Ok(Val::Null))),
        ("!true", values(0), |_| one(Ok(Val::Bool(true)))),
        ("!false", values(0), |_| one(Ok(Val::Bool(false)))),
        (
            "!nothing",
            values(0),
            |_| one(Val::array(Vec::new()).map_err(Exn::from)),
        ),
        ("empty", values(0), |_| Box::new(std::iter::empty())),
        ("!enter", values(0), |cv| one(budget(&cv).enter().map(|()| cv.1))),
        ("!watch", values(0), |cv| one(budget(&cv).watch().map(|()| cv.1))),
        ("!deeper", values(1), deeper),
        ("!heft", values(0), heft),
        ("!collect", filters(1), collect),
        ("!last_or_same", filters(1), last_or_same),
        ("!burst", filters(1), burst),
        ("!outputs", values(0), outputs),
        ("!limit", counted(), limit),
        ("!skip", counted(), skip),
        ("first", filters(1), |mut cv| {
            let (filter, context) = cv.0.pop_fun();
            Box::new(filter.run((context, cv.1)).next().into_iter())
        }),
        ("last", filters(1), |mut cv| {
            let (filter, context) = cv.0.pop_fun();
            let last = filter.run((context, cv.1)).try_fold(None, |_, value| value.map(Some));
            Box::new(last.transpose().into_iter())
        }),
        ("isempty", filters(1), |mut cv| {
            let (filter, context) = cv.0.pop_fun();
            one(filter
                .run((context, cv.1))
                .next()
                .map_or(Ok(Val::Bool(true)), |out| out.map(|_| Val::Bool(false))))
        }),
        ("!range", values(3), range),
    ]
}

/// Errors, the end of a run, and the surroundings of a filter.
pub(super) fn surroundings() -> Vec<Row> {
    vec![
        ("error", values(0), |cv| one(Err(Exn::from(Error::new(cv.1.plain()))))),
        ("error", values(1), |cv| {
            binary(cv, |_, message| Err(Error::new(message.clone())))
        }),
        ("halt", values(0), |cv| one(Err(budget(&cv).halt(None)))),
        ("halt_error", values(0), |cv| one(Err(budget(&cv).halt(Some(&cv.1))))),
        ("halt_error", values(1), halt_error),
        ("env", values(0), |cv| {
            unary(cv, |_| Val::object(std::collections::BTreeMap::new()))
        }),
        ("now", values(0), |cv| {
            let now = budget(&cv).now;
            one(now
                .map(Val::float)
                .ok_or_else(|| Exn::from(fault("now: the time is not known to filters"))))
        }),
        ("builtins", values(0), |cv| {
            unary(cv, |_| {
                let mut names: Vec<String> = public_names().chain(prelude::names()).collect();
                names.sort();
                names.dedup();
                Val::array(names.into_iter().map(Val::from).collect())
            })
        }),
        ("modulemeta", values(0), |cv| {
            unary(cv, |input| Err(say::plain("modulemeta", input)))
        }),
    ]
}

/// Counts the work of the engine on a value: copying a long text, or computing the size of an object's entry.
fn heft((context, input): Cv<'_>) -> Outs<'_> {
    let budget = context.data().budget;
    let steps = weighing(&input).map_err(Exn::from);
    one(steps.and_then(|steps| budget.work(steps)).map(|()| input))
}

fn deeper(mut cv: Cv<'_>) -> Outs<'_> {
    let depth = cv.0.pop_var().as_num().map_or(0, Num::int);
    if depth >= MAX_REENTRIES {
        return one(Err(budget(&cv).stop(Stop::Stack)));
    }
    one(Ok(Val::int(depth + 1)))
}

fn collect(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (filter, context) = cv.0.pop_fun();
    let mut weight = 0;
    let gather = || {
        let mut items = Vec::new();
        for item in filter.run((context, cv.1)) {
            let item = item?.plain();
            budget.work(weighing(&item)?)?;
            weight += item.size()?.weight;
            if weight > MAX_WEIGHT {
                return Err(budget.stop(Stop::Memory));
            }
            budget.memory(cells(&item).min(64))?;
            items.push(item);
        }
        Ok(Val::array(items)?)
    };
    one(gather())
}

/// The last output of a filter, or its input if there is none.
fn last_or_same(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (filter, context) = cv.0.pop_fun();
    let mut last = cv.1.clone();
    for output in filter.run((context, cv.1)) {
        match output.and_then(|output| budget.work(1).map(|()| output)) {
            Ok(output) => last = output,
            Err(error) => return one(Err(error)),
        }
    }
    one(Ok(last))
}

/// All outputs of one step of `foreach`, with the state for the next step.
fn burst(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (filter, context) = cv.0.pop_fun();
    let state = match cv.1 {
        Val::Burst(burst) => burst.state.clone(),
        state => state,
    };
    let mut outputs = Vec::new();
    for output in filter.run((context, state.clone())) {
        match output.and_then(|output| budget.memory(1).map(|()| output)) {
            Ok(output) => outputs.push(output),
            Err(error) => return one(Err(error)),
        }
    }
    let state = outputs.last().cloned().unwrap_or(state);
    one(Ok(Val::Burst(Rc::new(Burst { state, outputs }))))
}

fn outputs(cv: Cv<'_>) -> Outs<'_> {
    match cv.1 {
        Val::Burst(burst) => Box::new((0..burst.outputs.len()).map(move |index| Ok(burst.outputs[index].clone()))),
        state => box_once(Ok(state)),
    }
}

/// The number of outputs that a number asks for.
fn wanted(count: &Val<'_>) -> usize {
    let count = count.as_num().map_or(0.0, Num::float).ceil();
    usize::try_from(whole(count)).unwrap_or(0)
}

fn limit(mut cv: Cv<'_>) -> Outs<'_> {
    let (filter, context) = cv.0.pop_fun();
    let count = wanted(&cv.0.pop_var());
    if count == 0 {
        return Box::new(std::iter::empty());
    }
    Box::new(filter.run((context, cv.1)).take(count))
}

fn skip(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (filter, context) = cv.0.pop_fun();
    let mut left = wanted(&cv.0.pop_var());
    Box::new(filter.run((context, cv.1)).filter_map(move |output| match output {
        Ok(_) if left > 0 => {
            left -= 1;
            budget.work(1).err().map(Err)
        }
        output => Some(output),
    }))
}

fn range(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let args = [cv.0.pop_var().plain(), cv.0.pop_var().plain(), cv.0.pop_var().plain()];
    if let Some(wrong) = args.iter().find(|arg| arg.as_num().is_none()) {
        return one(Err(Exn::from(say::plain("range", wrong))));
    }
    let [mut next, end, step] = args;
    let direction = compare(&step, &Val::int(0));
    let mut over = false;
    Box::new(std::iter::from_fn(move || {
        if over || direction.is_eq() || compare(&next, &end) != direction.reverse() {
            return None;
        }
        let paid: Out<'_, ()> = budget.work(1);
        if let Err(stop) = paid {
            over = true;
            return Some(Err(stop));
        }
        let (Val::Num(number), Val::Num(by)) = (&next, &step) else {
            return None;
        };
        let after = Val::Num(number.add(by));
        Some(Ok(std::mem::replace(&mut next, after)))
    }))
}

fn halt_error(mut cv: Cv<'_>) -> Outs<'_> {
    let code = cv.0.pop_var();
    if code.as_num().is_none() {
        return one(Err(Exn::from(say::plain("halt_error", &code))));
    }
    one(Err(budget(&cv).halt(Some(&cv.1))))
}
