//! Reads the text of a schema into nodes: follows references, and reports mistakes with their places.
//!
//! Must never follow a circle of references, nor let a short text grow into an endless schema.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use helm_yaml::number;
use serde_json::{Map, Value};

use super::document::{Files, Target, target};
use super::node::{Dependency, Items, Node, NumberLimits, Others, Pattern};
use super::rules::Rule;
use super::{Problem, SchemaError, secrecy};

/// The number of nodes up to which a schema is accepted. A node counts as often as it is referred to.
const MAX_NODES: usize = 20_000;

/// The depth to which nodes may be nested.
const MAX_NESTING: usize = 64;

/// The number of regular expressions up to which a schema is accepted.
const MAX_PATTERNS: usize = 1_000;

/// Whether `x-deckhouse-validations` count at a node: only if the path to it has nothing but properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Properties,
    Elsewhere,
}

/// Reads the schema of a file.
pub(super) fn read(files: &Files, path: &str) -> Result<Node, SchemaError> {
    let mut reader = Reader {
        files,
        documents: BTreeMap::new(),
        patterns: BTreeMap::new(),
        nodes: 0,
    };
    let root = Target {
        file: path.to_owned(),
        steps: Vec::new(),
    };
    let document = reader
        .document(path)
        .map_err(|problem| SchemaError::new(path, &[], problem))?;
    let mut place = NodePlace {
        at: root.clone(),
        open: vec![root],
        nesting: 0,
    };
    if document.is_null() {
        // A file with comments only is an empty schema, which allows no key at all.
        return Ok(Node::default());
    }
    Ok(*reader.node(&mut place, &document, Reach::Properties)?)
}

/// The node that is being read.
#[derive(Debug)]
struct NodePlace {
    at: Target,
    /// The references on the path to this node, to find a circle.
    open: Vec<Target>,
    nesting: usize,
}

impl NodePlace {
    fn fault<T>(&self, problem: Problem) -> Result<T, SchemaError> {
        Err(SchemaError::new(&self.at.file, &self.at.steps, problem))
    }

    /// Reads one step further down.
    fn below<T>(
        &mut self,
        step: impl Into<String>,
        read: impl FnOnce(&mut Self) -> Result<T, SchemaError>,
    ) -> Result<T, SchemaError> {
        self.at.steps.push(step.into());
        let done = read(self);
        self.at.steps.pop();
        done
    }
}

struct Reader<'files> {
    files: &'files Files,
    documents: BTreeMap<String, Rc<Value>>,
    patterns: BTreeMap<String, Pattern>,
    nodes: usize,
}

type Read<T> = Result<T, SchemaError>;

