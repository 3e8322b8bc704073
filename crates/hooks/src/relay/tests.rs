//! Lines as hooks print them, and the resulting records.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_core::hook::cause::Cause;
use child::{Output, Spawn, Spawner};
use names::{HookName, Owner};
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::*;

/// A record: its level, its message and its other fields.
type Record = (Level, String, Map<String, Value>);

struct Keep(Arc<Mutex<Vec<Record>>>);

#[derive(Default)]
struct Fields {
    message: String,
    members: Map<String, Value>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        assert_eq!(field.name(), "message");
        self.message = format!("{value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MEMBERS {
            self.members.extend(serde_json::from_str::<Map<_, _>>(value).unwrap());
        } else {
            self.members.insert(field.name().to_owned(), value.into());
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Keep {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let record = (*event.metadata().level(), fields.message, fields.members);
        self.0.lock().unwrap().push(record);
    }
}

fn relayed(labels: LabelSet, lines: &[&str]) -> Vec<Record> {
    relayed_without(&Secrets::default(), labels, lines)
}

fn relayed_without(secrets: &Secrets, labels: LabelSet, lines: &[&str]) -> Vec<Record> {
    let records = Arc::default();
    let subscriber = tracing_subscriber::registry().with(Keep(Arc::clone(&records)));
    tracing::subscriber::with_default(subscriber, || {
        let hook = HookId {
            owner: Owner::Module(ModuleName::parse("m").unwrap()),
            name: HookName::parse("hooks/h.sh").unwrap(),
        };
        let run = HookLabels {
            cause: Cause::Schedule,
            binding_name: "b".to_owned(),
            queue: "q".to_owned(),
            activation: "",
        };
        let style = Style {
            labels,
            output: HookOutput::Lines,
        };
        let mut sink = Labels::of_hook(&hook, &run, style, secrets).sink(Stream::Stderr);
        for line in lines {
            sink(line);
        }
    });
    std::mem::take(&mut *records.lock().unwrap())
}

fn members(value: &str) -> Map<String, Value> {
    serde_json::from_str(value).unwrap()
}

#[test]
fn a_line_is_a_record_with_the_labels_of_its_run() {
    let records = relayed(LabelSet::Modules, &["  hello ", "", "   "]);
    let labels = members(r#"{"hook":"hooks/h.sh","module":"m","binding":"b","queue":"q","output":"stderr"}"#);
    assert_eq!(records, [(Level::INFO, "hello".to_owned(), labels)]);
}

#[test]
fn hooks_alone_have_their_own_labels_and_logger() {
    let records = relayed(LabelSet::HooksAlone, &["hello"]);
    let labels = members(
        r#"{"hook":"hooks/h.sh","binding":"b","event":"schedule","queue":"q","task":"HookRun","output":"stderr",
            "record.logger":"shell-operator.hook-manager.hook.executor"}"#,
    );
    assert_eq!(records, [(Level::INFO, "hello".to_owned(), labels)]);
}

#[test]
fn a_json_object_keeps_its_level_and_members() {
    let records = relayed(
        LabelSet::Modules,
        &[
            r#"{"level":"warning","msg":"careful","time":"x","n":1.5,"queue":"mine"}"#,
            "{}",
        ],
    );
    let (level, message, members) = &records[0];
    assert_eq!((*level, message.as_str()), (Level::WARN, "careful"));
    assert_eq!(members["hook_n"], 1.5);
    assert_eq!(members["proxyJsonLog"], true);
    assert_eq!(
        (&members["queue"], &members["hook_queue"]),
        (&"q".into(), &"mine".into())
    );
    assert!(!members.contains_key("hook_time"));
    assert_eq!((records[1].0, records[1].1.as_str()), (Level::INFO, "hook result"));
}

#[test]
fn every_level_that_hooks_know_is_understood() {
    let rows = [
        ("trace", Level::TRACE),
        ("DEBUG", Level::DEBUG),
        ("Info", Level::INFO),
        ("warn", Level::WARN),
        ("fatal", Level::ERROR),
        ("panic", Level::ERROR),
        ("strange", Level::INFO),
    ];
    for (word, expected) in rows {
        let records = relayed(LabelSet::Modules, &[&format!(r#"{{"level":"{word}"}}"#)]);
        assert_eq!(records[0].0, expected, "{word}");
    }
}

#[test]
fn what_is_left_at_the_end_is_told() {
    let records = relayed(LabelSet::Modules, &[r#"{"msg":"#, r#""never closed""#]);
    let messages: Vec<&str> = records.iter().map(|(_, message, _)| message.as_str()).collect();
    assert_eq!(messages, [r#"{"msg":"#, r#""never closed""#]);
}

#[test]
fn a_long_line_is_cut_and_marked_and_so_is_a_huge_object() {
    let long = "é".repeat(LONGEST_RECORD + 5);
    let exact = "x".repeat(LONGEST_RECORD);
    let records = relayed(LabelSet::Modules, &[&long, &exact]);
    assert_eq!(records[0].1, "é".repeat(LONGEST_RECORD) + ":truncated");
    assert_eq!(records[1].1, exact);
    let records = relayed(
        LabelSet::Modules,
        &[&format!(r#"{{"msg":"m","x":"{}"}}"#, "ü".repeat(20_000))],
    );
    assert_eq!(records[0].1, "m");
    let kept = records[0].2["hook"]["truncated"].as_str().unwrap();
    assert_eq!(kept.chars().count(), LONGEST_RECORD);
}

#[test]
fn a_secret_across_the_cut_is_not_shown_in_part() {
    let secrets = Secrets::default();
    secrets.learn(Arc::new(["correct-horse"].into_iter().collect()));
    let text = format!("{}correct-horse battery", "x".repeat(LONGEST_RECORD - 7));
    let records = relayed_without(&secrets, LabelSet::Modules, &[&text]);
    assert!(records[0].1.ends_with("x<masked:truncated"), "{:?}", records[0].1);
    // The name of the member and its quotes come before the secret.
    for before in LONGEST_RECORD - 30..LONGEST_RECORD - 10 {
        let text = serde_json::json!({"x": format!("{}correct-horse battery", "x".repeat(before))}).to_string();
        let records = relayed_without(&secrets, LabelSet::Modules, &[&text]);
        let kept = Value::Object(records[0].2.clone()).to_string();
        assert!(kept.contains("truncated") && !kept.contains("corr"), "{before}");
    }
}

/// The output of a real program, with its lines written in pieces.
#[tokio::test]
async fn lines_of_a_real_program_are_lines_however_they_were_written() {
    let script = r#"
        printf '{"msg":'; printf '"two writes"}\n'
        printf '{"msg":"long","x":"%s"}\n' "$(printf 'x%.0s' {1..9000})"
        printf 'y%.0s' {1..6000}; printf 'y%.0s' {1..6000}; echo
        echo '{not JSON'; echo '  after  '; echo
        printf '{\n  "msg": "pretty",\n  "level": "debug"\n}\n'
        printf 'no end'
    "#;
    let records = Arc::default();
    let subscriber = tracing_subscriber::registry().with(Keep(Arc::clone(&records)));
    let guard = tracing::subscriber::set_default(subscriber);
    let labels = Labels::of_enabled_script(&ModuleName::parse("m").unwrap(), Style::default(), &Secrets::default());
    let mut spawn = Spawn::new("/bin/bash", Duration::from_mins(1));
    spawn.args = vec!["-c".into(), script.into()];
    spawn.stdout = Output::lines(labels.sink(Stream::Stdout));
    let finished = Spawner::new().unwrap().run(spawn, &CancellationToken::new()).await;
    assert!(finished.unwrap().exit.is_success());
    drop(guard);
    let records: Vec<Record> = std::mem::take(&mut *records.lock().unwrap());
    let said: Vec<(Level, &str)> = records
        .iter()
        .map(|(level, message, _)| (*level, message.as_str()))
        .collect();
    let cut = "y".repeat(LONGEST_RECORD) + ":truncated";
    let expected = [
        (Level::INFO, "two writes"),
        (Level::INFO, "long"),
        (Level::INFO, &cut),
        (Level::INFO, "{not JSON"),
        (Level::INFO, "after"),
        (Level::DEBUG, "pretty"),
        (Level::INFO, "no end"),
    ];
    assert_eq!(said, expected);
    assert_eq!(records[1].2["hook_x"].as_str().map(str::len), Some(9000));
    assert!(records.iter().all(|(_, _, members)| members["output"] == "stdout"));
}
