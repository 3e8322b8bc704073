//! Records of helm that were damaged: no release is wedged by them, and nothing of them is lost.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::{Read as _, Write as _};

use addon_core::failure::Class;
use addon_core::operator::event::{Reworked, SyncAction};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::reader::Only;
use testbed::wait::wait_until;

use super::world::{CHART, PATIENCE, World, with_each_helm};

/// A ConfigMap that shows the value, and one whose name is the value.
const TEMPLATES: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {x: {{ .Values.one.x | quote }}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: only-{{ .Values.one.x }}}\n";

fn name(revision: u32) -> String {
    format!("sh.helm.release.v1.one.v{revision}")
}

fn secret(world: &World, revision: u32) -> Value {
    world.object("secret", &name(revision))
}

/// Writes a Secret anew, also with another type.
fn put(world: &World, mut secret: Value) {
    let metadata = secret["metadata"].as_object_mut().unwrap();
    for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
        metadata.remove(field);
    }
    let name = metadata["name"].as_str().unwrap().to_owned();
    world.kubectl(&format!("delete secret --ignore-not-found {name}"));
    let admin = world.namespace.kubectl_as(User::Admin);
    admin.feed(["create", "--filename=-"], &secret.to_string()).unwrap();
}

fn alter(world: &World, revision: u32, change: impl FnOnce(&mut Value)) {
    let mut altered = secret(world, revision);
    change(&mut altered);
    put(world, altered);
}

fn unpack(stored: &Value) -> Value {
    let packed = STANDARD
        .decode(STANDARD.decode(stored.as_str().unwrap()).unwrap())
        .unwrap();
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn pack(record: &Value) -> Value {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(record.to_string().as_bytes()).unwrap();
    json!(STANDARD.encode(STANDARD.encode(gzip.finish().unwrap())))
}

fn edit(world: &World, revision: u32, change: impl FnOnce(&mut Value)) {
    alter(world, revision, |secret| {
        let mut record = unpack(&secret["data"]["release"]);
        change(&mut record);
        secret["data"]["release"] = pack(&record);
    });
}

fn label(world: &World, revision: u32, change: &str) {
    world.kubectl(&format!("label --overwrite secret {} {change}", name(revision)));
}

/// The result of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    /// Nothing stays.
    Clean,
    /// The objects of the lost revision stay, and are named.
    LeavesObjects,
    /// A person must confirm the repair.
    Asks,
}

/// A damage of the second of two revisions, or of the first.
struct Row {
    title: &'static str,
    damage: fn(&World),
    /// Parts of the repairs that an upgrade reports, in order.
    repaired: &'static [&'static str],
    /// The records that an upgrade puts aside, or keeps a copy of.
    aside: usize,
    removal: Removal,
}

const fn row(
    title: &'static str,
    damage: fn(&World),
    repaired: &'static [&'static str],
    aside: usize,
    removal: Removal,
) -> Row {
    Row {
        title,
        damage,
        repaired,
        aside,
        removal,
    }
}

const REMADE: &[&str] = &["v2': its contents cannot be read"];
const LABELLED: &[&str] = &["labelled by its contents"];
const LEFT: &str = "no other record names: ConfigMap/only-b";

fn without_data(world: &World, revision: u32) {
    alter(world, revision, |secret| secret["data"] = json!({}));
}

fn without_data_and_notes(world: &World, revision: u32) {
    alter(world, revision, |secret| {
        secret["data"] = json!({});
        secret["metadata"]["annotations"] = json!({});
    });
}

fn restate(world: &World, revision: u32, status: &str) {
    edit(world, revision, |record| record["info"]["status"] = json!(status));
}

fn cut(world: &World) {
    alter(world, 2, |secret| {
        let text = STANDARD.decode(secret["data"]["release"].as_str().unwrap()).unwrap();
        secret["data"]["release"] = json!(STANDARD.encode(&text[..text.len() / 2]));
    });
}

