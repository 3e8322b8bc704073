//! Log lines as a log pipeline receives them.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use settings::Timestamps;
use tracing::{debug, error, info, info_span, warn};

use super::*;

/// Collects the output, write by write.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<String>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const JSON: LogSettings = LogSettings {
    level: LogLevel::Info,
    format: LogFormat::Json,
    client: ClientLog::Quiet,
};

fn secrets() -> Secrets {
    let secrets = Secrets::default();
    secrets.learn(Arc::new(["opensesame"].into_iter().collect()));
    secrets
}

fn lines_of(settings: LogSettings, scene: impl FnOnce(&LevelHandle)) -> Vec<String> {
    let sink = Sink::default();
    let writer = sink.clone();
    let (subscriber, handle) = subscriber(settings, secrets(), move || writer.clone());
    tracing::subscriber::with_default(subscriber, || scene(&handle));
    sink.0.lock().unwrap().clone()
}

fn messages(lines: &[String]) -> Vec<String> {
    lines
        .iter()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["msg"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

/// A line without its time, which is its last field.
fn without_time(line: &str) -> &str {
    let (rest, time) = line.split_once(r#","time":""#).unwrap();
    assert!(time.trim_end_matches("\"}\n").parse::<Timestamp>().is_ok(), "{time}");
    rest
}

#[test]
fn no_record_holds_a_secret() {
    let lines = lines_of(JSON, |_| {
        let span = info_span!("outer", asked = "opensesame");
        let _inside = span.enter();
        let members = r#"{"hook_said": {"deep": ["say opensesame"]}}"#;
        warn!({ MEMBERS } = members, error = %"opensesame!", "he said opensesame");
    });
    assert_eq!(lines.len(), 1);
    assert!(!lines[0].contains("sesame"), "{lines:?}");
    assert_eq!(lines[0].matches("<masked>").count(), 4, "{lines:?}");
}

#[test]
fn a_record_has_the_known_layout() {
    let lines = lines_of(JSON, |_| {
        info!(target: "addon_operator::jobs::hook", queue = "main", attempt = 3, binding = "b", ok = true, "Execute hook");
    });
    let expected = r#"{"level":"info","logger":"addon-operator.jobs.hook","msg":"Execute hook","attempt":3,"binding":"b","ok":true,"queue":"main""#;
    assert_eq!(lines.len(), 1);
    assert_eq!(without_time(&lines[0]), expected);
}

#[test]
fn a_logger_that_is_agreed_on_replaces_the_path() {
    let lines = lines_of(JSON, |_| {
        info!(
            { LOGGER } = "shell-operator.hook",
            { MEMBERS } = r#"{"hook":"a.sh"}"#,
            "hello"
        );
    });
    let expected = r#"{"level":"info","logger":"shell-operator.hook","msg":"hello","hook":"a.sh""#;
    assert_eq!(without_time(&lines[0]), expected);
}

#[test]
fn fields_of_spans_show_and_the_inner_one_wins() {
    let lines = lines_of(JSON, |_| {
        let job = info_span!("job", module = "one", hook = tracing::field::Empty, event.id = "e1").entered();
        job.record("hook", "hooks/a.sh");
        let _step = info_span!("step", module = "two").entered();
        info!(output = "stdout", "hello");
    });
    let expected = r#"{"level":"info","logger":"addon-operator.telling.telemetry.tests","msg":"hello","event.id":"e1","hook":"hooks/a.sh","module":"two","output":"stdout""#;
    assert_eq!(without_time(&lines[0]), expected);
}

#[test]
fn an_error_is_shown_with_its_causes() {
    #[derive(Debug, Error)]
    #[error("cannot read the values")]
    struct Outer(#[source] io::Error);
    let failure = Outer(io::Error::other("disk on fire"));
    let lines = lines_of(JSON, |_| {
        error!(
            error = &failure as &dyn std::error::Error,
            "Hook failed. Will retry after delay."
        );
    });
    let record: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(record["error"], "cannot read the values: disk on fire");
}

#[test]
fn members_of_a_json_object_become_fields() {
    let lines = lines_of(JSON, |_| {
        info!(
            { MEMBERS } = r#"{"hook_n":1.5,"hook_list":[1],"level":"x"}"#,
            "hook result"
        );
        info!({ MEMBERS } = "no object", "hook result");
    });
    let record: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((&record["hook_n"], &record["hook_list"][0]), (&1.5.into(), &1.into()));
    assert_eq!((&record["level"], &record["level_"]), (&"info".into(), &"x".into()));
    assert!(lines[1].contains(r#""record.members":"no object""#), "{}", lines[1]);
}

#[test]
fn a_record_is_one_write_of_one_line_whatever_it_says() {
    for format in [
        LogFormat::Json,
        LogFormat::Text(Timestamps::Shown),
        LogFormat::Color(Timestamps::Left),
    ] {
        let lines = lines_of(LogSettings { format, ..JSON }, |_| {
            info!(text = "a\nb", "one\ntwo\r{}", "\u{1}");
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0].matches('\n').count(), 1, "{lines:?}");
        assert!(lines[0].ends_with('\n'));
    }
}

#[test]
fn the_level_can_be_changed_while_it_runs() {
    let lines = lines_of(JSON, |handle| {
        debug!("hidden");
        handle.set(LogLevel::Debug);
        debug!("shown");
        handle.set(LogLevel::Error);
        warn!("hidden again");
        error!("loud");
    });
    assert_eq!(messages(&lines), ["shown", "loud"]);
    assert!(
        lines[0].contains(r#""source":"crates/telling/src/telemetry/tests.rs:"#),
        "{}",
        lines[0]
    );
    assert!(!lines[1].contains(r#""source""#), "{}", lines[1]);
}

#[test]
fn libraries_speak_when_they_are_worried_or_asked() {
    let scene = |_: &LevelHandle| {
        debug!(target: "kube_client::client", "request");
        error!(target: "kube_client::client::builder", "failed");
        info!(target: "rustls", "chatter");
        warn!(target: "rustls", "worry");
    };
    assert_eq!(messages(&lines_of(JSON, scene)), ["worry"]);
    assert_eq!(
        messages(&lines_of(
            LogSettings {
                level: LogLevel::Debug,
                ..JSON
            },
            scene
        )),
        ["worry"]
    );
    assert_eq!(
        messages(&lines_of(
            LogSettings {
                client: ClientLog::Requests,
                ..JSON
            },
            scene
        )),
        ["request", "failed", "worry"]
    );
    assert!(
        lines_of(
            LogSettings {
                level: LogLevel::Error,
                ..JSON
            },
            scene
        )
        .is_empty()
    );
}

#[test]
fn text_is_for_people() {
    let text = |format| {
        lines_of(LogSettings { format, ..JSON }, |_| {
            warn!(hook = "a.sh", error = "no such file", empty = "", "Hook failed");
        })
        .concat()
    };
    let plain = "Hook failed empty=\"\" error=\"no such file\" hook=a.sh\n";
    assert_eq!(text(LogFormat::Text(Timestamps::Left)), format!("WARN  {plain}"));
    assert_eq!(
        text(LogFormat::Color(Timestamps::Left)),
        format!("\u{1b}[33mWARN \u{1b}[0m {plain}")
    );
    let timed = text(LogFormat::Text(Timestamps::Shown));
    let (time, rest) = timed.split_once(' ').unwrap();
    assert!(time.parse::<Timestamp>().is_ok(), "{timed}");
    assert_eq!(rest, format!("WARN  {plain}"));
}

#[test]
fn every_crate_of_ours_that_logs_is_known() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let logging = fs_err::read_dir(crates).unwrap().filter_map(|entry| {
        let folder = entry.unwrap();
        let manifest = fs_err::read_to_string(folder.path().join("Cargo.toml")).ok()?;
        let logs = manifest.lines().any(|line| line.starts_with("tracing.workspace"));
        logs.then(|| folder.file_name().to_string_lossy().replace('-', "_"))
    });
    let mut logging: Vec<String> = logging.collect();
    logging.sort();
    assert_eq!(logging, OURS[1..]);
}
