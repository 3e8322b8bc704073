//! The operator's pod: finds it in the operator's namespace, and runs a program in it.
//!
//! Must never choose between several pods; then the caller has to name one.

use std::time::Duration;

use addon_core::failure::Failure;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::{AttachParams, AttachedProcess, ListParams};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep};

use crate::Cluster;
use crate::error::RequestError;

/// Labels of the operator's objects whose value is the program's name; one of them is enough.
const LABELS: [&str; 2] = ["app.kubernetes.io/name", "app"];
/// The annotation that names the default container.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// How long a lease may name no pod that runs: a leader that was killed holds it until it expires.
const ELECTION: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The size of the pieces in which output is read.
const CHUNK: usize = 16 << 10;

/// Why no program was run in a pod.
#[derive(Debug, Error)]
pub enum PodError {
    #[error("{0}")]
    Request(Failure),
    #[error("no pod in namespace '{namespace}' is labelled as {program} and runs")]
    None { program: String, namespace: String },
    #[error("several pods in namespace '{namespace}' are labelled as {program}: {}", names.join(", "))]
    Several {
        program: String,
        namespace: String,
        names: Vec<String>,
    },
    #[error("the output of the program in pod '{pod}' did not arrive")]
    Broken {
        pod: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the program in pod '{pod}' was not run: {message}")]
    NotRun { pod: String, message: String },
    #[error("cannot pass on the output of the program in the pod")]
    Tell(#[source] std::io::Error),
}

impl From<RequestError> for PodError {
    fn from(error: RequestError) -> Self {
        Self::Request(error.into())
    }
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPlace {
    pub pod: String,
    /// The container; none if the pod does not tell which one it is, as with only one.
    pub container: Option<String>,
}

/// Standard output or standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Cluster {
    /// The place of the program: the pod with the given name, or the only pod, or the leader's, which is the holder of
    /// the lease. While the leader changes, it waits for the next one.
    pub async fn find_program(
        &self,
        program: &str,
        lease: &str,
        pod: Option<&str>,
    ) -> Result<ContainerPlace, PodError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        if let Some(name) = pod {
            let pod = self.ask(self.attempt("get", "pods", name), pods.get(name)).await?;
            return Ok(place(&pod, program));
        }
        let until = Instant::now() + ELECTION;
        loop {
            let params = ListParams::default();
            let all = self.ask(self.attempt("list", "pods", ""), pods.list(&params)).await?;
            let ours: Vec<&Pod> = all.items.iter().filter(|pod| is_of(pod, program)).collect();
            match ours[..] {
                [] => {
                    return Err(PodError::None {
                        program: program.to_owned(),
                        namespace: self.namespace.clone(),
                    });
                }
                [one] => return Ok(place(one, program)),
                _ => {}
            }
            let leader = self.holder_of(lease).await?;
            if let Some(pod) = ours.iter().find(|pod| leader.as_deref() == Some(&*pod.name_any())) {
                return Ok(place(pod, program));
            }
            if leader.is_none() || Instant::now() >= until {
                return Err(PodError::Several {
                    program: program.to_owned(),
                    namespace: self.namespace.clone(),
                    names: ours.iter().map(|pod| pod.name_any()).collect(),
                });
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The pod that holds a lease, empty if none does; none if there is no lease.
    async fn holder_of(&self, name: &str) -> Result<Option<String>, PodError> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let lease = self
            .ask(self.attempt("get", "leases", name), leases.get_opt(name))
            .await?;
        let holder = lease.map(|lease| lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default());
        Ok(holder.map(|holder| pod_of(&holder, &self.namespace).to_owned()))
    }

    /// Runs a program in the pod and passes its output on. Returns its exit code. The program reads `input`, or nothing.
    pub async fn run_in(
        &self,
        place: &ContainerPlace,
        command: Vec<String>,
        input: Option<&str>,
        tell: &mut impl FnMut(Stream, &[u8]) -> std::io::Result<()>,
    ) -> Result<u8, PodError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut params = AttachParams::default()
            .max_stdout_buf_size(CHUNK)
            .max_stderr_buf_size(CHUNK);
        params.container.clone_from(&place.container);
        params.stdin = input.is_some();
        let attempt = self.attempt("create", "pods/exec", &place.pod);
        let mut process = self.ask(attempt, pods.exec(&place.pod, command, &params)).await?;
        let status = process.take_status();
        let writer = process.stdin();
        let fed = async {
            if let (Some(mut writer), Some(input)) = (writer, input) {
                // A program that has ended reads no more, and its exit code tells why.
                let _ = writer.write_all(input.as_bytes()).await;
                let _ = writer.shutdown().await;
            }
        };
        let ((), relayed) = tokio::join!(fed, relay(&mut process, tell));
        relayed.map_err(PodError::Tell)?;
        let status = match status {
            Some(status) => status.await,
            None => None,
        };
        let broken = |source: Box<dyn std::error::Error + Send + Sync>| PodError::Broken {
            pod: place.pod.clone(),
            source,
        };
        process.join().await.map_err(|error| broken(error.into()))?;
        let status = status.ok_or_else(|| broken("the connection ended before the program did".into()))?;
        exit_code(&status).ok_or_else(|| PodError::NotRun {
            pod: place.pod.clone(),
            message: status.message.unwrap_or_default(),
        })
    }
}

/// The pod's name in `POD.ADDRESS.NAMESPACE.pod`, or the whole name.
fn pod_of<'a>(identity: &'a str, namespace: &str) -> &'a str {
    let with_address = identity.strip_suffix(&format!(".{namespace}.pod"));
    with_address
        .and_then(|rest| rest.rsplit_once('.'))
        .map_or(identity, |(pod, _)| pod)
}

