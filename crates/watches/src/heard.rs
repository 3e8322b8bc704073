//! Parses a line of a watch, or an item of a list.
//!
//! It reads only names and the version; the rest of an object is parsed when a monitor needs it. Must never guess the
//! type of a line.

use std::borrow::Cow;
use std::sync::Arc;

use addon_core::object::ObjectName;
use addon_core::release::RELEASE_NAME;
use kube::core::ApiResource;
use kube_access::error::{Attempt, RequestError};
use names::ModuleName;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::lens::{Item, Text, Trace};
use super::stream::{Line, failed, read_status};
use super::trouble::{Trouble, WatchError};

/// A parsed line of a watch.
pub(super) enum Heard {
    /// An object exists in this state; with its version.
    Present(Item, String),
    /// An object was deleted; its last state and its version.
    Gone(Item, String),
    /// A bookmark: everything up to this resource version was sent.
    Mark {
        version: String,
        /// Whether this bookmark ends the initial list.
        complete: bool,
    },
}

/// The annotation of the bookmark after the last object of a streaming list.
const COMPLETE: &str = "k8s.io/initial-events-end";

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

pub(super) fn read_line(line: &[u8], resource: &ApiResource, attempt: &Attempt) -> Result<Heard, Trouble> {
    let unusable = |error: serde_json::Error| unusable(attempt, &error.to_string());
    let line: Line<'_> = serde_json::from_slice(line).map_err(unusable)?;
    let head = |object: &RawValue| -> Result<(Item, String), Trouble> { read_item(object, resource, attempt) };
    match &*line.kind {
        "ADDED" | "MODIFIED" => head(line.object).map(|(item, version)| Heard::Present(item, version)),
        "DELETED" => head(line.object).map(|(item, version)| Heard::Gone(item, version)),
        "BOOKMARK" => {
            let Head { metadata } = serde_json::from_str(line.object.get()).map_err(unusable)?;
            let complete = metadata.annotations.is_some_and(|all| all.get().contains(COMPLETE));
            let version = metadata.resource_version.into_owned();
            Ok(Heard::Mark { version, complete })
        }
        "ERROR" => {
            let status = read_status(line.object.get().as_bytes());
            Err(failed(attempt.clone(), kube::Error::Api(status.boxed())))
        }
        other => Err(self::unusable(attempt, &format!("an event of type '{other}'"))),
    }
}

/// Parses the names and the version of an object.
pub(super) fn read_item(
    object: &RawValue,
    resource: &ApiResource,
    attempt: &Attempt,
) -> Result<(Item, String), Trouble> {
    let head = serde_json::from_str(object.get());
    let Head { metadata } = head.map_err(|error| unusable(attempt, &error.to_string()))?;
    if metadata.name.is_empty() {
        return Err(unusable(attempt, "an object without a name"));
    }
    let name = Arc::new(ObjectName {
        namespace: metadata.namespace.into_owned(),
        name: metadata.name.into_owned(),
        kind: resource.kind.clone(),
    });
    let text = Text::Sent(object.get().as_bytes().into());
    let trace = Trace {
        version: metadata.resource_version.parse().unwrap_or_default(),
        release: metadata.annotations.and_then(release_of),
        by_tool: metadata.managed_fields.is_some_and(is_by_tool),
    };
    Ok((Item { name, text, trace }, metadata.resource_version.into_owned()))
}

/// The release that these annotations name. Most objects have no such annotation; then nothing is parsed.
fn release_of(annotations: &RawValue) -> Option<ModuleName> {
    #[derive(Deserialize)]
    struct Annotations {
        #[serde(rename = "meta.helm.sh/release-name")]
        release: Option<String>,
    }
    let text = annotations.get();
    if !text.contains(RELEASE_NAME) {
        return None;
    }
    let annotations: Annotations = serde_json::from_str(text).ok()?;
    ModuleName::parse(&annotations.release?).ok()
}

/// The beginnings of the names under which tools that hooks call write objects.
const TOOLS: [&str; 5] = ["kubectl", "curl", "python", "OpenAPI-Generator", "oc"];

/// Whether a tool made the last of these writes. The lists of most objects name no tool; then nothing is parsed.
fn is_by_tool(managed: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Entry<'a> {
        #[serde(borrow, default)]
        manager: Cow<'a, str>,
        #[serde(borrow, default)]
        time: Cow<'a, str>,
    }
    let text = managed.get();
    if !TOOLS.iter().any(|tool| text.contains(&format!("\"manager\":\"{tool}"))) {
        return false;
    }
    let entries: Vec<Entry<'_>> = serde_json::from_str(text).unwrap_or_default();
    // Times have the precision of a second.
    let last = entries.iter().map(|entry| &entry.time).max();
    let mut last = entries.iter().filter(|entry| Some(&entry.time) == last);
    last.any(|entry| TOOLS.iter().any(|tool| entry.manager.starts_with(tool)))
}

