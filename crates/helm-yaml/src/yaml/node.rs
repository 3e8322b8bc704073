//! Converts a tree of nodes to a value: keys, merges, duplicates, and the limit on aliases.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::scalar::{self, Scalar};
use super::{Dialect, MAX_DEPTH, TextPlace, YamlError};

/// A node. An alias is the same node as the one that it points to.
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) place: TextPlace,
}

/// The keys and values of a mapping, in the order of the text.
pub(super) type Entries = Vec<(Rc<Node>, Rc<Node>)>;

pub(super) enum Content {
    Scalar {
        text: String,
        plain: bool,
        tag: Option<String>,
    },
    Sequence(Vec<Rc<Node>>),
    Mapping(Entries),
}

impl Node {
    fn is_merge(&self) -> bool {
        match &self.content {
            Content::Scalar { text, plain, tag } => {
                text == "<<" && (*plain && tag.is_none() || tag.as_deref() == Some("merge"))
            }
            Content::Sequence(_) | Content::Mapping(_) => false,
        }
    }
}

/// The value of a document.
pub(super) fn to_value(root: &Rc<Node>, dialect: Dialect) -> Result<Value, YamlError> {
    Reader {
        dialect,
        read: 0,
        seen: BTreeSet::new(),
        repeated: 0,
    }
    .value(root, 0)
}

struct Reader {
    dialect: Dialect,
    /// The number of nodes read so far, through aliases, too.
    read: usize,
    /// The number of read nodes that were read before, which is possible only through aliases.
    repeated: usize,
    seen: BTreeSet<*const Node>,
}

/// The number of read nodes up to which aliases are not limited.
const FREE_NODES: usize = 1_000;
/// The number of read nodes from which on the allowed share of repeated nodes falls, down to a tenth.
const SMALL_NODES: usize = 400_000;
/// The number of read nodes from which on only a tenth of them may be repeated nodes.
const LARGE_NODES: usize = 4_000_000;

