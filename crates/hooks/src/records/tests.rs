//! Records as a whole: the masks in them, their way to disk and back, and the mistakes in damaged ones.

use addon_core::values::Store;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use names::{HookName, ModuleName, Owner};
use serde_json::{Value, json};
use values_schema::schema::{Files, Schemas};

use super::record::{End, Program, RunFile};
use super::*;

fn owner() -> Owner {
    Owner::Module(ModuleName::parse("web").unwrap())
}

fn hook() -> HookId {
    HookId {
        owner: owner(),
        name: HookName::parse("hooks/a.sh").unwrap(),
    }
}

fn raw(files: &[(RunFile, &str)], inputs: Inputs) -> Raw {
    Raw {
        hook: hook(),
        cause: "kubernetes".to_owned(),
        binding: "secrets".to_owned(),
        queue: "main".to_owned(),
        began: Timestamp::now(),
        took: std::time::Duration::from_millis(12),
        deadline: std::time::Duration::from_mins(1),
        program: Program {
            path: "/modules/web/hooks/a.sh".to_owned(),
            arguments: Vec::new(),
            module: Some("/modules/web".to_owned()),
            directory: None,
            variables: BTreeMap::new(),
        },
        inputs,
        files: files
            .iter()
            .map(|(file, text)| RawFile {
                file: *file,
                name: format!("{}.json", file.variable()),
                text: Ok((*text).to_owned()),
            })
            .collect(),
        end: End::ExitCode(0),
        failure: None,
        stdout: (String::new(), 0),
        stderr: (String::new(), 0),
    }
}

/// The rules of a module whose schema marks a short value without a telling name.
fn inputs() -> Inputs {
    let mut files = Files::default();
    files.insert(
        "values.yaml",
        "type: object\nproperties: {code: {type: string, x-secret: true}}\n",
    );
    let schemas = Schemas::load(&files, None, Some("values.yaml")).unwrap();
    let mut store = Store::new();
    store.set_schemas(&owner(), schemas).unwrap();
    Inputs {
        secrecy: store.hook_secrecy(&owner()),
        secret_bindings: ["secrets".to_owned()].into(),
        ..Inputs::default()
    }
}

fn masked(file: RunFile, text: &str) -> String {
    let record = hiding::hidden(raw(&[(file, text)], inputs()), &Secrets::default());
    record.files[file.variable()].content.text.clone()
}

fn value(file: RunFile, document: &Value) -> Value {
    serde_json::from_str(&masked(file, &document.to_string())).unwrap()
}

#[test]
fn values_are_masked_by_schema_and_name() {
    let values = json!({"global": {"adminPassword": "opensesame"}, "web": {"code": "abc", "size": 3}});
    let expected = json!({"global": {"adminPassword": "<masked>"}, "web": {"code": "<masked>", "size": 3}});
    assert_eq!(value(RunFile::Values, &values), expected);
    let patch = json!([
        {"op": "add", "path": "/web/code", "value": "abc"},
        {"op": "add", "path": "/web/internal", "value": {"token": "t", "port": 80}},
        {"op": "remove", "path": "/web/old"},
    ]);
    let expected = json!([
        {"op": "add", "path": "/web/code", "value": "<masked>"},
        {"op": "add", "path": "/web/internal", "value": {"token": "<masked>", "port": 80}},
        {"op": "remove", "path": "/web/old"},
    ]);
    assert_eq!(value(RunFile::ValuesPatch, &patch), expected);
}

