//! CRDs of modules on a real API server. A target of its own: a new CRD changes the list of served APIs, and would
//! disturb tests that rely on an unchanged one.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use addon_core::operator::effect::Conversions;
use addon_core::operator::event::{CrdObstacle, SyncAction};
use addon_core::operator::policy::OnTrial;
use names::ModuleName;
use releases::{crds, sync};
use serde_json::{Value, json};
use testbed::audit::{Mark, Records};
use testbed::plane::User;
use testbed::wait::wait_until;

#[path = "crds/discovery.rs"]
mod discovery;
#[path = "cluster/hook_tools.rs"]
mod hook_tools;
#[path = "crds/outdated.rs"]
mod outdated;
#[path = "crds/refused.rs"]
mod refused;
#[path = "bad_input/stage.rs"]
#[expect(dead_code, reason = "most of it is about bad input")]
mod stage;
#[path = "crds/status_objects.rs"]
mod status_objects;
#[path = "cluster/tools.rs"]
mod tools;
#[path = "crds/trial.rs"]
mod trial;
#[path = "crds/unserved.rs"]
mod unserved;
#[path = "cluster/world.rs"]
#[expect(dead_code, reason = "most of it is about releases")]
mod world;

use world::{CHART, PATIENCE, TEMPLATE, World, document};

/// A module `one` whose CRDs are in an API group that no other test has.
struct Stage {
    world: World,
    group: String,
}

fn version(name: &str, served: &str) -> String {
    format!(
        "  - name: {name}\n    {served}\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
         spec: {{type: object, properties: {{size: {{type: integer, default: 1.0}}}}}}\n"
    )
}

const LOOSE: &str = "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, \
                     x-kubernetes-preserve-unknown-fields: true}}}\n";
const STORED: &str = "served: true\n    storage: true";
const SERVED: &str = "served: true\n    storage: false";

impl Stage {
    async fn new(prefix: &str) -> Self {
        let world = World::new(prefix).await;
        let group = format!("{}.example.com", world.namespace.name());
        Self { world, group }
    }

    fn name(&self) -> String {
        format!("widgets.{}", self.group)
    }

