//! Replaces the image of the operator's Deployment with a JSON patch that tests the old image. Both the operator and a
//! person's command use it.
//!
//! No entry of ours stays in `managedFields`, because helm's server-side apply takes over no field that another manager
//! owns. Must never replace an image that the caller did not name.

use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Resource as _;
use kube::core::{ApiResource, DynamicObject};
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde_json::{Value, json};

use super::{CHART_IMAGE, CHART_IMAGE_THEN, DEPLOYMENTS, FORMER_IMAGE, Installation, PATCHED_IMAGE, reading};
use crate::installation;

/// The operator's field manager for the Deployment.
pub const FIELD_MANAGER: &str = "addon-operator-channel";
/// The annotation with the cause of a rollout, which `kubectl rollout history` shows.
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
const JSON_PATCH: &str = "application/json-patch+json";
/// The number of attempts if other writers change the Deployment meanwhile.
const ROUNDS: usize = 5;

/// The outcome of a change that is made only on the expected state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The state is as wanted.
    Done,
    /// The state differs from the expected one, and nothing was done.
    Changed {
        /// The present value.
        now: String,
    },
}

/// Why a patch was not accepted.
#[derive(Debug)]
enum Refused {
    /// A test in the patch failed, or the result would be invalid.
    Test(RequestError),
    Request(RequestError),
}

/// Why a Deployment was not written.
#[derive(Debug)]
pub enum Unwritten {
    /// The Deployment has another image, which is given here.
    Changed(String),
    Request(RequestError),
}

impl From<RequestError> for Unwritten {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// The data for writing an image.
#[derive(Debug)]
pub struct Writing<'a> {
    pub container: &'a str,
    pub from: &'a str,
    pub to: &'a str,
    /// The cause of the rollout, for people.
    pub cause: &'a str,
}

/// Replaces the image `from` of the operator's container and notes both images. With two equal images it only notes
/// that the image is the operator's own.
pub async fn patch_image(
    cluster: &Cluster,
    installation: &Installation,
    from: &str,
    to: &str,
) -> Result<Outcome, RequestError> {
    let writing = Writing {
        container: &installation.container,
        from,
        to,
        cause: &format!("addon-operator: {from} is replaced by {to}"),
    };
    let name = &installation.deployment;
    match write_image(cluster, name, &writing).await {
        Ok(written) => {
            disown(cluster, name, written).await?;
            Ok(Outcome::Done)
        }
        Err(Unwritten::Changed(now)) => Ok(Outcome::Changed { now }),
        Err(Unwritten::Request(error)) => Err(error),
    }
}

/// Writes the image, and returns the Deployment with our entries in `managedFields`.
pub async fn write_image(cluster: &Cluster, name: &str, writing: &Writing<'_>) -> Result<DynamicObject, Unwritten> {
    let steps = |found: &DynamicObject| match writing.steps(found) {
        Ok(steps) => Ok(Some(steps)),
        // The image was already written: by a request of ours without an answer, or by another replica.
        Err(now) if now == writing.to && writing.is_noted(found) => Ok(None),
        Err(now) => Err(now),
    };
    write(cluster, name, steps).await
}

/// Writes annotations, if the container still has this image. Returns the Deployment with our entries in
/// `managedFields`.
pub async fn write_notes(
    cluster: &Cluster,
    name: &str,
    container: &str,
    image: &str,
    notes: &[(&str, &str)],
) -> Result<DynamicObject, Unwritten> {
    let steps = |found: &DynamicObject| {
        let (_, mut steps) = tests(found, container, image)?;
        steps.extend(noting(found, notes));
        Ok(Some(Value::Array(steps)))
    };
    write(cluster, name, steps).await
}

/// Sends the patch that `steps` makes from the present Deployment. The error of `steps` is the present image.
async fn write(
    cluster: &Cluster,
    name: &str,
    steps: impl Fn(&DynamicObject) -> Result<Option<Value>, String>,
) -> Result<DynamicObject, Unwritten> {
    let mut left = ROUNDS;
    loop {
        left -= 1;
        let found = installation::raw_deployment(cluster, name).await?;
        let Some(steps) = steps(&found).map_err(Unwritten::Changed)? else {
            return Ok(found);
        };
        match step_through(cluster, name, &steps).await {
            Ok(written) => return Ok(written),
            Err(Refused::Test(_)) if left > 0 => {}
            Err(Refused::Test(error) | Refused::Request(error)) => return Err(error.into()),
        }
    }
}

