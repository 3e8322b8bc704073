//! The budget of one run of a filter.
//!
//! The engine has no limit: nothing stops `repeat(.)`. So everything that can repeat is counted here: calls of recursive
//! definitions, outputs of generators, natives. A filter cannot get budget back, nor catch the error when the budget is
//! spent. The stack is measured and not counted: a call compares its stack address with that of the run's beginning.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use jaq_core::Exn;
use regex::Regex;

use crate::limits::Limits;
use crate::value::{Dict, List, Val, to_json};

/// The reason for which a run had to end, apart from errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    Steps,
    Memory,
    Stack,
    /// The filter called `halt` or `halt_error`; the text is the argument of `halt_error`.
    Halt(Option<String>),
}

/// The steps and the memory that one run has left, and the reason for its end.
#[derive(Debug)]
pub(crate) struct Budget<'r> {
    steps: Cell<u64>,
    cells: Cell<u64>,
    stack: usize,
    bottom: usize,
    searches: Cell<u64>,
    stop: RefCell<Option<Stop>>,
    /// The regular expressions in the text of the filter, compiled before any run.
    known: &'r BTreeMap<String, Regex>,
    patterns: RefCell<BTreeMap<String, Regex>>,
    /// Seconds since 1970, if the caller set them.
    pub(crate) now: Option<f64>,
}

/// The exit code with which a run is ended in the engine. No filter can give it to `halt`.
const STOPPED: i32 = i32::MIN;

/// The current address of the stack.
fn depth() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

impl<'r> Budget<'r> {
    pub(crate) fn new(limits: &Limits, now: Option<f64>, known: &'r BTreeMap<String, Regex>) -> Self {
        Self {
            steps: Cell::new(limits.steps),
            cells: Cell::new(limits.cells),
            stack: limits.stack,
            bottom: depth(),
            searches: Cell::new(0),
            stop: RefCell::new(None),
            known,
            patterns: RefCell::default(),
            now,
        }
    }

    fn spend<'b, 'a>(account: &Cell<u64>, cost: u64, stop: Stop, budget: &Self) -> Result<(), Exn<'b, Val<'a>>> {
        match account.get().checked_sub(cost) {
            Some(left) => {
                account.set(left);
                Ok(())
            }
            None => Err(budget.stop(stop)),
        }
    }

    /// Ends the run.
    pub(crate) fn stop<'b, 'a>(&self, stop: Stop) -> Exn<'b, Val<'a>> {
        self.steps.set(0);
        self.stop.borrow_mut().get_or_insert(stop);
        Exn::halt(STOPPED)
    }

    /// The reason for which the run was ended, if it was.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.stop.borrow().clone()
    }

    /// Counts work.
    pub(crate) fn work<'b, 'a>(&self, steps: usize) -> Result<(), Exn<'b, Val<'a>>> {
        Self::spend(&self.steps, steps as u64, Stop::Steps, self)
    }

    /// Counts memory in cells, and the steps of filling the memory.
    pub(crate) fn memory<'b, 'a>(&self, cells: usize) -> Result<(), Exn<'b, Val<'a>>> {
        Self::spend(&self.cells, cells as u64, Stop::Memory, self)?;
        self.work(cells / 4)
    }

    /// Checks that the stack has not grown beyond its limit.
    pub(crate) fn watch<'b, 'a>(&self) -> Result<(), Exn<'b, Val<'a>>> {
        if depth().abs_diff(self.bottom) > self.stack {
            Err(self.stop(Stop::Stack))
        } else {
            Ok(())
        }
    }

    /// Counts a call that may be one of very many nested calls.
    pub(crate) fn enter<'b, 'a>(&self) -> Result<(), Exn<'b, Val<'a>>> {
        self.watch()?;
        self.work(4)
    }

    /// Ends the run for `halt` and `halt_error`.
    pub(crate) fn halt<'b, 'a>(&self, message: Option<&Val<'a>>) -> Exn<'b, Val<'a>> {
        let text = message.map(|value| value.as_str().map_or_else(|| to_json(value), str::to_owned));
        self.stop(Stop::Halt(text))
    }

    /// The number of a new search for paths.
    pub(crate) fn search(&self) -> u64 {
        self.searches.set(self.searches.get() + 1);
        self.searches.get()
    }

    /// A regular expression, compiled once for each run.
    pub(crate) fn pattern<E>(&self, key: &str, compile: impl FnOnce() -> Result<Regex, E>) -> Result<Regex, E> {
        if let Some(regex) = self.known.get(key).or(self.patterns.borrow().get(key)) {
            return Ok(regex.clone());
        }
        let regex = compile()?;
        self.patterns.borrow_mut().insert(key.to_owned(), regex.clone());
        Ok(regex)
    }
}

/// The number of steps for a look at all items of a value, without looking into the items.
pub(crate) fn breadth(value: &Val<'_>) -> usize {
    let value = value.bare();
    let length = value.as_str().map(|text| text.len() / 24);
    let length = length.or_else(|| value.as_list().map(List::len));
    length.or_else(|| value.as_dict().map(Dict::len)).unwrap_or(0) / 16
}

/// The number of steps for computing the size of a value. The size of an input value is computed anew each time.
pub(crate) fn weighing<'a>(value: &Val<'a>) -> super::value::Res<'a, usize> {
    Ok(match value.bare() {
        raw @ (Val::RawArr(_) | Val::RawObj(_)) => raw.size()?.steps(16),
        other => breadth(other),
    })
}

/// The number of cells that a value takes by itself, without parts that it shares.
pub(crate) fn cells(value: &Val<'_>) -> usize {
    match value.bare() {
        Val::Str(text) => 2 + text.len() / 24,
        Val::Arr(array) => 2 + array.items.len(),
        Val::Obj(object) => 12 + 3 * object.entries.len(),
        _ => 1,
    }
}
