//! The page about hooks: its files must equal those of `examples/hooks`, and its outputs those of the commands.
//! `UPDATE=1 cargo test --test hooks_book` renews both.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use addon_core::hook::config::{HookConfig, HookKind};
use hooks::batch::{Answer, Verdict, weigh};
use names::{HookId, HookName, ModuleName, Owner};
use tempfile::TempDir;
use testbed::process;

const PAGE: &str = "docs/guides/hooks.md";
const FENCE: &str = "```";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder like a checkout, in which commands may leave files.
fn checkout() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for name in ["examples", "frameworks"] {
        symlink(root().join(name), folder.path().join(name)).expect("the folder can be written");
    }
    folder
}

/// The output of the command, both streams in the order of their writes.
fn printed(command: &str, folder: &Path) -> String {
    let mut bash = process::command("bash");
    bash.args(["-c", &format!("{command}\n")]).current_dir(folder);
    bash.env_remove("FRAMEWORK_DIR");
    let output = process::run(bash, None).expect("bash is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error, "", "{command}");
    String::from_utf8(output.stdout).expect("examples print text")
}

/// The page with its blocks renewed.
fn renewed(page: &str, folder: &Path) -> String {
    let mut lines = page.lines();
    let mut out = Vec::new();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let shown = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        if let Some(file) = shown {
            let fence = lines.next().expect("a block follows the name of its file");
            assert!(fence.starts_with(FENCE) && fence.len() > FENCE.len(), "{file}: {fence}");
            lines.by_ref().find(|line| *line == FENCE).expect("the block ends");
            let text = fs_err::read_to_string(root().join(file)).expect("the file of a block is there");
            out.extend([fence.to_owned(), text.trim_end().to_owned(), FENCE.to_owned()]);
        } else if line == "```console" {
            let block = lines.by_ref().take_while(|line| *line != FENCE);
            for command in block.filter_map(|line| line.strip_prefix("$ ")) {
                out.push(format!("$ {command}"));
                out.extend(printed(command, folder).lines().map(str::to_owned));
            }
            out.push(FENCE.to_owned());
        }
    }
    out.join("\n") + "\n"
}

#[test]
fn the_page_shows_the_files_and_what_the_commands_print() {
    let folder = checkout();
    let page = fs_err::read_to_string(root().join(PAGE)).unwrap();
    let renewed = renewed(&page, folder.path());
    if std::env::var_os("UPDATE").is_some() {
        return fs_err::write(root().join(PAGE), renewed).unwrap();
    }
    for (number, (is, should)) in page.lines().zip(renewed.lines()).enumerate() {
        assert_eq!(is, should, "{PAGE}:{}", number + 1);
    }
    assert_eq!(page, renewed);
}

/// All hooks of the examples.
fn hooks() -> Vec<PathBuf> {
    let entries = fs_err::read_dir(root().join("examples/hooks")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "sh" || extension == "py")
        })
        .collect()
}

#[test]
fn each_example_is_shown_and_says_what_it_wants() {
    let page = fs_err::read_to_string(root().join(PAGE)).unwrap();
    assert!(hooks().len() >= 7);
    for path in hooks() {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        assert!(page.contains(&format!("<!-- {name} -->")), "{name} is not shown");
        let mut command = process::command(&path);
        command
            .arg("--config")
            .env("FRAMEWORK_DIR", root().join("frameworks/shell"));
        let output = process::run(command, None).unwrap();
        let config = HookConfig::parse(&String::from_utf8(output.stdout).unwrap(), HookKind::Module);
        assert!(config.is_ok(), "{name}: {:?}", config.err());
    }
}

#[test]
fn the_example_of_several_hooks_is_shown_and_answers_as_one() {
    let site = root().join("examples/hooks/site");
    let answer = |word: &str| {
        let mut command = process::command(&site);
        command.args(["hook", word]);
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{word}");
        Answer::Printed(output.stdout)
    };
    let file = HookId {
        owner: Owner::Module(ModuleName::parse("site").unwrap()),
        name: HookName::parse("hooks/site").unwrap(),
    };
    let verdict = weigh(&file, &answer("config"), &answer("list")).unwrap();
    let Verdict::Several(hooks) = verdict else {
        panic!("a hook itself: {verdict:?}");
    };
    let names: Vec<_> = hooks.hooks.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["hooks/site:colour:0", "hooks/site:pods:1"]);
    let page = fs_err::read_to_string(root().join(PAGE)).unwrap();
    assert!(page.contains("<!-- examples/hooks/site -->"));
}

/// The output of a hook that is run with `examples/hooks/try`.
fn tried(folder: &TempDir, hook: &str, contexts: &str, values: &str) -> String {
    fs_err::write(folder.path().join("contexts"), contexts).unwrap();
    fs_err::write(folder.path().join("values"), values).unwrap();
    printed(
        &format!("examples/hooks/try examples/hooks/{hook} contexts values || true"),
        folder.path(),
    )
}

#[test]
fn a_password_is_made_once() {
    let folder = checkout();
    let context = r#"[{"binding": "beforeHelm", "snapshots": {}}]"#;
    let first = tried(
        &folder,
        "database-password.sh",
        context,
        r#"{"global": {}, "database": {}}"#,
    );
    let password = first
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"value\": \""))
        .expect("a patch");
    assert_eq!(password.trim_end_matches('"').len(), 32, "{first}");
    let again = tried(
        &folder,
        "database-password.sh",
        context,
        r#"{"global": {}, "database": {"password": "known"}}"#,
    );
    assert_eq!(again, "--- exit status 0\n");
}

#[test]
fn reviews_are_answered_both_ways() {
    let folder = checkout();
    let pod = |image: &str| {
        format!(
            r#"[{{"binding": "no-latest.hooks.example.com", "type": "Validating",
                 "review": {{"request": {{"object": {{"spec": {{"containers": [{{"image": "{image}"}}]}}}}}}}}}}]"#
        )
    };
    let rows = [
        ("nginx:1.27", true),
        ("registry:5000/nginx:1.27", true),
        ("nginx@sha256:0000", true),
        ("nginx", false),
        ("nginx:latest", false),
        ("registry:5000/nginx", false),
    ];
    for (image, allowed) in rows {
        let answer = tried(&folder, "no-latest.sh", &pod(image), "{}");
        assert_eq!(answer.contains("\"allowed\": true"), allowed, "{image}: {answer}");
        assert_eq!(answer.contains("no fixed tag"), !allowed, "{image}: {answer}");
    }
    let namespace = r#"[{"binding": "default-team.hooks.example.com", "type": "Mutating", "review": {"request": {
        "object": {"metadata": {"name": "n", "labels": {"team": "red"}}}}}}]"#;
    let answer = tried(&folder, "default_team.py", namespace, "{}");
    assert!(answer.contains("{\"allowed\": true}\n"), "{answer}");
}

#[test]
fn trying_a_hook_tells_its_exit_status() {
    let folder = checkout();
    let hook = folder.path().join("fails.sh");
    fs_err::write(&hook, "#!/usr/bin/env bash\necho said\nexit 3\n").unwrap();
    let text = printed(
        "chmod +x fails.sh; examples/hooks/try fails.sh /dev/null; echo $?",
        folder.path(),
    );
    assert_eq!(text, "said\n--- exit status 3\n3\n");
}
