//! Commands by which a person approves, holds or goes back to a version of the operator, with a real ConfigMap and a
//! real Deployment. No operator runs.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::process::Output;

use channel::command::plan::Site;
use channel::installation::patching::FIELD_MANAGER;
use serde_json::{Value, json};
use settings::{Environment, StartArgs};
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::process;

const PROGRAM: &str = env!("CARGO_BIN_EXE_addon-operator");
const REPOSITORY: &str = "registry.example.com/team/addon-operator";

fn digest(c: char) -> String {
    format!("sha256:{}", c.to_string().repeat(64))
}

fn image(c: char) -> String {
    format!("{REPOSITORY}:stable@{}", digest(c))
}

/// A namespace with a ConfigMap that also has other keys, and a Deployment with a second container.
struct Place(Namespace<'static>);

impl Place {
    fn new(name: &str, image: &str) -> Self {
        let place = Self(testbed::shared::plane().namespace(name).unwrap());
        place.kubectl("create configmap addon-operator --from-literal=oneEnabled=true");
        let labels = json!({"app.kubernetes.io/name": "addon-operator"});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "ao", "labels": labels},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                    {"name": "side", "image": "side:1"}, {"name": "addon-operator", "image": image},
                ]}},
            },
        });
        place.create(&deployment);
        place
    }

    fn create(&self, object: &Value) {
        let kubectl = self.0.kubectl_as(User::Admin);
        kubectl.feed(["create", "--filename=-"], &object.to_string()).unwrap();
    }

    fn kubectl(&self, arguments: &str) -> String {
        self.0.kubectl(arguments.split(' ')).unwrap()
    }

    fn key(&self, key: &str) -> String {
        self.kubectl(&format!("get configmap addon-operator -o=jsonpath={{.data.{key}}}"))
    }

    fn deployment(&self) -> Value {
        self.0.object("deployments", "ao").unwrap().unwrap()
    }

    fn managers(&self) -> String {
        self.kubectl("get deployment ao -o=jsonpath={.metadata.managedFields[*].manager} --show-managed-fields")
    }

    fn environment(&self) -> [(&'static str, std::ffi::OsString); 2] {
        [
            ("KUBECONFIG", self.0.kubeconfig(User::Admin).into()),
            ("DEBUG_UNIX_SOCKET", "/nowhere/debug.socket".into()),
        ]
    }

    /// The result of a command line: success, standard output, standard error.
    fn typed(&self, arguments: &str) -> (bool, String, String) {
        let mut command = process::command(PROGRAM);
        command.arg("channel").args(arguments.split(' '));
        command.env_clear().envs(self.environment());
        let Output { status, stdout, stderr } = process::run(command, None).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.success(), text(stdout), text(stderr))
    }

    fn done(&self, arguments: &str) -> String {
        let (good, said, why) = self.typed(arguments);
        assert!(good, "{arguments}: {why}");
        said
    }

    fn refused(&self, arguments: &str) -> String {
        let (good, said, why) = self.typed(arguments);
        assert!(!good && said.is_empty(), "{arguments}: {said}");
        why
    }

    fn site(&self) -> Site {
        let environment: Environment = self.environment().into_iter().collect();
        Site::reach(&StartArgs::default(), &environment, None).unwrap()
    }
}

