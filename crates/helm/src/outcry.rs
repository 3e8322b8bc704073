//! Interprets helm's error output: its class, its text, and a hint. Must never hide helm's own text.

use addon_core::failure::Class;
use report::secrets::Secrets;

use super::chart;
use super::immutable::{self, Immutable};

/// The longest excerpt of a program's output.
const EXCERPT: usize = 1000;

/// Helm's text before the reasons why objects could not be deleted.
const UNDELETED: &str = "uninstall: Failed to delete release";
/// Helm's text before the objects that it has not deleted.
const LEFT_BEHIND: &str = "not deleted because their ownership could not be verified:";

/// The interpretation of an error output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) class: Class,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The field that nobody can change, if that is the error.
    pub(super) immutable: Option<Immutable>,
}

const RENDER: &str = "look at the chart's templates and values: `helm template` shows the same error";
const UNREACHABLE: &str = "is the API server up?";

/// Phrases that determine the class. The first rule that matches counts.
const RULES: &[(&[&str], Class, &str)] = &[
    (
        &["another operation (install/upgrade/rollback) is in progress"],
        Class::Unavailable,
        "another helm works on this release, or was killed while it did",
    ),
    (
        &[
            "Kubernetes cluster unreachable",
            "kubernetes cluster unreachable",
            "connection refused",
            "i/o timeout",
            "no route to host",
            "TLS handshake",
        ],
        Class::Unavailable,
        UNREACHABLE,
    ),
    (
        &[
            "from current release manifest",
            "unable to build kubernetes objects for delete",
        ],
        Class::Unavailable,
        "the stored release names a kind that is not served: its record is rewritten once the kind has been gone for 15 seconds",
    ),
    (
        &[chart::FEWER_APIS],
        Class::Unavailable,
        "an API server that has just started, or an extension API that does not answer, does this: `kubectl get apiservices` shows it",
    ),
    (
        &["missing in charts/ directory"],
        Class::Invalid,
        "run `helm dependency build` in the module's directory before the image is built, so that its folder charts is there",
    ),
    (
        &["no matches for kind"],
        Class::Unavailable,
        "the cluster does not serve this kind: does the module with its CRD come first (dependsOn)?",
    ),
    (
        &["Unauthorized"],
        Class::Refused,
        "the API server does not accept our credentials: did they expire?",
    ),
    (&["is forbidden:"], Class::Refused, "allow it to the user that is named"),
    (&["context canceled", "received signal"], Class::Cancelled, ""),
    (&["timed out waiting", "context deadline exceeded"], Class::TimedOut, ""),
    (
        &[
            "denied the request",
            "exceeded quota",
            "is invalid:",
            "failed calling webhook",
        ],
        Class::Refused,
        "",
    ),
    (
        &[
            "execution error at",
            "parse error",
            "template:",
            "YAML parse error",
            "error converting YAML",
            "error while running post render",
            "error while running command",
            "don't meet the specifications of the schema",
            "Chart.yaml",
            "chart metadata",
            "failed to parse",
            "cannot unmarshal",
            "failed to create typed patch object",
            "unable to decode",
            "unable to build kubernetes objects",
            "unable to parse YAML",
        ],
        Class::Invalid,
        RENDER,
    ),
    (
        &[
            "etcdserver",
            "Internal error occurred",
            "unexpected EOF",
            "connection reset",
        ],
        Class::Unavailable,
        UNREACHABLE,
    ),
];

/// Finds the error in helm's output, and interprets it.
pub(super) fn read(stderr: &str, secrets: &Secrets) -> Reading {
    let error = error_of(stderr);
    let immutable = immutable::read(&error);
    let mut message = excerpt(&error, secrets);
    if let Some(reason) = undeleted(stderr) {
        message = format!("{message}: {}", excerpt(&reason, secrets));
    }
    for (words, class, hint) in RULES {
        if words.iter().any(|word| message.contains(word)) {
            let hint = (!hint.is_empty()).then(|| (*hint).to_owned());
            return Reading {
                class: *class,
                message,
                hint,
                immutable,
            };
        }
    }
    // An unknown error probably needs a person, and slow retries do no harm.
    Reading {
        class: Class::Refused,
        message,
        hint: None,
        immutable,
    }
}

