//! Patches of values: a hook's patch is applied as a whole or not at all, and only to the hook's own section. No error
//! shows a value from it.

use std::error::Error;

use addon_core::values::Store;
use addon_core::values::patch::{Patch, PatchFile};
use addon_core::values::section::to_text;
use helm_yaml::yaml;
use names::{ModuleName, Owner};
use serde_json::{Value, json};

/// Separates the parts of a text: first the values of files, then for each run a values patch and a config patch.
const NEXT: &str = "\n---\n";
/// Further runs would reach no new state.
const MOST_RUNS: usize = 4;
/// A value that stands in for a password. An error may contain it only as part of a path or in the place of an
/// operation's name.
const SECRET: &str = "s3cr3t";

/// Hooks of the module `one`, and after them global hooks, write the patches of the text.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split(NEXT);
    let files = parts.next().and_then(|text| serde_json::from_str(text).ok());
    let files: Value = files.unwrap_or_else(|| json!({}));
    let rest: Vec<&str> = parts.take(2 * MOST_RUNS).collect();
    let module = Owner::Module(ModuleName::parse("one").expect("a name"));
    for owner in [module, Owner::Global] {
        let mut store = Store::new();
        if store.set_static(&owner, files.clone()).is_err() {
            continue;
        }
        for run in rest.chunks(2) {
            let values = read(run[0], PatchFile::Values);
            let config = run
                .get(1)
                .map_or_else(|| Some(Patch::default()), |text| read(text, PatchFile::Config));
            if let (Some(values), Some(config)) = (values, config) {
                commit(&mut store, &owner, &values, &config, run);
            }
        }
    }
}

fn read(text: &str, file: PatchFile) -> Option<Patch> {
    match Patch::parse(text, file) {
        Ok(patch) => {
            let kept = serde_json::to_string(&patch).expect("a patch can be kept");
            assert_eq!(Patch::parse(&kept, file).ok(), Some(patch.clone()), "{kept}");
            Some(patch)
        }
        Err(error) => {
            discreet(&error, &[text]);
            None
        }
    }
}

/// One run of a hook, with all invariants before and after it.
fn commit(store: &mut Store, owner: &Owner, values: &Patch, config: &Patch, texts: &[&str]) {
    let before = store.clone();
    let proposed = store.propose(owner, values, config);
    assert!(*store == before, "a proposal has left traces");
    let proposal = match proposed {
        Ok(proposal) => proposal,
        Err(error) => return discreet(&error, texts),
    };
    let same = store.propose(owner, values, config);
    let change = store.commit(proposal).expect("nothing has happened meanwhile");
    let effective = store.effective(owner);
    assert_eq!(change.values_changed, effective != before.effective(owner));
    let is_new = before.version(owner) != store.version(owner);
    assert!(
        is_new || !change.values_changed,
        "the values changed and the version did not"
    );
    if let Ok(same) = same {
        assert_eq!(
            store.commit(same).is_err(),
            is_new,
            "a proposal on an outdated version is refused"
        );
    }
    let others = ["two", "three"].map(|name| Owner::Module(ModuleName::parse(name).expect("a name")));
    for other in others {
        assert_eq!(store.effective(&other), before.effective(&other), "{other}");
        assert_eq!(store.version(&other), before.version(&other), "{other}");
    }
    if let Some(section) = &change.config_section {
        let text = to_text(section);
        assert_eq!(yaml::from_str_v3(&text).as_ref(), Ok(&**section), "{text}");
    }
    remembered(store, owner);
}

/// The patches that the store remembers lead to the same values in another store, and they can be serialised.
fn remembered(store: &Store, owner: &Owner) {
    let patches = store.patches(owner);
    assert_eq!(patches.compacted_with(&patches), *patches, "compacting ends");
    let effective = store.effective(owner);
    let text = yaml::to_string(&effective);
    assert_eq!(yaml::from_str_v2_strict(&text).as_ref(), Ok(&*effective), "{text}");
    let mut again = store.clone();
    let section = again.config_section(owner).map(|section| Value::clone(&section));
    if section.is_some() {
        assert_eq!(
            again.set_config(owner, section),
            Ok(false),
            "the values are what the layers add up to"
        );
    }
}

/// Errors contain paths and operations, never values.
fn discreet(error: &dyn Error, texts: &[&str]) {
    let mut told = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        told += &error.to_string();
        next = error.source();
    }
    assert!(!told.is_empty());
    let is_value = texts.iter().all(|text| {
        let whole = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        whole.flatten().all(|item| !names(&item).contains(SECRET))
    });
    assert!(!is_value || !told.contains(SECRET), "{told}");
}

/// The parts of a patch that an error may show: paths and names of operations.
fn names(item: &Value) -> String {
    let of = |operation: &Value| format!("{} {}", operation["op"], operation["path"]);
    match item {
        Value::Array(items) => items.iter().map(of).collect(),
        single => of(single),
    }
}