#[test]
fn a_person_approves_of_versions_one_by_one() {
    let place = Place::new("channel-approve", &image('a'));
    let (a, b) = (digest('a'), digest('b'));
    let first = place.done(&format!("approve {b} --yes"));
    assert_eq!(first, format!("releaseApproved is '{b}' now\n"));
    place.done(&format!("approve {a} --yes"));
    assert_eq!(place.key("releaseApproved"), format!("{a}\n{b}"));
    let again = place.done(&format!("approve {b}"));
    assert_eq!(again, format!("releaseApproved is '{a} {b}' already\n"));
    place.done(&format!("approve --take-back {b} --yes"));
    assert_eq!(
        (place.key("releaseApproved"), place.key("oneEnabled")),
        (a.clone(), "true".to_owned())
    );
    place.done(&format!("approve --take-back {a} -y"));
    let keys = place.kubectl("get configmap addon-operator -o=jsonpath={.data}");
    assert_eq!(keys, r#"{"oneEnabled":"true"}"#);

    let why = place.refused("approve 1.4.3 --yes");
    assert!(why.contains("'1.4.3' should be a digest"), "{why}");
    // Without a terminal and without `--yes` nothing is changed.
    let why = place.refused(&format!("approve {b}"));
    assert!(
        why.contains("nothing is changed") && why.contains("hint: --yes"),
        "{why}"
    );
    // Only a running operator knows the available version, and none runs.
    let why = place.refused("approve --yes");
    assert!(why.contains("no pod in namespace") && why.contains("hint: "), "{why}");
    place.kubectl(r#"patch configmap addon-operator --type=merge --patch={"data":{"releaseApproved":"1.4"}}"#);
    let why = place.refused(&format!("approve {b} --yes"));
    assert!(
        why.contains("'releaseApproved' of the ConfigMap cannot be read") && why.contains("hint: correct it"),
        "{why}"
    );
    assert_eq!(place.key("releaseApproved"), "1.4");
}

#[test]
fn what_a_person_holds_is_let_go_again() {
    let place = Place::new("channel-pin", &image('a'));
    place.kubectl(r#"patch configmap addon-operator --type=merge --patch={"data":{"releaseChannel":"1.4.x"}}"#);
    let (good, said, told) = place.typed("pin --yes");
    assert!(
        good && said == format!("releaseChannel is '{}' now\n", digest('a')),
        "{said}{told}"
    );
    let change = format!("  releaseChannel: '1.4.x' -> '{}'\n", digest('a'));
    assert!(
        told.contains(&change) && told.contains("channel resume --channel '1.4.x'"),
        "{told}"
    );
    assert_eq!(place.key("releaseChannel"), digest('a'));

    let said = place.done("resume --yes");
    assert_eq!(
        said,
        "releaseChannel is not there now\nDeployment 'ao' is followed by others again\n"
    );
    assert_eq!(place.key("releaseChannel"), "");
    let annotations = place.deployment()["metadata"]["annotations"].clone();
    assert_eq!(annotations["addon-operator/resumed"], image('a'));
    let first = annotations["addon-operator/resumed-at"].clone();
    assert!(first.as_str().is_some_and(|at| at.ends_with('Z')), "{annotations}");
    place.done("resume --channel ^1 --yes");
    assert_eq!(place.key("releaseChannel"), "^1");
    // A tag or a range holds no version back, so there is nothing to resume.
    place.done("resume --yes");
    assert_eq!(place.key("releaseChannel"), "^1");

    let why = place.refused("resume --channel >=1<2 --yes");
    assert!(why.contains("is neither a tag nor a range"), "{why}");
    place.kubectl(&format!(
        "set image deployment/ao addon-operator={REPOSITORY}@{}",
        digest('b')
    ));
    place.done("pin --yes");
    assert_eq!(place.key("releaseChannel"), digest('b'));
    let why = place.refused("resume --yes");
    assert!(why.contains("names no tag") && why.contains("hint: --channel"), "{why}");
}

#[test]
fn a_tag_is_held_as_what_its_pods_run() {
    let place = Place::new("channel-pin-tag", &format!("{REPOSITORY}:stable"));
    let why = place.refused("pin --yes");
    assert!(
        why.contains("the status of none of its pods names one") && why.contains("hint: name the digest"),
        "{why}"
    );
    for (name, c) in [("one", 'c'), ("two", 'd')] {
        let containers = json!([{"name": "side", "image": "side:1"}, {"name": "addon-operator", "image": "x"}]);
        let labels = json!({"app.kubernetes.io/name": "addon-operator"});
        place.create(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"containers": containers},
        }));
        let status = json!({"status": {"containerStatuses": [
            {"name": "side", "image": "side:1", "imageID": format!("side@{}", digest('e')), "ready": true, "restartCount": 0},
            {"name": "addon-operator", "image": "x", "imageID": format!("{REPOSITORY}@{}", digest(c)), "ready": true,
             "restartCount": 0},
        ]}});
        let patch = format!("--patch={status}");
        let arguments = ["patch", "pod", name, "--subresource=status", "--type=merge", &patch];
        place.0.kubectl(arguments).unwrap();
        if name == "one" {
            place.done("pin --yes");
            assert_eq!(place.key("releaseChannel"), digest('c'));
        }
    }
    let why = place.refused("pin --yes");
    assert!(why.contains("its pods run several"), "{why}");
}

