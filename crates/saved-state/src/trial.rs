//! The records of a trial, and the memory of the channel and of trials, in the state Secret.
//!
//! A change takes effect only if the record still has the text that was read. So if several judges rule, only the first
//! succeeds. A record that cannot be read is reported, counts as unknown, and is only overwritten on request, after it
//! was copied to another Secret. Must never wait in the rate limit's queue: a version on trial whose report is late has
//! failed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use channel_core::trial::record::{Remembered, Report, Trial};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Resource as _;
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::writing;
use super::{Changes, Data, NAME, Unreadable};

/// The running trial.
pub(super) const TRIAL_KEY: &str = "trial";
/// The report of the version on trial.
pub(super) const REPORT_KEY: &str = "trial-report";
/// The memory of the channel and of trials.
pub(super) const CHANNEL_KEY: &str = "channel";
const JSON_PATCH: &str = "application/json-patch+json";
/// The number of attempts if other writers change the Secret meanwhile.
const ROUNDS: usize = 20;

/// The state of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept<T> {
    /// The trial has no record.
    Absent,
    /// This version of the operator cannot read the record; a sentence that names the record.
    Unreadable(String),
    /// The record.
    Is(T),
}

/// All records, read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// The running trial.
    pub trial: Kept<Trial>,
    /// The report of the version on trial.
    pub report: Kept<Report>,
    /// The memory of the channel and of trials.
    pub remembered: Kept<Remembered>,
}

/// The outcome of a change that takes effect only on the expected record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed<T> {
    /// The record is as wanted.
    Done,
    /// Another replica or a person was faster; the present record.
    Other(Kept<T>),
}

/// Reads the records.
pub async fn channel_records(cluster: &Cluster) -> Result<Records, RequestError> {
    let (_, data) = seen_state(cluster).await?;
    Ok(Records {
        trial: read(&data, TRIAL_KEY),
        report: read(&data, REPORT_KEY),
        remembered: read(&data, CHANNEL_KEY),
    })
}

/// Replaces the expected trial by another; none stands for no trial.
pub async fn change_trial(
    cluster: &Cluster,
    expected: Option<&Trial>,
    to: Option<&Trial>,
) -> Result<Changed<Trial>, RequestError> {
    exchange(cluster, TRIAL_KEY, expected, to).await
}

/// Replaces the expected memory by another. An absent memory equals an empty one.
pub async fn save_remembered(
    cluster: &Cluster,
    expected: &Remembered,
    to: &Remembered,
) -> Result<Changed<Remembered>, RequestError> {
    let worth = |remembered: &Remembered| *remembered != Remembered::default();
    let (known, to) = (Some(expected), Some(to));
    match exchange(cluster, CHANNEL_KEY, known, to).await? {
        Changed::Other(Kept::Absent) if !worth(expected) => exchange(cluster, CHANNEL_KEY, None, to).await,
        changed => Ok(changed),
    }
}

/// Writes the report of the version on trial over an earlier one.
pub async fn write_report(cluster: &Cluster, report: &Report) -> Result<(), RequestError> {
    let change = (REPORT_KEY.to_owned(), Some(json!(report).to_string().into_bytes()));
    writing::remember(&cluster.unhurried(), NAME, &[change].into())
        .await
        .map(drop)
}

/// Deletes the report of a trial that has ended.
pub async fn forget_report(cluster: &Cluster) -> Result<(), RequestError> {
    let change = (REPORT_KEY.to_owned(), None);
    writing::remember(&cluster.unhurried(), NAME, &[change].into())
        .await
        .map(drop)
}

/// Moves the records that this version of the operator cannot read to another Secret, for people. Returns the keys
/// of the records.
pub async fn put_records_aside(cluster: &Cluster) -> Result<Vec<&'static str>, RequestError> {
    let (_, data) = seen_state(cluster).await?;
    let keys: Vec<&'static str> = unreadable(&data).map(|problem| problem.key).collect();
    let changes: Changes = keys.iter().map(|key| ((*key).to_owned(), None)).collect();
    writing::remember(&cluster.unhurried(), NAME, &changes).await?;
    Ok(keys)
}