/// Damages by which helm or the operator would fail, or would do something wrong.
const CONTENTS: &[Row] = &[
    row("cut", cut, REMADE, 1, Removal::Clean),
    row(
        "garbage",
        |w| alter(w, 2, |s| s["data"]["release"] = json!("AAAA")),
        REMADE,
        1,
        Removal::Clean,
    ),
    row("no-key", |w| without_data(w, 2), REMADE, 1, Removal::Clean),
    row(
        "empty",
        |w| alter(w, 2, |s| s["data"]["release"] = pack(&json!({}))),
        REMADE,
        1,
        Removal::Clean,
    ),
    row(
        "other",
        |w| {
            let older = secret(w, 1)["data"]["release"].clone();
            alter(w, 2, |s| s["data"]["release"] = older);
        },
        &["v2': it holds revision 1 of release 'one'; made again"],
        1,
        Removal::Clean,
    ),
    row(
        "unnoted",
        |w| without_data_and_notes(w, 2),
        &["v2': its contents cannot be read", LEFT],
        1,
        Removal::Asks,
    ),
    row(
        "all",
        |w| {
            without_data(w, 1);
            without_data(w, 2);
        },
        &["v1': its contents cannot be read", "made again"],
        2,
        Removal::Clean,
    ),
    row(
        "all-unnoted",
        |w| {
            without_data_and_notes(w, 1);
            without_data_and_notes(w, 2);
        },
        &["v1': its", "v2': its", LEFT],
        2,
        Removal::Asks,
    ),
    row("older", |w| without_data(w, 1), &[], 0, Removal::Clean),
    row(
        "gone",
        |w| drop(w.kubectl(&format!("delete secret {}", name(2)))),
        &[LEFT],
        0,
        Removal::LeavesObjects,
    ),
];

/// Contradictions of the status.
const STATUSES: &[Row] = &[
    row(
        "none-deployed",
        |w| {
            restate(w, 2, "superseded");
            label(w, 2, "status=superseded");
        },
        &[],
        0,
        Removal::Clean,
    ),
    row(
        "two-deployed",
        |w| {
            restate(w, 1, "deployed");
            label(w, 1, "status=deployed");
        },
        &["v1': a newer revision is deployed, too; marked as superseded"],
        0,
        Removal::Clean,
    ),
    row(
        "label-pending",
        |w| label(w, 2, "status=pending-upgrade"),
        LABELLED,
        0,
        Removal::Clean,
    ),
    row(
        "label-failed",
        |w| label(w, 2, "status=failed"),
        LABELLED,
        0,
        Removal::Clean,
    ),
    row(
        "pending",
        |w| restate(w, 2, "pending-upgrade"),
        &["its contents say pending-upgrade, but it was deployed; marked as deployed"],
        0,
        Removal::Clean,
    ),
    row(
        "uninstalled",
        |w| restate(w, 2, "uninstalled"),
        &["marked as deployed"],
        0,
        Removal::Clean,
    ),
];

/// Damages of names and labels, which are seen without a look at the contents.
const LABELS: &[Row] = &[
    row("no-version", |w| label(w, 2, "version-"), LABELLED, 0, Removal::Clean),
    row("version", |w| label(w, 1, "version=99"), LABELLED, 0, Removal::Clean),
    row("no-name", |w| label(w, 2, "name-"), LABELLED, 0, Removal::Clean),
    row("name", |w| label(w, 2, "name=two"), LABELLED, 0, Removal::Clean),
    row("no-owner", |w| label(w, 2, "owner-"), LABELLED, 0, Removal::Clean),
    row(
        "no-labels",
        |w| alter(w, 2, |s| s["metadata"]["labels"] = json!({})),
        LABELLED,
        0,
        Removal::Clean,
    ),
    row(
        "copy",
        |w| {
            let mut copy = secret(w, 2);
            copy["metadata"]["name"] = json!(format!("{}-backup", name(2)));
            put(w, copy);
        },
        &["v2-backup': it is a copy under another name; put aside"],
        1,
        Removal::Clean,
    ),
];

async fn two_revisions(prefix: &str, helm: Part) -> World {
    let mut world = World::with(prefix, helm).await;
    world
        .module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", TEMPLATES)])
        .await;
    for x in ["a", "b"] {
        world.sync(values(x)).await.unwrap();
    }
    // An intent would explain an unfinished revision.
    saved_state::clear_intent(&world.tools.ground.cluster, "one")
        .await
        .unwrap();
    world
}

fn values(x: &str) -> Value {
    json!({"one": {"x": x}})
}

