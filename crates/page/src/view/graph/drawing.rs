//! The drawing of the graph: the place of each box, and the lines between them.
//!
//! Must never place two modules on each other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::facts::{Fleet, Module};
use crate::text::{encoded, plain, row};
use crate::view::{Tone, needed_by, state_label, tone_of};

/// The longest name in a box, in characters.
const LONGEST: usize = 22;
/// The number of columns that fit on a screen.
const COLUMNS: usize = 6;

/// Lengths in the drawing.
const BOX: (usize, usize) = (176, 26);
const GAP: (usize, usize) = (44, 8);
const MARGIN: (usize, usize) = (64, 12);
/// The space between two rows of boxes of different numbers.
const BETWEEN: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawing {
    pub width: usize,
    pub height: usize,
    /// The order numbers.
    pub numbers: Vec<Number>,
    pub lines: Vec<Line>,
    pub boxes: Vec<Node>,
}

/// An order number beside its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Number {
    /// The number.
    pub order: u32,
    /// The top of the row.
    pub y: usize,
    /// The place of the text.
    pub text_y: usize,
    /// The height of the row.
    pub height: usize,
    /// Whether the row is shaded.
    pub is_odd: bool,
}

/// A line from a module to one that needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The path in the language of SVG.
    pub path: String,
    /// Whether it begins or ends at the chosen module.
    pub is_chosen: bool,
}

/// The box of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The left edge.
    pub x: usize,
    /// The top edge.
    pub y: usize,
    /// The place of the dot.
    pub dot_x: usize,
    /// The place of the text.
    pub text_x: usize,
    /// The middle.
    pub mid_y: usize,
    /// The name, cut.
    pub name: String,
    /// The whole name with the state.
    pub title: String,
    /// The colour.
    pub tone: Tone,
    /// The path of the graph of this module, from the root.
    pub link: String,
    /// `chosen`, `near` or `far`; empty if no module is chosen.
    pub class: &'static str,
}

/// The depth of need of each module: 0 if it needs none. A circle of needs ends where it began.
fn depths(fleet: &Fleet) -> BTreeMap<&str, usize> {
    let needs: BTreeMap<&str, &[String]> = fleet
        .modules
        .iter()
        .map(|module| (module.name.as_str(), module.depends_on.as_slice()))
        .collect();
    let mut depths: BTreeMap<&str, usize> = needs.keys().map(|name| (*name, 0)).collect();
    // Each round adds at least one depth, and a chain is at most as long as there are modules.
    for _ in 0..needs.len() {
        let mut is_settled = true;
        for (name, own) in &needs {
            let known = own.iter().filter_map(|need| depths.get(need.as_str()));
            let depth = known.max().map_or(0, |deepest| deepest + 1).min(COLUMNS - 1);
            if depths.insert(name, depth) != Some(depth) {
                is_settled = false;
            }
        }
        if is_settled {
            break;
        }
    }
    depths
}

/// The number of boxes beside each other for each depth: free columns go to the depth with the fullest cells.
fn shares(cells: &BTreeMap<(u32, usize), Vec<&Module>>) -> Vec<usize> {
    let deepest = cells.keys().map(|(_, depth)| *depth).max().unwrap_or(0);
    let mut shares = vec![1; deepest + 1];
    let fullest = |depth: usize| {
        let of_depth = cells.iter().filter(|((_, other), _)| *other == depth);
        of_depth.map(|(_, modules)| modules.len()).max().unwrap_or(0)
    };
    while shares.iter().sum::<usize>() < COLUMNS {
        let rows = |depth: usize| fullest(depth).div_ceil(shares[depth]);
        let Some(depth) = (0..shares.len())
            .filter(|depth| rows(*depth) > 1)
            .max_by_key(|depth| rows(*depth))
        else {
            break;
        };
        shares[depth] += 1;
    }
    shares
}

