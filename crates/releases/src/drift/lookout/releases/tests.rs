use serde_json::json;

use super::*;

const REST: Duration = Duration::from_mins(20);

/// A release Secret as the API server sends it.
fn secret(number: u32, status: &str, objects: Option<&str>) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
        "name": format!("sh.helm.release.v1.one.v{number}"),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "uid": "u",
        "managedFields": [{"manager": "helm"}],
        "labels": {"owner": "helm", "name": "one", "version": number.to_string(), "status": status, MAINTENANCE: "false"},
        "annotations": objects.map(|objects| json!({OBJECTS: objects, INPUTS: "i", "other": "x"})),
    }})
}

fn see(release: &mut Release, secret: &Value) {
    let (revision, is_unmanaged) = revision_of(essence(secret)).unwrap();
    release.see(revision, is_unmanaged);
}

fn deployed() -> Release {
    let mut release = Release::default();
    see(&mut release, &secret(1, "deployed", Some(OBJECTS_OF_ONE)));
    release
}

const OBJECTS_OF_ONE: &str = r#"[{"a":"v1","k":"ConfigMap","n":"a"},{"a":"v1","k":"Secret","ns":"n","n":"b"}]"#;

fn judge(release: &Release, is_there: impl Fn(&KindName, &Named) -> Option<bool>) -> Judgement {
    release.judge("own", REST, is_there)
}

fn without(name: &str) -> impl Fn(&KindName, &Named) -> Option<bool> {
    move |_, object| Some(object.name != name)
}

fn absent(id: &str) -> Judgement {
    Judgement::Drifted(Drift::Absent(id.to_owned()))
}

fn status(status: Status) -> Judgement {
    Judgement::Drifted(Drift::Status(Some(status)))
}

#[test]
fn of_a_secret_only_what_is_needed_is_kept() {
    let kept = essence(&secret(1, "deployed", Some("[]")));
    let metadata = kept["metadata"].as_object().unwrap();
    assert_eq!(metadata.len(), 4, "{kept}");
    assert_eq!(metadata["annotations"], json!({OBJECTS: "[]", INPUTS: "i"}));
    assert!(revision_of(json!({"metadata": {"name": "x"}})).is_none());
}

#[test]
fn damage_of_names_and_labels_is_doubtful_and_a_copy_is_no_revision() {
    let mut release = deployed();
    assert!(!release.is_doubtful());
    let changes: [fn(&mut Value); 3] = [
        |secret| secret["metadata"]["labels"]["name"] = json!("two"),
        |secret| secret["metadata"]["labels"]["version"] = json!("99"),
        |secret| secret["metadata"]["name"] = json!("sh.helm.release.v1.one.v1-backup"),
    ];
    for change in changes {
        let mut release = deployed();
        let mut altered = secret(1, "deployed", Some("[]"));
        change(&mut altered);
        see(&mut release, &altered);
        assert!(release.is_doubtful(), "{altered}");
    }
    let mut copy = secret(1, "failed", None);
    copy["metadata"]["name"] = json!("copy");
    see(&mut release, &copy);
    assert_eq!(judge(&release, |_, _| Some(true)), Judgement::Whole);
    release.lose(1, "copy");
    assert!(!release.is_doubtful());
    assert_eq!(judge(&release, |_, _| Some(true)), Judgement::Whole);
}

#[test]
fn an_object_is_absent_if_it_is_known_not_to_be_there() {
    let release = deployed();
    assert_eq!(judge(&release, |_, _| Some(true)), Judgement::Whole);
    assert_eq!(judge(&release, |_, _| None), Judgement::Whole);
    assert_eq!(judge(&release, without("a")), absent("own/ConfigMap/a"));
    assert_eq!(judge(&release, without("b")), absent("n/Secret/b"));
    assert_eq!(release.shown("own").unwrap(), ["n/Secret/b", "own/ConfigMap/a"]);
    let kind = release.kinds().next().unwrap();
    assert!(release.may_hold(kind, "a") && !release.may_hold(kind, "b"));
}

