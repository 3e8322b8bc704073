//! The judgement of a ConfigMap's data: keys that cannot be used, and keys of unknown modules.
//!
//! Used for the ConfigMap in the cluster, for an edit before it is accepted, and for a file. Must never apply anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use names::ModuleName;

use super::Store;
use super::section::{ConfigDocument, SectionProblem};
use super::vetted::Vetted;

/// The mistakes and warnings about the keys of the ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Keys of the ConfigMap that cannot be used.
    pub problems: Vec<SectionProblem>,
    /// Keys of the ConfigMap that have no effect.
    pub idle: Vec<IdleKey>,
}

/// A key of an unknown module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleKey {
    /// The key of the ConfigMap.
    pub key: String,
    /// The module that the key's name points to.
    pub module: ModuleName,
    /// The key of a known module that was probably meant.
    pub meant: Option<String>,
}

impl fmt::Display for IdleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, module, meant } = self;
        write!(f, "key '{key}': there is no module '{module}', so it says nothing")?;
        match meant {
            Some(meant) => write!(f, "; is '{meant}' meant?"),
            None => Ok(()),
        }
    }
}

impl Store {
    /// Judges the data of a ConfigMap by the schemas and values of this store. Texts that are known to be good are not
    /// checked against schemas again. Without a list of modules, no module counts as unknown.
    pub fn judge(
        &self,
        data: &BTreeMap<String, String>,
        modules: Option<&BTreeSet<ModuleName>>,
        known: &BTreeMap<String, String>,
    ) -> Judgement {
        let document = ConfigDocument::parse(data);
        let is_known = |key: &str| known.contains_key(key) && known.get(key) == data.get(key);
        let unfit = Vetted::at_once(|vetted| self.unfit(&document, is_known, vetted));
        let unfit = unfit.into_iter().map(|rejected| SectionProblem {
            key: rejected.owner.values_key(),
            message: rejected.reason.to_string(),
            owner: Some(rejected.owner),
        });
        let named = document.sections.keys();
        let missing = named.filter(|name| modules.is_some_and(|modules| !modules.contains(*name)));
        let idle = missing.flat_map(|name| {
            let meant = nearest(name, modules.into_iter().flatten());
            keys_of(name).into_iter().enumerate().map(move |(at, key)| IdleKey {
                key,
                module: name.clone(),
                meant: meant.map(|meant| keys_of(meant)[at].clone()),
            })
        });
        Judgement {
            idle: idle.filter(|idle| data.contains_key(&idle.key)).collect(),
            problems: document.problems.iter().cloned().chain(unfit).collect(),
        }
    }
}

fn keys_of(module: &ModuleName) -> [String; 3] {
    [module.values_key(), module.enabled_key(), module.maintenance_key()]
}

/// The module whose name is nearest to the written one, if the two differ only by a few letters.
fn nearest<'a>(written: &ModuleName, known: impl Iterator<Item = &'a ModuleName>) -> Option<&'a ModuleName> {
    let most = 1 + written.as_str().len() / 6;
    let distances = known.map(|name| (strsim::osa_distance(written.as_str(), name.as_str()), name));
    let near = distances.filter(|(distance, _)| *distance <= most);
    near.min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use names::Owner;
    use serde_json::json;
    use values_schema::schema::{Files, Schemas};

    use super::*;

    fn name(text: &str) -> ModuleName {
        ModuleName::parse(text).unwrap()
    }

    /// A store in which `global` and the module `one` have a size.
    fn store() -> Store {
        let mut files = Files::default();
        files.insert("c", "properties: {size: {type: integer}}");
        let mut store = Store::new();
        for owner in [Owner::Global, name("one").into()] {
            let schemas = Schemas::load(&files, Some("c"), None).unwrap();
            store.set_schemas(&owner, schemas).unwrap();
        }
        store
    }

    fn data(keys: &[(&str, &str)]) -> BTreeMap<String, String> {
        let texts = keys.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        texts.collect()
    }

    #[test]
    fn each_key_is_judged_for_itself() {
        let modules = BTreeSet::from([name("one"), name("two")]);
        let data = data(&[
            ("global", "size: big"),
            ("one", "size: 5"),
            ("oneEnabled", "yes"),
            ("Two", "{}"),
            ("three", "[]"),
            ("threeEnabled", "true"),
            ("tow", "{}"),
            ("towEnabled", "true"),
        ]);
        let judged = store().judge(&data, Some(&modules), &BTreeMap::new());
        let told: Vec<_> = judged.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "key 'Two': bad module name 'Two': should be camelCased",
                "key 'oneEnabled' of module 'one': module enabled key 'oneEnabled' should have a boolean value, got 'yes'",
                "key 'global': 1 error occurred:\n\t* global.size in body must be of type integer: \"string\"",
            ]
        );
        let idle: Vec<_> = judged.idle.iter().map(ToString::to_string).collect();
        assert_eq!(
            idle,
            [
                "key 'three': there is no module 'three', so it says nothing",
                "key 'threeEnabled': there is no module 'three', so it says nothing",
                "key 'tow': there is no module 'tow', so it says nothing; is 'two' meant?",
                "key 'towEnabled': there is no module 'tow', so it says nothing; is 'twoEnabled' meant?",
            ]
        );
        assert!(store().judge(&data, None, &BTreeMap::new()).idle.is_empty());
    }

    #[test]
    fn what_is_known_to_be_good_is_not_looked_at_again() {
        let (bad, other) = (data(&[("one", "size: big")]), data(&[("one", "size: small")]));
        let count = |known| store().judge(&bad, None, known).problems.len();
        assert_eq!((count(&bad), count(&other), count(&BTreeMap::new())), (0, 1, 1));
    }

    #[test]
    fn a_section_that_could_never_be_laid_over_the_files_is_a_problem_too() {
        let nested = (0..40).fold(json!(1), |inner, _| json!({ "a": inner }));
        let mut store = Store::new();
        let section = data(&[("two", &nested.to_string())]);
        assert_eq!(store.judge(&section, None, &BTreeMap::new()), Judgement::default());
        store.set_static(&name("two").into(), nested).unwrap();
        let problems = store.judge(&section, None, &BTreeMap::new()).problems;
        assert!(
            problems.len() == 1 && problems[0].message.starts_with("values are nested deeper"),
            "{problems:?}"
        );
    }
}