pub(super) fn draw(fleet: &Fleet, chosen: Option<&str>) -> Drawing {
    let depths = depths(fleet);
    let mut cells: BTreeMap<(u32, usize), Vec<&Module>> = BTreeMap::new();
    for module in &fleet.modules {
        let depth = depths.get(module.name.as_str()).copied().unwrap_or(0);
        cells.entry((module.order, depth)).or_default().push(module);
    }
    let shares = shares(&cells);
    let first = |depth: usize| shares[..depth].iter().sum::<usize>();
    let near = near(fleet, chosen);
    let (mut numbers, mut boxes, mut y) = (Vec::new(), Vec::new(), MARGIN.1);
    let orders: BTreeSet<u32> = cells.keys().map(|(order, _)| *order).collect();
    for order in orders {
        let of_row = || cells.range((order, 0)..=(order, usize::MAX));
        let rows = of_row()
            .map(|((_, depth), modules)| modules.len().div_ceil(shares[*depth]))
            .max();
        let height = rows.unwrap_or(1) * (BOX.1 + GAP.1) - GAP.1;
        for ((_, depth), modules) in of_row() {
            for (index, module) in modules.iter().enumerate() {
                let column = first(*depth) + index % shares[*depth];
                let x = MARGIN.0 + column * (BOX.0 + GAP.0);
                let y = y + index / shares[*depth] * (BOX.1 + GAP.1);
                boxes.push(node(module, (x, y), class(&module.name, chosen, &near)));
            }
        }
        numbers.push(Number {
            order,
            y: y - BETWEEN / 2,
            text_y: y + BOX.1 / 2,
            height: height + BETWEEN,
            is_odd: numbers.len() % 2 == 1,
        });
        y += height + BETWEEN;
    }
    Drawing {
        width: MARGIN.0 + shares.iter().sum::<usize>() * (BOX.0 + GAP.0),
        height: y + MARGIN.1,
        numbers,
        lines: lines(fleet, &boxes, chosen),
        boxes: boxes.into_iter().map(|(_, node)| node).collect(),
    }
}

/// The modules beside the chosen one.
fn near<'a>(fleet: &'a Fleet, chosen: Option<&'a str>) -> BTreeSet<&'a str> {
    let Some(chosen) = chosen else { return BTreeSet::new() };
    let own = fleet.modules.iter().filter(|module| module.name == chosen);
    let needs = own.flat_map(|module| module.depends_on.iter().map(String::as_str));
    needs
        .chain(needed_by(fleet, chosen).map(|other| other.name.as_str()))
        .collect()
}

fn class(name: &str, chosen: Option<&str>, near: &BTreeSet<&str>) -> &'static str {
    match chosen {
        None => "",
        Some(chosen) if chosen == name => "chosen",
        Some(_) if near.contains(name) => "near",
        Some(_) => "far",
    }
}

fn node(module: &Module, (x, y): (usize, usize), class: &'static str) -> (String, Node) {
    let name = if module.name.chars().count() > LONGEST {
        let cut: String = module.name.chars().take(LONGEST - 1).collect();
        plain(&cut, LONGEST) + "…"
    } else {
        plain(&module.name, LONGEST)
    };
    let node = Node {
        x,
        y,
        dot_x: x + 13,
        text_x: x + 25,
        mid_y: y + BOX.1 / 2,
        name,
        title: format!("{}: {}", row(&module.name), state_label(module).word),
        tone: tone_of(module),
        link: format!("graph/{}", encoded(&module.name)),
        class,
    };
    (module.name.clone(), node)
}

fn lines(fleet: &Fleet, boxes: &[(String, Node)], chosen: Option<&str>) -> Vec<Line> {
    let places: BTreeMap<&str, &Node> = boxes.iter().map(|(name, node)| (name.as_str(), node)).collect();
    let pairs = fleet.modules.iter().flat_map(|module| {
        module
            .depends_on
            .iter()
            .map(move |need| (need.as_str(), module.name.as_str()))
    });
    let drawn = pairs.filter_map(|(need, name)| {
        let (from, to) = (places.get(need)?, places.get(name)?);
        let (from_x, bend) = (from.x + BOX.0, GAP.0 / 2);
        let path = format!(
            "M{from_x} {}C{} {} {} {} {} {}",
            from.mid_y,
            from_x + bend,
            from.mid_y,
            to.x - bend,
            to.mid_y,
            to.x,
            to.mid_y
        );
        let is_chosen = chosen.is_some_and(|chosen| chosen == need || chosen == name);
        Some(Line { path, is_chosen })
    });
    let mut lines: Vec<Line> = drawn.collect();
    // Emphasised lines are drawn above the others.
    lines.sort_by_key(|line| line.is_chosen);
    lines
}
