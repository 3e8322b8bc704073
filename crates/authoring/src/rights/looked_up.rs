//! Finds the objects that templates look up in the cluster. A rendering without a cluster finds none of them, so the
//! calls are read from the templates' text. Helm needs the right, because it fails at an object that it may not read.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::kinds::{Kinds, Resource};
use super::rules::{Rights, Scope, Subject};
use super::watched::place_of;

const CALL: &str = "lookup";

/// An argument of a template function.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// A literal text.
    Said(String),
    /// An expression whose value is only known when the chart is rendered.
    Computed(String),
}

/// A call of the template function `lookup`.
#[derive(Debug, PartialEq, Eq)]
struct LookUp {
    api_version: Word,
    kind: Word,
    namespace: Word,
    name: Word,
}

/// Adds the rights for objects that the templates of a chart look up. Returns the files with calls that cannot be
/// resolved, and those calls.
pub(super) fn collect(
    chart: &Path,
    kinds: &Kinds,
    release_namespace: &str,
    needed_by: &str,
    rights: &mut Rights,
) -> Vec<(PathBuf, String)> {
    let mut unclear = Vec::new();
    for file in templates(chart) {
        // The rendering has already reported an unreadable file.
        let text = fs_err::read_to_string(&file).unwrap_or_default();
        for call in calls(&text) {
            let known = match (&call.api_version, &call.kind) {
                (Word::Said(api_version), Word::Said(kind)) => kinds.of_manifest(api_version, kind),
                _ => None,
            };
            let Some(resource) = known else {
                let (Word::Said(what) | Word::Computed(what)) = &call.kind;
                unclear.push((file.clone(), what.clone()));
                continue;
            };
            let place = place(&call, resource, release_namespace);
            let Resource { group, plural, .. } = resource;
            match &call.name {
                Word::Said(name) if name.is_empty() => {
                    rights.allow(&place, Subject::all(group, plural), &["list"], needed_by);
                }
                Word::Said(name) => rights.allow(&place, Subject::one(group, plural, name), &["get"], needed_by),
                Word::Computed(_) => rights.allow(&place, Subject::all(group, plural), &["get"], needed_by),
            }
        }
    }
    unclear
}

fn templates(chart: &Path) -> Vec<PathBuf> {
    let walk = WalkDir::new(chart).follow_links(true).sort_by_file_name();
    let files = walk.into_iter().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_file());
    let is_template = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "templates");
    files.map(walkdir::DirEntry::into_path).filter(is_template).collect()
}

fn place(call: &LookUp, resource: &Resource, release_namespace: &str) -> Scope {
    match &call.namespace {
        _ if !resource.is_namespaced => Scope::Cluster,
        Word::Said(name) if !name.is_empty() => place_of(name, release_namespace),
        Word::Computed(text) if text.trim_start_matches('$') == ".Release.Namespace" => Scope::Release,
        Word::Said(_) | Word::Computed(_) => Scope::Cluster,
    }
}

fn calls(text: &str) -> Vec<LookUp> {
    let found = text.match_indices(CALL).filter_map(|(at, _)| {
        let is_word = !text[..at].ends_with(|before: char| before.is_alphanumeric() || "_.$\"`-".contains(before));
        let mut rest = text.get(at + CALL.len()..).filter(|_| is_word)?;
        let mut next = || {
            rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
            let (word, behind) = word(rest)?;
            rest = behind;
            Some(word)
        };
        Some(LookUp {
            api_version: next()?,
            kind: next()?,
            namespace: next()?,
            name: next()?,
        })
    });
    found.collect()
}

/// The first argument, and the rest of the text.
fn word(text: &str) -> Option<(Word, &str)> {
    let first = text.chars().next()?;
    match first {
        '"' | '`' => {
            let end = text[1..].find(first)? + 1;
            Some((Word::Said(text[1..end].to_owned()), &text[end + 1..]))
        }
        '(' => {
            let mut depth = 0_usize;
            let end = text.char_indices().find_map(|(at, letter)| {
                match letter {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                (depth == 0).then_some(at)
            })?;
            Some((Word::Computed(text[..=end].to_owned()), &text[end + 1..]))
        }
        _ => {
            let end = text
                .find(|letter: char| letter.is_whitespace() || ")}|".contains(letter))
                .unwrap_or(text.len());
            (end > 0).then(|| (Word::Computed(text[..end].to_owned()), &text[end..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (Vec<String>, Vec<String>) {
        let chart = tempfile::tempdir().unwrap();
        let dir = chart.path().join("charts/sub/templates");
        fs_err::create_dir_all(&dir).unwrap();
        fs_err::write(dir.join("_a.tpl"), text).unwrap();
        // In a file that is no template the word has no meaning.
        fs_err::write(chart.path().join("README.md"), "lookup \"v1\" \"Pod\" \"\" \"\"").unwrap();
        let mut rights = Rights::default();
        let unclear = collect(chart.path(), &Kinds::built_in(), "ours", "m", &mut rights);
        let places: Vec<Scope> = rights.places().into_iter().cloned().collect();
        let rules = places.iter().flat_map(|place| {
            let rules = rights.rules(place).into_iter();
            rules.map(move |rule| format!("{place:?} {}", rule.document()))
        });
        (rules.collect(), unclear.into_iter().map(|(_, what)| what).collect())
    }

    #[test]
    fn calls_become_rights_to_read() {
        let (rules, unclear) = told(
            "{{- $old := (lookup \"v1\" \"Secret\" .Release.Namespace \"a\").data }}\n\
             {{ lookup \"v1\" \"ConfigMap\" \"kube-system\" (printf \"%s-x\" (include \"n\" .)) }}\n\
             {{ range (lookup \"v1\" \"Node\" \"\" \"\").items }}{{ end }}\n\
             {{ lookup \"apps/v1\" \"Deployment\" .ns $.name }}{{ lookup \"v1\" .kind \"\" \"\" }}\n\
             {{ .Values.lookup }} lookups look up",
        );
        assert_eq!(
            rules,
            [
                r#"Cluster {"apiGroups":[""],"resources":["nodes"],"verbs":["list"]}"#,
                r#"Cluster {"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]}"#,
                r#"Release {"apiGroups":[""],"resourceNames":["a"],"resources":["secrets"],"verbs":["get"]}"#,
                r#"Namespace("kube-system") {"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}"#,
            ]
        );
        assert_eq!(unclear, [".kind"]);
    }
}
