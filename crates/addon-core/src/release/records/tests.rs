//! Damaged records and their remedies.

use super::*;

fn tag(revision: u32, status: &str) -> Tag {
    Tag {
        secret: format!("sh.helm.release.v1.one.v{revision}"),
        owner: Some("helm".to_owned()),
        name: Some("one".to_owned()),
        version: Some(revision.to_string()),
        status: Some(status.to_owned()),
    }
}

fn record(revision: u32, status: &str) -> Record {
    Record {
        tag: tag(revision, status),
        payload: Ok(Payload {
            release: "one".to_owned(),
            revision,
            status: Status::parse(status),
        }),
        is_noted: true,
    }
}

fn broken(revision: u32, status: &str) -> Record {
    Record {
        payload: Err("no gzip".to_owned()),
        ..record(revision, status)
    }
}

fn unnoted(record: Record) -> Record {
    Record {
        is_noted: false,
        ..record
    }
}

fn labelled(mut record: Record, change: impl FnOnce(&mut Tag)) -> Record {
    change(&mut record.tag);
    record
}

/// The remedies by revision, with `?` for one that a person must confirm.
fn remedies(examined: &Examined) -> Vec<String> {
    let one = |finding: &Finding| {
        let mark = if finding.consent == Consent::Needed { "?" } else { "" };
        let revision = finding
            .revision
            .map_or_else(|| "copy".to_owned(), |number| number.to_string());
        format!("{revision} {:?}{mark}", finding.remedy)
    };
    examined.findings.iter().map(one).collect()
}

fn check(records: &[Record], upgrade: &[&str], removal: &[&str]) {
    for (purpose, expected) in [(Purpose::Upgrade, upgrade), (Purpose::Removal, removal)] {
        let examined = examine("one", records, purpose, OtherHelm::Excluded);
        assert_eq!(remedies(&examined), expected, "{purpose:?} {records:#?}");
    }
}

fn check_both(records: &[Record], expected: &[&str]) {
    check(records, expected, expected);
}

#[test]
fn sound_records_need_nothing() {
    for records in [
        vec![],
        vec![record(1, "deployed")],
        vec![record(3, "superseded"), record(4, "failed"), record(2, "deployed")],
        vec![record(9, "deployed"), record(10, "pending-upgrade")],
        vec![record(1, "superseded"), record(2, "superseded")],
    ] {
        check_both(&records, &[]);
    }
}

#[test]
fn a_broken_record_that_helm_works_from_is_made_again_if_its_objects_are_noted() {
    check_both(
        &[record(1, "superseded"), broken(2, "deployed")],
        &["2 Remake(Deployed)"],
    );
    check_both(&[broken(1, "deployed")], &["1 Remake(Deployed)"]);
    check_both(&[broken(1, "deployed"), record(2, "failed")], &["1 Remake(Deployed)"]);
    check_both(&[broken(2, "uninstalling")], &["2 Remake(Failed)"]);
    check_both(
        &[labelled(broken(2, "deployed"), |tag| tag.status = None)],
        &["2 Remake(Deployed)"],
    );
    let misplaced = Record {
        tag: tag(2, "deployed"),
        ..record(1, "superseded")
    };
    check_both(&[record(1, "superseded"), misplaced], &["2 Remake(Deployed)"]);
}

#[test]
fn any_other_broken_record_is_put_aside_and_a_removal_asks_before_it_does_without_the_newest() {
    check_both(&[broken(1, "superseded"), record(2, "deployed")], &["1 PutAside"]);
    check_both(&[broken(1, "deployed"), record(2, "deployed")], &["1 PutAside"]);
    check(
        &[record(1, "superseded"), unnoted(broken(2, "deployed"))],
        &["2 PutAside"],
        &["2 PutAside?"],
    );
    check(
        &[broken(1, "superseded"), unnoted(broken(2, "failed"))],
        &["1 PutAside", "2 PutAside"],
        &["1 PutAside", "2 PutAside?"],
    );
}

#[test]
fn labels_follow_the_contents() {
    let changes: [fn(&mut Tag); 6] = [
        |tag| tag.owner = None,
        |tag| tag.name = Some("two".to_owned()),
        |tag| tag.version = None,
        |tag| tag.version = Some("99".to_owned()),
        |tag| tag.status = Some("pending-upgrade".to_owned()),
        |tag| tag.status = None,
    ];
    for change in changes {
        check_both(
            &[record(1, "superseded"), labelled(record(2, "deployed"), change)],
            &["2 Relabel(Deployed)"],
        );
    }
}

