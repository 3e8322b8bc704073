//! Every document under `tests/corpus/metrics` has the outcome that stands beside it: a page, or the error that its
//! author gets.
//!
//! `UPDATE=1` writes the outcomes anew.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]
#![expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use addon_core::failure::Failure;
use addon_core::metric::{self, Store, exposition};
use names::{HookId, HookName, Owner};

fn outcome(file: &[u8]) -> String {
    let Ok(text) = str::from_utf8(file) else {
        return "refused before it is read: no text\n".to_owned();
    };
    let parsed = match metric::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let Failure { report, hints, .. } = error.into();
            assert!(report.contains("line ") && !hints.is_empty(), "{report}");
            return format!("refused: {report}\nhint: {}\n", hints.join("; "));
        }
    };
    let mut told = String::new();
    for dropped in &parsed.dropped {
        writeln!(told, "warning: {dropped}").unwrap();
    }
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("hook.sh").unwrap(),
    };
    let mut store = Store::default();
    let applied = store.apply(&hook, parsed.operations);
    for lost in &applied.lost {
        writeln!(told, "warning: {lost}").unwrap();
    }
    for alike in &applied.alike {
        writeln!(told, "warning: {alike}").unwrap();
    }
    told + "page:\n" + &exposition::text(&store)
}

fn documents(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/metrics");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

#[test]
fn every_document_has_its_outcome() {
    let files = documents("in");
    let mut wrong = String::new();
    for path in &files {
        let now = outcome(&std::fs::read(path).unwrap());
        let expected = path.with_extension("outcome");
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(&expected, &now).unwrap();
        }
        if std::fs::read_to_string(&expected).ok().as_ref() != Some(&now) {
            writeln!(wrong, "{}:\n{now}", path.display()).unwrap();
        }
    }
    for path in documents("outcome") {
        if !path.with_extension("in").exists() {
            writeln!(wrong, "{}: an outcome of nothing", path.display()).unwrap();
        }
    }
    assert_eq!(wrong, "", "outcomes differ; UPDATE=1 writes them anew");
    assert!(files.len() >= 80, "documents were lost: {}", files.len());
}
