//! Templates: a view becomes HTML.
//!
//! A template that names an unknown field is an error. Must never write a text without escaping it.

use handlebars::{Handlebars, RenderError};
use serde::Serialize;
use thiserror::Error;

/// The templates with their names. `layout` and the other parts are used by the views.
pub const TEMPLATES: [(&str, &str); 11] = [
    ("layout", include_str!("templates/layout.hbs")),
    ("label", include_str!("templates/label.hbs")),
    ("moment", include_str!("templates/moment.hbs")),
    ("alarms", include_str!("templates/alarms.hbs")),
    ("overview", include_str!("templates/overview.hbs")),
    ("module", include_str!("templates/module.hbs")),
    ("events", include_str!("templates/events.hbs")),
    ("comparison", include_str!("templates/comparison.hbs")),
    ("graph", include_str!("templates/graph.hbs")),
    ("operator", include_str!("templates/operator.hbs")),
    ("message", include_str!("templates/message.hbs")),
];

/// A view that has a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    Overview,
    /// One module.
    Module,
    /// The Events of one module.
    Events,
    /// The difference of two revisions.
    Comparison,
    Graph,
    Operator,
    /// A message in the place of a view.
    Message,
}

/// Why a view could not be written.
#[derive(Debug, Error)]
#[error("cannot write the view '{view}'")]
pub struct NotWritten {
    view: &'static str,
    source: Box<RenderError>,
}

/// Writes views.
#[derive(Debug)]
pub struct Writer(Handlebars<'static>);

impl Default for Writer {
    fn default() -> Self {
        let mut templates = Handlebars::new();
        templates.set_strict_mode(true);
        templates.set_prevent_indent(true);
        for (name, text) in TEMPLATES {
            let text = condensed(text);
            templates
                .register_template_string(name, text)
                .expect("the templates are part of the program, and a test parses them");
        }
        Self(templates)
    }
}

impl Writer {
    /// The HTML of a view.
    pub fn write(&self, template: Template, view: &impl Serialize) -> Result<String, NotWritten> {
        let name = template.name();
        self.0.render(name, view).map_err(|source| NotWritten {
            view: name,
            source: Box::new(source),
        })
    }
}

impl Template {
    fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Module => "module",
            Self::Events => "events",
            Self::Comparison => "comparison",
            Self::Graph => "graph",
            Self::Operator => "operator",
            Self::Message => "message",
        }
    }
}

/// The template without the indentation of its lines: a thousand rows repeat it.
fn condensed(text: &str) -> String {
    text.lines().map(|line| line.trim_start().to_owned() + "\n").collect()
}