fn objects(world: &World) -> String {
    let objects = world.metadata("configmaps", Only::Labels("heritage=addon-operator"));
    let names = objects.iter().map(|object| object["name"].as_str().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

fn uid(world: &World) -> Value {
    world.object("configmap", "shown")["metadata"]["uid"].take()
}

/// The number of Secrets with broken contents or copies that are kept.
fn kept_aside(world: &World) -> usize {
    let kept = Only::Fields("type=addon-operator/release-aside");
    world.metadata("secrets", kept).len()
}

fn assert_told(title: &str, repaired: &[String], expected: &[&str]) {
    let is_told =
        repaired.len() == expected.len() && repaired.iter().zip(expected).all(|(line, part)| line.contains(part));
    assert!(is_told, "{title}: {repaired:#?}");
}

async fn upgrade(row: &Row, helm: Part) {
    let title = format!("{} {}", row.title, helm.name());
    let mut world = two_revisions(&format!("up-{}", row.title), helm).await;
    let before = uid(&world);
    (row.damage)(&world);
    world.restart().await;
    let synced = world.sync(values("c")).await;
    let synced = synced.expect(&title);
    assert_eq!(synced.action, SyncAction::Upgraded, "{title}");
    assert_told(&title, &synced.repaired, row.repaired);
    let again = world.sync(values("c")).await.unwrap();
    assert_eq!(again.action, SyncAction::Unchanged, "{title}");
    assert_eq!(again.repaired, Vec::<String>::new(), "{title}");
    let is_left = row.repaired.contains(&LEFT);
    assert_eq!(
        objects(&world),
        if is_left { "only-b only-c shown" } else { "only-c shown" },
        "{title}"
    );
    assert_eq!(uid(&world), before, "{title}: no object is made anew");
    assert_eq!(kept_aside(&world), row.aside, "{title}");
    assert_eq!(
        world.history().matches(":deployed").count(),
        1,
        "{title}: {}",
        world.history()
    );
    world.helm_by_hand(&["history", "one"]);
}

async fn remove(row: &Row, helm: Part) {
    let title = format!("{} {}", row.title, helm.name());
    let mut world = two_revisions(&format!("rm-{}", row.title), helm).await;
    (row.damage)(&world);
    world.restart().await;
    let removed = world.delete().await;
    if row.removal == Removal::Asks {
        let failure = removed.unwrap_err();
        assert_eq!(failure.class, Class::Damaged, "{title}: {failure}");
        assert!(failure.report.contains(&name(2)), "{title}: {failure}");
        assert!(
            failure.hints[0].contains("addon-operator module release repair one"),
            "{title}"
        );
        assert_eq!(objects(&world), "only-b shown", "{title}: nothing is removed");
        return;
    }
    let removed = removed.expect(&title);
    let is_told = removed.repaired.iter().any(|line| line.contains("ConfigMap/only-b"));
    assert_eq!(is_told, row.removal == Removal::LeavesObjects, "{title}: {removed:?}");
    assert_eq!(objects(&world), if is_told { "only-b" } else { "" }, "{title}");
    assert_eq!(world.history(), "", "{title}");
    assert_eq!(world.delete().await, Ok(Reworked::default()), "{title}");
}

/// A few at a time: each starts several helms.
async fn for_each(rows: &[Row], test: impl AsyncFn(&Row, Part)) {
    let test = &test;
    let cases = rows.iter().flat_map(|row| [(row, Part::Helm3), (row, Part::Helm4)]);
    let all = stream::iter(cases).map(|(row, helm)| Box::pin(async move { test(row, helm).await }));
    all.buffer_unordered(3).collect::<Vec<()>>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_broken_contents_is_upgraded() {
    for_each(CONTENTS, upgrade).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_broken_contents_is_removed_unless_objects_would_be_lost() {
    for_each(CONTENTS, remove).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_a_contradictory_status_is_upgraded() {
    for_each(STATUSES, upgrade).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_a_contradictory_status_is_removed() {
    for_each(STATUSES, remove).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_wrong_names_or_labels_is_upgraded() {
    for_each(LABELS, upgrade).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_wrong_names_or_labels_is_removed() {
    for_each(LABELS, remove).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_touches_no_object_and_makes_no_revision() {
    for_each(LABELS, async |row, helm| {
        let mut world = two_revisions(&format!("same-{}", row.title), helm).await;
        let version = |world: &World| world.object("configmap", "shown")["metadata"]["resourceVersion"].take();
        let before = version(&world);
        (row.damage)(&world);
        world.restart().await;
        let synced = world.sync(values("b")).await.unwrap();
        assert_eq!(
            (synced.action, synced.revision),
            (SyncAction::Unchanged, 2),
            "{}",
            row.title
        );
        assert_told(row.title, &synced.repaired, row.repaired);
        assert_eq!(version(&world), before, "{}", row.title);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_of_the_secret_is_of_no_account() {
    with_each_helm(async |helm| {
        let mut world = two_revisions("type", helm).await;
        alter(&world, 2, |secret| secret["type"] = json!("Opaque"));
        world.restart().await;
        world.sync(values("c")).await.unwrap();
        // Helm could not mark the revision before as superseded, because a type cannot be changed.
        let synced = world.sync(values("c")).await.unwrap();
        assert_eq!(synced.action, SyncAction::Unchanged);
        assert_told("type", &synced.repaired, &["marked as superseded"]);
        assert_eq!(objects(&world), "only-c shown");
        world.delete().await.unwrap();
        assert_eq!((world.history(), objects(&world)), (String::new(), String::new()));
        // The operator finds the only revision, too.
        world.sync(values("a")).await.unwrap();
        alter(&world, 1, |secret| secret["type"] = json!("Opaque"));
        world.restart().await;
        world.delete().await.unwrap();
        assert_eq!((world.history(), objects(&world)), (String::new(), String::new()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_only_a_broken_record_names_is_not_deleted_without_a_person() {
    with_each_helm(async |helm| {
        let mut world = World::with("claim", helm).await;
        let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
                     resources: {requests: {storage: 1Mi}}\n";
        world
            .module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", TEMPLATES), ("templates/b.yaml", claim)])
            .await;
        world.sync(values("a")).await.unwrap();
        without_data(&world, 1);
        world.module("one", &[("templates/b.yaml", "")]).await;
        let failure = world.sync(values("a")).await.unwrap_err();
        assert_eq!(failure.class, Class::Held, "{failure}");
        assert!(failure.report.contains("PersistentVolumeClaim/data"), "{failure}");
        world.module("one", &[("templates/b.yaml", claim)]).await;
        assert_eq!(world.sync(values("b")).await.unwrap().action, SyncAction::Upgraded);
        assert!(!world.kubectl("get pvc -o=name").is_empty());
    })
    .await;
}

/// The exit code and the output of the command.
fn command(world: &World, more: &[&str]) -> (bool, String) {
    let output = testbed::process::command(env!("CARGO_BIN_EXE_addon-operator"))
        .args([
            "module",
            "release",
            "repair",
            "one",
            "--namespace",
            world.namespace.name(),
        ])
        .arg("--kube-config")
        .arg(world.namespace.kubeconfig(User::Operator))
        .args(more)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.success(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_the_repair_and_confirms_it() {
    let world = two_revisions("command", Part::Helm3).await;
    let (_, text) = command(&world, &[]);
    assert!(text.contains("There is nothing to repair"), "{text}");
    assert!(!command(&world, &["--confirm"]).0);
    without_data_and_notes(&world, 2);
    world.delete().await.unwrap_err();
    for _ in 0..2 {
        let (is_well, text) = command(&world, &[]);
        assert!(is_well, "{text}");
        for part in [
            "v1: superseded",
            "v2: its contents cannot be read (it has no key 'release'); it is put aside",
            "ConfigMap/only-b",
            "Nothing is changed until",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(kept_aside(&world), 0);
    let (is_well, text) = command(&world, &["--confirm"]);
    assert!(is_well && text.contains("It is done"), "{text}");
    assert_eq!(kept_aside(&world), 1);
    assert_eq!(objects(&world), "only-b shown");
    world.delete().await.unwrap();
    assert_eq!((world.history(), objects(&world)), (String::new(), "only-b".to_owned()));
    assert!(command(&world, &[]).1.contains("has no release"));
}

/// Its `ReplicaSet` gets the label and the annotations of helm, too.
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  replicas: 0\n  selector: {matchLabels: {x: d}}\n  template:\n    metadata: {labels: {x: d, app.kubernetes.io/managed-by: Helm}}\n    spec: {containers: [{name: c, image: i}]}\n";

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_kinds_that_no_record_names_are_named_with_the_command_that_deletes_them() {
    let mut world = two_revisions("nameless", Part::Helm3).await;
    world.module("one", &[("templates/b.yaml", DEPLOYMENT)]).await;
    world.sync(values("c")).await.unwrap();
    let copies = || {
        let count = world
            .kubectl("get replicaset -l app.kubernetes.io/managed-by=Helm -o=name")
            .lines()
            .count();
        (count > 0).then_some(Some(())).ok_or("there is none")
    };
    wait_until(PATIENCE, "a ReplicaSet", copies).unwrap();
    for revision in 1..=3 {
        without_data_and_notes(&world, revision);
    }
    world.delete().await.unwrap_err();
    let (is_well, text) = command(&world, &["--confirm"]);
    assert!(is_well, "{text}");
    let namespace = world.namespace.name();
    let commands: Vec<&str> = text.split('`').filter(|part| part.starts_with("kubectl ")).collect();
    let expected = ["deployment.apps d", "configmap only-c", "configmap shown"];
    let expected = expected.map(|object| format!("kubectl delete {object} --namespace {namespace}"));
    let mut sorted = commands.clone();
    sorted.sort_by_key(|command| expected.iter().position(|expected| expected == command));
    assert_eq!(sorted, expected, "{text}");
    world.delete().await.unwrap();
    assert_eq!(objects(&world), "only-c shown", "no object is touched");
    for command in commands {
        world.kubectl(command.trim_start_matches("kubectl "));
    }
    assert_eq!(
        world.kubectl("get configmap,deployment -l heritage=addon-operator -o=name"),
        ""
    );
}
