//! Edits of one source in the ConfigMap by a person's command: a version is approved, held, or followed again.
//!
//! Must never touch the entry of another source, nor an entry that cannot be read.

use channel_core::reference::{Fault, ImageDigest};
use channel_core::source;
use channel_core::source::SourcesError;
use command::edit::{self, Edit, EditError};
use command::{Hinted, reach};
use helm_yaml::yaml;
use kube_access::Cluster;
use names::MODULE_SOURCES;
use serde_json::{Map, Value, json};
use settings::{Environment, StartArgs};
use thiserror::Error;
use tokio::runtime::Runtime;

/// A change of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// The version may be taken.
    Approve,
    /// The approval of the version is withdrawn.
    TakeBack,
    /// The version is held.
    Pin,
    /// The wanted version is followed again.
    Resume,
}

/// Why a source was not changed.
#[derive(Debug, Error)]
pub(super) enum SourceEditError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("'{0}' has no source in moduleSources")]
    NoSource(String),
    #[error("moduleSources of the ConfigMap cannot be read, so that nothing is changed in it")]
    Unread(#[from] SourcesError),
    #[error("cannot read the digest")]
    Digest(#[from] Fault),
    #[error("no {key} version of module '{module}' is known")]
    NoVersion { module: String, key: &'static str },
}

impl Hinted for SourceEditError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Edit(error) => error.hints(),
            Self::NoVersion { .. } => {
                vec!["`addon-operator module source status` lists digests, one of which can be given".to_owned()]
            }
            Self::NoSource(_) | Self::Unread(_) | Self::Digest(_) => Vec::new(),
        }
    }
}

/// The planned edit.
#[derive(Debug)]
pub(crate) struct Plan {
    edit: Edit,
    config_map: String,
    cluster: Cluster,
    runtime: Runtime,
}

impl Plan {
    /// Reads the ConfigMap and plans the edit; changes nothing.
    pub(crate) fn new(
        args: &StartArgs,
        environment: &Environment,
        module: &str,
        deed: Deed,
        digest: &str,
    ) -> Result<Self, SourceEditError> {
        let digest = match deed {
            Deed::Resume => None,
            Deed::Approve | Deed::TakeBack | Deed::Pin => Some(ImageDigest::parse(digest.trim())?),
        };
        let (_, settings, runtime, cluster) = reach::with_module(args, environment, module).map_err(EditError::from)?;
        let config_map = edit::config_map(&settings);
        let data = edit::read(&runtime, &cluster, &config_map)?;
        let current = data.get(MODULE_SOURCES).cloned();
        let text = current.as_deref().unwrap_or_default();
        let wanted = edited(text, module, deed, digest.as_ref())?;
        Ok(Self {
            edit: Edit {
                key: MODULE_SOURCES.to_owned(),
                current,
                wanted: Some(wanted),
            },
            config_map,
            cluster,
            runtime,
        })
    }

    /// The edit of the key.
    pub(crate) fn edit(&self) -> &Edit {
        &self.edit
    }

    /// The ConfigMap's name and namespace and the API server, for people.
    pub(crate) fn place(&self) -> String {
        edit::place(&self.cluster, &self.config_map)
    }

    /// Writes the key, unless it was changed since the plan was made.
    pub(crate) fn carry_out(&self) -> Result<(), SourceEditError> {
        Ok(self.edit.carry_out(&self.runtime, &self.cluster, &self.config_map)?)
    }
}

/// The text of the key with the change. A text that already has the change stays as it is, with its comments.
fn edited(text: &str, module: &str, deed: Deed, digest: Option<&ImageDigest>) -> Result<String, SourceEditError> {
    let sources = source::parse(text)?;
    let known = sources.iter().find(|(name, _)| name.as_str() == module);
    let (_, known) = known.ok_or_else(|| SourceEditError::NoSource(module.to_owned()))?;
    let mut approved = known.approved.clone();
    let mut pin = known.pin.clone();
    match (deed, digest) {
        (Deed::Approve, Some(digest)) => drop(approved.insert(digest.clone())),
        (Deed::TakeBack, Some(digest)) => drop(approved.remove(digest)),
        (Deed::Pin, Some(digest)) => pin = Some(digest.clone()),
        (Deed::Resume, _) => pin = None,
        (Deed::Approve | Deed::TakeBack | Deed::Pin, None) => {}
    }
    if (&approved, &pin) == (&known.approved, &known.pin) {
        return Ok(text.to_owned());
    }
    let mut document = yaml::only_v3(text).map_err(SourcesError::Yaml)?;
    let entry = document.get_mut(module).and_then(Value::as_object_mut);
    let entry = entry.ok_or_else(|| SourceEditError::NoSource(module.to_owned()))?;
    set(entry, "approved", (!approved.is_empty()).then(|| json!(approved)));
    set(entry, "pin", pin.map(|pin| json!(pin)));
    Ok(yaml::to_string(&document))
}

fn set(entry: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(entry.insert(field.to_owned(), value)),
        None => drop(entry.remove(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fields_of_the_source_change() {
        let digest = ImageDigest::parse(&format!("sha256:{}", "a".repeat(64))).unwrap();
        let text = "# ours\none: {repository: r.example.com/one, version: 1.x}\ntwo: {repository: r.example.com/two, version: b}\n";
        let edit = |text: &str, deed| edited(text, "one", deed, Some(&digest)).unwrap();
        assert_eq!(edit(text, Deed::Resume), text);
        assert_eq!(edit(text, Deed::TakeBack), text);
        let pinned = edit(text, Deed::Pin);
        let sources = source::parse(&pinned).unwrap();
        let pins: Vec<_> = sources.values().map(|source| source.pin.clone()).collect();
        assert_eq!(pins, [Some(digest.clone()), None]);
        let approved = edit(&pinned, Deed::Approve);
        assert_eq!(
            source::parse(&approved).unwrap().values().next().unwrap().approved,
            [digest.clone()].into()
        );
        let back = edit(&edit(&approved, Deed::TakeBack), Deed::Resume);
        assert_eq!(source::parse(&back), source::parse(text));
    }

    #[test]
    fn a_module_without_a_source_and_a_broken_text_are_told() {
        let error = |text| edited(text, "one", Deed::Resume, None).unwrap_err().to_string();
        assert_eq!(error(""), "'one' has no source in moduleSources");
        assert!(error("one: {").starts_with("moduleSources of the ConfigMap cannot be read"));
    }
}
