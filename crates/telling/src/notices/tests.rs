use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::cause::Cause;
use addon_core::hook::config::Stage;
use addon_core::metric;
use addon_core::metric::escape::Escaping;
use addon_core::operator::effect::HookLabels;
use addon_core::operator::event::Usage;
use names::{HookId, HookName, Owner};
use serde_json::{Value, json};

use super::*;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The log records of the notices (level and fields), and the metrics that they change.
fn told(notices: &[Notice]) -> (Vec<Value>, String) {
    let written = Written::default();
    let sink = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .without_time()
        .with_target(false)
        .with_max_level(tracing::Level::INFO)
        .with_writer(move || sink.clone())
        .finish();
    let meters = Arc::new(Meters::new("own_"));
    let mut told = Notices::new(Arc::clone(&meters), Mode::Addons, "settings".to_owned());
    tracing::subscriber::with_default(subscriber, || {
        for notice in notices {
            told.tell(notice, Duration::ZERO);
        }
    });
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let metrics = meters.render(None);
    let metrics = metrics
        .lines()
        .filter(|line| line.starts_with("own_") && !line.contains("_bucket{"));
    (records, metrics.collect::<Vec<_>>().join("\n"))
}

fn module(name: &str) -> ModuleName {
    ModuleName::parse(name).unwrap()
}

fn hook(owner: Owner) -> HookId {
    HookId {
        owner,
        name: HookName::parse("hooks/a.sh").unwrap(),
    }
}

fn labels() -> HookLabels {
    HookLabels {
        cause: Cause::Schedule,
        binding_name: "nightly".into(),
        queue: "main".into(),
        activation: "OperatorStartup",
    }
}

#[test]
fn a_failed_hook_says_what_when_and_what_to_do() {
    let notice = Notice::HookFailed {
        hook: hook(module("one").into()),
        labels: labels(),
        failure: Failure::new(Class::HookFailed, "exit code 3").hint("read its output above"),
        took: Duration::from_secs(1),
        allowed: false,
        attempts: 2,
        retry_in: Some(Duration::from_millis(6100)),
    };
    let (records, metrics) = told(&[notice]);
    assert_eq!(
        records,
        [json!({
            "level": "ERROR", "message": "Hook failed. Will retry after delay.", "hook": "hooks/a.sh", "module": "one",
            "binding": "schedule", "binding.name": "nightly", "queue": "main", "event": "OperatorStartup",
            "error": "exit code 3", "class": "hook_failed", "hint": "read its output above", "failures": 2,
            "retry_in_seconds": 6.1
        })]
    );
    let series =
        "{activation=\"OperatorStartup\",binding=\"schedule\",hook=\"hooks/a.sh\",module=\"one\",queue=\"main\"}";
    assert_eq!(
        metrics,
        format!(
            "own_failures_total{{class=\"hook_failed\",step=\"hook\"}} 1\n\
             own_module_hook_allowed_errors_total{series} 0\n\
             own_module_hook_errors_total{series} 1\n\
             own_module_hook_run_seconds_sum{series} 1\n\
             own_module_hook_run_seconds_count{series} 1\n\
             own_module_hook_success_total{series} 0"
        )
    );
}

#[test]
fn an_allowed_failure_is_no_error() {
    let notice = Notice::HookFailed {
        hook: hook(Owner::Global),
        labels: labels(),
        failure: Failure::new(Class::HookFailed, "exit code 3"),
        took: Duration::from_secs(1),
        allowed: true,
        attempts: 1,
        retry_in: None,
    };
    let (records, metrics) = told(&[notice]);
    assert_eq!(records[0]["level"], "INFO");
    assert_eq!(records[0]["message"], "Hook failed, but allowed to fail");
    assert_eq!(records[0].get("module"), None, "an absent fact is no field");
    assert!(metrics.contains("own_global_hook_errors_total{activation=\"OperatorStartup\",binding=\"schedule\",hook=\"hooks/a.sh\",queue=\"main\"} 0"));
    assert!(metrics.contains("own_global_hook_allowed_errors_total{activation=\"OperatorStartup\",binding=\"schedule\",hook=\"hooks/a.sh\",queue=\"main\"} 1"));
}

