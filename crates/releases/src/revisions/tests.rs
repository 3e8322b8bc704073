//! Reading revisions from their Secrets, and the encoding of releases.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::whose::HANDED_OVER;
use super::*;

fn secret(revision: u32, labels: &[(&str, &str)], inputs: Option<&str>) -> PartialObjectMeta<Secret> {
    let mut labels: BTreeMap<_, _> = labels.iter().copied().collect();
    let revision = revision.to_string();
    labels.extend([
        ("owner", "helm"),
        ("name", "one"),
        ("version", &revision),
        ("status", "deployed"),
    ]);
    let annotations = inputs.map(|inputs| json!({INPUTS: inputs, OBJECTS: "[]"}));
    serde_json::from_value(json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": {
            "name": format!("sh.helm.release.v1.one.v{revision}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "annotations": annotations,
        }
    }))
    .unwrap()
}

fn read(labels: &[(&str, &str)]) -> Revision {
    Revision::read(&secret(2, labels, None)).unwrap()
}

#[test]
fn a_release_is_ours_by_the_labels_that_the_original_gives_too() {
    assert!(!read(&[]).newest.ours);
    assert!(!read(&[("app.kubernetes.io/managed-by", "Helm")]).newest.ours);
    for label in [(CHECKSUM, "x"), (MAINTENANCE, "false")] {
        assert!(read(&[label]).newest.ours, "{label:?}");
    }
}

#[test]
fn a_release_is_handed_over_until_the_operator_has_worked_on_it() {
    let mut secret = secret(2, &[], None);
    secret.metadata.annotations = Some([(HANDED_OVER.to_owned(), "true".to_owned())].into());
    let handed_over = |secret: &PartialObjectMeta<Secret>| {
        let revision = Revision::read(secret).unwrap();
        (revision.newest.ours, revision.is_handed_over)
    };
    assert_eq!(handed_over(&secret), (true, true));
    let labels = secret.metadata.labels.get_or_insert_default();
    labels.insert(MAINTENANCE.to_owned(), "false".to_owned());
    assert_eq!(handed_over(&secret), (true, false));
}

#[test]
fn a_revision_made_by_other_hands_bears_labels_that_helm_copied_and_no_mark_of_ours() {
    let labels = [(CHECKSUM, "c")];
    let revision = |inputs| Revision::read(&secret(3, &labels, inputs)).unwrap();
    let ours = revision(Some("i"));
    assert_eq!(ours.newest.inputs.as_deref(), Some("i"));
    assert_eq!(ours.newest.checksum.as_deref(), Some("c"));
    assert_eq!(ours.objects.as_deref(), Some("[]"));
    let theirs = revision(None);
    assert_eq!((theirs.newest.inputs, theirs.objects), (None, None));
    assert_eq!(theirs.newest.checksum.as_deref(), Some("c"));
}

#[test]
fn a_revision_is_as_old_as_helms_last_write() {
    let created = 1_767_225_600;
    assert_eq!(read(&[]).written, created);
    assert_eq!(read(&[("modifiedAt", "1767225700")]).written, created + 100);
}

#[test]
fn a_release_survives_being_packed() {
    let deep = "[".repeat(400) + &"]".repeat(400);
    let release = format!(r#"{{"config":{{"a":{deep}}},"info":{{"status":"pending-upgrade"}},"manifest":"a: ü\n"}}"#);
    let mut content: Content = serde_json::from_str(&release).unwrap();
    note_failure(&mut content, Status::PendingUpgrade).unwrap();
    let content = decode(&encode(&content).unwrap()).unwrap();
    assert_eq!(text(&content, "manifest"), "a: ü\n");
    assert_eq!(text(&fields(&content, "info"), "status"), "failed");
    assert!(content["config"].get().contains(&deep));
    assert!(decode(b"no base64!").is_err());
    assert!(decode(STANDARD.encode("no json").as_bytes()).is_err());
    assert!(decode(b"").is_err());
}
