//! The answers of an imitated API server: status codes and bodies as a real one gives them.
//!
//! Must never answer with an error after a change of an object.

use hyper::Method;
use json_patch::Patch;
use serde_json::{Value, json};

use super::stored::{Place, Stored};

pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    /// The parameters behind the path.
    pub(super) query: &'a str,
    pub(super) content_type: &'a str,
    /// The body; null if there is none.
    pub(super) body: Value,
}

pub(super) type Answer = (u16, Value);

/// The parts of an object's path. The name is empty for a collection.
pub(super) struct Path {
    api_version: String,
    pub(super) place: Place,
    pub(super) subresource: Option<String>,
}

/// The type of a body that is applied.
const APPLY: &str = "application/apply-patch";

impl Asked<'_> {
    /// The field manager of a server-side apply, and whether it takes over fields of other managers.
    fn manager(&self) -> (String, bool) {
        let pairs = || self.query.split('&').filter_map(|pair| pair.split_once('='));
        let value = |wanted: &str| {
            pairs()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| decoded(value))
        };
        (
            value("fieldManager").unwrap_or_default(),
            value("force").is_some_and(|force| force == "true"),
        )
    }
}

impl Stored {
    /// Does the request.
    pub(super) fn answer(&mut self, asked: Asked<'_>) -> Answer {
        match asked.path {
            "/api" => return (200, self.discovery(true)),
            "/apis" => return (200, self.discovery(false)),
            _ => {}
        }
        let Some(path) = Path::parse(asked.path) else {
            return failure(404, "NotFound", "the server could not find the requested resource", "");
        };
        if let Some(part) = path.subresource.as_deref().filter(|part| *part != "status") {
            let message = format!("a cluster of tests has only the subresource status, and not {part}");
            return failure(405, "MethodNotAllowed", &message, &path.place.name);
        }
        match *asked.method {
            Method::POST => self.create(path, asked.body),
            Method::GET => match self.objects.get(&path.place) {
                Some(object) => (200, path.shown(object)),
                None => path.missing(),
            },
            Method::PUT => self.change(&path, |_| Ok(asked.body)),
            Method::PATCH if asked.content_type.starts_with(APPLY) => {
                let (manager, force) = asked.manager();
                self.apply(&path, &manager, force, &asked.body)
            }
            Method::PATCH => self.change(&path, |object| patched(object, asked.content_type, &asked.body)),
            Method::DELETE => self.delete(&path),
            _ => failure(405, "MethodNotAllowed", "the method is not supported", ""),
        }
    }

    fn create(&mut self, mut path: Path, mut object: Value) -> Answer {
        let metadata = object.get("metadata");
        let text = |key: &str| metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
        path.place.name = match (text("name"), text("generateName")) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(prefix)) => {
                self.generated += 1;
                format!("{prefix}{:05}", self.generated)
            }
            (_, None) => {
                return failure(
                    422,
                    "Invalid",
                    "metadata.name: Required value: name or generateName is required",
                    "",
                );
            }
        };
        if self.objects.contains_key(&path.place) {
            let Place { plural, name, .. } = &path.place;
            return failure(
                409,
                "AlreadyExists",
                &format!("{plural} \"{name}\" already exists"),
                name,
            );
        }
        object["metadata"]["name"] = json!(path.place.name);
        (201, self.store(&path, object))
    }

    fn change(&mut self, path: &Path, change: impl FnOnce(Value) -> Result<Value, String>) -> Answer {
        let Some(found) = self.objects.get(&path.place) else {
            return path.missing();
        };
        let changed = match change(path.shown(found)) {
            Ok(changed) => changed,
            Err(message) => return failure(422, "Invalid", &message, &path.place.name),
        };
        let object = if path.subresource.is_some() {
            let mut object = found.clone();
            object["status"] = changed["status"].clone();
            object
        } else {
            changed
        };
        (200, self.store(path, object))
    }

    /// Stores the object under its path, whatever names its body has, and shows it.
    pub(super) fn store(&mut self, path: &Path, mut object: Value) -> Value {
        let Place { namespace, name, .. } = &path.place;
        object["apiVersion"] = json!(path.api_version);
        object["metadata"]["name"] = json!(name);
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // Objects of a case have no version, and the patcher repeats the one that it has read.
            metadata.retain(|key, value| key != "resourceVersion" || !value.is_null());
        }
        if is_being_deleted(&object) && !has_finalizers(&object) {
            self.objects.remove(&path.place);
        } else {
            self.objects.insert(path.place.clone(), object.clone());
        }
        object
    }

    /// Deletes an object. One with finalizers only gets the time of its deletion.
    fn delete(&mut self, path: &Path) -> Answer {
        match self.objects.get_mut(&path.place) {
            None => path.missing(),
            Some(object) if has_finalizers(object) => {
                object["metadata"]["deletionTimestamp"] = json!("2000-01-01T00:00:00Z");
                (200, path.shown(object))
            }
            Some(_) => {
                self.objects.remove(&path.place);
                (
                    200,
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
                )
            }
        }
    }
}

fn has_finalizers(object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|list| !list.is_empty())
}

fn is_being_deleted(object: &Value) -> bool {
    object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|time| !time.is_null())
}

/// The object after a patch; the error is the message of the API server.
fn patched(mut object: Value, content_type: &str, patch: &Value) -> Result<Value, String> {
    if content_type.starts_with("application/json-patch") {
        let steps: Patch = serde_json::from_value(patch.clone()).map_err(|error| error.to_string())?;
        json_patch::patch(&mut object, &steps).map_err(|error| format!("the server rejected the patch: {error}"))?;
    } else {
        json_patch::merge(&mut object, patch);
    }
    Ok(object)
}

pub(super) fn failure(code: u16, reason: &str, message: &str, name: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message, "details": {"name": name},
    });
    (code, status)
}

impl Path {
    /// Reads the path of a collection, of an object or of an object's subresource; `None` if the path is none of these.
    fn parse(path: &str) -> Option<Self> {
        let parts: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if rest.first().is_some_and(|part| *part != "status") => {
                (*namespace, rest)
            }
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", None),
            [plural, name] => (*plural, *name, None),
            [plural, name, part] => (*plural, *name, Some((*part).to_owned())),
            _ => return None,
        };
        let place = Place {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        Some(Self {
            api_version,
            place,
            subresource,
        })
    }

    /// The object in the version of the request.
    pub(super) fn shown(&self, object: &Value) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = json!(self.api_version);
        object
    }

    pub(super) fn missing(&self) -> Answer {
        let Place { plural, name, .. } = &self.place;
        failure(404, "NotFound", &format!("{plural} \"{name}\" not found"), name)
    }
}

/// A part of a path without its percent signs.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