/// Helm's last `Error: …` and the text after it, without log records.
fn error_of(stderr: &str) -> String {
    let lines: Vec<_> = stderr.lines().filter(|line| !is_record(line)).collect();
    let text = lines.join("\n");
    let text = text
        .rfind("Error: ")
        .map_or(text.as_str(), |at| &text[at + "Error: ".len()..]);
    // The part after this marker is a position in helm's code.
    let text = text.split("\nhelm.go:").next().unwrap_or_default();
    let text = text
        .trim()
        .trim_end_matches("Use --debug flag to render out invalid YAML");
    text.trim().to_owned()
}

/// Why objects of a release were not deleted, from helm's debug output.
fn undeleted(stderr: &str) -> Option<String> {
    let line = stderr.lines().rev().find_map(|line| line.split_once(UNDELETED))?.1;
    let reason = match line.trim_start_matches('"').trim().strip_prefix("error=") {
        // The text is quoted inside of a log record.
        Some(quoted) => serde_json::from_str(quoted).ok()?,
        None => line.trim_start_matches(':').to_owned(),
    };
    let reason = reason.trim();
    let list = reason.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    Some(list.unwrap_or(reason).to_owned())
}

/// The objects that a successful removal has left in the cluster.
pub(super) fn left_behind(stdout: &str) -> Option<&str> {
    let at = stdout.find(LEFT_BEHIND)?;
    let objects = &stdout[at + LEFT_BEHIND.len()..];
    let end = objects.find("\n\n").unwrap_or(objects.len());
    Some(objects[..end].trim())
}