/// Removes our entries from `managedFields`.
pub async fn disown(cluster: &Cluster, name: &str, written: DynamicObject) -> Result<(), RequestError> {
    let (mut found, mut left) = (written, ROUNDS);
    loop {
        left -= 1;
        let Some(steps) = disowning(&found) else { return Ok(()) };
        match step_through(cluster, name, &steps).await {
            Ok(_) => return Ok(()),
            Err(Refused::Test(_)) if left > 0 => found = installation::raw_deployment(cluster, name).await?,
            Err(Refused::Test(error) | Refused::Request(error)) => return Err(error),
        }
    }
}

async fn step_through(cluster: &Cluster, name: &str, steps: &Value) -> Result<DynamicObject, Refused> {
    let folder = DynamicObject::url_path(&ApiResource::erase::<Deployment>(&()), Some(cluster.namespace()));
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(format!("{folder}/{name}?fieldManager={FIELD_MANAGER}"))
        .header(CONTENT_TYPE, JSON_PATCH)
        .body(steps.to_string().into_bytes())
        .expect("names of objects and namespaces are parts of addresses as they are");
    let client = cluster.unpaced();
    let attempt = cluster.attempt("patch", DEPLOYMENTS, name);
    let answer = cluster.ask(attempt, client.request(request)).await;
    answer.map_err(|error| {
        if error.is_failed_test() || error.is_conflict() {
            Refused::Test(error)
        } else {
            Refused::Request(error)
        }
    })
}

impl Writing<'_> {
    /// Whether an annotation of the Deployment says that the operator wrote the image `to`.
    fn is_noted(&self, found: &DynamicObject) -> bool {
        reading::annotation(&found.metadata, PATCHED_IMAGE).is_some_and(|noted| noted == self.to)
    }

    /// The patch that writes the image; the error is the present image if it is not the expected one.
    fn steps(&self, found: &DynamicObject) -> Result<Value, String> {
        let Self {
            container,
            from,
            to,
            cause,
        } = *self;
        let (path, mut steps) = tests(found, container, from)?;
        if from == to {
            steps.extend(noting(found, &[(PATCHED_IMAGE, to)]));
        } else {
            steps.push(json!({"op": "replace", "path": path, "value": to}));
            let notes = [(FORMER_IMAGE, from), (CHANGE_CAUSE, cause), (PATCHED_IMAGE, to)];
            steps.extend(noting(found, &notes));
        }
        steps.extend(note_of_chart(found));
        Ok(Value::Array(steps))
    }
}

/// The path of the container's image, and the steps that test for `image`. If the container has another image, the
/// error is that image.
fn tests(found: &DynamicObject, container: &str, image: &str) -> Result<(String, Vec<Value>), String> {
    let containers = found.data["spec"]["template"]["spec"]["containers"].as_array();
    let mut containers = containers.into_iter().flatten().enumerate();
    let ours = containers.find(|(_, known)| known["name"] == *container);
    let Some((index, ours)) = ours else {
        return Err(format!("no container '{container}'"));
    };
    let now = ours["image"].as_str().unwrap_or_default();
    if now != image {
        return Err(now.to_owned());
    }
    let place = format!("/spec/template/spec/containers/{index}");
    let path = format!("{place}/image");
    let steps = vec![
        json!({"op": "test", "path": format!("{place}/name"), "value": container}),
        json!({"op": "test", "path": path, "value": image}),
    ];
    Ok((path, steps))
}