#[test]
fn secrets_of_the_cluster_are_masked_in_every_place() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "b3BlbnNlc2FtZQ=="}});
    let hidden = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "<masked>"}});
    let contexts = json!([{
        "binding": "secrets", "type": "Synchronization",
        "objects": [{"object": secret, "filterResult": {"x": "opensesame"}}],
        "snapshots": {
            "secrets": [{"object": secret, "filterResult": "opensesame"}],
            "pods": [{"object": {"kind": "Pod", "spec": {"token": "t", "n": 1}}, "filterResult": ["plain"]}],
        },
    }, {"binding": "review", "review": {"request": {"object": secret}}}]);
    let expected = json!([{
        "binding": "secrets", "type": "Synchronization",
        "objects": [{"object": hidden, "filterResult": "<masked>"}],
        "snapshots": {
            "secrets": [{"object": hidden, "filterResult": "<masked>"}],
            "pods": [{"object": {"kind": "Pod", "spec": {"token": "<masked>", "n": 1}}, "filterResult": ["plain"]}],
        },
    }, {"binding": "review", "review": {"request": {"object": hidden}}}]);
    assert_eq!(value(RunFile::Contexts, &contexts), expected);

    let object =
        "{operation: Create, object: {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {x: opensesame}}}";
    let text = "operation: Create\nobject: |\n  apiVersion: v1\n  kind: Secret\n  stringData: {x: opensesame}\n";
    let merge = "{operation: MergePatch, kind: secret, name: a, mergePatch: {data: {x: b3BlbnNlc2FtZQ==}}}";
    let steps =
        "{operation: JSONPatch, kind: Secret, name: a, jsonPatch: [{op: add, path: /data/x, value: b3BlbnNlc2FtZQ==}]}";
    let filter = "{operation: JQPatch, kind: Secret, name: a, jqFilter: '.stringData.x = \"opensesame\"'}";
    for patch in [object, text, merge, steps, filter] {
        let shown = masked(RunFile::ObjectPatches, patch);
        assert!(shown.contains("<masked>"), "{shown}");
        assert!(!shown.contains("opensesame") && !shown.contains("b3Blb"), "{shown}");
    }
}

#[test]
fn a_secret_that_is_found_in_one_file_is_masked_in_all_others() {
    let contexts = json!([{"binding": "x", "object": {"apiVersion": "v1", "kind": "Secret", "data": {"k": STANDARD.encode("opensesame")}}}]);
    let files = [
        (RunFile::Contexts, contexts.to_string()),
        (
            RunFile::ValuesPatch,
            json!([{"op": "add", "path": "/web/copied", "value": "opensesame"}]).to_string(),
        ),
        (
            RunFile::Metrics,
            "{\"name\":\"a\",\"set\":1,\"labels\":{\"who\":\"opensesame\"}}\n".to_owned(),
        ),
    ];
    let files: Vec<(RunFile, &str)> = files.iter().map(|(file, text)| (*file, text.as_str())).collect();
    let raw = Raw {
        stdout: ("I say opensesame\nand opens".to_owned(), 3),
        stderr: ("told-before".to_owned(), 0),
        failure: Some("no: opensesame".to_owned()),
        ..raw(&files, Inputs::default())
    };
    let secrets = Secrets::default();
    secrets.learn(Arc::new(["told-before"].into_iter().collect()));
    let record = hiding::hidden(raw, &secrets);
    let text = record.to_text();
    for secret in ["opens", "told-before", "b3Blb"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(record.stdout.text, "I say <masked>\n");
    assert_eq!(record.stdout.left_out.as_deref(), Some("the end, 12 bytes"));
    assert!(record.files.values().all(|file| file.content.masked) && record.stderr.masked);
}

#[test]
fn a_text_without_secrets_stays_and_one_that_cannot_be_read_is_left_out() {
    for (file, text) in [
        (RunFile::Contexts, "[ {\"binding\":\"a\\u003c\"} ]\n"),
        (
            RunFile::ObjectPatches,
            "# first\noperation: Delete\nkind: Pod\nname: a\n",
        ),
        (RunFile::Metrics, "no metric at all"),
        (RunFile::ValuesPatch, ""),
    ] {
        assert_eq!(masked(file, text), text);
    }
    let long = format!("[\"{}\"]", "x".repeat(ring::LONGEST_FILE));
    for (file, text) in [
        (RunFile::ValuesPatch, "[{\"op\": \"add\", "),
        (RunFile::ObjectPatches, "a: b: c: opensesame"),
        (RunFile::Contexts, long.as_str()),
    ] {
        let record = hiding::hidden(raw(&[(file, text)], Inputs::default()), &Secrets::default());
        let content = &record.files[file.variable()].content;
        assert!(content.text.is_empty() && content.left_out.is_some(), "{content:?}");
    }
}

#[test]
fn as_many_runs_are_recorded_as_are_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(dir.path().join("ring"), Secrets::default());
    assert!(!recorder.begins(&hook()));
    recorder.want(hook(), 2);
    assert!(recorder.begins(&hook()));
    recorder.did_not_begin(&hook());
    assert_eq!(recorder.wanted(), [(hook(), 2)].into());
    assert!(recorder.begins(&hook()) && recorder.begins(&hook()) && !recorder.begins(&hook()));
    recorder.want(hook(), 1);
    recorder.want(hook(), 0);
    assert!(!recorder.begins(&hook()));
}