/// Whether the pod belongs to the program, runs, and is not being deleted.
fn is_of(pod: &Pod, program: &str) -> bool {
    let runs = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let is_labelled = LABELS
        .iter()
        .any(|label| pod.labels().get(*label).is_some_and(|name| name == program));
    runs && is_labelled && pod.metadata.deletion_timestamp.is_none()
}

fn place(pod: &Pod, program: &str) -> ContainerPlace {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let is_named = containers.map(|container| &container.name).any(|name| name == program);
    // The API server does not know the annotation: kubectl names the container itself, too.
    let by_itself = pod.annotations().get(DEFAULT_CONTAINER).cloned();
    ContainerPlace {
        pod: pod.name_any(),
        container: by_itself.or_else(|| is_named.then(|| program.to_owned())),
    }
}

async fn relay(
    process: &mut AttachedProcess,
    tell: &mut impl FnMut(Stream, &[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let (mut stdout, mut stderr) = (process.stdout(), process.stderr());
    let (mut out, mut err) = (vec![0; CHUNK], vec![0; CHUNK]);
    while stdout.is_some() || stderr.is_some() {
        tokio::select! {
            read = next(&mut stdout, &mut out) => tell(Stream::Stdout, &out[..read?])?,
            read = next(&mut stderr, &mut err) => tell(Stream::Stderr, &err[..read?])?,
        }
    }
    Ok(())
}

/// Reads the next bytes. At the end of the stream it is set to `None`; the next call then waits for ever.
async fn next(stream: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> std::io::Result<usize> {
    let Some(open) = stream else {
        return std::future::pending().await;
    };
    let read = open.read(buffer).await?;
    if read == 0 {
        *stream = None;
    }
    Ok(read)
}

/// The exit code of the program according to the kubelet; none if it was not started.
fn exit_code(status: &Status) -> Option<u8> {
    if status.status.as_deref() == Some("Success") {
        return Some(0);
    }
    let causes = status
        .details
        .iter()
        .flat_map(|details| details.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref());
    // The exit code of a program that a signal ended is 128 or more.
    code.and_then(|code| code.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_leader_is_named_with_its_address_or_without() {
        assert_eq!(pod_of("op-1.10-0-0-1.ns.pod", "ns"), "op-1");
        assert_eq!(pod_of("op.x.10-0-0-1.ns.pod", "ns"), "op.x");
        assert_eq!(pod_of("op-1", "ns"), "op-1");
    }

    #[test]
    fn a_program_that_ended_is_told_apart_from_one_that_never_ran() {
        let code = |status: Value| exit_code(&serde_json::from_value(status).unwrap());
        assert_eq!(code(json!({"status": "Success"})), Some(0));
        let causes = json!([{"reason": "ExitCode", "message": "3"}]);
        assert_eq!(
            code(json!({"status": "Failure", "details": {"causes": causes}})),
            Some(3)
        );
        assert_eq!(code(json!({"status": "Failure", "message": "no such container"})), None);
    }

    #[test]
    fn the_container_is_that_of_the_annotation_or_the_one_with_the_programs_name() {
        let place = |annotations: Value, names: &[&str]| {
            let containers: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
            let pod =
                json!({"metadata": {"name": "a", "annotations": annotations}, "spec": {"containers": containers}});
            place(&serde_json::from_value(pod).unwrap(), "addon-operator").container
        };
        let said = json!({"kubectl.kubernetes.io/default-container": "main"});
        assert_eq!(place(said, &["proxy", "addon-operator"]).as_deref(), Some("main"));
        assert_eq!(
            place(json!({}), &["proxy", "addon-operator"]).as_deref(),
            Some("addon-operator")
        );
        assert_eq!(place(json!({}), &["main"]), None);
    }

    #[test]
    fn pods_are_known_by_their_labels_while_they_run() {
        let pod = |labels: Value, phase: &str| -> Pod {
            let pod = json!({"metadata": {"name": "a", "labels": labels}, "status": {"phase": phase}});
            serde_json::from_value(pod).unwrap()
        };
        assert!(is_of(
            &pod(json!({"app": "addon-operator"}), "Running"),
            "addon-operator"
        ));
        let named = json!({"app.kubernetes.io/name": "addon-operator"});
        assert!(is_of(&pod(named.clone(), "Running"), "addon-operator"));
        assert!(!is_of(&pod(named, "Pending"), "addon-operator"));
        assert!(!is_of(&pod(json!({"app": "other"}), "Running"), "addon-operator"));
    }
}