    /// A CRD as people write it, without the fields that the API server fills in.
    fn crd(&self, plural: &str, kind: &str, versions: &[String]) -> String {
        let group = &self.group;
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {plural}.{group}\n  \
             creationTimestamp: null\n  annotations: {{made: here}}\nspec:\n  group: {group}\n  scope: Namespaced\n  \
             preserveUnknownFields: false\n  names: {{kind: {kind}, plural: {plural}}}\n  versions:\n{}",
            versions.concat()
        )
    }

    fn widgets(&self, versions: &[String]) -> String {
        self.crd("widgets", "Widget", versions)
    }

    async fn files(&mut self, files: &[(&str, &str)]) {
        self.world.module("one", files).await;
    }

    async fn ensure(&self) -> Result<(), Failure> {
        match self.ensure_as(OnTrial::No).await {
            None => Ok(()),
            Some(CrdObstacle::Failed(failure)) => Err(failure),
            Some(CrdObstacle::Held(crds)) => unreachable!("nobody is on trial, and held are {crds:?}"),
        }
    }

    async fn ensure_as(&self, on_trial: OnTrial) -> Option<CrdObstacle> {
        let name = ModuleName::parse("one").unwrap();
        let modules = vec![name.clone()];
        let obstacles = crds::ensure(self.world.releases(), &modules, on_trial).await;
        obstacles.unwrap().remove(&name)
    }

    /// A chart with an object of a kind that its own CRDs define and that needs a conversion, and with another object.
    async fn converting_chart(&mut self) {
        let crd = self.crd("conversionwebhooks", "ConversionWebhook", &[LOOSE.to_owned()]);
        let webhook = format!(
            "apiVersion: {}/v1\nkind: ConversionWebhook\nmetadata: {{name: things}}\nspec: {{size: {{{{ .Values.one.size }}}}, \
             steps: [{{to: v2}}]}}\n",
            self.group
        );
        let files = [
            ("crds/webhooks.yaml", crd.as_str()),
            ("Chart.yaml", CHART),
            ("templates/webhook.yaml", &webhook),
            ("templates/a.yaml", TEMPLATE),
        ];
        self.files(&files).await;
    }

    async fn convert(&self, values: &Value) -> Result<(), Failure> {
        let module = ModuleName::parse("one").unwrap();
        let of = Conversions {
            module: module.clone(),
            values: document(values),
            vetting: None,
        };
        let outcomes = Box::pin(sync::ensure_conversions(
            self.world.releases(),
            &[of],
            &self.world.cancel,
        ))
        .await;
        outcomes.unwrap().remove(&module).unwrap()
    }

    fn webhook(&self) -> Value {
        let kind = format!("conversionwebhooks.{}", self.group);
        let text = self.world.kubectl(&format!("get {kind} things -o=json"));
        serde_json::from_str(&text).unwrap()
    }

    /// The operator's writes to the objects of a chart since the mark.
    fn writes_to(&self, since: Mark, resource: &str) -> Vec<String> {
        let records = self.world.namespace.plane().audit().since(since).unwrap();
        let namespace = self.world.namespace.name();
        let Records(records) = records.of(User::Operator).within(namespace).mutating();
        let ours = records.into_iter().filter(|record| record.resource == resource);
        ours.map(|record| record.verb).collect()
    }

    fn mark(&self) -> Mark {
        self.world.namespace.plane().audit().mark().unwrap()
    }

    /// The operator's writes to its CRDs since the mark.
    fn writes(&self, since: Mark) -> Vec<String> {
        let Records(records) = self
            .world
            .namespace
            .plane()
            .audit()
            .since(since)
            .unwrap()
            .of(User::Operator)
            .mutating();
        let ours = records.into_iter().filter(|record| record.name.ends_with(&self.group));
        ours.map(|record| format!("{} {}", record.verb, record.subresource).trim().to_owned())
            .collect()
    }

    fn found(&self) -> Value {
        let text = self.world.kubectl(&format!("get crd {} -o=json", self.name()));
        serde_json::from_str(&text).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_is_made_and_can_be_used_at_once_and_is_not_written_again() {
    let mut stage = Stage::new("crd-made").await;
    let widget = format!(
        "apiVersion: {}/v1\nkind: Widget\nmetadata: {{name: first}}\nspec: {{}}\n",
        stage.group
    );
    let crd = stage.widgets(&[version("v1", STORED)]);
    let files = [
        ("crds/widgets.yaml", crd.as_str()),
        ("crds/doc-widgets.yaml.md", "no CRD"),
        ("Chart.yaml", CHART),
        ("templates/widget.yaml", &widget),
    ];
    stage.files(&files).await;
    let mark = stage.mark();
    stage.ensure().await.unwrap();
    let synced = stage.world.sync(json!({})).await.unwrap();
    assert_eq!(synced.action, SyncAction::Upgraded);
    assert_eq!(
        stage
            .world
            .kubectl(&format!("get {} -o=jsonpath={{.items[*].spec.size}}", stage.name())),
        "1"
    );
    assert_eq!(stage.writes(mark), ["create"]);
    let found = stage.found();
    assert_eq!(found["metadata"]["labels"], json!({"heritage": "addon-operator"}));
    assert_eq!(found["metadata"]["annotations"]["made"], "here");

    let mark = stage.mark();
    stage.ensure().await.unwrap();
    stage.world.restart().await;
    stage.ensure().await.unwrap();
    assert_eq!(stage.writes(mark), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_applied_and_what_others_put_there_stays() {
    let mut stage = Stage::new("crd-changed").await;
    let both = stage.widgets(&[version("v1", STORED), version("v2", SERVED)]);
    stage.files(&[("crds/widgets.yaml", &both)]).await;
    stage.ensure().await.unwrap();
    let name = stage.name();
    let conversion = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://localhost:1/convert"}}});
    let theirs = json!({"metadata": {"labels": {"theirs": "1"}, "annotations": {"theirs": "2"}},
        "spec": {"conversion": conversion}});
    let admin = stage.world.namespace.kubectl_as(User::Admin);
    admin
        .run(["patch", "crd", &name, "--type=merge", "--patch", &theirs.to_string()])
        .unwrap();

    // The storage version changes to v2, and then v1 is removed.
    for versions in [
        vec![version("v1", SERVED), version("v2", STORED)],
        vec![version("v2", STORED)],
    ] {
        let crd = stage.widgets(&versions);
        stage.files(&[("crds/widgets.yaml", &crd)]).await;
        let mark = stage.mark();
        stage.ensure().await.unwrap();
        let found = stage.found();
        let of_found: Vec<_> = found["spec"]["versions"].as_array().unwrap().iter().collect();
        assert_eq!(of_found.len(), versions.len());
        let status_first: &[&str] = if versions.len() == 1 {
            &["patch status", "patch"]
        } else {
            &["patch"]
        };
        assert_eq!(stage.writes(mark), status_first);
        let labels: BTreeMap<String, String> = serde_json::from_value(found["metadata"]["labels"].clone()).unwrap();
        assert_eq!(labels["theirs"], "1");
        assert_eq!(labels["heritage"], "addon-operator");
        assert_eq!(found["metadata"]["annotations"]["theirs"], "2");
        assert_eq!(found["spec"]["conversion"]["strategy"], "Webhook");
    }
    assert_eq!(stage.found()["status"]["storedVersions"], json!(["v2"]));

    let mark = stage.mark();
    stage.ensure().await.unwrap();
    assert_eq!(stage.writes(mark), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_named_with_file_and_document_and_the_rest_is_done() {
    let mut stage = Stage::new("crd-broken").await;
    let good = stage.widgets(&[version("v1", STORED)]);
    let refused = stage.crd("gadgets", "Gadget", &[version("v1", SERVED)]);
    let files = [
        ("crds/a-broken.yaml", format!("---\n{good}---\nspec: [1\n")),
        (
            "crds/b-map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n".to_owned(),
        ),
        ("crds/c/refused.yaml", format!("# nothing\n---\n---\n{refused}")),
        ("crds/d-good.yaml", good.clone()),
    ];
    let files: Vec<_> = files.iter().map(|(file, text)| (*file, text.as_str())).collect();
    stage.files(&files).await;
    let failure = stage.ensure().await.unwrap_err();
    assert_eq!(failure.class, Class::Invalid);
    for said in [
        "cannot ensure the CRDs of module 'one': ",
        "crds/a-broken.yaml: document 2 is not YAML: line ",
        "crds/b-map.yaml: document 1 is kind ConfigMap of v1",
        "crds/c/refused.yaml, document 2: cannot create customresourcedefinitions 'gadgets.",
        "must have exactly one version marked as storage version",
    ] {
        assert!(failure.report.contains(said), "{said}: {failure}");
    }
    assert!(!failure.report.contains("d-good"), "{failure}");
    assert_eq!(stage.found()["spec"]["names"]["kind"], "Widget");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_taken_are_told_at_once() {
    let mut stage = Stage::new("crd-taken").await;
    let first = stage.widgets(&[version("v1", STORED)]);
    let second = stage.crd("gadgets", "Widget", &[version("v1", STORED)]);
    stage.files(&[("crds/a.yaml", &first), ("crds/b.yaml", &second)]).await;
    let failure = stage.ensure().await.unwrap_err();
    assert_eq!(failure.class, Class::Refused);
    let said = format!(
        "crds/b.yaml, document 1: the API server does not accept the names of CRD 'gadgets.{}': ",
        stage.group
    );
    assert!(
        failure.report.contains(&said) && failure.report.contains("already in use"),
        "{failure}"
    );
    assert!(failure.hints[0].contains("rename the kind"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conversion_webhooks_of_a_chart_come_before_its_release_which_takes_them_over() {
    let mut stage = Stage::new("conversions").await;
    stage.converting_chart().await;
    stage.ensure().await.unwrap();
    let values = json!({"one": {"size": 1, "x": "a"}});
    let mark = stage.mark();
    stage.convert(&values).await.unwrap();
    stage.convert(&values).await.unwrap();
    assert_eq!(stage.writes_to(mark, "conversionwebhooks"), ["create"]);
    assert_eq!(stage.webhook()["spec"], json!({"size": 1, "steps": [{"to": "v2"}]}));
    assert_eq!(
        stage.webhook()["metadata"]["labels"],
        json!({"heritage": "addon-operator"})
    );
    // The other objects of the chart do not exist yet.
    assert_eq!(stage.world.kubectl("get configmaps --ignore-not-found shown"), "");

    let synced = stage.world.sync(values.clone()).await.unwrap();
    assert_eq!((synced.action, synced.revision), (SyncAction::Upgraded, 1));
    let metadata = &stage.webhook()["metadata"];
    assert_eq!(metadata["annotations"]["meta.helm.sh/release-name"], "one");

    // The CRD is unchanged, so nothing is written.
    stage.world.restart().await;
    let mark = stage.mark();
    stage.convert(&values).await.unwrap();
    assert_eq!(stage.writes_to(mark, "conversionwebhooks"), [""; 0]);

    let kind = format!("conversionwebhooks.{}", stage.group);
    let theirs = json!({"metadata": {"finalizers": ["example.com/theirs"]}, "spec": {"size": 7}});
    let admin = stage.world.namespace.kubectl_as(User::Admin);
    admin
        .run(["patch", &kind, "things", "--type=merge", "--patch", &theirs.to_string()])
        .unwrap();
    let mark = stage.mark();
    stage.convert(&json!({"one": {"size": 2, "x": "a"}})).await.unwrap();
    assert_eq!(stage.writes_to(mark, "conversionwebhooks"), ["patch"]);
    let webhook = stage.webhook();
    assert_eq!(webhook["spec"]["size"], 2);
    assert_eq!(webhook["metadata"]["finalizers"], json!(["example.com/theirs"]));
    assert_eq!(webhook["metadata"]["annotations"]["meta.helm.sh/release-name"], "one");
    let none = json!({"metadata": {"finalizers": null}});
    admin
        .run(["patch", &kind, "things", "--type=merge", "--patch", &none.to_string()])
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversion_webhook_that_cannot_be_put_there_is_named() {
    let mut stage = Stage::new("conversions-bad").await;
    stage.converting_chart().await;
    let values = json!({"one": {"size": 1, "x": "a"}});
    let failure = stage.convert(&values).await.unwrap_err();
    assert_eq!(failure.class, Class::Refused);
    for said in [
        "cannot ensure the conversion webhooks of module 'one': cannot create ConversionWebhook/things: the API server at ",
        " has no kind ConversionWebhook of ",
    ] {
        assert!(failure.report.contains(said), "{said}: {failure}");
    }
    stage.ensure().await.unwrap();
    stage.convert(&values).await.unwrap();
    assert_eq!(stage.webhook()["spec"]["size"], 1);
}

impl Stage {
    /// A CRD whose storage version was first `v1alpha1` and then `v1`, with three objects stored in the first.
    async fn with_objects_of_an_old_version(&mut self) {
        let (alpha, beta) = (version("v1alpha1", STORED), version("v1alpha1", SERVED));
        let crd = self.widgets(&[alpha]);
        self.files(&[("crds/widgets.yaml", &crd)]).await;
        self.ensure().await.unwrap();
        let crd = |version: &str, size: u32| {
            format!(
                "apiVersion: {}/{version}\nkind: Widget\nmetadata: {{name: w{size}}}\nspec: {{size: {size}}}\n",
                self.group
            )
        };
        for size in 1..4 {
            self.apply(&crd("v1alpha1", size));
        }
        let crd = self.widgets(&[beta, version("v1", STORED)]);
        self.files(&[("crds/widgets.yaml", &crd)]).await;
        self.ensure().await.unwrap();
        assert_eq!(self.found()["status"]["storedVersions"], json!(["v1alpha1", "v1"]));
    }

    /// Writes the next CRD of the module, without the first version.
    async fn only_the_new_version(&mut self) {
        let crd = self.widgets(&[version("v1", STORED)]);
        self.files(&[("crds/widgets.yaml", &crd)]).await;
    }

    fn apply(&self, manifest: &str) {
        let admin = self.world.namespace.kubectl_as(User::Admin);
        admin.feed(["apply", "--filename=-"], manifest).unwrap();
    }

    fn sizes(&self) -> String {
        let all = format!(
            "get {} -o=jsonpath={{.items[*].apiVersion}}:{{.items[*].spec.size}}",
            self.name()
        );
        self.world.kubectl(&all)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_are_stored_in_a_version_which_goes_can_still_be_read() {
    let mut stage = Stage::new("crd-stored").await;
    stage.with_objects_of_an_old_version().await;
    let uid = |stage: &Stage| {
        stage
            .world
            .kubectl(&format!("get {} w2 -o=jsonpath={{.metadata.uid}}", stage.name()))
    };
    let before = uid(&stage);
    stage.only_the_new_version().await;
    stage.ensure().await.unwrap();
    assert_eq!(stage.found()["status"]["storedVersions"], json!(["v1"]));
    let v1 = format!("{}/v1", stage.group);
    assert_eq!(stage.sizes(), format!("{v1} {v1} {v1}:1 2 3"));
    assert_eq!(uid(&stage), before);
    // An object whose stored version is gone can be neither read nor deleted, so the test deletes all before.
    stage.world.kubectl(&format!("delete {} --all", stage.name()));
    assert_eq!(stage.sizes(), ":");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_stays_while_objects_cannot_be_rewritten_and_the_command_is_named() {
    let mut stage = Stage::new("crd-kept").await;
    stage.with_objects_of_an_old_version().await;
    // A policy refuses changes of one of the objects.
    let policy = stage.world.namespace.name().to_owned();
    let rules = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {policy}}}\nspec:\n  \
         failurePolicy: Fail\n  matchConstraints: {{resourceRules: [{{apiGroups: [{group}], apiVersions: ['*'], operations: [UPDATE], \
         resources: [widgets]}}]}}\n  validations: [{{expression: 'object.metadata.name != \"w2\"', message: not this one}}]\n---\n\
         apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: {policy}}}\nspec: \
         {{policyName: {policy}, validationActions: [Deny]}}\n",
        group = stage.group
    );
    stage.apply(&rules);
    let admin = stage.world.namespace.kubectl_as(User::Admin);
    let touch = ["annotate", &stage.name(), "w2", "--overwrite", "touched=now"].map(str::to_owned);
    wait_until(PATIENCE, "the policy to count", || match admin.run(touch.clone()) {
        Ok(said) => Err(said),
        Err(_) => Ok(Some(())),
    })
    .unwrap();

    stage.only_the_new_version().await;
    let failure = stage.ensure().await.unwrap_err();
    let name = stage.name();
    for said in [
        format!("CRD '{name}' cannot lose version v1alpha1"),
        "not this one".to_owned(),
    ] {
        assert!(failure.report.contains(&said), "{said}: {failure}");
    }
    let command = format!("kubectl get {name} --all-namespaces -o json | kubectl replace -f -");
    assert!(failure.hints.iter().any(|hint| hint.contains(&command)), "{failure:?}");
    assert_eq!(stage.found()["status"]["storedVersions"], json!(["v1alpha1", "v1"]));
    assert_eq!(stage.found()["spec"]["versions"].as_array().unwrap().len(), 2);

    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        admin.run(["delete", kind, &policy]).unwrap();
    }
    wait_until(PATIENCE, "the policy to be gone", || admin.run(touch.clone()).map(Some)).unwrap();
    stage.ensure().await.unwrap();
    assert_eq!(stage.found()["status"]["storedVersions"], json!(["v1"]));
    assert!(stage.sizes().ends_with(":1 2 3"), "{}", stage.sizes());
}