#[test]
fn a_run_is_measured() {
    let usage = Usage {
        wall: Duration::from_secs(2),
        user: Duration::from_millis(500),
        system: Duration::from_millis(250),
        max_rss: 4096,
    };
    let (records, metrics) = told(&[
        Notice::HookStarted {
            hook: hook(Owner::Global),
            labels: labels(),
        },
        Notice::HookSucceeded {
            hook: hook(Owner::Global),
            labels: labels(),
            usage,
        },
        Notice::ScriptAnswered {
            module: module("one"),
            usage,
        },
    ]);
    let messages: Vec<&Value> = records.iter().map(|record| &record["message"]).collect();
    assert_eq!(messages, ["Execute hook", "Hook executed successfully"]);
    for expected in [
        "own_global_hook_run_seconds_sum{activation=\"OperatorStartup\",binding=\"schedule\",hook=\"hooks/a.sh\",queue=\"main\"} 2",
        "own_global_hook_run_user_cpu_seconds_sum{activation=\"OperatorStartup\",binding=\"schedule\",hook=\"hooks/a.sh\",queue=\"main\"} 0.5",
        "own_global_hook_run_sys_cpu_seconds_sum{activation=\"OperatorStartup\",binding=\"schedule\",hook=\"hooks/a.sh\",queue=\"main\"} 0.25",
        "own_global_hook_run_max_rss_bytes{activation=\"OperatorStartup\",binding=\"schedule\",hook=\"hooks/a.sh\",queue=\"main\"} 4096",
        "own_module_hook_run_user_cpu_seconds_sum{activation=\"\",binding=\"enabled\",hook=\"enabled\",module=\"one\",queue=\"\"} 0.5",
    ] {
        assert!(metrics.contains(expected), "{expected}\nis not in\n{metrics}");
    }
}

#[test]
fn the_first_converge_announces_readiness_once() {
    let finished = |first, failing| Notice::ConvergeFinished {
        reason: "Operator-Startup".into(),
        took: Duration::from_secs(3),
        first,
        failing,
    };
    let (records, metrics) = told(&[finished(true, vec![module("one")]), finished(false, vec![])]);
    let messages: Vec<&Value> = records.iter().map(|record| &record["message"]).collect();
    assert_eq!(
        messages,
        [
            "Converge modules finished, but some modules still fail",
            "first converge is finished. Operator is ready now.",
            "Converge modules finished"
        ]
    );
    assert_eq!(
        metrics,
        "own_convergence_seconds{activation=\"\"} 3\nown_convergence_seconds{activation=\"OperatorStartup\"} 3\n\
         own_convergence_total{activation=\"\"} 1\nown_convergence_total{activation=\"OperatorStartup\"} 1"
    );
}

#[test]
fn a_failed_module_is_told_in_the_words_that_alerts_know() {
    let notice = Notice::ModuleFailed {
        module: module("one"),
        step: "helm",
        failure: Failure::new(Class::Unavailable, "upgrade release: timed out"),
        took: Duration::from_secs(4),
        helm: Some(Duration::from_secs(3)),
        activation: "",
        attempts: 1,
        retry_in: Duration::from_secs(5),
    };
    let (records, metrics) = told(&[notice]);
    assert_eq!(
        records[0]["message"],
        "ModuleRun failed. Requeue task to retry after delay."
    );
    assert_eq!(records[0]["level"], "ERROR");
    for expected in [
        "own_module_run_errors_total{module=\"one\"} 1",
        "own_module_run_seconds_sum{activation=\"\",module=\"one\"} 4",
        "own_module_helm_seconds_sum{activation=\"\",module=\"one\"} 3",
    ] {
        assert!(metrics.contains(expected), "{expected} is not in\n{metrics}");
    }
}

