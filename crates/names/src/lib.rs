//! Validated names of modules, hooks, queues and bindings, and the owners of hooks.
//!
//! A value of these types is always valid, so that no other file checks it again. Must never know what the named thing
//! does.

mod case;
pub mod replaceable;

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The key of the global section in values files, in the `ConfigMap` and in the values that hooks read.
pub const GLOBAL_KEY: &str = "global";
/// The suffix of a module's values key in the name of its flag.
pub const ENABLED_SUFFIX: &str = "Enabled";
/// The suffix of a module's values key in the name of its maintenance key.
pub const MAINTENANCE_SUFFIX: &str = "Maintenance";

/// The key of the setting that says which version of the operator is wanted.
pub const RELEASE_CHANNEL: &str = "releaseChannel";
/// The key of the setting with the policy by which versions are taken.
pub const RELEASE_POLICY: &str = "releasePolicy";
/// The key of the setting that lists the versions that a person has approved.
pub const RELEASE_APPROVED: &str = "releaseApproved";
/// The key of the setting that names the registries from which modules come.
pub const MODULE_SOURCES: &str = "moduleSources";
/// The keys of the `ConfigMap` that are settings of the operator's own channel.
pub const CHANNEL_SETTINGS: [&str; 3] = [RELEASE_CHANNEL, RELEASE_POLICY, RELEASE_APPROVED];
/// The keys of the `ConfigMap` that are settings of the operator and belong to no module.
pub const SETTINGS: [&str; 4] = [RELEASE_CHANNEL, RELEASE_POLICY, RELEASE_APPROVED, MODULE_SOURCES];

/// The id of a monitor. No two monitors in one life of the operator have the same id, so that a late change of a
/// stopped monitor is never taken for one of its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MonitorId(pub u64);

/// The reason for which a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// The values key of the name leads back to another name.
    #[error(
        "'{name}' name should be in kebab-case and be restorable from camelCase: consider renaming to '{proposal}'"
    )]
    NotRestorable {
        /// The refused name.
        name: String,
        /// The name that the values key leads back to.
        proposal: String,
    },
    /// The name has a character that is not allowed in a release's name or in a values key.
    #[error("'{name}' name should hold only small letters, digits, dots and dashes")]
    Character {
        /// The refused name.
        name: String,
    },
    /// The values key of the name is that of the global section.
    #[error("'{GLOBAL_KEY}' is no name for a module: the global values have it")]
    Reserved,
    /// The values key of the name is that of a setting.
    #[error("'{name}' is no name for a module: the key '{key}' of the ConfigMap is a setting of the operator")]
    Setting {
        /// The refused name.
        name: String,
        /// The name's values key.
        key: String,
    },
    /// A values key that is not the camelCase form of a module name.
    #[error("bad module name '{key}': should be camelCased")]
    NotCamel {
        /// The refused key.
        key: String,
    },
    /// The name is empty.
    #[error("empty {what} name")]
    Empty {
        /// The kind of thing to be named.
        what: &'static str,
    },
    /// The name has a line break or another control character, which would break logs and labels.
    #[error("{what} name {name:?} holds a control character")]
    Control {
        /// The kind of thing to be named.
        what: &'static str,
        /// The refused name.
        name: String,
    },
}

/// The name of a module in kebab-case. Its values key leads back to the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModuleName(Arc<str>);