#[test]
fn while_a_helm_is_at_work_nothing_is_said_and_after_its_time_it_is_told() {
    let mut release = deployed();
    see(&mut release, &secret(2, "pending-upgrade", None));
    assert_eq!(judge(&release, without("a")), Judgement::Unfinished(REST));
    assert_eq!(release.kinds().count(), 2, "its kinds stay watched");
    let late = release.judge("own", Duration::ZERO, |_, _| Some(true));
    assert_eq!(late, status(Status::PendingUpgrade));
    release.lose(1, "sh.helm.release.v1.one.v1");
    see(&mut release, &secret(2, "deployed", None));
    assert_eq!(judge(&release, without("a")), Judgement::Whole, "nobody has marked it");
    assert_eq!(release.unmarked().unwrap().newest.revision, 2);
    see(
        &mut release,
        &secret(2, "deployed", Some(r#"[{"a":"v1","k":"Secret","n":"c"}]"#)),
    );
    assert!(release.unmarked().is_none());
    assert_eq!(judge(&release, without("a")), Judgement::Whole);
    assert_eq!(judge(&release, without("c")), absent("own/Secret/c"));
}

#[test]
fn a_revision_made_by_hand_consists_of_what_was_read_from_it() {
    let mut release = deployed();
    release.lose(1, "sh.helm.release.v1.one.v1");
    see(&mut release, &secret(2, "deployed", None));
    release.consists_of(2, serde_json::from_str(OBJECTS_OF_ONE).unwrap());
    assert!(release.unmarked().is_none());
    assert_eq!(judge(&release, without("b")), absent("n/Secret/b"));
}

#[test]
fn a_release_that_is_not_deployed_is_damaged() {
    let mut release = deployed();
    see(&mut release, &secret(2, "failed", None));
    assert_eq!(judge(&release, |_, _| Some(true)), status(Status::Failed));
    assert_eq!((release.kinds().count(), release.shown("own")), (0, None));
    release.lose(2, "sh.helm.release.v1.one.v2");
    assert_eq!(judge(&release, |_, _| Some(true)), Judgement::Whole);
    release.lose(1, "sh.helm.release.v1.one.v1");
    assert_eq!(
        judge(&release, |_, _| Some(true)),
        Judgement::Drifted(Drift::Status(None))
    );
}

#[test]
fn what_is_in_other_hands_is_never_damaged() {
    for (key, value) in [(MAINTENANCE, Some("true")), (MAINTENANCE, None)] {
        let mut secret = secret(1, "failed", Some(OBJECTS_OF_ONE));
        secret["metadata"]["labels"][key] = json!(value);
        if value.is_none() {
            // A revision that helm made for a person has no mark of ours.
            secret["metadata"]["labels"].as_object_mut().unwrap().remove(key);
            secret["metadata"]["annotations"] = json!({});
        }
        for state in ["failed", "deployed"] {
            secret["metadata"]["labels"]["status"] = json!(state);
            let mut release = Release::default();
            see(&mut release, &secret);
            assert_eq!(judge(&release, without("a")), Judgement::Whole, "{secret}");
            assert_eq!(release.shown("own"), None);
            // Their health is of interest all the same.
            let is_known = value.is_some() && state == "deployed";
            assert_eq!(release.installed().is_some(), is_known, "{secret}");
        }
    }
}

fn prints(of: &[(&str, &str)]) -> impl Fn(&KindName, &Named) -> Option<Digest> {
    let of: BTreeMap<String, Digest> = of
        .iter()
        .map(|(name, text)| ((*name).to_owned(), Digest::of_bytes(text.as_bytes())))
        .collect();
    move |_, object| of.get(&object.name).copied()
}

fn suspects(release: &Release, of: &[(&str, &str)]) -> Vec<String> {
    let suspects = release.suspects(prints(of)).map(|(_, suspects)| suspects);
    let suspects = suspects.unwrap_or_default();
    suspects.keys().map(|(_, object)| object.name.clone()).collect()
}

/// Compares the object with this name; `field` is its altered field.
fn compare(release: &mut Release, number: u32, name: &str, print: &str, field: Option<&str>) {
    let (_, all) = release
        .suspects(|_, _| Some(Digest::of_bytes(b"new")))
        .expect("something to compare");
    let object = all.into_keys().find(|(_, object)| object.name == name).unwrap();
    let print = Digest::of_bytes(print.as_bytes());
    release.compare(number, object, print, field.map(str::to_owned));
}

#[test]
fn what_somebody_wrote_to_is_compared_once_and_told_unless_something_is_absent() {
    let mut release = deployed();
    assert_eq!(suspects(&release, &[("a", "1"), ("b", "1")]), ["a", "b"]);
    compare(&mut release, 1, "a", "1", Some("data.x"));
    compare(&mut release, 1, "b", "1", None);
    assert_eq!(suspects(&release, &[("a", "1"), ("b", "1")]), [""; 0]);
    assert_eq!(suspects(&release, &[("a", "1"), ("b", "2")]), ["b"]);
    // A kind without a watch gives no information.
    assert_eq!(suspects(&release, &[("b", "1")]), [""; 0]);

    let altered = Judgement::Drifted(Drift::Altered {
        object: "own/ConfigMap/a".to_owned(),
        field: "data.x".to_owned(),
    });
    assert_eq!(judge(&release, |_, _| Some(true)), altered);
    assert_eq!(judge(&release, without("b")), absent("n/Secret/b"));
    let keys: Vec<_> = release.altered().iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["ConfigMap/a"]);
    compare(&mut release, 1, "a", "2", None);
    assert_eq!(judge(&release, |_, _| Some(true)), Judgement::Whole);
}

#[test]
fn another_revision_is_compared_anew_and_what_was_found_in_the_last_one_is_void() {
    let mut release = deployed();
    compare(&mut release, 1, "a", "1", Some("data.x"));
    see(&mut release, &secret(2, "deployed", Some(OBJECTS_OF_ONE)));
    assert_eq!(judge(&release, |_, _| Some(true)), Judgement::Whole);
    assert_eq!(suspects(&release, &[("a", "1")]), ["a"]);
    compare(&mut release, 1, "a", "1", Some("data.x"));
    assert_eq!(judge(&release, |_, _| Some(true)), Judgement::Whole);
    // The same revision is reported again, which changes nothing.
    compare(&mut release, 2, "a", "1", Some("data.x"));
    see(&mut release, &secret(2, "deployed", Some(OBJECTS_OF_ONE)));
    assert_ne!(judge(&release, |_, _| Some(true)), Judgement::Whole);
}