async fn seen_state(cluster: &Cluster) -> Result<(Option<Secret>, Data), RequestError> {
    let api: kube::Api<Secret> = kube::Api::namespaced(cluster.open(), cluster.namespace());
    let secret = cluster
        .ask(cluster.attempt("get", "secrets", NAME), api.get_opt(NAME))
        .await?;
    let data = secret.as_ref().and_then(|secret| secret.data.clone());
    Ok((secret, data.unwrap_or_default()))
}

async fn exchange<T: Serialize + DeserializeOwned>(
    cluster: &Cluster,
    key: &'static str,
    expected: Option<&T>,
    to: Option<&T>,
) -> Result<Changed<T>, RequestError> {
    let wanted = to.map(|to| json!(to));
    let mut left = ROUNDS;
    loop {
        left -= 1;
        let (secret, data) = seen_state(cluster).await?;
        let now: Kept<T> = read(&data, key);
        let standing = match &now {
            Kept::Absent => None,
            Kept::Is(now) => Some(json!(now)),
            Kept::Unreadable(_) => return Ok(Changed::Other(now)),
        };
        if standing == wanted {
            return Ok(Changed::Done);
        }
        if standing != expected.map(|expected| json!(expected)) {
            return Ok(Changed::Other(now));
        }
        let text = wanted.as_ref().map(|wanted| wanted.to_string().into_bytes());
        let written = match (secret, data.get(key)) {
            (Some(_), Some(found)) => replace(cluster, key, found, text).await,
            (Some(secret), None) => add(cluster, key, &secret, text).await,
            (None, _) => {
                let changes = [(key.to_owned(), text)].into();
                writing::create(&cluster.unhurried(), NAME, &changes).await.map(drop)
            }
        };
        match written {
            // The Secret has changed since it was read; the next read shows whether this concerns the record.
            Err(error) if left > 0 && is_race(&error) => {}
            written => return written.map(|()| Changed::Done),
        }
    }
}

/// Replaces a record; refused if it has another text.
async fn replace(cluster: &Cluster, key: &str, found: &ByteString, text: Option<Vec<u8>>) -> Result<(), RequestError> {
    let path = format!("/data/{key}");
    let test = json!({"op": "test", "path": path, "value": STANDARD.encode(&found.0)});
    let change = match text {
        Some(text) => json!({"op": "replace", "path": path, "value": STANDARD.encode(text)}),
        None => json!({"op": "remove", "path": path}),
    };
    let folder = Secret::url_path(&(), Some(cluster.namespace()));
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(format!("{folder}/{NAME}"))
        .header(CONTENT_TYPE, JSON_PATCH)
        .body(json!([test, change]).to_string().into_bytes())
        .expect("names of namespaces are parts of addresses as they are");
    let client = cluster.unpaced();
    let answer = client.request::<Value>(request);
    cluster
        .ask(cluster.attempt("patch", "secrets", NAME), answer)
        .await
        .map(drop)
}

/// Adds a record; refused if the Secret has changed.
async fn add(cluster: &Cluster, key: &str, secret: &Secret, text: Option<Vec<u8>>) -> Result<(), RequestError> {
    let changes = [(key.to_owned(), text)].into();
    writing::merge(&cluster.unhurried(), NAME, &secret.metadata, &changes)
        .await
        .map(drop)
}

fn is_race(error: &RequestError) -> bool {
    error.is_conflict() || error.is_not_found() || error.is_failed_test()
}

fn read<T: DeserializeOwned>(data: &Data, key: &'static str) -> Kept<T> {
    let Some(text) = data.get(key) else {
        return Kept::Absent;
    };
    match serde_json::from_slice(&text.0) {
        Ok(record) => Kept::Is(record),
        Err(error) => Kept::Unreadable(format!(
            "the key '{key}' of the Secret '{NAME}' holds something that this version cannot read: {error}"
        )),
    }
}

/// The records that cannot be read.
pub(super) fn unreadable(data: &Data) -> impl Iterator<Item = Unreadable> + use<> {
    let trial = problem::<Trial>(data, TRIAL_KEY);
    let report = problem::<Report>(data, REPORT_KEY);
    let remembered = problem::<Remembered>(data, CHANNEL_KEY);
    [trial, report, remembered].into_iter().flatten()
}

fn problem<T: DeserializeOwned>(data: &Data, key: &'static str) -> Option<Unreadable> {
    match read::<T>(data, key) {
        Kept::Absent | Kept::Is(_) => None,
        Kept::Unreadable(error) => Some(Unreadable { key, error }),
    }
}