#[test]
fn a_rollback_needs_no_operator_and_overwrites_nobody() {
    let place = Place::new("channel-rollback", &image('b'));
    let why = place.refused("rollback --yes");
    assert!(
        why.contains("does not record the image that it named before") && why.contains("hint: name the digest"),
        "{why}"
    );
    let former = image('a');
    place.kubectl(&format!("annotate deployment ao addon-operator/former-image={former}"));

    // Another change comes first.
    let plan = place.site().rollback(None).unwrap();
    place.kubectl(&format!("set image deployment/ao addon-operator={}", image('c')));
    let error = plan.carry_out().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        error.to_string(),
        "releaseChannel is set, but the Deployment is not changed"
    );
    assert!(
        cause.contains("changed by another writer meanwhile") && cause.contains(&image('c')),
        "{cause}"
    );
    assert_eq!(
        place.deployment()["metadata"]["annotations"]["addon-operator/former-image"],
        former
    );

    // kubectl applies a field as the command's field manager. So `managedFields` has an entry `Apply` of that manager,
    // and gets an entry `Update` by the command. The rollback must remove both.
    let noted = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "ao", "annotations": {"addon-operator/chart-image": "of-the-chart"}},
    });
    let manager = format!("--field-manager={FIELD_MANAGER}");
    let kubectl = place.0.kubectl_as(User::Admin);
    kubectl
        .feed(["apply", "--server-side", &manager, "--filename=-"], &noted.to_string())
        .unwrap();
    assert!(place.managers().contains(FIELD_MANAGER));

    let (good, said, told) = place.typed("rollback --yes");
    assert!(good, "{told}");
    assert_eq!(said, format!("Deployment 'ao' names '{former}' now\n"));
    assert!(
        told.contains(&format!("  image: '{}' -> '{former}'", image('c'))),
        "{told}"
    );
    assert_eq!(place.key("releaseChannel"), digest('a'));
    let deployment = place.deployment();
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    assert_eq!(
        (&containers[0]["image"], &containers[1]["image"]),
        (&json!("side:1"), &json!(former))
    );
    let annotations = &deployment["metadata"]["annotations"];
    assert_eq!(annotations["addon-operator/former-image"], image('c'));
    assert_eq!(annotations["addon-operator/patched-image"], former);
    assert_eq!(annotations["addon-operator/chart-image-then"], "of-the-chart");
    assert!(
        annotations["kubernetes.io/change-cause"]
            .as_str()
            .unwrap()
            .contains("rollback")
    );
    // Helm 4 takes over no field from a field manager that it does not know.
    let managers = place.managers();
    assert!(!managers.contains(FIELD_MANAGER), "{managers}");

    // Another digest, written in the form of the Deployment's image.
    place.done(&format!("rollback {} --yes", digest('d')));
    assert_eq!(
        place.deployment()["spec"]["template"]["spec"]["containers"][1]["image"],
        image('d')
    );
    let again = place.done(&format!("rollback {} --yes", digest('d')));
    assert_eq!(again, format!("releaseChannel is '{}' already\n", digest('d')));
}

#[test]
fn a_deployment_that_is_not_clear_has_to_be_named() {
    let place = Place::new("channel-which", &image('a'));
    let labels = json!({"app": "addon-operator"});
    let spec = json!({"containers": [{"name": "main", "image": image('b')}]});
    place.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "other", "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }));
    let why = place.refused("pin --yes");
    assert!(
        why.contains("are labelled as addon-operator: ao, other") && why.contains("--deployment"),
        "{why}"
    );
    place.done("pin --yes --deployment other");
    assert_eq!(place.key("releaseChannel"), digest('b'));
    // Without a single Deployment only the ConfigMap is resumed, and the command says so.
    let (good, said, told) = place.typed("resume --yes");
    assert!(good && said == "releaseChannel is not there now\n", "{said}{told}");
    assert!(
        told.contains("The Deployment is left alone (several Deployments"),
        "{told}"
    );
}
