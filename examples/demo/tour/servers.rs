//! The chapter about a cluster of database servers that a custom resource describes: refused, made, and scaled.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{bail, ensure};
use serde_json::Value;

use super::Tour;
use super::bundle::TEAM;
use crate::narrator::{check, seconds};
use crate::shell::Said;
use crate::stage::File;

const CLUSTERS: &str = "aerospikeclusters.aerospike.dzolotov.tech";

const NAME: &str = "sessions";

const WRONG: [File; 1] = [File {
    path: "sessions.yaml",
    text: "apiVersion: aerospike.dzolotov.tech/v1alpha1\n\
           kind: AerospikeCluster\n\
           metadata: {name: sessions, namespace: team}\n\
           spec:\n\
           \x20 deployments: 2\n\
           \x20 replicationFactor: 3\n\
           \x20 maxCPU: lots\n\
           \x20 heartbeat: {interval: 5}\n",
}];

/// The fields with a mistake.
const MISTAKES: [&str; 3] = ["spec.replicationFactor", "spec.maxCPU", "spec.heartbeat.interval"];

const CORRECTION: &str = "sed --in-place 's/replicationFactor: 3/replicationFactor: 2/; s/lots/150/; s/interval: 5/interval: 250/' sessions.yaml";

const CREATE: &str = "kubectl create --filename sessions.yaml";

/// The kinds of the objects that belong to a cluster.
const KINDS: [&str; 4] = ["statefulset", "configmap", "service", "poddisruptionbudget"];

impl Tour<'_> {
    /// Creates a cluster with mistakes, the same one without, and adds a server.
    pub(super) fn run_servers(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("14  A cluster of servers: refused, made, scaled");
        narrator.say("The module aerospike makes database servers of objects of kind AerospikeCluster, and reviews");
        narrator.say("these objects. No server runs here: the node only says that its pods are ready.");
        self.put(&WRONG)?;
        self.patch(r#"{"aerospikeEnabled": "true"}"#)?;
        self.show("cat sessions.yaml")?;
        self.be_refused()?;
        self.type_in(CORRECTION)?;
        self.type_in(CREATE)?;
        let created = Instant::now();
        let first = self.wait_for_servers(2)?;
        let after = seconds(created.elapsed());
        self.check_objects()?;
        narrator.ok(format_args!(
            "both servers are ready {after} after the command; the cluster owns its objects, and aerospike.conf has the interval"
        ));
        let all = KINDS.join(",");
        let label = format!("app.kubernetes.io/instance={NAME}");
        self.show(&format!("kubectl --namespace {TEAM} get {all} --selector {label}"))?;
        self.type_in(&format!(
            r#"kubectl --namespace {TEAM} patch aerospikecluster {NAME} --type merge --patch '{{"spec": {{"deployments": 3}}}}'"#
        ))?;
        let edited = Instant::now();
        let now = self.wait_for_servers(3)?;
        let after = seconds(edited.elapsed());
        let seen = || format!("{first:?} before, {now:?} now");
        check("the first servers go on", first.is_subset(&now), seen)?;
        narrator.ok(format_args!(
            "the StatefulSet has 3 replicas, and all are ready {after} after the edit; the first two were not restarted"
        ));
        self.show(&format!("kubectl --namespace {TEAM} get aerospikeclusters"))?;
        Ok(())
    }

    /// Waits until clusters are reviewed, and then creates one with mistakes.
    fn be_refused(&self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        let (words, how): (&[&str], _) = if self.has_reviews {
            (&MISTAKES, "with all three mistakes, by a hook of the module")
        } else {
            narrator.say("The operator may not listen on port 443 here, so the resource definition alone judges the");
            narrator.say("object, and names only some of the mistakes.");
            (&MISTAKES[1..2], "by the resource definition")
        };
        let is_refusal = |said: &Said| !said.is_success && words.iter().all(|word| said.text.contains(word));
        let trial = format!("{CREATE} --dry-run=server");
        self.wait("a cluster with mistakes is refused", || {
            match self.shell.run(&trial)? {
                said if is_refusal(&said) => Ok(()),
                said => bail!(said.text),
            }
        })?;
        narrator.typed(CREATE);
        let said = self.shell.run(CREATE)?;
        narrator.say(&said.text);
        check("the cluster is refused", is_refusal(&said), || said.text.clone())?;
        let found = self.look_up(TEAM, CLUSTERS, NAME)?;
        check("no cluster is made", found.is_null(), || found.to_string())?;
        narrator.ok(format_args!("refused {how}: no cluster is stored"));
        Ok(())
    }

    /// Waits until the cluster has this many ready servers, and returns the ids of their pods.
    fn wait_for_servers(&self, number: usize) -> anyhow::Result<BTreeSet<String>> {
        let found = self.wait(&format!("{number} servers are ready"), || {
            let set = self.look_up(TEAM, "statefulset", NAME)?;
            let (replicas, ready) = (&set["spec"]["replicas"], &set["status"]["readyReplicas"]);
            ensure!(
                *replicas == number && *ready == number,
                "the StatefulSet has replicas: {replicas}, ready: {ready}"
            );
            let cluster = self.look_up(TEAM, CLUSTERS, NAME)?;
            let (status, generation) = (&cluster["status"], &cluster["metadata"]["generation"]);
            let is_settled = status["brokenNodes"] == 0 && status["observedGeneration"] == *generation;
            ensure!(status["deployed"] == true && is_settled, "the cluster says {status}");
            Ok(())
        });
        found?;
        let within = format!("--namespace={TEAM}");
        let label = format!("--selector=app.kubernetes.io/instance={NAME}");
        let ids = "--output=jsonpath={.items[*].metadata.uid}";
        let text = self.stage.plane().kubectl(["get", "pods", &within, &label, ids])?;
        Ok(text.split_whitespace().map(ToOwned::to_owned).collect())
    }

    /// Checks that the cluster owns all its objects, and that the servers' file is of its spec.
    fn check_objects(&self) -> anyhow::Result<()> {
        let uid = self.look_up(TEAM, CLUSTERS, NAME)?["metadata"]["uid"].take();
        let mut objects = Vec::new();
        for kind in KINDS {
            let object: Value = self.look_up(TEAM, kind, NAME)?;
            let owner = &object["metadata"]["ownerReferences"][0]["uid"];
            let seen = || format!("{kind}: {}", object["metadata"]);
            check("each object belongs to the cluster", *owner == uid, seen)?;
            objects.push(object);
        }
        let file = objects[1]["data"]["aerospike.conf"].as_str().unwrap_or_default();
        check("the file has the interval", file.contains("interval 250"), || {
            file.to_owned()
        })
    }
}