impl ModuleName {
    /// Accepts a kebab-case name that is the same after a conversion to camelCase and back.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty { what: "module" });
        }
        let key = case::to_camel(text);
        let proposal = case::to_kebab(&key);
        if proposal != text {
            return Err(NameError::NotRestorable {
                name: text.to_owned(),
                proposal,
            });
        }
        if !text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.')
        {
            return Err(NameError::Character { name: text.to_owned() });
        }
        if text == GLOBAL_KEY {
            return Err(NameError::Reserved);
        }
        if SETTINGS.contains(&key.as_str()) {
            return Err(NameError::Setting {
                name: text.to_owned(),
                key,
            });
        }
        Ok(Self(text.into()))
    }

    /// Accepts the camelCase key under which the values of a module are kept.
    pub fn from_values_key(key: &str) -> Result<Self, NameError> {
        let not_camel = || NameError::NotCamel { key: key.to_owned() };
        let name = Self::parse(&case::to_kebab(key)).map_err(|error| match error {
            NameError::Setting { .. } => error,
            _ => not_camel(),
        })?;
        if name.values_key() == key {
            Ok(name)
        } else {
            Err(not_camel())
        }
    }

    /// The key of the module's values: `foo-bar` has `fooBar`.
    pub fn values_key(&self) -> String {
        case::to_camel(&self.0)
    }

    /// The key of the flag that switches the module: `fooBarEnabled`.
    pub fn enabled_key(&self) -> String {
        self.values_key() + ENABLED_SUFFIX
    }

    /// The key that says whether people maintain the module's objects: `fooBarMaintenance`.
    pub fn maintenance_key(&self) -> String {
        self.values_key() + MAINTENANCE_SUFFIX
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for ModuleName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ModuleName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<ModuleName> for String {
    fn from(name: ModuleName) -> Self {
        name.0.as_ref().into()
    }
}

/// The kind of thing that a [`Label`] names.
pub trait Named {
    /// The word for the thing in error texts.
    const WHAT: &'static str;
}

/// A name that people chose freely: any text without control characters.
///
/// One implementation serves hooks, queues and bindings, and the type parameter keeps them apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String", bound = "K: Named + Clone")]
pub struct Label<K>(Arc<str>, PhantomData<K>);

impl<K: Named> Label<K> {
    /// Accepts any text that can be printed on one line.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty { what: K::WHAT });
        }
        if text.chars().any(char::is_control) {
            return Err(NameError::Control {
                what: K::WHAT,
                name: text.to_owned(),
            });
        }
        Ok(Self(text.into(), PhantomData))
    }
}

impl<K> Label<K> {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<K> fmt::Display for Label<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<K: Named> TryFrom<String> for Label<K> {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl<K> From<Label<K>> for String {
    fn from(label: Label<K>) -> Self {
        label.0.as_ref().into()
    }
}

/// Marks the name of a hook.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {}

impl Named for Hook {
    const WHAT: &'static str = "hook";
}

/// Marks the name of a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {}

impl Named for Queue {
    const WHAT: &'static str = "queue";
}

/// Marks the name of a binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {}

impl Named for Binding {
    const WHAT: &'static str = "binding";
}

/// The name of a hook: its path relative to the hooks directory. Unique among the hooks of one owner.
pub type HookName = Label<Hook>;
/// The name of a queue, which hooks choose.
pub type QueueName = Label<Queue>;
/// The name of a binding, unique in one hook.
pub type BindingName = Label<Binding>;

impl QueueName {
    /// The queue of bindings that name no queue.
    pub fn main() -> Self {
        Self("main".into(), PhantomData)
    }
}

/// The owner of values and hooks: global, or a module. The global owner comes first in every order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Owner {
    /// The global owner, shared by all modules.
    Global,
    /// A module as owner.
    Module(ModuleName),
}

impl Owner {
    /// The key of the owner's section in every document with values.
    pub fn values_key(&self) -> String {
        match self {
            Self::Global => GLOBAL_KEY.to_owned(),
            Self::Module(name) => name.values_key(),
        }
    }

    /// The module; `None` for the global owner.
    pub fn module(&self) -> Option<&ModuleName> {
        match self {
            Self::Global => None,
            Self::Module(name) => Some(name),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str(GLOBAL_KEY),
            Self::Module(name) => write!(f, "module '{name}'"),
        }
    }
}

impl From<ModuleName> for Owner {
    fn from(name: ModuleName) -> Self {
        Self::Module(name)
    }
}

/// A hook with its owner, which identifies it among all hooks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HookId {
    /// The hook's owner.
    pub owner: Owner,
    /// The hook's name among the owner's hooks.
    pub name: HookName,
}

/// The text does not call a hook global, because it must be right without modules, too. With modules, `Mode::told` of
/// the core shows "global hook".
impl fmt::Display for HookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Owner::Global => write!(f, "hook '{}'", self.name),
            Owner::Module(module) => write!(f, "hook '{}' of module '{module}'", self.name),
        }
    }
}

/// The highest order number of a directory. A higher number counts as absent.
const MAX_ORDER: u32 = i32::MAX.unsigned_abs();

/// Reads the order number and the module name from the name of a module's directory, `020-foo-bar` or `foo-bar`.
pub fn parse_module_dir(dir_name: &str, unnumbered_order: u32) -> Result<(u32, ModuleName), NameError> {
    let (order, name) = match dir_name.split_once('-') {
        Some((digits, rest))
            if !digits.is_empty() && !rest.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            let order = digits
                .parse()
                .ok()
                .filter(|order| *order <= MAX_ORDER)
                .unwrap_or(unnumbered_order);
            (order, rest)
        }
        _ => (unnumbered_order, dir_name),
    };
    Ok((order, ModuleName::parse(name)?))
}

#[cfg(test)]
mod tests;
