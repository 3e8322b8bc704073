//! The records of a trial in the operator's state Secret.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use channel_core::trial::record::{Failed, Remembered, Report, Ruling, Trial, Verdict};
use jiff::Timestamp;
use kube_access::Cluster;
use saved_state::trial::{Changed, Kept};
use saved_state::trial::{
    change_trial, channel_records, forget_report, put_records_aside, save_remembered, write_report,
};
use std::collections::{BTreeMap, BTreeSet};

use super::installation::stage::{self, digest};
use super::world::World;

fn trial() -> Trial {
    stage::trial(2, "hash")
}

fn judged(judge: &str) -> Trial {
    let verdict = Verdict {
        ruling: Ruling::Failed,
        why: "it crashed".to_owned(),
        at: Timestamp::UNIX_EPOCH,
        judge: judge.to_owned(),
    };
    Trial {
        verdict: Some(verdict),
        begun: Timestamp::UNIX_EPOCH,
        ..trial()
    }
}

fn report(number: u64) -> Report {
    Report {
        of: digest(2),
        pod: "a".to_owned(),
        number,
        converged: None,
        failing: BTreeMap::new(),
        hindered: BTreeSet::new(),
        unhealthy: BTreeMap::new(),
    }
}

fn failed(number: u8) -> Remembered {
    let failed = Failed {
        why: "it crashed".to_owned(),
        at: Timestamp::UNIX_EPOCH,
    };
    Remembered {
        failed: [(digest(number), failed)].into(),
        ..Remembered::default()
    }
}

async fn standing(cluster: &Cluster) -> Kept<Trial> {
    channel_records(cluster).await.unwrap().trial
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_counts_only_over_the_one_that_was_read() {
    let world = World::new("trial").await;
    let cluster = &world.tools.ground.cluster;
    let records = channel_records(cluster).await.unwrap();
    let none = (Kept::Absent, Kept::Absent, Kept::Absent);
    assert_eq!((records.trial, records.report, records.remembered), none);
    let begun = trial();
    for _ in 0..2 {
        // The second call is a repetition after a lost answer.
        let made = change_trial(cluster, None, Some(&begun)).await.unwrap();
        assert_eq!(made, Changed::Done);
    }
    assert_eq!(standing(cluster).await, Kept::Is(begun.clone()));
    let late = change_trial(cluster, None, Some(&judged("late"))).await.unwrap();
    assert_eq!(late, Changed::Other(Kept::Is(begun.clone())));

    write_report(cluster, &report(1)).await.unwrap();
    saved_state::save_last_good(cluster, &BTreeMap::new(), None)
        .await
        .unwrap();
    let ended = change_trial(cluster, Some(&begun), Some(&judged("one"))).await.unwrap();
    assert_eq!(ended, Changed::Done, "whatever else is written meanwhile");
    write_report(cluster, &report(2)).await.unwrap();
    let records = channel_records(cluster).await.unwrap();
    assert_eq!(
        (records.trial, records.report),
        (Kept::Is(judged("one")), Kept::Is(report(2)))
    );
    let closed = change_trial(cluster, Some(&judged("one")), None).await.unwrap();
    assert_eq!((closed, standing(cluster).await), (Changed::Done, Kept::Absent));
    forget_report(cluster).await.unwrap();
    assert_eq!(channel_records(cluster).await.unwrap().report, Kept::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_judges_one_is_first() {
    let world = World::new("judges").await;
    let cluster = &world.tools.ground.cluster;
    let begun = trial();
    change_trial(cluster, None, Some(&begun)).await.unwrap();
    let names: Vec<String> = (0..8).map(|number| format!("judge-{number}")).collect();
    let verdicts: Vec<Trial> = names.iter().map(|name| judged(name)).collect();
    let judges = verdicts
        .iter()
        .map(|verdict| change_trial(cluster, Some(&begun), Some(verdict)));
    let outcomes = futures::future::join_all(judges).await;
    let standing = standing(cluster).await;
    let mut first = 0;
    for (outcome, verdict) in outcomes.into_iter().zip(verdicts) {
        match outcome.unwrap() {
            Changed::Done => {
                first += 1;
                assert_eq!(standing, Kept::Is(verdict));
            }
            Changed::Other(other) => assert_eq!(other, standing),
        }
    }
    assert_eq!(first, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_remember_lose_nothing_of_each_other() {
    let world = World::new("remember").await;
    let cluster = &world.tools.ground.cluster;
    let nothing = Remembered::default();
    assert_eq!(
        save_remembered(cluster, &nothing, &failed(1)).await.unwrap(),
        Changed::Done
    );
    let late = save_remembered(cluster, &nothing, &failed(2)).await.unwrap();
    assert_eq!(late, Changed::Other(Kept::Is(failed(1))));
    assert_eq!(
        save_remembered(cluster, &failed(1), &failed(3)).await.unwrap(),
        Changed::Done
    );
    assert_eq!(
        save_remembered(cluster, &failed(3), &nothing).await.unwrap(),
        Changed::Done
    );
    assert_eq!(
        save_remembered(cluster, &nothing, &failed(4)).await.unwrap(),
        Changed::Done
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_named_and_kept() {
    let world = World::new("unreadable").await;
    let cluster = &world.tools.ground.cluster;
    world.kubectl("create secret generic addon-operator-state --from-literal=trial={oh --from-literal=channel=[1]");
    let Kept::Unreadable(why) = standing(cluster).await else {
        unreachable!("it is no trial")
    };
    assert!(
        why.starts_with("the key 'trial' of the Secret 'addon-operator-state' holds"),
        "{why}"
    );
    let refused = change_trial(cluster, None, Some(&trial())).await.unwrap();
    assert_eq!(refused, Changed::Other(Kept::Unreadable(why)));
    let nothing = Remembered::default();
    let refused = save_remembered(cluster, &nothing, &failed(1)).await.unwrap();
    assert!(matches!(refused, Changed::Other(Kept::Unreadable(_))), "{refused:?}");

    // An older unreadable record is already kept. It is not replaced by another record of the same key.
    world.kubectl("create secret generic addon-operator-state-unreadable --from-literal=channel=older");
    assert_eq!(put_records_aside(cluster).await.unwrap(), ["trial", "channel"]);
    let aside = world.kubectl("get secret addon-operator-state-unreadable -o=jsonpath={.data.trial}:{.data.channel}");
    assert_eq!(aside, "e29o:b2xkZXI=");
    assert_eq!(standing(cluster).await, Kept::Absent);
    assert_eq!(put_records_aside(cluster).await.unwrap(), [""; 0]);
    assert_eq!(
        change_trial(cluster, None, Some(&trial())).await.unwrap(),
        Changed::Done
    );
}