/// Warnings of the API server that helm's client logged, each once.
pub(super) fn warnings(stderr: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for line in stderr.lines().filter(|line| is_record(line)) {
        let Some((_, text)) = line.split_once("Warning: ") else {
            continue;
        };
        let text = text.strip_suffix('"').unwrap_or(text).replace("\\\"", "\"");
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    warnings
}

/// A line such as `I1121 11:12:32.993101    8658 warnings.go:107] …`, or helm 4's `level=WARN msg=…`.
fn is_record(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_helms = line.starts_with("level=") && line.contains(" msg=");
    is_helms
        || bytes.len() > 5
            && b"IWEF".contains(&bytes[0])
            && bytes[1..5].iter().all(u8::is_ascii_digit)
            && bytes[5] == b' '
}

/// The beginning of a long text.
pub(super) fn excerpt(text: &str, secrets: &Secrets) -> String {
    let text = secrets.before_cut(text.trim(), EXCERPT);
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn read(stderr: &str) -> Reading {
        super::read(stderr, &Secrets::default())
    }

    #[test]
    fn the_class_follows_the_words() {
        for (stderr, class) in [
            (
                "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
                Class::Unavailable,
            ),
            (
                "Error: Kubernetes cluster unreachable: Get \"https://x/version\": dial tcp: refused",
                Class::Unavailable,
            ),
            (
                "Error: template: one/templates/a.yaml:3:4: executing \"x\" at <fail>: oh",
                Class::Invalid,
            ),
            (
                "Error: YAML parse error on one/templates/a.yaml: error converting YAML to JSON: yaml: x",
                Class::Invalid,
            ),
            (
                "Error: parse error at (one/templates/a.yaml:1): unclosed action",
                Class::Invalid,
            ),
            (
                "Error: execution error at (one/templates/a.yaml:1:3): need a name",
                Class::Invalid,
            ),
            (
                "Error: UPGRADE FAILED: unable to build kubernetes objects from new release manifest: resource mapping \
                 not found for name: \"x\" namespace: \"\" from \"\": no matches for kind \"X\" in version \"y/v1\"",
                Class::Unavailable,
            ),
            (
                "Error: configmaps \"x\" is forbidden: User \"u\" cannot get resource",
                Class::Refused,
            ),
            (
                "Error: Service \"x\" is invalid: spec.ports: Required value",
                Class::Refused,
            ),
            ("Error: admission webhook \"w\" denied the request: no", Class::Refused),
            (
                "Error: failed post-install: 1 error occurred:\n\t* timed out waiting for the condition",
                Class::TimedOut,
            ),
            ("Error: something new", Class::Refused),
        ] {
            assert_eq!(read(stderr).class, class, "{stderr}");
        }
    }

    #[test]
    fn the_message_is_helms_own_without_records() {
        let stderr = "I1121 11:12:32.993101    8658 warnings.go:107] \"Warning: unknown field \\\"bogus\\\"\"\n\
                      Error: template: x: boom\nI1121 11:12:33.0    8658 x.go:1] noise\n\n\
                      Use --debug flag to render out invalid YAML\n";
        assert_eq!(read(stderr).message, "template: x: boom");
        assert_eq!(warnings(stderr), ["unknown field \"bogus\""]);
    }

    #[test]
    fn the_words_of_helm_4_mean_the_same() {
        for (stderr, class) in [
            (
                "Error: kubernetes cluster unreachable: Get \"https://x/version\": dial tcp: lookup x: no such host",
                Class::Unavailable,
            ),
            (
                "Error: failed pre-install: resource Job/t/endless not ready. status: InProgress, message: Job in progress\n\
                 context deadline exceeded",
                Class::TimedOut,
            ),
            (
                "Error: error while running post render on files: failed to invoke post-renderer plugin \"labels\": x",
                Class::Invalid,
            ),
            (
                "Error: server-side apply failed for object t/a /v1, Kind=ConfigMap: failed to create typed patch object \
                 (t/a; /v1, Kind=ConfigMap): .bogus: field not declared in schema",
                Class::Invalid,
            ),
            (
                "Error: server-side apply failed for object t/A /v1, Kind=ConfigMap: ConfigMap \"A\" is invalid: \
                 metadata.name: Invalid value: \"A\"",
                Class::Refused,
            ),
            ("Error: context canceled", Class::Cancelled),
        ] {
            assert_eq!(read(stderr).class, class, "{stderr}");
        }
        let stderr = "level=WARN msg=\"upgrade failed\" name=one error=\"failed to create resource: Error: x\"\n\
                      Error: UPGRADE FAILED: failed to create resource: x\nlevel=WARN msg=\"this chart is deprecated\"\n";
        assert_eq!(read(stderr).message, "UPGRADE FAILED: failed to create resource: x");
    }

    #[test]
    fn what_is_said_without_error_is_kept() {
        assert_eq!(read("panic: oh\n").message, "panic: oh");
        let long = excerpt(&"ü".repeat(2000), &Secrets::default());
        assert_eq!(long.chars().count(), EXCERPT + 1);
    }

    #[test]
    fn a_secret_across_the_cut_is_not_shown_in_part() {
        let secrets = Secrets::default();
        secrets.learn(Arc::new(["correct-horse"].into_iter().collect()));
        let text = format!("Error: {}correct-horse battery", "x".repeat(EXCERPT - 7));
        let message = super::read(&text, &secrets).message;
        assert!(message.ends_with("x<masked…"), "{message}");
    }

    #[test]
    fn a_removal_that_fails_tells_why() {
        let forbidden = r#"configmaps "a" is forbidden: User "u" cannot delete resource "configmaps""#;
        let three = format!(
            "uninstall.go:125: 2026-11-22 00:48:23 [debug] uninstall: Failed to delete release: [{forbidden}]\n\
             Error: failed to delete release: one\nhelm.go:92: [debug] failed to delete release: one\nmain.main\n"
        );
        let four = format!(
            "level=DEBUG msg=\"uninstall: Failed to delete release\" error={}\nError: failed to delete release: one\n",
            serde_json::json!(format!("[{forbidden}]"))
        );
        for stderr in [three, four] {
            let Reading {
                class, message, hint, ..
            } = read(&stderr);
            assert_eq!(message, format!("failed to delete release: one: {forbidden}"));
            assert_eq!((class, hint.is_some()), (Class::Refused, true));
        }
        let stdout = "1 resource(s) were not deleted because their ownership could not be verified:\n[ConfigMap] a: no\n\nrelease \"one\" uninstalled";
        assert_eq!(left_behind(stdout), Some("[ConfigMap] a: no"));
        assert_eq!(left_behind("release \"one\" uninstalled"), None);
    }
}