fn kept() -> (tempfile::TempDir, Recorder, String) {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(dir.path().join("ring"), Secrets::default());
    recorder.keep(raw(
        &[(RunFile::Contexts, "[]\n"), (RunFile::Values, "{}")],
        Inputs::default(),
    ));
    let id = recorder.entries().unwrap()[0].id.clone();
    let text = recorder.text(&id).unwrap().unwrap();
    (dir, recorder, text)
}

#[test]
fn a_record_comes_back_from_disk_as_it_was() {
    let (_dir, recorder, text) = kept();
    let record = read(&text).unwrap();
    assert_eq!(record.to_text(), text);
    let entry = &recorder.entries().unwrap()[0];
    let outline = entry.run.as_ref().unwrap();
    assert_eq!(
        (outline.hook.as_str(), outline.module.as_deref()),
        ("hooks/a.sh", Some("web"))
    );
    assert_eq!((outline.end, entry.bytes), (End::ExitCode(0), text.len() as u64));
}

#[test]
fn a_record_that_cannot_be_written_fails_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::write(dir.path().join("file"), "").unwrap();
    let recorder = Recorder::new(dir.path().join("file/ring"), Secrets::default());
    recorder.keep(raw(&[], Inputs::default()));
    assert!(recorder.entries().is_err() || recorder.entries().unwrap().is_empty());
    // A directory that is removed is made again.
    let recorder = Recorder::new(dir.path().join("ring"), Secrets::default());
    recorder.keep(raw(&[], Inputs::default()));
    fs_err::remove_dir_all(dir.path().join("ring")).unwrap();
    recorder.keep(raw(&[], Inputs::default()));
    assert_eq!(recorder.entries().unwrap().len(), 1);
}

#[test]
fn a_damaged_record_is_refused_with_its_field() {
    let (_dir, _recorder, text) = kept();
    let good: Value = serde_json::from_str(&text).unwrap();
    let rows = [
        (
            "/record",
            json!(2),
            "field record: this program reads form 1, and the record has form 2",
        ),
        ("/hook", json!(7), "field hook: invalid type"),
        ("/end", json!({"exitCode": "x"}), "field end: invalid type"),
        ("/seconds", json!(-1), "field seconds: it is no number of seconds"),
        ("/program/path", json!(""), "field program.path: it is empty"),
        (
            "/program/variables",
            json!({"LD_PRELOAD": "x"}),
            "field program.variables.LD_PRELOAD: the operator sets only MODULE_NAME",
        ),
        (
            "/program/arguments",
            json!("x"),
            "field program.arguments: invalid type",
        ),
        (
            "/files/VALUES_PATH/name",
            json!("../x"),
            "field files.VALUES_PATH.name: it should be the name of a file",
        ),
        (
            "/files/VALUES_PATH/name",
            json!("BINDING_CONTEXT_PATH.json"),
            "field files.VALUES_PATH.name: another file has the same name",
        ),
        (
            "/files/VALUES_PATH/text",
            json!(null),
            "field files.VALUES_PATH.text: invalid type",
        ),
        (
            "/files/VALUES_PATH",
            json!([]),
            "field files.VALUES_PATH: it should be a map",
        ),
        (
            "/files/VALUES_PATH",
            json!({"name": "a", "text": "", "masked": false, "more": 1}),
            "field files.VALUES_PATH.more: there is no such field",
        ),
        ("/files", json!({}), "field files.BINDING_CONTEXT_PATH: it is missing"),
        ("/files", json!({"PATH": 1}), "field files."),
        ("/stdout", json!({"masked": false}), "field stdout.text: it is missing"),
    ];
    for (place, bad, expected) in rows {
        let mut record = good.clone();
        *record.pointer_mut(place).unwrap() = bad;
        let error = read(&record.to_string()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{place}: {error}");
    }
    for key in good.as_object().unwrap().keys() {
        let mut record = good.clone();
        record.as_object_mut().unwrap().remove(key);
        let error = read(&record.to_string()).unwrap_err().to_string();
        assert_eq!(error, format!("field {key}: it is missing"));
    }
    let error = read(&text[..text.len() / 2]).unwrap_err().to_string();
    assert!(error.starts_with("it is no JSON: "), "{error}");
    assert_eq!(read("[]").unwrap_err().to_string(), "field (root): it should be a map");
}