#[test]
fn what_we_cancelled_ourselves_is_no_error() {
    let cancelled = Failure::new(Class::Cancelled, "it was cancelled");
    let (records, _) = told(&[
        Notice::HookFailed {
            hook: hook(Owner::Global),
            labels: labels(),
            failure: cancelled.clone(),
            took: Duration::from_secs(1),
            allowed: false,
            attempts: 1,
            retry_in: None,
        },
        Notice::ModuleFailed {
            module: module("one"),
            step: "helm",
            failure: cancelled,
            took: Duration::from_secs(4),
            helm: Some(Duration::from_secs(3)),
            activation: "",
            attempts: 1,
            retry_in: Duration::from_secs(5),
        },
    ]);
    let shown: Vec<_> = records
        .iter()
        .map(|record| (&record["level"], &record["message"]))
        .collect();
    let info = Value::from("INFO");
    assert_eq!(
        shown,
        [
            (&info, &"Hook is cancelled".into()),
            (&info, &"ModuleRun is cancelled".into())
        ]
    );
}

/// The metrics that notices change in the program for hooks without modules.
fn moved_alone(notices: &[Notice]) -> Vec<String> {
    let meters = Arc::new(Meters::of_hooks_alone("own_"));
    let mut told = Notices::new(Arc::clone(&meters), Mode::Addons, String::new());
    for notice in notices {
        told.tell(notice, Duration::ZERO);
    }
    let text = meters.render(None);
    text.lines()
        .filter(|line| line.starts_with("own_") && !line.contains("_bucket{"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn with_hooks_alone_a_run_is_labelled_by_the_name_of_its_binding() {
    let usage = Usage {
        wall: Duration::from_secs(2),
        user: Duration::from_millis(500),
        system: Duration::from_millis(250),
        max_rss: 4096,
    };
    let at_start = HookLabels {
        cause: Cause::Stage(Stage::OnStartup),
        binding_name: "onStartup".into(),
        ..labels()
    };
    let moved = moved_alone(&[
        Notice::HookSucceeded {
            hook: hook(Owner::Global),
            labels: labels(),
            usage,
        },
        Notice::HookFailed {
            hook: hook(Owner::Global),
            labels: at_start,
            failure: Failure::new(Class::HookFailed, "exit code 3"),
            took: Duration::from_secs(1),
            allowed: false,
            attempts: 1,
            retry_in: None,
        },
        Notice::ConvergeFinished {
            reason: "Operator-Startup".into(),
            took: Duration::from_secs(3),
            first: true,
            failing: Vec::new(),
        },
    ]);
    let nightly = r#"{binding="nightly",hook="hooks/a.sh",queue="main"}"#;
    let start = r#"{binding="",hook="hooks/a.sh",queue=""}"#;
    assert_eq!(
        moved,
        [
            format!("own_hook_run_allowed_errors_total{start} 0"),
            format!("own_hook_run_allowed_errors_total{nightly} 0"),
            format!("own_hook_run_errors_total{start} 1"),
            format!("own_hook_run_errors_total{nightly} 0"),
            format!("own_hook_run_max_rss_bytes{nightly} 4096"),
            format!("own_hook_run_seconds_sum{start} 1"),
            format!("own_hook_run_seconds_count{start} 1"),
            format!("own_hook_run_seconds_sum{nightly} 2"),
            format!("own_hook_run_seconds_count{nightly} 1"),
            format!("own_hook_run_success_total{start} 0"),
            format!("own_hook_run_success_total{nightly} 1"),
            format!("own_hook_run_sys_cpu_seconds_sum{nightly} 0.25"),
            format!("own_hook_run_sys_cpu_seconds_count{nightly} 1"),
            format!("own_hook_run_user_cpu_seconds_sum{nightly} 0.5"),
            format!("own_hook_run_user_cpu_seconds_count{nightly} 1"),
        ]
    );
}

#[test]
fn a_module_that_is_removed_takes_the_metrics_of_its_hooks_along() {
    let meters = Arc::new(Meters::new("own_"));
    let mut told = Notices::new(Arc::clone(&meters), Mode::Addons, String::new());
    let written = metric::parse(r#"{"name": "size", "set": 1}"#).unwrap();
    for owner in [module("one"), module("two")] {
        meters.apply_hook_metrics(&hook(owner.into()), written.operations.clone());
    }
    told.tell(&Notice::ModuleDeleted { module: module("one") }, Duration::ZERO);
    let text = meters.render_hooks(Escaping::default());
    assert!(
        text.contains("module=\"two\"") && !text.contains("module=\"one\""),
        "{text}"
    );
}
