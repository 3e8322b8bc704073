//! The Dockerfile must describe the same image as image.yaml; these tests compare the two.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use image::definition::{Definition, Program};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn definition() -> Definition {
    Definition::read(&repository().join("image/image.yaml")).unwrap()
}

/// The instructions of the last stage, each joined into one line, without comments.
fn instructions() -> Vec<String> {
    let text = fs_err::read_to_string(repository().join("Dockerfile")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let all: Vec<String> = joined.lines().map(words).filter(|line| !line.is_empty()).collect();
    let last = all.iter().rposition(|line| line.starts_with("FROM ")).unwrap();
    all[last..].to_vec()
}

/// The single commands of all `RUN` instructions.
fn commands() -> Vec<String> {
    let runs = instructions()
        .into_iter()
        .filter_map(|line| Some(line.strip_prefix("RUN ")?.to_owned()));
    runs.flat_map(|run| run.split(" && ").map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The pairs of an instruction such as `ENV A=b C=d`. Values may be quoted.
fn pairs(instruction: &str) -> BTreeSet<(String, String)> {
    let lines = instructions();
    let line = lines.iter().find_map(|line| line.strip_prefix(instruction)).unwrap();
    let mut pairs = BTreeSet::new();
    let mut rest = line.trim();
    while let Some((name, value)) = rest.split_once('=') {
        let quoted = value.strip_prefix('"').and_then(|inner| inner.split_once('"'));
        let (value, left) = quoted.unwrap_or_else(|| value.split_once(' ').unwrap_or((value, "")));
        pairs.insert((name.to_owned(), value.to_owned()));
        rest = left.trim();
    }
    pairs
}

#[test]
fn the_same_packages_are_installed() {
    let commands = commands();
    let install = commands
        .iter()
        .find_map(|command| command.strip_prefix("apt-get install "))
        .unwrap();
    let packages: BTreeSet<&str> = install.split(' ').filter(|word| !word.starts_with('-')).collect();
    assert_eq!(packages, definition().packages());
}

#[test]
fn the_same_things_are_copied() {
    let definition = definition();
    let mut expected = BTreeSet::new();
    for layer in &definition.layers {
        expected.extend(
            layer
                .copies
                .iter()
                .map(|(place, source)| format!("COPY {} {place}", source.within(Path::new("")).display())),
        );
        expected.extend(layer.programs.iter().map(|(place, program)| {
            let name = match program {
                Program::Operator => "addon-operator",
                Program::Kubectl => "kubectl",
                Program::Helm3 | Program::Helm4 => "helm",
            };
            format!("COPY --from=build /programs/{name} {place}")
        }));
    }
    let copied: BTreeSet<String> = instructions()
        .into_iter()
        .filter(|line| line.starts_with("COPY "))
        .collect();
    assert_eq!(copied, expected);
}

#[test]
fn the_same_folders_are_made_where_the_base_has_none() {
    let layers = definition().layers;
    let folders = layers
        .iter()
        .flat_map(|layer| layer.folders.keys())
        .map(ToString::to_string);
    let expected: BTreeSet<String> = folders.filter(|folder| folder != "/tmp").collect();
    let commands = commands();
    let made = commands.iter().filter_map(|command| command.strip_prefix("mkdir "));
    let made: BTreeSet<String> = made.flat_map(|folders| folders.split(' ')).map(str::to_owned).collect();
    assert_eq!(made, expected);
}

#[test]
fn the_same_links_are_made_where_the_base_has_none() {
    let definition = definition();
    let base = definition
        .layers
        .iter()
        .find(|layer| !layer.packages.is_empty())
        .unwrap();
    let ours = definition.layers.iter().filter(|layer| layer.name != base.name);
    let expected: BTreeSet<String> = ours
        .flat_map(|layer| &layer.links)
        .map(|(place, target)| format!("ln -s {target} {place}"))
        .collect();
    let made: BTreeSet<String> = commands()
        .into_iter()
        .filter(|command| command.starts_with("ln "))
        .collect();
    assert_eq!(made, expected);
}

#[test]
fn it_is_run_the_same_way() {
    let run = definition().run;
    let mut expected: BTreeSet<(String, String)> = run.environment.into_iter().collect();
    // The base image sets the same PATH, so the Dockerfile does not repeat it.
    expected.retain(|(name, _)| name != "PATH");
    assert_eq!(pairs("ENV "), expected);
    assert_eq!(pairs("LABEL "), definition().labels.into_iter().collect());
    let lines = instructions();
    let entrypoint: Vec<String> = run.entrypoint.iter().map(|word| format!("\"{word}\"")).collect();
    for line in [
        format!("USER {}", run.user),
        format!("WORKDIR {}", run.directory),
        format!("ENTRYPOINT [{}]", entrypoint.join(", ")),
    ] {
        assert!(lines.contains(&line), "no '{line}' in {lines:#?}");
    }
    let (user, group) = run.user.split_once(':').unwrap();
    let commands = commands();
    for (begin, id) in [
        ("groupadd ", format!("--gid {group} ")),
        ("useradd ", format!("--uid {user} --gid {group} ")),
    ] {
        assert!(
            commands
                .iter()
                .any(|command| command.starts_with(begin) && command.contains(&id)),
            "{commands:#?}"
        );
    }
}

#[test]
fn bases_are_named_by_digest() {
    let text = fs_err::read_to_string(repository().join("Dockerfile")).unwrap();
    let bases: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert!(!bases.is_empty());
    for base in bases {
        let digest = base
            .split_once("@sha256:")
            .map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
        let whole =
            digest.is_some_and(|digest| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(whole, "{base}");
    }
}
