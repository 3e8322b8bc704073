//! The graph of modules: rows by order number, columns by the depth of need, and a line from each module to those that need it.
//!
//! Above a number of modules a list takes its place. Must never place two modules on each other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::module::{Link, link};
use super::{Head, Place, Tone, needed_by, state_label, tone_of};
use crate::facts::{Fleet, Module};
use crate::text::{encoded, plain, row};

/// The largest number of modules that are drawn.
const MOST: usize = 300;
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

/// The view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphView {
    /// The head.
    pub head: Head,
    /// The chosen module, if there is one.
    pub chosen: Option<Chosen>,
    /// The drawing; none if there are too many modules.
    pub drawing: Option<Drawing>,
    /// The list in the place of a drawing.
    pub list: Vec<Item>,
    /// The number of modules.
    pub total: usize,
    /// The largest number of modules that are drawn.
    pub most: usize,
}

/// The chosen module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// The name.
    pub name: String,
    /// The path of its view, from the root.
    pub link: String,
    /// The modules that it needs.
    pub needs: Vec<Link>,
    /// The modules that need it.
    pub needed_by: Vec<Link>,
}

/// A drawing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawing {
    /// Its width.
    pub width: usize,
    /// Its height.
    pub height: usize,
    /// The order numbers.
    pub numbers: Vec<Number>,
    /// The lines.
    pub lines: Vec<Line>,
    /// The boxes.
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

/// A module in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// The module.
    pub link: Link,
    /// Its order number.
    pub order: u32,
    /// The modules that it needs.
    pub needs: String,
}

impl GraphView {
    /// The graph; `chosen` is the name of the module whose lines are emphasised. None if there is no such module.
    pub fn of(fleet: &Fleet, chosen: Option<&str>) -> Option<Self> {
        let found = chosen.map(|name| fleet.modules.iter().find(|module| module.name == name));
        let chosen = match found {
            Some(None) => return None,
            Some(Some(module)) => Some(module),
            None => None,
        };
        let total = fleet.modules.len();
        let is_drawn = total <= MOST;
        let (place, title) = match chosen {
            Some(module) => (Place::GraphOf, format!("Graph of {}", module.name)),
            None => (Place::Graph, "Graph".to_owned()),
        };
        Some(Self {
            head: Head::of(&fleet.operator, place, &title),
            chosen: chosen.map(|module| Chosen {
                name: row(&module.name),
                link: format!("modules/{}", encoded(&module.name)),
                needs: module.depends_on.iter().map(|name| link(fleet, name)).collect(),
                needed_by: needed_by(fleet, &module.name)
                    .map(|other| link(fleet, &other.name))
                    .collect(),
            }),
            drawing: is_drawn.then(|| draw(fleet, chosen.map(|module| module.name.as_str()))),
            list: if is_drawn {
                Vec::new()
            } else {
                fleet.modules.iter().map(item).collect()
            },
            total,
            most: MOST,
        })
    }
}

fn item(module: &Module) -> Item {
    Item {
        link: Link {
            name: row(&module.name),
            link: format!("modules/{}", encoded(&module.name)),
            state: Some(state_label(module)),
        },
        order: module.order,
        needs: row(&module.depends_on.join(", ")),
    }
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

fn draw(fleet: &Fleet, chosen: Option<&str>) -> Drawing {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(modules: &[(&str, u32, &[&str])]) -> Fleet {
        let modules = modules.iter().map(|&(name, order, needs)| Module {
            name: name.to_owned(),
            order,
            depends_on: needs.iter().map(|&need| need.to_owned()).collect(),
            ..Module::default()
        });
        Fleet {
            modules: modules.collect(),
            ..Fleet::default()
        }
    }

    #[test]
    fn a_module_stands_right_of_those_that_it_needs() {
        let fleet = fleet(&[
            ("a", 10, &[]),
            ("b", 20, &["a"]),
            ("c", 20, &["b", "gone"]),
            ("d", 20, &[]),
        ]);
        let view = GraphView::of(&fleet, Some("b")).unwrap();
        let drawing = view.drawing.unwrap();
        let place = |name: &str| {
            drawing
                .boxes
                .iter()
                .find(|node| node.name == name)
                .map(|node| (node.x, node.y))
                .unwrap()
        };
        assert!(place("a").0 < place("b").0 && place("b").0 < place("c").0);
        assert_eq!(place("a").0, place("d").0);
        assert!(place("a").1 < place("b").1);
        assert_eq!(
            drawing.lines.iter().map(|line| line.is_chosen).collect::<Vec<_>>(),
            [true, true]
        );
        let classes: Vec<_> = drawing
            .boxes
            .iter()
            .map(|node| (node.name.as_str(), node.class))
            .collect();
        assert!(
            classes.contains(&("d", "far")) && classes.contains(&("b", "chosen")) && classes.contains(&("c", "near"))
        );
        assert_eq!(GraphView::of(&fleet, Some("gone")), None);
    }

    #[test]
    fn no_two_boxes_stand_on_each_other_even_if_needs_go_in_a_circle() {
        let names: Vec<String> = (0..200).map(|number| format!("m{number}")).collect();
        let mut fleet = fleet(&[("x", 1, &["y"]), ("y", 1, &["x"])]);
        fleet.modules.extend(names.iter().enumerate().map(|(index, name)| {
            Module {
                name: name.clone(),
                order: u32::try_from(index % 7).unwrap(),
                depends_on: index
                    .checked_sub(9)
                    .map(|before| names[before].clone())
                    .into_iter()
                    .collect(),
                ..Module::default()
            }
        }));
        let drawing = GraphView::of(&fleet, None).unwrap().drawing.unwrap();
        let places: BTreeSet<_> = drawing.boxes.iter().map(|node| (node.x, node.y)).collect();
        assert_eq!(places.len(), 202);
    }

    #[test]
    fn too_many_modules_become_a_list() {
        let names: Vec<String> = (0..=MOST).map(|number| format!("m{number}")).collect();
        let rows: Vec<(&str, u32, &[&str])> = names.iter().map(|name| (name.as_str(), 1, &[][..])).collect();
        let view = GraphView::of(&fleet(&rows), None).unwrap();
        assert_eq!((view.drawing, view.list.len()), (None, MOST + 1));
    }
}