/// The patch steps that write annotations, whether or not there are any yet.
fn noting(found: &DynamicObject, notes: &[(&str, &str)]) -> Vec<Value> {
    let mut steps = Vec::new();
    if found.metadata.annotations.is_none() {
        // Another writer may add the first annotation meanwhile. The test of the version protects that annotation.
        let version = &found.metadata.resource_version;
        steps.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
        steps.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    let step = |(key, value): &(&str, &str)| json!({"op": "add", "path": annotation(key), "value": value});
    steps.extend(notes.iter().map(step));
    steps
}

/// The steps that note the image of the chart's values, so that a later change of that image is noticed.
fn note_of_chart(found: &DynamicObject) -> Vec<Value> {
    let (read, noted) = (annotation(CHART_IMAGE), annotation(CHART_IMAGE_THEN));
    let now = reading::annotation(&found.metadata, CHART_IMAGE);
    let then = reading::annotation(&found.metadata, CHART_IMAGE_THEN);
    match (now, then) {
        (Some(now), _) => vec![
            json!({"op": "test", "path": read, "value": now}),
            json!({"op": "add", "path": noted, "value": now}),
        ],
        (None, Some(_)) => vec![json!({"op": "remove", "path": noted})],
        (None, None) => Vec::new(),
    }
}

fn annotation(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The steps that remove our entries, the last entry first; none if we have no entries.
fn disowning(found: &DynamicObject) -> Option<Value> {
    let entries = found.metadata.managed_fields.as_deref().unwrap_or_default();
    let is_ours = |manager: Option<&String>| manager.is_some_and(|manager| manager == FIELD_MANAGER);
    let ours: Vec<usize> = (0..entries.len())
        .rev()
        .filter(|index| is_ours(entries[*index].manager.as_ref()))
        .collect();
    if ours.is_empty() {
        return None;
    }
    let tests = ours.iter().map(|index| {
        let path = format!("/metadata/managedFields/{index}/manager");
        json!({"op": "test", "path": path, "value": FIELD_MANAGER})
    });
    // An empty list of managers has no effect. A list with one empty entry removes all managers.
    let changes: Vec<Value> = if ours.len() == entries.len() {
        vec![json!({"op": "replace", "path": "/metadata/managedFields", "value": [{}]})]
    } else {
        let removals = ours.iter();
        removals
            .map(|index| json!({"op": "remove", "path": format!("/metadata/managedFields/{index}")}))
            .collect()
    };
    Some(tests.chain(changes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(managers: &[&str], annotations: Option<&Value>) -> DynamicObject {
        let entries: Vec<Value> = managers
            .iter()
            .map(|manager| json!({"manager": manager, "operation": "Update"}))
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "resourceVersion": "7", "managedFields": entries, "annotations": annotations},
            "spec": {"template": {"spec": {"containers": [
                {"name": "other", "image": "x:1"}, {"name": "ours", "image": "a:1"},
            ]}}},
        }))
        .unwrap()
    }

    #[test]
    fn an_image_is_replaced_only_where_it_is_the_one_that_was_seen() {
        let writing = |container, from| Writing {
            container,
            from,
            to: "a:2",
            cause: "",
        };
        let annotated = deployment(&[], Some(&json!({CHART_IMAGE: "c"})));
        let steps = writing("ours", "a:1").steps(&annotated).unwrap();
        let steps: Vec<String> = steps
            .as_array()
            .unwrap()
            .iter()
            .map(|step| format!("{} {}", step["op"].as_str().unwrap(), step["path"].as_str().unwrap()))
            .collect();
        assert_eq!(
            steps,
            [
                "test /spec/template/spec/containers/1/name",
                "test /spec/template/spec/containers/1/image",
                "replace /spec/template/spec/containers/1/image",
                "add /metadata/annotations/addon-operator~1former-image",
                "add /metadata/annotations/kubernetes.io~1change-cause",
                "add /metadata/annotations/addon-operator~1patched-image",
                "test /metadata/annotations/addon-operator~1chart-image",
                "add /metadata/annotations/addon-operator~1chart-image-then",
            ]
        );
        assert_eq!(writing("ours", "a:0").steps(&annotated), Err("a:1".to_owned()));
        assert!(writing("gone", "a:1").steps(&annotated).is_err());
        let bare = writing("ours", "a:1").steps(&deployment(&[], None)).unwrap();
        assert_eq!(
            bare[3],
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"})
        );
    }

    #[test]
    fn our_entries_alone_are_taken_away() {
        assert_eq!(disowning(&deployment(&["helm", "kubectl"], None)), None);
        let steps = disowning(&deployment(&[FIELD_MANAGER, "helm", FIELD_MANAGER], None)).unwrap();
        let removed: Vec<&Value> = steps
            .as_array()
            .unwrap()
            .iter()
            .filter(|step| step["op"] == "remove")
            .map(|step| &step["path"])
            .collect();
        assert_eq!(removed, ["/metadata/managedFields/2", "/metadata/managedFields/0"]);
        let only = disowning(&deployment(&[FIELD_MANAGER], None)).unwrap();
        assert_eq!(only[1]["value"], json!([{}]));
    }
}