#[test]
fn a_revision_that_was_found_deployed_is_deployed() {
    for status in ["pending-upgrade", "uninstalled", "uninstalling", "failed", "superseded"] {
        let stated = |label| Record {
            tag: tag(2, label),
            ..record(2, status)
        };
        check_both(&[record(1, "superseded"), stated("deployed")], &["2 Restate(Deployed)"]);
        // Without the note the contents count: helm writes both together.
        let relabelled = format!("2 Relabel({:?})", Status::parse(status));
        check_both(&[record(1, "superseded"), unnoted(stated("deployed"))], &[&relabelled]);
    }
}

#[test]
fn of_two_deployed_revisions_the_older_is_superseded() {
    check_both(
        &[record(9, "deployed"), record(10, "deployed")],
        &["9 Restate(Superseded)"],
    );
    check_both(
        &[record(1, "deployed"), record(2, "deployed"), record(3, "failed")],
        &["1 Restate(Superseded)"],
    );
}

#[test]
fn a_copy_is_put_aside_unless_it_is_the_last_of_its_revision() {
    let copy = |record| labelled(record, |tag| tag.secret += "-backup");
    check_both(
        &[record(2, "deployed"), copy(record(2, "deployed"))],
        &["copy PutAside"],
    );
    check_both(
        &[record(2, "deployed"), copy(broken(1, "superseded"))],
        &["copy PutAside"],
    );
    check_both(&[copy(record(2, "deployed"))], &["copy PutAside?"]);
}

#[test]
fn a_record_that_another_helm_may_write_is_left_alone() {
    let records = [record(1, "deployed"), unnoted(broken(2, "pending-upgrade"))];
    let examined = examine("one", &records, Purpose::Upgrade, OtherHelm::Possible);
    assert_eq!(remedies(&examined), ["2 Wait"]);
    check(&records, &["2 PutAside"], &["2 PutAside?"]);
}

#[test]
fn objects_may_be_lost_with_the_newest_record_alone() {
    for (records, expected) in [
        (vec![record(1, "superseded")], true),
        (vec![record(1, "superseded"), unnoted(broken(2, "deployed"))], true),
        (vec![record(1, "superseded"), broken(2, "deployed")], false),
        (vec![unnoted(broken(1, "superseded")), record(2, "deployed")], false),
        (vec![record(1, "failed")], false),
        (vec![], false),
    ] {
        let examined = examine("one", &records, Purpose::Upgrade, OtherHelm::Excluded);
        assert_eq!(examined.is_lossy, expected, "{records:?}");
    }
}

#[test]
fn names_and_labels_alone_raise_doubts() {
    let plain = || vec![tag(9, "superseded"), tag(10, "deployed")];
    assert!(!is_doubtful("one", &plain()));
    assert!(!is_doubtful("one", &[]));
    assert!(!is_doubtful("one", &[tag(9, "deployed"), tag(10, "failed")]));
    let changes: [fn(&mut Vec<Tag>); 6] = [
        |tags| tags[0].status = Some("deployed".to_owned()),
        |tags| tags[0].version = Some("8".to_owned()),
        |tags| tags[1].owner = None,
        |tags| tags[1].name = Some("two".to_owned()),
        |tags| tags[1].secret += "-copy",
        |tags| drop(tags.pop()),
    ];
    for change in changes {
        let mut tags = plain();
        change(&mut tags);
        assert!(is_doubtful("one", &tags), "{tags:?}");
    }
}

#[test]
fn the_name_of_a_secret_tells_its_place() {
    for (secret, expected) in [
        ("sh.helm.release.v1.one.v2", Some(("one", 2))),
        ("sh.helm.release.v1.one.v.v10", Some(("one.v", 10))),
        ("sh.helm.release.v1.one.v02", None),
        ("sh.helm.release.v1.one.v2.before", None),
        ("sh.helm.release.v1.one", None),
        ("one.v2", None),
    ] {
        assert_eq!(place(secret), expected, "{secret}");
    }
}
