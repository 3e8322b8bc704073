//! The graph of modules: rows by order number, columns by the depth of need, and a line from each module to those that need it.
//!
//! Must never draw more modules than a person can read: above a number of them a list takes the place of the drawing.

mod drawing;

use serde::Serialize;

use self::drawing::draw;
pub use self::drawing::{Drawing, Line, Node, Number};
use super::module::{Link, link};
use super::{Head, Place, needed_by, state_label};
use crate::facts::{Fleet, Module};
use crate::text::{encoded, row};

/// The largest number of modules that are drawn.
const MOST: usize = 300;
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphView {
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
    pub name: String,
    /// The path of its view, from the root.
    pub link: String,
    /// The modules that it needs.
    pub needs: Vec<Link>,
    /// The modules that need it.
    pub needed_by: Vec<Link>,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
