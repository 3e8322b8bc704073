//! Prints rights as values for the operator's chart. Must never print a value that the chart would refuse.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Answer;
use super::rules::{Rights, Rule, Scope};

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// YAML, with a comment at each rule that names its users.
    Yaml,
    Json,
}

const HEAD: &str = "\
# What the modules need of the cluster, beyond what the operator itself needs. Values for its chart: `--values THIS-FILE`.
#
# Known are the objects of their charts and whatever the roles among these give away, what charts look up, CRDs, and what hooks
# watch. Not known is what hooks write as object patches and what their scripts ask for with kubectl: the field `rights` says that,
# in the module.yaml of a module, and for global hooks in the file rights.yaml of their directory.
";

/// The rights, as values of the chart.
pub fn shown(answer: &Answer, form: Form) -> String {
    match form {
        Form::Yaml => yaml(&answer.rights),
        Form::Json => format!("{}\n", json!({"rbac": {"moduleRules": document(&answer.rights)}})),
    }
}

/// The namespaces in which rights are needed, without that of the releases.
fn elsewhere(rights: &Rights) -> Vec<&Scope> {
    let places = rights.places().into_iter();
    let others = places.filter(|place| matches!(place, Scope::Namespace(_)) && !rights.rules(place).is_empty());
    others.collect()
}

fn name(place: &Scope) -> &str {
    match place {
        Scope::Cluster => "cluster",
        Scope::Release => "release",
        Scope::Namespace(name) => name,
    }
}

fn document(rights: &Rights) -> Value {
    let rules = |place| -> Vec<Value> { rights.rules(place).iter().map(Rule::document).collect() };
    let others: Vec<Value> = elsewhere(rights)
        .into_iter()
        .map(|place| json!({"name": name(place), "rules": rules(place)}))
        .collect();
    json!({"cluster": rules(&Scope::Cluster), "release": rules(&Scope::Release), "namespaces": others})
}

fn yaml(rights: &Rights) -> String {
    let mut text = format!("{HEAD}rbac:\n  moduleRules:\n");
    for place in [&Scope::Cluster, &Scope::Release] {
        list(&mut text, "    ", name(place), rights.rules(place));
    }
    let others = elsewhere(rights);
    // A list, because helm would merge a map with that of an earlier values file.
    if others.is_empty() {
        text.push_str("    namespaces: []\n");
    } else {
        text.push_str("    namespaces:\n");
        for place in others {
            let _ = writeln!(text, "      - name: {}", word(name(place)));
            list(&mut text, "        ", "rules", rights.rules(place));
        }
    }
    text
}

fn list(text: &mut String, indent: &str, key: &str, rules: Vec<Rule>) {
    if rules.is_empty() {
        let _ = writeln!(text, "{indent}{key}: []");
        return;
    }
    let _ = writeln!(text, "{indent}{key}:");
    for rule in rules {
        let needed: Vec<&str> = rule.needed_by.iter().map(String::as_str).collect();
        let _ = writeln!(text, "{indent}  # {}", needed.join(", "));
        let fields: [(&str, &BTreeSet<String>); 5] = [
            ("apiGroups", &rule.groups),
            ("resources", &rule.resources),
            ("resourceNames", &rule.names),
            ("nonResourceURLs", &rule.paths),
            ("verbs", &rule.verbs),
        ];
        let said = fields.into_iter().filter(|(_, values)| !values.is_empty());
        for (at, (field, values)) in said.enumerate() {
            let mark = if at == 0 { "- " } else { "  " };
            let values: Vec<String> = values.iter().map(|value| word(value)).collect();
            let _ = writeln!(text, "{indent}  {mark}{field}: [{}]", values.join(", "));
        }
    }
}

/// A YAML scalar; quoted where YAML would not read it as a string.
fn word(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-./".contains(&c))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null"
        );
    if is_plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use helm_yaml::yaml;

    use super::super::rules::Subject;
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let mut rights = Rights::default();
        let subject = Subject::one("", "secrets", "on");
        rights.allow(&Scope::Release, subject, &["get"], "one");
        rights.allow(&Scope::Cluster, Subject::Path("/x".to_owned()), &["get"], "one");
        let elsewhere = Scope::Namespace("kube-system".to_owned());
        rights.allow(&elsewhere, Subject::all("*", "*"), &["*"], "two");
        let answer = Answer {
            rights,
            findings: Vec::new(),
        };
        let text = shown(&answer, Form::Yaml);
        let read = yaml::documents_v2(&text).unwrap().remove(0);
        let json: Value = serde_json::from_str(&shown(&answer, Form::Json)).unwrap();
        assert_eq!(read, json, "{text}");
        let wanted = "    release:
      # one
      - apiGroups: [\"\"]
        resources: [secrets]
        resourceNames: [\"on\"]
        verbs: [get]
    namespaces:
      - name: kube-system
        rules:
          # two
          - apiGroups: [\"*\"]
";
        assert!(text.contains(wanted), "{text}");
        let nothing = Answer {
            rights: Rights::default(),
            findings: Vec::new(),
        };
        assert!(shown(&nothing, Form::Yaml).ends_with("    cluster: []\n    release: []\n    namespaces: []\n"));
    }
}
