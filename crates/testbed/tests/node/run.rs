//! The things that a container gets and does not get: files, variables, identity and volumes.

use serde_json::json;
use testbed::namespace::Namespace;

use super::stage::{create, log, once, phase, said, stage};

#[test]
fn a_container_is_its_image_and_nothing_of_the_machine() {
    let namespace = stage().plane.namespace("image").unwrap();
    let script = "echo $$$$; cat /new; ls /; ls /tmp; cat /proc/self/cgroup >/dev/null; echo $FROM_IMAGE; id -u; id -g; echo $HOSTNAME";
    let said = said(&namespace, "seen", script, &json!({}), &json!({}));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["1", "from abovebin"], "number one, in the image: {said}");
    for hidden in ["old", "work", "home", "boot"] {
        assert!(
            !lines.contains(&hidden),
            "{hidden} is of the machine or of a layer below: {said}"
        );
    }
    assert_eq!(lines[lines.len() - 4..], ["1", "1001", "1001", "seen"], "{said}");
    let pod = once(&namespace, "seen", "to be told of", |_| true);
    let status = &pod["status"]["containerStatuses"][0];
    let (name, _) = stage().image.rsplit_once(':').unwrap();
    assert_eq!(status["imageID"], format!("{name}@{}", stage().digest));
}

#[test]
fn a_restricted_container_may_do_nothing_more_than_its_user() {
    let namespace = stage().plane.namespace("restricted").unwrap();
    let script = "touch /file || echo root is read-only; touch /scratch/file && echo scratch is not; \
                  grep -E '^(Cap|NoNew|Groups)' /proc/self/status; id -u; echo x >/proc/sys/kernel/hostname || echo no sys";
    let context = json!({
        "runAsNonRoot": true, "runAsUser": 4000, "runAsGroup": 4001, "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
    });
    let more = json!({ "securityContext": context, "volumeMounts": [{ "name": "scratch", "mountPath": "/scratch" }] });
    let pod = json!({
        "securityContext": { "fsGroup": 4002 }, "volumes": [{ "name": "scratch", "emptyDir": {} }],
    });
    let said = said(&namespace, "seen", script, &more, &pod);
    for line in [
        "root is read-only",
        "scratch is not",
        "NoNewPrivs:\t1",
        "4000",
        "no sys",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} is missing: {said}");
    }
    assert!(said.contains("Groups:\t4002"), "{said}");
    for set in ["CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(said.contains(&format!("{set}:\t0000000000000000")), "{said}");
    }
}

#[test]
fn root_in_a_container_has_the_usual_capabilities_and_no_more() {
    let namespace = stage().plane.namespace("root").unwrap();
    let more = json!({ "securityContext": { "runAsUser": 0 } });
    let said = said(&namespace, "seen", "grep CapEff /proc/self/status", &more, &json!({}));
    assert!(said.contains("00000000a80425fb"), "{said}");
}

