//! Recognises the API server's refusal to change a field that nobody can change. Must never take another refusal for
//! this one, because this one leads to the replacement of objects.

/// The API server's words for a field that nobody can change.
const WORDS: &[&str] = &[
    "field is immutable",
    "may not change once set",
    "cannot change roleRef",
    "updates to statefulset spec for fields other than",
    "updates to provisioner are forbidden",
    "updates to parameters are forbidden",
    "updates to reclaimPolicy are forbidden",
    "spec is immutable after creation",
];
/// The words between an object and the fields that are wrong.
const INVALID: &str = "\" is invalid: ";

/// A field of an object that an upgrade would have to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Immutable {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The path of the field, as in `spec.selector`.
    pub field: String,
}

/// The object and its field, if helm's error is the refusal of a change that nobody can make.
pub fn read(message: &str) -> Option<Immutable> {
    // The value of the field, which may be long, stands between the field's path and these words.
    let at = WORDS.iter().filter_map(|words| message.find(words)).min()?;
    let (object, fields) = message[..at].rsplit_once(INVALID)?;
    let (before, name) = object.rsplit_once('"')?;
    let kind = before.trim_end().rsplit([' ', '\n', '\t']).next()?;
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    let field = fields.trim_start_matches('[').split(": ").next()?;
    let is_name = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    (is_name(kind) && is_name(name) && is_name(field)).then(|| Immutable {
        group: group.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        field: field.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_and_field_are_found_in_what_the_api_server_says() {
        let long = "x".repeat(5000);
        for (message, expected) in [
            (
                "UPGRADE FAILED: cannot patch \"a\" with kind Deployment: Deployment.apps \"a\" is invalid: spec.selector: Invalid value: {\"matchLabels\":{\"x\":\"b\"}}: field is immutable",
                ("apps", "Deployment", "a", "spec.selector"),
            ),
            (
                "cannot patch \"c\" with kind Job: Job.batch \"c\" is invalid: spec.template: Invalid value: LONG: field is immutable",
                ("batch", "Job", "c", "spec.template"),
            ),
            (
                "StatefulSet.apps \"s\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
                ("apps", "StatefulSet", "s", "spec"),
            ),
            (
                "Service \"s\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.0.0.1\"]: may not change once set",
                ("", "Service", "s", "spec.clusterIPs[0]"),
            ),
            (
                "RoleBinding.rbac.authorization.k8s.io \"r\" is invalid: roleRef: Invalid value: {}: cannot change roleRef",
                ("rbac.authorization.k8s.io", "RoleBinding", "r", "roleRef"),
            ),
            (
                "a \"b\" is invalid: c: d && Deployment.apps \"e\" is invalid: [spec.selector: Required value, spec.selector: Invalid value: {}: field is immutable]",
                ("apps", "Deployment", "e", "spec.selector"),
            ),
        ] {
            let found = read(&message.replace("LONG", &long)).unwrap();
            let (group, kind, name, field) = expected;
            assert_eq!(
                (&*found.group, &*found.kind, &*found.name, &*found.field),
                (group, kind, name, field)
            );
        }
        for message in [
            "Deployment.apps \"a\" is invalid: spec.selector: Required value",
            "template: x: field is immutable",
            "\" is invalid: : field is immutable",
            "",
        ] {
            assert_eq!(read(message), None, "{message}");
        }
    }
}