impl Reader {
    fn value(&mut self, node: &Rc<Node>, depth: usize) -> Result<Value, YamlError> {
        if depth > MAX_DEPTH {
            return Err(YamlError::at(
                node.place,
                format!("nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        self.count(node)?;
        match &node.content {
            Content::Scalar { text, plain, tag } => {
                let resolved = scalar::resolve(text, *plain, tag.as_deref(), self.dialect)
                    .map_err(|message| YamlError::at(node.place, message))?;
                resolved
                    .into_value()
                    .map_err(|message| YamlError::at(node.place, message))
            }
            Content::Sequence(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.value(item, depth + 1)).collect();
                Ok(Value::Array(items?))
            }
            Content::Mapping(entries) if self.dialect.is_v3() => self.mapping_v3(entries, depth),
            Content::Mapping(entries) => self.mapping_v2(entries, depth),
        }
    }

    /// Counts a node. The limits prevent a few lines of aliases from becoming millions of nodes, and are those of Go's reader.
    fn count(&mut self, node: &Rc<Node>) -> Result<(), YamlError> {
        self.read += 1;
        if !self.seen.insert(Rc::as_ptr(node)) {
            self.repeated += 1;
        }
        let allowed_percent = match self.read {
            ..SMALL_NODES => 99,
            SMALL_NODES..=LARGE_NODES => 99 - 89 * (self.read - SMALL_NODES) / (LARGE_NODES - SMALL_NODES),
            _ => 10,
        };
        if self.repeated > 100 && self.read > FREE_NODES && self.repeated * 100 > self.read * allowed_percent {
            return Err(YamlError::at(node.place, "document contains excessive aliasing"));
        }
        Ok(())
    }

    /// Reads the entries in the order of the text, merges included. Of equal keys the last counts.
    fn mapping_v2(&mut self, entries: &Entries, depth: usize) -> Result<Value, YamlError> {
        let mut map = Map::new();
        let mut taken = BTreeSet::new();
        self.fill_v2(entries, &mut map, &mut taken, depth)?;
        Ok(Value::Object(map))
    }

    fn fill_v2(
        &mut self,
        entries: &Entries,
        map: &mut Map<String, Value>,
        taken: &mut BTreeSet<Scalar>,
        depth: usize,
    ) -> Result<(), YamlError> {
        if depth > MAX_DEPTH {
            let place = entries
                .first()
                .map_or(TextPlace { line: 1, column: 1 }, |(key, _)| key.place);
            return Err(YamlError::at(
                place,
                format!("merges nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        for (key, value) in entries {
            if key.is_merge() {
                for source in merge_sources(value)?.into_iter().rev() {
                    self.fill_v2(source, map, taken, depth + 1)?;
                }
                continue;
            }
            let key_scalar = self.key(key)?;
            let text = key_scalar
                .to_key(self.dialect)
                .map_err(|message| YamlError::at(key.place, message))?;
            if !taken.insert(key_scalar) && self.dialect == Dialect::V2Strict {
                return Err(YamlError::at(key.place, format!("key {text:?} already set in map")));
            }
            map.insert(text, self.value(value, depth + 1)?);
        }
        Ok(())
    }

    /// Reads the entries. Keys of the map itself take precedence over merged ones, wherever they are.
    fn mapping_v3(&mut self, entries: &Entries, depth: usize) -> Result<Value, YamlError> {
        Self::refuse_equal_keys(entries)?;
        let mut map = Map::new();
        self.fill_v3(entries, &mut map, depth)?;
        Ok(Value::Object(map))
    }

    fn fill_v3(&mut self, entries: &Entries, map: &mut Map<String, Value>, depth: usize) -> Result<(), YamlError> {
        if depth > MAX_DEPTH {
            let place = entries
                .first()
                .map_or(TextPlace { line: 1, column: 1 }, |(key, _)| key.place);
            return Err(YamlError::at(
                place,
                format!("merges nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        let mut own = BTreeMap::new();
        for (key, value) in entries.iter().filter(|(key, _)| !key.is_merge()) {
            let text = self
                .key(key)?
                .to_key(self.dialect)
                .map_err(|message| YamlError::at(key.place, message))?;
            own.insert(text, self.value(value, depth + 1)?);
        }
        for (key, value) in own {
            map.entry(key).or_insert(value);
        }
        for (_, value) in entries.iter().filter(|(key, _)| key.is_merge()) {
            for source in merge_sources(value)? {
                self.fill_v3(source, map, depth + 1)?;
            }
        }
        Ok(())
    }

    fn refuse_equal_keys(entries: &Entries) -> Result<(), YamlError> {
        let mut lines = BTreeMap::new();
        for (key, _) in entries {
            let Content::Scalar { text, .. } = &key.content else {
                continue;
            };
            if let Some(line) = lines.insert(text, key.place.line) {
                let message = format!("mapping key {text:?} already defined at line {line}");
                return Err(YamlError::at(key.place, message));
            }
        }
        Ok(())
    }

    fn key(&mut self, key: &Rc<Node>) -> Result<Scalar, YamlError> {
        self.count(key)?;
        let Content::Scalar { text, plain, tag } = &key.content else {
            return Err(YamlError::at(key.place, "a map or a list cannot be a key"));
        };
        scalar::resolve(text, *plain, tag.as_deref(), self.dialect).map_err(|message| YamlError::at(key.place, message))
    }
}

/// The maps that a merge brings in. Those that take precedence come first.
fn merge_sources(value: &Node) -> Result<Vec<&Entries>, YamlError> {
    match &value.content {
        Content::Sequence(items) => items.iter().map(|item| merge_source(item)).collect(),
        Content::Mapping(_) | Content::Scalar { .. } => Ok(vec![merge_source(value)?]),
    }
}

fn merge_source(node: &Node) -> Result<&Entries, YamlError> {
    match &node.content {
        Content::Mapping(entries) => Ok(entries),
        Content::Scalar { .. } | Content::Sequence(_) => Err(YamlError::at(
            node.place,
            "map merge requires map or sequence of maps as the value",
        )),
    }
}