/// Moves the position to a version. A server's history never goes back; a lower version belongs to a restored store.
pub(super) fn advance(version: &mut String, heard: String, attempt: &Attempt) -> Result<(), Trouble> {
    if heard.is_empty() {
        return Ok(());
    }
    if is_before(&heard, version) {
        let problem = format!("its history went back from version {version} to {heard}");
        return Err(Trouble {
            kind: WatchError::Expired,
            ..unusable(attempt, &problem)
        });
    }
    *version = heard;
    Ok(())
}

/// Whether one version is older than another, if that can be known.
pub(super) fn is_before(one: &str, other: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    matches!((number(one), number(other)), (Some(one), Some(other)) if one < other)
}

pub(super) fn unusable(attempt: &Attempt, problem: &str) -> Trouble {
    Trouble::of(RequestError::Unusable {
        attempt: attempt.clone(),
        problem: problem.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;

    use super::*;

    #[test]
    fn the_last_writer_is_told_by_the_managed_fields() {
        let by_tool = |managed: &str| {
            let object = format!(r#"{{"metadata":{{"name":"a","managedFields":{managed}}}}}"#);
            let raw: Box<RawValue> = serde_json::from_str(&object).unwrap();
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
            let (item, _) = read_item(&raw, &resource, &attempt())
                .map_err(|_| "unreadable")
                .unwrap();
            item.trace.by_tool
        };
        let helm = r#"{"manager":"helm","operation":"Update","time":"2026-01-01T00:00:00Z"}"#;
        let kubectl = r#"{"manager":"kubectl-annotate","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:01Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{}}}"#;
        let later = r#"{"manager":"kubelet","operation":"Update","time":"2026-01-01T00:00:02Z"}"#;
        assert!(by_tool(&format!("[{helm},{kubectl}]")));
        assert!(!by_tool(&format!("[{helm}]")));
        assert!(!by_tool(&format!("[{kubectl},{later}]")));
    }

    fn attempt() -> Attempt {
        Attempt {
            verb: "watch",
            resource: "pods".to_owned(),
            name: String::new(),
            namespace: None,
            server: "https://10.0.0.1".to_owned(),
            account: None,
        }
    }

    fn read(line: &str) -> Result<Heard, Trouble> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
        read_line(line.as_bytes(), &resource, &attempt())
    }

    #[test]
    fn an_event_names_its_object_and_its_version() {
        let line = r#"{"type":"ADDED","object":{"metadata":{"name":"x","namespace":"ns","resourceVersion":"7"}}}"#;
        let Ok(Heard::Present(item, version)) = read(line) else {
            panic!("not present")
        };
        assert_eq!((item.name.to_string().as_str(), version.as_str()), ("Pod ns/x", "7"));
        assert!(matches!(
            read(&line.replace("ADDED", "MODIFIED")),
            Ok(Heard::Present(..))
        ));
        assert!(matches!(read(&line.replace("ADDED", "DELETED")), Ok(Heard::Gone(..))));
        assert!(read(&line.replace("ADDED", "RENAMED")).is_err());
        assert!(read(&line.replace(r#""name":"x","#, "")).is_err());
        assert!(read(&line[..line.len() - 1]).is_err());
    }

    #[test]
    fn a_mark_may_end_the_first_listing() {
        let plain = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":null}}}"#;
        assert!(matches!(read(plain), Ok(Heard::Mark { version, complete: false }) if version == "9"));
        let last = plain.replace("null", r#"{"k8s.io/initial-events-end":"true"}"#);
        assert!(matches!(read(&last), Ok(Heard::Mark { complete: true, .. })));
    }

    #[test]
    fn a_lost_place_is_told_from_other_errors() {
        let line = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(read(line).err().unwrap().is_expired());
        assert!(!read(&line.replace("410", "500")).err().unwrap().is_expired());
    }

    #[test]
    fn a_history_that_goes_back_is_another_one() {
        let mut version = "100".to_owned();
        for (heard, after) in [
            ("101", "101"),
            ("101", "101"),
            ("", "101"),
            ("letters", "letters"),
            ("1", "1"),
        ] {
            advance(&mut version, heard.to_owned(), &attempt()).unwrap();
            assert_eq!(version, after);
        }
        let mut version = "100".to_owned();
        let trouble = advance(&mut version, "99".to_owned(), &attempt()).unwrap_err();
        assert!(trouble.is_expired());
        assert_eq!(version, "100");
    }
}