impl Reader<'_> {
    fn document(&mut self, path: &str) -> Result<Rc<Value>, Problem> {
        if let Some(known) = self.documents.get(path) {
            return Ok(Rc::clone(known));
        }
        let document = Rc::new(self.files.parse(path)?);
        self.documents.insert(path.to_owned(), Rc::clone(&document));
        Ok(document)
    }

    fn node(&mut self, place: &mut NodePlace, value: &Value, reach: Reach) -> Read<Box<Node>> {
        let Value::Object(map) = value else {
            return place.fault(Problem::Kind("a schema, which is a map"));
        };
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return place.fault(Problem::TooLarge(MAX_NODES));
        }
        if place.nesting >= MAX_NESTING {
            return place.fault(Problem::TooDeep(MAX_NESTING));
        }
        place.nesting += 1;
        let node = match map.get("$ref") {
            Some(Value::String(text)) => self.follow(place, text, reach),
            Some(_) => place.below("$ref", |place| place.fault(Problem::Kind("a string"))),
            None => self.own(place, map, reach).and_then(|mut node| {
                self.children(place, map, &mut node, reach)?;
                Ok(node)
            }),
        };
        place.nesting -= 1;
        node
    }

    /// Follows a reference. Keywords beside it are ignored.
    fn follow(&mut self, place: &mut NodePlace, text: &str, reach: Reach) -> Read<Box<Node>> {
        let to = match target(&place.at.file, text) {
            Ok(to) => to,
            Err(problem) => return place.fault(problem),
        };
        if place.open.contains(&to) {
            return place.fault(Problem::Circle(text.to_owned()));
        }
        let document = match self.document(&to.file) {
            Ok(document) => document,
            Err(problem @ Problem::NoFile(_)) => return place.fault(problem),
            Err(problem) => return Err(SchemaError::new(&to.file, &[], problem)),
        };
        let mut found: &Value = &document;
        for step in &to.steps {
            let next = match found {
                Value::Object(map) => map.get(step),
                Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            found = match next {
                Some(next) => next,
                None => return place.fault(Problem::NoPlace(text.to_owned())),
            };
        }
        place.open.push(to.clone());
        let from = std::mem::replace(&mut place.at, to);
        let node = self.node(place, found, reach);
        place.at = from;
        place.open.pop();
        node
    }

    /// Reads the keywords that contain no other nodes. The node is boxed at once, because nodes are large and reading
    /// them recurses deeply.
    fn own(&mut self, place: &mut NodePlace, map: &Map<String, Value>, reach: Reach) -> Read<Box<Node>> {
        let mut keys = Keys { map, place };
        let mut node = Box::new(Node {
            types: keys.types()?,
            nullable: keys.flag("nullable")?,
            format: keys.text("format")?.unwrap_or_default().to_owned(),
            choices: keys.list("enum")?.map(<[Value]>::to_vec).unwrap_or_default(),
            default: keys.given("default").cloned(),
            number: NumberLimits {
                multiple_of: keys.number("multipleOf")?,
                minimum: keys.number("minimum")?,
                exclusive_minimum: keys.flag("exclusiveMinimum")?,
                maximum: keys.number("maximum")?,
                exclusive_maximum: keys.flag("exclusiveMaximum")?,
            },
            min_length: keys.count("minLength")?,
            max_length: keys.count("maxLength")?,
            min_items: keys.count("minItems")?,
            max_items: keys.count("maxItems")?,
            unique_items: keys.flag("uniqueItems")?,
            min_properties: keys.count("minProperties")?,
            max_properties: keys.count("maxProperties")?,
            required: keys.strings("required")?.unwrap_or_default(),
            secret: secrecy::said_by(map),
            extends: keys.extends(),
            required_for_helm: keys.required_for_helm(),
            rules: match reach {
                Reach::Properties => keys.rules()?,
                Reach::Elsewhere => None,
            },
            ..Node::default()
        });
        if let Some(default) = &mut node.default {
            number::settle(default);
        }
        if let Some(text) = keys.text("pattern")?.filter(|text| !text.is_empty()) {
            node.pattern = Some(self.pattern(place, text)?);
        }
        Ok(node)
    }

    fn children(&mut self, place: &mut NodePlace, map: &Map<String, Value>, node: &mut Node, reach: Reach) -> Read<()> {
        let other = Reach::Elsewhere;
        for (name, value) in (Keys { map, place }).map("properties")? {
            let child = self.at(place, &["properties", name], value, reach)?;
            node.properties.insert(name.clone(), *child);
        }
        for (text, value) in (Keys { map, place }).map("patternProperties")? {
            let child = self.at(place, &["patternProperties", text], value, other)?;
            node.pattern_properties.push((self.pattern(place, text)?, *child));
        }
        for (name, value) in (Keys { map, place }).map("dependencies")? {
            let dependency = match (value, strings(value)) {
                (_, Some(keys)) => Dependency::Keys(keys),
                (Value::Array(_), None) => return place.fault(Problem::Kind("lists of strings as dependencies")),
                (_, None) => Dependency::Schema(self.at(place, &["dependencies", name], value, other)?),
            };
            node.dependencies.insert(name.clone(), dependency);
        }
        node.all_of = self.several(place, map, "allOf")?;
        node.any_of = self.several(place, map, "anyOf")?;
        node.one_of = self.several(place, map, "oneOf")?;
        if let Some(value) = given(map, "not") {
            node.not = Some(self.at(place, &["not"], value, other)?);
        }
        node.items = match given(map, "items") {
            None => Items::Any,
            Some(Value::Array(_)) => Items::Places(self.several(place, map, "items")?),
            Some(value) => Items::Each(self.at(place, &["items"], value, other)?),
        };
        node.additional_items = self.others(place, map, "additionalItems")?;
        node.additional_properties = self.others(place, map, "additionalProperties")?;
        Ok(())
    }

    fn at(&mut self, place: &mut NodePlace, steps: &[&str], value: &Value, reach: Reach) -> Read<Box<Node>> {
        match steps {
            [] => self.node(place, value, reach),
            [step, rest @ ..] => place.below(*step, |place| self.at(place, rest, value, reach)),
        }
    }

    fn several(&mut self, place: &mut NodePlace, map: &Map<String, Value>, key: &str) -> Read<Vec<Node>> {
        let list = Keys { map, place }.list(key)?.unwrap_or_default();
        let mut nodes = Vec::new();
        for (index, value) in list.iter().enumerate() {
            nodes.push(*self.at(place, &[key, &index.to_string()], value, Reach::Elsewhere)?);
        }
        Ok(nodes)
    }

    fn others(&mut self, place: &mut NodePlace, map: &Map<String, Value>, key: &str) -> Read<Option<Others>> {
        match given(map, key) {
            None => Ok(None),
            Some(Value::Bool(true)) => Ok(Some(Others::Allowed)),
            Some(Value::Bool(false)) => Ok(Some(Others::Forbidden)),
            Some(value @ Value::Object(_)) => {
                let node = self.at(place, &[key], value, Reach::Elsewhere)?;
                Ok(Some(Others::Like(node)))
            }
            Some(_) => place.below(key, |place| place.fault(Problem::Kind("a boolean or a schema"))),
        }
    }

    fn pattern(&mut self, place: &NodePlace, text: &str) -> Read<Pattern> {
        if let Some(known) = self.patterns.get(text) {
            return Ok(known.clone());
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return place.fault(Problem::TooManyPatterns(MAX_PATTERNS));
        }
        let pattern = Pattern::new(text);
        self.patterns.insert(text.to_owned(), pattern.clone());
        Ok(pattern)
    }
}