#[test]
fn variables_come_from_objects_and_from_the_pod_itself() {
    let namespace = stage().plane.namespace("variables").unwrap();
    namespace
        .kubectl([
            "create",
            "configmap",
            "plain",
            "--from-literal=key=one",
            "--from-literal=other=two",
        ])
        .unwrap();
    namespace
        .kubectl(["create", "secret", "generic", "hidden", "--from-literal=key=three"])
        .unwrap();
    let env = json!([
        { "name": "A", "valueFrom": { "configMapKeyRef": { "name": "plain", "key": "key" } } },
        { "name": "B", "valueFrom": { "secretKeyRef": { "name": "hidden", "key": "key" } } },
        { "name": "C", "value": "$(A)-$(B)-$(P_other)" },
        { "name": "NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
        { "name": "IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } },
        { "name": "ABSENT", "valueFrom": { "configMapKeyRef": { "name": "none", "key": "key", "optional": true } } },
    ]);
    let more = json!({ "env": env, "envFrom": [{ "prefix": "P_", "configMapRef": { "name": "plain" } }] });
    let said = said(
        &namespace,
        "seen",
        "echo $C $NAME $IP ${ABSENT-unset}",
        &more,
        &json!({}),
    );
    let pod = once(&namespace, "seen", "to have an address", |_| true);
    let address = pod["status"]["podIP"].as_str().unwrap();
    assert_eq!(said.trim(), format!("one-three-two seen {address} unset"));
}

#[test]
fn a_volume_follows_its_object() {
    let namespace = stage().plane.namespace("volumes").unwrap();
    namespace
        .kubectl(["create", "configmap", "plain", "--from-literal=key=before"])
        .unwrap();
    let script = "until grep -q after /config/key; do sleep 0.1; done; cat /config/key /renamed/a/b";
    let more = json!({ "volumeMounts": [
        { "name": "config", "mountPath": "/config" }, { "name": "renamed", "mountPath": "/renamed" },
    ] });
    let items = json!([{ "key": "key", "path": "a/b" }]);
    let pod = json!({ "restartPolicy": "Never", "volumes": [
        { "name": "config", "configMap": { "name": "plain" } },
        { "name": "renamed", "configMap": { "name": "plain", "items": items } },
    ] });
    create(&namespace, "seen", script, &more, &pod);
    once(&namespace, "seen", "to run", |pod| phase(pod) == "Running");
    namespace
        .kubectl(["patch", "configmap", "plain", "--patch", r#"{"data":{"key":"after"}}"#])
        .unwrap();
    once(&namespace, "seen", "to end", |pod| phase(pod) == "Succeeded");
    assert!(log(&namespace, "seen").starts_with("after"));
}

#[test]
fn what_keeps_a_container_from_starting_is_told_and_may_be_mended() {
    let namespace = stage().plane.namespace("waiting").unwrap();
    let more = json!({ "envFrom": [{ "configMapRef": { "name": "late" } }] });
    create(
        &namespace,
        "seen",
        "echo $key",
        &more,
        &json!({ "restartPolicy": "Never" }),
    );
    once(&namespace, "seen", "to miss its variables", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "CreateContainerConfigError" && waiting["message"].to_string().contains("late")
    });
    namespace
        .kubectl(["create", "configmap", "late", "--from-literal=key=now"])
        .unwrap();
    once(&namespace, "seen", "to end", |pod| phase(pod) == "Succeeded");
    assert_eq!(log(&namespace, "seen").trim(), "now");

    let root = json!({ "securityContext": { "runAsUser": 0, "runAsNonRoot": true } });
    create(&namespace, "root", "true", &root, &json!({}));
    once(&namespace, "root", "to be refused", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["message"].to_string().contains("runAsNonRoot")
    });
    let absent = json!({ "image": stage().image.replace("app:1", "app:none") });
    create(&namespace, "absent", "true", &absent, &json!({}));
    once(&namespace, "absent", "to wait for its image", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "ImagePullBackOff" && waiting["message"].to_string().contains("404")
    });
}

#[test]
fn a_tag_that_moves_is_followed_only_if_the_pod_asks_always() {
    let namespace = stage().plane.namespace("policy").unwrap();
    let (image, before) = super::stage::push_image(&stage().plane, "moving", "1");
    let run = |name: &str, policy: &str| image_id(&namespace, name, &image, policy);
    assert!(run("first", "IfNotPresent").ends_with(&before));
    let after = move_tag("moving");
    assert!(run("second", "IfNotPresent").ends_with(&before));
    assert!(run("third", "Always").ends_with(&after));
}

#[test]
fn of_a_tag_and_a_digest_the_digest_counts() {
    let namespace = stage().plane.namespace("both").unwrap();
    let (image, before) = super::stage::push_image(&stage().plane, "both", "1");
    let after = move_tag("both");
    let (repository, _) = image.rsplit_once(':').unwrap();
    for (name, tag, digest) in [("old", "1", &before), ("new", "1", &after), ("none", "absent", &before)] {
        let image = format!("{repository}:{tag}@{digest}");
        let ran = image_id(&namespace, name, &image, "Always");
        assert_eq!(ran, format!("{repository}@{digest}"), "{image}");
    }
}

/// The image id of a finished pod, from its status.
fn image_id(namespace: &Namespace<'_>, name: &str, image: &str, policy: &str) -> String {
    let more = json!({ "image": image, "imagePullPolicy": policy });
    said(namespace, name, "true", &more, &json!({}));
    let pod = once(namespace, name, "to be told of", |_| true);
    pod["status"]["containerStatuses"][0]["imageID"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Pushes another image under the tag `1` and returns its digest.
fn move_tag(name: &str) -> String {
    let registry = stage().plane.registry().unwrap();
    let repository = super::push::Repository::at(registry, name);
    let layer = super::machine::layer(&[std::path::Path::new("sh"), std::path::Path::new("true")], &[]);
    let config = json!({ "Entrypoint": ["sh", "-c"] });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let after = runtime.block_on(repository.push("1", &config, &[layer]));
    assert_eq!(runtime.block_on(repository.resolve("1")).as_ref(), Some(&after));
    after
}
