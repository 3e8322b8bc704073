//! The output of batch executables for `hook config`: each document in the corpus with the hooks that are found in it,
//! or the error for its author.
//!
//! `UPDATE=1 cargo test --test batch_hooks` writes the outcomes anew.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use addon_core::failure::Failure;
use fs_err as fs;
use hooks::batch::{Answer, Verdict, weigh};
use names::{HookId, HookName, ModuleName, Owner};

fn documents(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/batch-hooks");
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).and_then(Iterator::collect);
    let mut paths: Vec<_> = entries.unwrap().iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

fn file() -> HookId {
    HookId {
        owner: Owner::Module(ModuleName::parse("web").unwrap()),
        name: HookName::parse("hooks/batch").unwrap(),
    }
}

fn weighed(config: &[u8], list: &str) -> Result<Verdict, Failure> {
    let [config, list] = [config, list.as_bytes()].map(|printed| Answer::Printed(printed.to_vec()));
    weigh(&file(), &config, &list)
}

fn outcome(printed: &[u8]) -> String {
    match weighed(printed, "Found 3 items:\n") {
        Ok(Verdict::Several(listed)) => {
            let mut text = String::new();
            for hook in listed.hooks {
                let config = serde_json::to_string_pretty(&hook.config).unwrap();
                writeln!(text, "{} by {}: {config}", hook.name, hook.call.arguments().join(" ")).unwrap();
            }
            text
        }
        Ok(single @ Verdict::Single { .. }) => unreachable!("it lists its hooks: {single:?}"),
        Err(failure) => {
            let said = failure.report.split_once("; it printed ");
            let report = said.map_or(failure.report.as_str(), |(report, _)| report);
            assert!(report.starts_with("hook 'hooks/batch' of module 'web': "), "{report}");
            assert!(failure.hints.iter().any(|hint| !hint.is_empty()), "{report}");
            format!("{report}\nhint: {}\n", failure.hints.join("; "))
        }
    }
}

#[test]
fn answers_are_understood_or_refused_with_their_place() {
    let files = documents("in");
    let mut wrong = String::new();
    for path in &files {
        let now = outcome(&fs::read(path).unwrap());
        let expected = path.with_extension("outcome");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected, &now).unwrap();
        }
        if fs::read_to_string(&expected).ok().as_ref() != Some(&now) {
            writeln!(wrong, "{}:\n{now}", path.display()).unwrap();
        }
    }
    for path in documents("outcome") {
        if !path.with_extension("in").exists() {
            writeln!(wrong, "{}: an outcome of nothing", path.display()).unwrap();
        }
    }
    assert_eq!(wrong, "", "outcomes differ; UPDATE=1 writes them anew");
    assert!(files.len() >= 50, "documents were lost");
}

#[test]
fn what_lists_no_hooks_is_a_hook_itself_unless_it_tells_of_some() {
    for path in documents("in") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let verdict = weighed(&fs::read(&path).unwrap(), "0 - a");
        let tells = name.starts_with("good-");
        match verdict {
            Ok(Verdict::Single { remark }) => assert!(!tells && remark.is_none(), "{name}"),
            Ok(Verdict::Several(hooks)) => assert!(hooks.hooks.is_empty(), "{name}"),
            Err(failure) => assert!(
                failure.report.contains("and of none with `hook list`"),
                "{name}: {failure}"
            ),
        }
    }
}

#[test]
fn an_executable_that_gives_no_answer_is_a_hook_itself() {
    let list = Answer::Printed(b"Found 1 items:".to_vec());
    for answer in [
        Answer::None("exit status 3".to_owned()),
        Answer::Late("too slow".to_owned()),
    ] {
        let verdict = weigh(&file(), &answer, &Answer::None("exit status 3".to_owned())).unwrap();
        assert!(matches!(verdict, Verdict::Single { remark: Some(_) }), "{verdict:?}");
        let failure = weigh(&file(), &answer, &list).unwrap_err();
        assert!(
            failure
                .report
                .contains("getting its configuration with `hook config` failed: "),
            "{failure}"
        );
    }
}
