//! The output of hooks for `--config`: each document of the corpus with the resulting configuration, or the error for
//! its author.
//!
//! `UPDATE=1 cargo test --test hook_configs` writes the outcomes anew.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use addon_core::hook::config::HookKind;
use addon_core::hook::in_text::HookInText;
use fs_err as fs;
use hooks::config::configuration;
use names::{HookId, HookName, ModuleName, Owner};

fn documents(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/hook-configs")
        .join(folder);
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).and_then(Iterator::collect);
    let mut paths: Vec<_> = entries.unwrap().iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

fn outcome(hook: &HookId, kind: HookKind, printed: &[u8]) -> String {
    match configuration(hook, kind, printed) {
        Ok(config) => format!("accepted: {}\n", serde_json::to_string_pretty(&config).unwrap()),
        Err(failure) => {
            let (report, _) = failure.report.split_once("; it printed ").unwrap();
            assert!(report.starts_with(&HookInText::of(hook, kind).to_string()), "{report}");
            assert!(failure.hints.iter().any(|hint| !hint.is_empty()), "{report}");
            format!("{report}\nhint: {}\n", failure.hints.join("; "))
        }
    }
}

fn check(folder: &str, owner: Owner, kind: HookKind) -> usize {
    let name = HookName::parse("hook.sh").unwrap();
    let hook = HookId { owner, name };
    let files = documents(folder, "in");
    let mut wrong = String::new();
    for path in &files {
        let now = outcome(&hook, kind, &fs::read(path).unwrap());
        let expected = path.with_extension("outcome");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected, &now).unwrap();
        }
        if fs::read_to_string(&expected).ok().as_ref() != Some(&now) {
            writeln!(wrong, "{}:\n{now}", path.display()).unwrap();
        }
    }
    for path in documents(folder, "outcome") {
        if !path.with_extension("in").exists() {
            writeln!(wrong, "{}: an outcome of nothing", path.display()).unwrap();
        }
    }
    assert_eq!(wrong, "", "outcomes differ; UPDATE=1 writes them anew");
    files.len()
}

#[test]
fn hooks_alone() {
    assert!(
        check("alone", Owner::Global, HookKind::Standalone) >= 150,
        "documents were lost"
    );
}

#[test]
fn global_hooks() {
    assert!(
        check("global", Owner::Global, HookKind::Global) >= 5,
        "documents were lost"
    );
}

#[test]
fn hooks_of_modules() {
    let owner = Owner::Module(ModuleName::parse("web").unwrap());
    assert!(
        check("of-a-module", owner, HookKind::Module) >= 5,
        "documents were lost"
    );
}
