//! Checks of new values against their schemas, before they are applied.
//!
//! Must never check values that are applied already, except before helm gets them.

use std::sync::Arc;

use names::Owner;
use serde_json::{Map, Value};
use thiserror::Error;
use values_schema::schema::{Invalid, Kind, Schemas};

use super::merge::merge;
use super::section::{ConfigDocument, Entry};
use super::vetted::{Asking, Unvetted, Vetted, Vetting};
use super::{Attempt, Layers, Reason, Rejected, Store};

/// The error for values that break the schema of the values for helm.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("check helm values: {0}")]
pub struct NotForHelm(pub(super) String);

impl Store {
    /// Takes over the schemas of an owner, with their defaults.
    pub fn set_schemas(&mut self, owner: &Owner, schemas: Schemas) -> Result<bool, Rejected> {
        self.set_layer(owner, Attempt::Files, |layers, _| {
            layers.schemas = Arc::new(schemas);
            Ok(())
        })
    }

    /// A section of the ConfigMap with the defaults of its schema.
    pub fn with_defaults(&self, owner: &Owner, section: &Value) -> Value {
        let defaults = self.layers(owner).schemas.defaults(Kind::Config);
        merge(defaults, section).unwrap_or_else(|_| section.clone())
    }

    /// The invalid sections of a ConfigMap. Keys that are known to be valid are not checked.
    pub fn unfit(
        &self,
        document: &ConfigDocument,
        is_known: impl Fn(&str) -> bool,
        vetted: &Vetted,
    ) -> Result<Vec<Rejected>, Unvetted> {
        let mut asking = Asking::new(vetted);
        let modules = document.sections.iter();
        let modules = modules.map(|(name, section)| (Owner::Module(name.clone()), &section.values));
        let of_owner = |(owner, entry): (Owner, &Entry<Value>)| {
            let section = entry.good().filter(|_| !is_known(&owner.values_key()))?;
            self.vet_section(&owner, section, &mut asking).err()
        };
        let global = (Owner::Global, &document.global);
        let unfit = std::iter::once(global).chain(modules).filter_map(of_owner).collect();
        asking.decided(unfit)
    }

    /// Checks a section of the ConfigMap against its schema and the layers around it. An empty section is always valid
    /// for the schema.
    fn vet_section(&self, owner: &Owner, section: &Value, asking: &mut Asking<'_>) -> Result<(), Rejected> {
        let layers = self.layers(owner);
        let rejected = |reason| Rejected {
            owner: owner.clone(),
            attempt: Attempt::ConfigSection,
            reason,
        };
        if !section.as_object().is_some_and(Map::is_empty) {
            let checked = layers.check_config(owner, section, asking).map_err(rejected)?;
            checked.map_err(|invalid| rejected(Reason::Breaks(invalid.listed(None))))?;
        }
        let sum = layers.sum(&owner.values_key(), Some(section), &layers.patches);
        sum.map(drop).map_err(rejected)
    }

    /// Checks the values for helm against their schema, if there is one.
    pub fn vetting_for_helm(&self, owner: &Owner) -> Option<Vetting> {
        let layers = self.owners.get(owner)?;
        layers.vetting(owner, Kind::Helm, Arc::clone(&layers.effective), None)
    }
}

impl Layers {
    /// The check of a section against a schema, if there is one.
    fn vetting(&self, owner: &Owner, kind: Kind, section: Arc<Value>, before: Option<&Arc<Value>>) -> Option<Vetting> {
        self.schemas.has(kind).then(|| Vetting {
            owner: owner.clone(),
            kind,
            schemas: Arc::clone(&self.schemas),
            renewals: self.renewals,
            section,
            before: before.filter(|_| self.schemas.looks_back(kind)).cloned(),
        })
    }

    /// Checks a section with the defaults of its schema, and without the values of files.
    fn check_config(
        &self,
        owner: &Owner,
        section: &Value,
        asking: &mut Asking<'_>,
    ) -> Result<Result<(), Invalid>, Reason> {
        if !self.schemas.has(Kind::Config) {
            return Ok(Ok(()));
        }
        let whole = merge(self.schemas.defaults(Kind::Config), section)?;
        let vetting = self.vetting(owner, Kind::Config, Arc::new(whole), self.config.as_ref());
        Ok(vetting.map_or(Ok(()), |vetting| asking.ask(vetting)))
    }

    /// Checks the section that a hook's patch would make.
    pub(super) fn vet_patched_config(
        &self,
        owner: &Owner,
        section: &Value,
        asking: &mut Asking<'_>,
    ) -> Result<(), Reason> {
        self.check_config(owner, section, asking)?
            .map_err(|invalid| breaks(owner, "config values", &invalid))
    }

    /// Checks the effective values that a hook's patch would make.
    pub(super) fn vet_patched_values(
        &self,
        owner: &Owner,
        effective: &Arc<Value>,
        asking: &mut Asking<'_>,
    ) -> Result<(), Reason> {
        let vetting = self.vetting(owner, Kind::Values, Arc::clone(effective), Some(&self.effective));
        let checked = vetting.map_or(Ok(()), |vetting| asking.ask(vetting));
        checked.map_err(|invalid| breaks(owner, "values", &invalid))
    }
}

/// The error for invalid values, in one of the original's two forms.
fn breaks(owner: &Owner, file: &str, invalid: &Invalid) -> Reason {
    Reason::Breaks(match owner {
        Owner::Global => format!("cannot apply {file} patch for global values: {}", invalid.listed(None)),
        Owner::Module(_) => {
            let attempt = format!("cannot apply {file} patch for module values");
            invalid.listed(Some(&attempt))
        }
    })
}

#[cfg(test)]
mod tests;
