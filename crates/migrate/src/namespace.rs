//! Writes the namespace into templates that leave it to helm.
//!
//! The operator's helm has one namespace for all releases, so an object without a namespace would go there. Must never
//! touch a template whose objects have one.

use crate::kinds::Kinds;

const LINE: &str = "namespace: {{ $.Release.Namespace | quote }}";

/// The template with a namespace in each object that has none; `None` if no line of it can get one. Templates write
/// `metadata:` at the beginning of a line.
pub fn settle(template: &str, kinds: &Kinds) -> Option<String> {
    let lines: Vec<&str> = template.split_inclusive('\n').collect();
    let mut output = String::with_capacity(template.len() + 64);
    let mut has_changed = false;
    for (at, line) in lines.iter().enumerate() {
        output.push_str(line);
        if line.trim_end() != "metadata:" || is_cluster_wide(&lines, at, kinds) {
            continue;
        }
        let block = lines[at + 1..].iter().take_while(|line| !begins_a_field(line));
        let block: Vec<&str> = block.map(|line| line.trim_end()).collect();
        let indent = block.iter().find_map(|line| indent_of(line)).unwrap_or(2);
        let is_own = |line: &&str| indent_of(line) == Some(indent) && line.trim_start().starts_with("namespace:");
        if block.iter().any(is_own) {
            continue;
        }
        output.push_str(&" ".repeat(indent));
        output.push_str(LINE);
        output.push('\n');
        has_changed = true;
    }
    has_changed.then_some(output)
}

/// Whether a field of the object, or another object, begins with the line.
fn begins_a_field(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_alphabetic() || first == '-')
}

/// The indent of a line with a field; none for empty lines, comments and lines of the template language.
fn indent_of(line: &str) -> Option<usize> {
    let text = line.trim_start();
    let is_field = text.starts_with(|first: char| first.is_ascii_alphabetic());
    (is_field && text.len() < line.len()).then(|| line.len() - text.len())
}

/// Whether the object around the line is of a kind without namespaces.
fn is_cluster_wide(lines: &[&str], at: usize, kinds: &Kinds) -> bool {
    let is_end = |line: &&&str| line.starts_with("---");
    let before = lines[..at].iter().rev().take_while(|line| !is_end(line));
    let after = lines[at..].iter().take_while(|line| !is_end(line));
    let mut fields = before.chain(after);
    let kind = fields.find_map(|line| line.strip_prefix("kind:")).map(str::trim);
    kind.is_some_and(|kind| kinds.is_cluster_wide(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_gets_a_namespace_once() {
        let template = "{{- if .Values.on }}\napiVersion: v1\nkind: Service\nmetadata:\n    {{- with .Values.x }}\n    {{- end }}\n    name: a\n    \
                        labels:\n        namespace: label\nspec: {}\n---\nkind: ClusterRole\nmetadata:\n  name: b\n---\nkind: ConfigMap\nmetadata:\n  \
                        name: c\n  namespace: there\n{{- end }}\n";
        let settled = settle(template, &Kinds::some()).unwrap();
        let line = "metadata:\n    namespace: {{ $.Release.Namespace | quote }}\n    {{- with";
        assert!(settled.contains(line), "{settled}");
        assert_eq!(settled.matches("$.Release.Namespace").count(), 1, "{settled}");
        assert_eq!(settle(&settled, &Kinds::some()), None);
    }

    #[test]
    fn a_template_without_metadata_of_its_own_stays() {
        for template in ["{{ include \"common.service\" . }}\n", "", "metadata: {name: a}\n"] {
            assert_eq!(settle(template, &Kinds::some()), None, "{template}");
        }
    }
}
