//! The schemas of simulated modules, and the values that they accept: computed here, and not by the core.
//!
//! Must never ask the core whether a value fits.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use values_schema::schema::{Files, Schemas};

use crate::flat::{self, Flat};
use crate::setup::{ModuleSpec, key_of};

/// The key that must have no value other than zero in any schema.
pub const WRONG: &str = "wrong";

/// The schemas of a module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchemaSpec {
    /// The keys whose values must not be larger than `most`.
    pub bounded: Vec<String>,
    /// The limit of `bounded`.
    pub most: i64,
    /// The defaults in the schema of the section.
    pub defaults: Flat,
    /// The defaults in the schema of the effective values.
    pub late_defaults: Flat,
    /// The key that only helm requires.
    pub for_helm: Option<String>,
    /// Whether the limit of `bounded` keys is a CEL rule, which a job checks.
    pub ruled: bool,
}

impl SchemaSpec {
    /// The schemas as the directories have them.
    pub fn load(&self) -> Schemas {
        let mut properties = json!({ WRONG: {"type": "integer", "maximum": 0} });
        let mut rules = Vec::new();
        for key in &self.bounded {
            properties[key] = json!({"type": "integer"});
            if self.ruled {
                let most = self.most;
                let expression = format!("!has(self.{key}) || self.{key} <= {most}");
                rules.push(json!({"expression": expression, "message": format!("{key} is more than {most}")}));
            } else {
                properties[key]["maximum"] = json!(self.most);
            }
        }
        for (key, value) in &self.defaults {
            properties[key]["type"] = json!("integer");
            properties[key]["default"] = json!(value);
        }
        let config = json!({
            "type": "object",
            "additionalProperties": true,
            "properties": properties,
            "x-deckhouse-validations": rules,
        });
        let late = self.late_defaults.iter();
        let late = late.map(|(key, value)| (key.clone(), json!({"type": "integer", "default": value})));
        let mut values = json!({
            "type": "object",
            "additionalProperties": true,
            "x-extend": {"schema": "config-values.yaml"},
            "properties": late.collect::<serde_json::Map<String, Value>>(),
        });
        if let Some(key) = &self.for_helm {
            values["x-required-for-helm"] = json!([key]);
        }
        let mut files = Files::default();
        files.insert("openapi/config-values.yaml", config.to_string());
        files.insert("openapi/values.yaml", values.to_string());
        Schemas::load(&files, Some("openapi/config-values.yaml"), Some("openapi/values.yaml"))
            .expect("schemas of simulated modules are sound")
    }

    /// Whether these values keep to the schemas.
    pub fn fits(&self, values: &Flat) -> bool {
        let small = |key: &String| values.get(key).is_none_or(|value| *value <= self.most);
        self.bounded.iter().all(small) && values.get(WRONG).is_none_or(|value| *value <= 0)
    }
}

/// The values of files and of a section merged, with the defaults of the schemas.
pub fn layered(module: &ModuleSpec, section: Flat) -> Flat {
    let mut below = module.values.clone();
    let add = |defaults: &Flat, below: &mut Flat| {
        for (key, value) in defaults {
            below.entry(key.clone()).or_insert(*value);
        }
    };
    if let Some(schema) = &module.schema {
        add(&schema.defaults, &mut below);
    }
    below.extend(section);
    if let Some(schema) = &module.schema {
        add(&schema.late_defaults, &mut below);
    }
    below
}

/// Whether the text under this key of the `ConfigMap` can be used with these modules.
pub fn is_sound<'a>(modules: impl IntoIterator<Item = &'a ModuleSpec>, key: &str, text: &str) -> bool {
    if !flat::is_sound(key, text) {
        return false;
    }
    let module = modules.into_iter().find(|module| key_of(&module.name) == key);
    let section = flat::read(text, false).unwrap_or_default();
    module
        .and_then(|module| module.schema.as_ref())
        .is_none_or(|schema| schema.fits(&section))
}

#[cfg(test)]
mod tests {
    use values_schema::schema::Kind;

    use super::*;

    fn flat(entries: &[(&str, i64)]) -> Flat {
        entries.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
    }

    fn spec() -> SchemaSpec {
        SchemaSpec {
            bounded: vec!["k0".to_owned(), "k1".to_owned()],
            most: 5,
            defaults: flat(&[("k1", 3)]),
            late_defaults: flat(&[("s0", 1)]),
            for_helm: Some("k2".to_owned()),
            ruled: false,
        }
    }

    #[test]
    fn the_core_reads_of_it_what_it_says() {
        for ruled in [false, true] {
            the_core_reads(&SchemaSpec { ruled, ..spec() });
        }
    }

    fn the_core_reads(spec: &SchemaSpec) {
        let schemas = spec.load();
        assert_eq!(schemas.has_rules(Kind::Values), spec.ruled);
        for (section, fits) in [
            (flat(&[("k0", 5), ("c0", 9)]), true),
            (flat(&[("k0", 6)]), false),
            (flat(&[(WRONG, 1)]), false),
            (Flat::new(), true),
        ] {
            let checked = schemas.check(Kind::Config, "one", &json!(section), None);
            assert_eq!(checked.is_ok(), fits, "{section:?}");
            assert_eq!(spec.fits(&section), fits, "{section:?}");
        }
        let for_helm = |values: Value| schemas.check(Kind::Helm, "one", &values, None).is_ok();
        assert!(for_helm(json!({"k2": 1, "h0": 2})));
        assert!(!for_helm(json!({"k0": 1})));
        assert_eq!(schemas.defaults(Kind::Config), json!({"k1": 3}));
    }

    #[test]
    fn defaults_lie_between_the_layers() {
        let module = ModuleSpec {
            values: flat(&[("k0", 1)]),
            schema: Some(spec()),
            ..ModuleSpec::default()
        };
        assert_eq!(layered(&module, Flat::new()), flat(&[("k0", 1), ("k1", 3), ("s0", 1)]));
        let section = flat(&[("k1", 4), ("s0", 2)]);
        assert_eq!(layered(&module, section), flat(&[("k0", 1), ("k1", 4), ("s0", 2)]));
    }
}
