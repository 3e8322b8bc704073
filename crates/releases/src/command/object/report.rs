//! The rows of the answer: an object with its health.
//!
//! Must never judge by other rules than the watches of releases, nor tell the cause by objects of another namespace.

use addon_core::operator::health::Seen;
use command::paint::Tone;
use command::table::Table;
use health_core::why::{Around, why};
use health_core::{judge, waits_for_consumer};
use jiff::Timestamp;
use objects::key::is_passing;
use serde::Serialize;
use serde_json::Value;

use crate::health;

/// The health of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    api_version: String,
    kind: String,
    /// Empty for a cluster-wide object.
    namespace: String,
    name: String,
    health: &'static str,
    sentence: String,
}

/// Judges objects, in their order. The expected ones that are not among them come last.
pub(super) fn judged(objects: &[Value], expected: &[Value], around: &[Value], now: Timestamp) -> Vec<Row> {
    let judged = objects.iter().map(|object| Row::of(object, seen(object, around, now)));
    let lacking = expected
        .iter()
        .filter(|expected| !is_passing(expected) && !objects.iter().any(|object| is_same(expected, object)));
    let lacking = lacking.map(|expected| Row::of(expected, health::absent()));
    judged.chain(lacking).collect()
}

/// The rows as a table.
pub(super) fn table(rows: Vec<Row>) -> Table<5> {
    let mut table = Table::new(["KIND", "NAMESPACE", "NAME", "HEALTH", "WHY"]);
    for row in rows {
        let tone = match row.health {
            "Healthy" => Tone::Good,
            "RollingOut" => Tone::Waiting,
            "Failed" => Tone::Bad,
            _ => Tone::Faint,
        };
        let plain = |text| (Tone::Neutral, text);
        table.row([
            plain(row.kind),
            plain(row.namespace),
            plain(row.name),
            (tone, row.health.to_owned()),
            plain(row.sentence),
        ]);
    }
    table
}

impl Row {
    fn of(object: &Value, seen: Seen) -> Self {
        let (health, sentence) = health::worded(seen);
        let owned = |path| text(object, path).to_owned();
        Self {
            api_version: owned("/apiVersion"),
            kind: owned("/kind"),
            namespace: owned(NAMESPACE),
            name: owned("/metadata/name"),
            health,
            sentence,
        }
    }
}

const NAMESPACE: &str = "/metadata/namespace";

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The health of an object, with the cause if the objects around it tell one.
fn seen(object: &Value, around: &[Value], now: Timestamp) -> Seen {
    let near = |kind: &str| -> Vec<Value> {
        let near = around
            .iter()
            .filter(|other| text(other, "/kind") == kind && text(other, NAMESPACE) == text(object, NAMESPACE));
        near.cloned().collect()
    };
    let because = |sentence: String| {
        // Without its uid an object would be told the pods of another one.
        if around.is_empty() || text(object, "/metadata/uid").is_empty() {
            return sentence;
        }
        let (replica_sets, pods, events) = (near("ReplicaSet"), near("Pod"), near("Event"));
        let around = Around {
            replica_sets: &replica_sets,
            pods: &pods,
            events: &events,
            ..Around::default()
        };
        match why(object, &around, now) {
            Some(cause) if sentence.is_empty() => cause,
            Some(cause) => format!("{sentence}; {cause}"),
            None => sentence,
        }
    };
    match health::seen(judge(object, now)) {
        Seen::InProgress(_) if is_waiting_claim(object, &near("Event")) => Seen::Healthy,
        Seen::InProgress(sentence) => Seen::InProgress(because(sentence)),
        Seen::Failed(sentence) => Seen::Failed(because(sentence)),
        seen @ (Seen::Healthy | Seen::Unknown) => seen,
    }
}

/// Whether an object is a claim for which nothing is to be done before a pod uses it.
fn is_waiting_claim(object: &Value, events: &[Value]) -> bool {
    let is_about_it = |event: &&Value| {
        ["/involvedObject", "/regarding"].iter().any(|about| {
            text(event, &format!("{about}/kind")) == "PersistentVolumeClaim"
                && text(event, &format!("{about}/name")) == text(object, "/metadata/name")
        })
    };
    let of_claim: Vec<Value> = events.iter().filter(is_about_it).cloned().collect();
    text(object, "/kind") == "PersistentVolumeClaim" && waits_for_consumer(object, &of_claim)
}

/// Whether an object of a manifest is this one of the cluster, also without its namespace or by another version.
fn is_same(expected: &Value, object: &Value) -> bool {
    let group = |object| {
        let version = text(object, "/apiVersion");
        version.split_once('/').map_or("", |(group, _)| group)
    };
    let namespace = text(expected, NAMESPACE);
    group(expected) == group(object)
        && text(expected, "/kind") == text(object, "/kind")
        && text(expected, "/metadata/name") == text(object, "/metadata/name")
        && (namespace.is_empty() || namespace == text(object, NAMESPACE) || text(object, NAMESPACE).is_empty())
}

#[cfg(test)]
mod tests;
