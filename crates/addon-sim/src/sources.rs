//! Modules that come from registries: their versions, the key of the `ConfigMap` that names them, and the facts that one life
//! of the shell passes to the next.
//!
//! The key is read here and not by the core. Must never ask the core which version is wanted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flat::Flat;
use crate::setup::{ModuleSpec, key_of};

/// The key of the `ConfigMap` that names the sources.
pub const SOURCES: &str = "moduleSources";
/// The key in the values of each version: the number of the version. No other files have it.
pub const MARK: &str = "src";
/// The order number of a module whose source has none.
pub const ORDER: u32 = 1;

/// Texts that name nothing, because they are broken.
pub const BROKEN: [&str; 3] = ["alpha: {", "alpha: r.example.com/alpha", "alpha: {version: stable}"];

/// The modules that the key names, each with its order number.
pub type Named = BTreeMap<String, Option<u32>>;

/// A module in a registry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceSpec {
    /// The files that all versions share.
    pub module: ModuleSpec,
    /// The versions, oldest first.
    pub versions: Vec<FilesSpec>,
}

/// The files of one version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesSpec {
    /// The values in the files.
    pub values: Flat,
    /// The quality of the files.
    pub quality: Quality,
}

/// The quality of the files of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quality {
    /// The module runs with them.
    Good,
    /// Helm fails with them.
    FailsHelm,
    /// The hooks before and after helm fail with them.
    FailsHooks,
    /// They have a mistake that is found when they are taken up.
    Mistake,
}

/// Reads the key; `None` if the text is broken.
pub fn read(text: &str) -> Option<Named> {
    let entry = |line: &str| {
        let (name, rest) = line.split_once(": {repository: r.example.com/")?;
        let order = match rest
            .strip_suffix('}')?
            .strip_prefix(&format!("{name}, version: stable"))?
        {
            "" => None,
            order => Some(order.strip_prefix(", order: ")?.parse().ok()?),
        };
        Some((name.to_owned(), order))
    };
    text.lines().map(entry).collect()
}

/// The text that names these modules.
pub fn write(named: &Named) -> String {
    let line = |(name, order): (&String, &Option<u32>)| {
        let order = order.map(|order| format!(", order: {order}")).unwrap_or_default();
        format!("{name}: {{repository: r.example.com/{name}, version: stable{order}}}\n")
    };
    named.iter().map(line).collect()
}

/// The number of the version whose files gave the module these values; `None` for other files.
pub fn version_in(module: &str, values: &Value) -> Option<usize> {
    let number = values.get(key_of(module))?.get(MARK)?.as_u64()?;
    usize::try_from(number).ok()
}

/// A module in the registry, and the facts about it that survive a restart of the operator.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// The files that all versions share.
    pub module: ModuleSpec,
    /// The versions, oldest first.
    pub versions: Vec<FilesSpec>,
    /// The record of the source.
    pub record: SourceRecord,
    /// The versions of which a copy is kept.
    pub copies: BTreeSet<usize>,
}

/// The record of a source: the version in use, the last one that did well, and the bad ones.
#[derive(Debug, Clone, Default)]
pub struct SourceRecord {
    /// The version in use.
    pub running: Option<usize>,
    /// The version with which a run of the module succeeded last.
    pub good: Option<usize>,
    /// Versions that failed.
    pub bad: BTreeSet<usize>,
}

impl Shelf {
    /// The versions of a source when a simulated run begins: none is installed, none has failed.
    pub fn new(spec: &SourceSpec) -> Self {
        Self {
            module: spec.module.clone(),
            versions: spec.versions.clone(),
            record: SourceRecord::default(),
            copies: BTreeSet::new(),
        }
    }

    /// The version that the registry offers; `None` if it has none, or only one that is known to be bad.
    pub fn offered(&self) -> Option<usize> {
        let newest = self.versions.len().checked_sub(1)?;
        (!self.record.bad.contains(&newest)).then_some(newest)
    }

    /// The quality of a version.
    pub fn quality(&self, version: usize) -> Quality {
        self.versions
            .get(version)
            .map_or(Quality::Mistake, |files| files.quality)
    }

    /// The files of a version, as a module.
    pub fn files(&self, version: usize, order: Option<u32>) -> ModuleSpec {
        let files = &self.versions[version];
        let mut values = files.values.clone();
        values.insert(MARK.to_owned(), i64::try_from(version).unwrap_or_default());
        ModuleSpec {
            order: order.unwrap_or(ORDER),
            values,
            broken: files.quality == Quality::Mistake,
            ..self.module.clone()
        }
    }

    /// Notes that this version is in use from now on, and that a copy of it is kept.
    pub fn take(&mut self, version: usize) {
        self.record.bad.remove(&version);
        self.record.running = Some(version);
        self.copies.insert(version);
    }

    /// Notes that a run succeeded with the version in use. Copies of other versions are dropped.
    pub fn did_well(&mut self) {
        self.record.good = self.record.running;
        let good = self.record.good;
        self.copies.retain(|version| Some(*version) == good);
    }

    /// Notes that the version in use is bad, so that the last good one is in use again.
    pub fn did_badly(&mut self) {
        let bad = std::mem::replace(&mut self.record.running, self.record.good);
        self.record.bad.extend(bad);
    }

    /// Whether another version did well before the one in use.
    pub fn has_former(&self) -> bool {
        self.record.good.is_some() && self.record.good != self.record.running
    }

    /// Forgets the record and the copies, because the source is gone.
    pub fn clean(&mut self) {
        self.record = SourceRecord::default();
        self.copies.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_reads_of_it_what_it_says() {
        let named = Named::from([("alpha".to_owned(), None), ("beta-two".to_owned(), Some(20))]);
        for named in [named, Named::new()] {
            let text = write(&named);
            assert_eq!(read(&text), Some(named.clone()));
            let parsed = channel_core::source::parse(&text).unwrap();
            let orders = parsed.iter().map(|(name, source)| (name.to_string(), source.order));
            assert_eq!(orders.collect::<Named>(), named);
        }
        for broken in BROKEN {
            assert_eq!(read(broken), None, "{broken}");
            assert!(channel_core::source::parse(broken).is_err(), "{broken}");
        }
    }
}