/// The value of a key; `null` counts as absent.
fn given<'map>(map: &'map Map<String, Value>, key: &str) -> Option<&'map Value> {
    map.get(key).filter(|value| !value.is_null())
}

/// The keywords of a node that contain no other nodes.
struct Keys<'map, 'place> {
    map: &'map Map<String, Value>,
    place: &'place mut NodePlace,
}

impl<'map> Keys<'map, '_> {
    fn given(&self, key: &str) -> Option<&'map Value> {
        given(self.map, key)
    }

    fn take<T>(
        &mut self,
        key: &str,
        kind: &'static str,
        take: impl FnOnce(&'map Value) -> Option<T>,
    ) -> Read<Option<T>> {
        let Some(value) = self.given(key) else { return Ok(None) };
        match take(value) {
            Some(taken) => Ok(Some(taken)),
            None => self.place.below(key, |place| place.fault(Problem::Kind(kind))),
        }
    }

    fn flag(&mut self, key: &str) -> Read<bool> {
        Ok(self.take(key, "a boolean", Value::as_bool)?.unwrap_or_default())
    }

    fn text(&mut self, key: &str) -> Read<Option<&'map str>> {
        self.take(key, "a string", Value::as_str)
    }

    fn number(&mut self, key: &str) -> Read<Option<f64>> {
        self.take(key, "a number", Value::as_f64)
    }

    fn count(&mut self, key: &str) -> Read<Option<i64>> {
        self.take(key, "a whole number", |value| {
            let mut value = value.clone();
            number::settle(&mut value);
            value.as_i64()
        })
    }

    fn list(&mut self, key: &str) -> Read<Option<&'map [Value]>> {
        self.take(key, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    fn strings(&mut self, key: &str) -> Read<Option<Vec<String>>> {
        self.take(key, "a list of strings", strings)
    }

    fn map(&mut self, key: &str) -> Read<&'map Map<String, Value>> {
        static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        Ok(self.take(key, "a map", Value::as_object)?.unwrap_or(&EMPTY))
    }

    fn types(&mut self) -> Read<Vec<String>> {
        let types = self.take("type", "a string or a list of strings", |value| match value {
            Value::String(one) => Some(vec![one.clone()]),
            several => strings(several),
        })?;
        Ok(types
            .unwrap_or_default()
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect())
    }

    /// A key that begins with `x-`. Its letters may be lower or upper case.
    fn extension(&self, key: &str) -> Option<&'map Value> {
        let same = |(name, _): &(&String, &Value)| name.eq_ignore_ascii_case(key);
        self.map.iter().find(same).map(|(_, value)| value)
    }

    fn extends(&self) -> bool {
        let extend = self.extension("x-extend").and_then(Value::as_object);
        extend
            .and_then(|extend| extend.get("schema"))
            .is_some_and(Value::is_string)
    }

    fn required_for_helm(&self) -> Option<Vec<String>> {
        match self.extension("x-required-for-helm")? {
            Value::String(one) => Some(vec![one.clone()]),
            several => Some(strings(several).unwrap_or_default()),
        }
    }

    fn rules(&mut self) -> Read<Option<Vec<Rule>>> {
        let key = "x-deckhouse-validations";
        let Some(value) = self.extension(key) else {
            return Ok(None);
        };
        let rules = value
            .as_array()
            .ok_or(Problem::RulesInvalid)
            .and_then(|list| list.iter().map(Rule::read).collect());
        match rules {
            Ok(rules) => Ok(Some(rules)),
            Err(problem) => self.place.below(key, |place| place.fault(problem)),
        }
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?;
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
