use std::fmt::Write as _;

use addon_core::operator::health::Health;
use addon_core::operator::query::{HeldBy, TaskReport};
use addon_core::release::kinds::{KindName, KindState};
use names::{HookId, HookName, ModuleName, Owner};

use super::bindings::{Bound, Enabled, WatchError};
use super::meter::{Row, Unit};
use super::queues::QueueAction;
use super::*;

fn render_own(meters: &Meters, sample: Option<&Sample>) -> String {
    let text = meters.render(sample);
    text.lines()
        .filter(|line| line.starts_with("own_"))
        .fold(String::new(), |all, line| all + line + "\n")
}

/// A Deployment that has failed.
fn web() -> Unhealthy {
    Unhealthy {
        module: "one".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: String::new(),
        name: "web".to_owned(),
        reason: "Failed",
    }
}

#[test]
fn every_meter_of_the_table_is_listed_once() {
    let sources = [
        include_str!("table.rs"),
        include_str!("table/alone.rs"),
        include_str!("table/channel.rs"),
        include_str!("table/cluster.rs"),
        include_str!("table/health.rs"),
        include_str!("table/trials.rs"),
    ];
    let declared: usize = sources
        .iter()
        .map(|source| source.matches("\npub static ").count())
        .sum();
    assert_eq!(declared, table::all().len(), "a meter is missing in `OWN`");
    for face in [Face::Modules, Face::HooksAlone] {
        let ours = table::all().into_iter().filter(|row| row.face.is_of(face));
        let mut names: Vec<String> = ours.map(|row| row.full_name("")).collect();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "two meters of one name");
    }
}

#[test]
fn what_is_written_is_rendered_under_the_prefix() {
    let meters = Meters::new("own_");
    assert_eq!(
        render_own(&meters, None),
        "",
        "a series exists only once something happened"
    );
    meters.add(&table::MODULE_RUN_ERRORS, ["one"], 1.0);
    meters.add(&table::MODULE_RUN_ERRORS, ["one"], 1.0);
    meters.set(&table::BINDING_COUNT, ["one", "hooks/a\"b.sh"], 3.0);
    assert_eq!(
        render_own(&meters, None),
        "own_binding_count{hook=\"hooks/a\\\"b.sh\",module=\"one\"} 3\nown_module_run_errors_total{module=\"one\"} 2\n"
    );
}

#[test]
fn durations_fall_into_the_buckets_of_the_contract() {
    let meters = Meters::new("own_");
    meters.observe(&table::MODULE_RUN_SECONDS, ["one", ""], Duration::from_millis(3));
    let text = render_own(&meters, None);
    let bounds: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(",le=\"")?.1.split('"').next())
        .collect();
    assert_eq!(
        bounds,
        [
            "0", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "+Inf"
        ]
    );
    assert!(
        text.contains("own_module_run_seconds_bucket{activation=\"\",module=\"one\",le=\"0.002\"} 0\n"),
        "{text}"
    );
    assert!(
        text.contains("own_module_run_seconds_bucket{activation=\"\",module=\"one\",le=\"0.005\"} 1\n"),
        "{text}"
    );
}

#[test]
fn a_sample_shows_queues_and_modules_as_they_are() {
    let task = TaskReport {
        kind: "ModuleRun",
        module: "one".into(),
        hook: String::new(),
        description: "ModuleRun:main".into(),
    };
    let module = ModuleReport {
        name: "one".into(),
        order: 10,
        enabled: true,
        decided: true,
        enabled_by: "Static".into(),
        state: "Ready".into(),
        waits_for: "module 'two', which it needs".into(),
        error: None,
        hints: Vec::new(),
        remarks: Vec::new(),
        failures: 0,
        fails: true,
        late: true,
        depends_on: Vec::new(),
        failing: Vec::new(),
        needs: Some("two".into()),
        upgrade_held: true,
        in_maintenance: true,
        after: Vec::new(),
        config_problems: Vec::new(),
        config_digest: None,
        health: Health::Healthy,
        unhealthy: None,
        unhealthy_for: None,
    };
    let queue = |name: &str, tasks| QueueReport {
        name: name.into(),
        status: String::new(),
        tasks,
    };
    let meters = Meters::new("own_");
    let sample = Sample {
        queues: vec![queue("main", vec![task.clone(), task]), queue("side", vec![])],
        modules: vec![
            ModuleReport {
                name: "two".into(),
                fails: false,
                late: false,
                needs: None,
                upgrade_held: false,
                in_maintenance: false,
                ..module.clone()
            },
            module,
        ],
        held: vec![HeldRemoval {
            release: "three".into(),
            sign: "its module is gone from the directories",
            reason: "3 of our 3 releases would go".into(),
            by: HeldBy::Brake,
        }],
        config_lost: vec!["one".into()],
        outdated: vec![InUse {
            module: "one".into(),
            kind: KindName::new("v1", "Endpoints"),
            state: KindState::Deprecated,
            objects: 3,
        }],
        unhealthy: vec![web()],
    };
    assert_eq!(
        render_own(&meters, Some(&sample)),
        "own_configuration_lost{release=\"one\"} 1\n\
         own_mm_module_info{critical=\"true\",enabled=\"true\",module=\"one\"} 1\n\
         own_mm_module_info{critical=\"true\",enabled=\"true\",module=\"two\"} 1\n\
         own_mm_module_maintenance{module=\"one\",state=\"NoResourceReconciliation\"} 1\n\
         own_module_failing{module=\"one\"} 1\n\
         own_module_health{module=\"one\",state=\"Healthy\"} 1\n\
         own_module_health{module=\"two\",state=\"Healthy\"} 1\n\
         own_module_late{module=\"one\"} 1\n\
         own_module_outdated_objects{api_version=\"v1\",kind=\"Endpoints\",module=\"one\",state=\"deprecated\"} 3\n\
         own_module_upgrade_held{module=\"one\"} 1\n\
         own_module_waits_for_need{module=\"one\",needs=\"two\"} 1\n\
         own_object_unhealthy{kind=\"Deployment\",module=\"one\",name=\"web\",namespace=\"\",reason=\"Failed\"} 1\n\
         own_removal_held{release=\"three\"} 1\n\
         own_tasks_queue_head_info{hook=\"\",module=\"one\",queue=\"main\",task_type=\"ModuleRun\"} 1\n\
         own_tasks_queue_length{queue=\"main\"} 2\n\
         own_tasks_queue_length{queue=\"side\"} 0\n"
    );
    assert_eq!(
        render_own(&meters, Some(&Sample::default())),
        "",
        "what is gone leaves no series"
    );
}

fn hook(owner: Owner) -> HookId {
    HookId {
        owner,
        name: HookName::parse("hooks/a.sh").unwrap(),
    }
}

/// Reports everything about watches, bindings and queues once.
fn report_once(meters: &Meters, owner: Owner) {
    let hook = hook(owner);
    let bound = Bound {
        hook: &hook,
        binding: "maps",
        queue: "main",
        kind: "ConfigMap",
    };
    let took = Duration::from_millis(3);
    meters.snapshot_objects(&bound, 7);
    meters.jq_seconds(&bound, took);
    meters.event_seconds(&bound, took);
    meters.bindings_enabled(&hook, Duration::from_millis(250), Enabled::Failed);
    meters.bindings_enabled(&hook, Duration::from_millis(500), Enabled::Succeeded);
    meters.watch_error(WatchError::Expired);
    meters.watch_replaced("v1/configmaps", "default");
    meters.monitor_missing("maps");
    meters.queue_action("main", QueueAction::AddLast, Duration::from_micros(150));
    meters.queue_compacted("main", "hooks/a.sh");
}

/// The resulting series, without the buckets of histograms.
fn reported(meters: &Meters) -> Vec<String> {
    let text = meters.render(None);
    text.lines()
        .filter(|line| line.contains("own_") && !line.starts_with('#') && !line.contains("_bucket{"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn with_hooks_alone_names_and_labels_are_those_of_shell_operator() {
    let meters = Meters::of_hooks_alone("own_");
    report_once(&meters, Owner::Global);
    assert_eq!(
        reported(&meters),
        [
            r#"d8_telemetry_own_tasks_queue_compaction_operations_total{hook="hooks/a.sh",queue_name="main"} 1"#,
            r#"own_binding_monitor_missing_total{binding="maps"} 1"#,
            r#"own_factory_informer_dead_total{gvr="v1/configmaps",namespace="default"} 1"#,
            r#"own_hook_enable_kubernetes_bindings_errors_total{hook="hooks/a.sh"} 1"#,
            r#"own_hook_enable_kubernetes_bindings_seconds{hook="hooks/a.sh"} 0.5"#,
            r#"own_hook_enable_kubernetes_bindings_success{hook="hooks/a.sh"} 1"#,
            r#"own_kube_event_duration_seconds_sum{binding="maps",hook="hooks/a.sh",queue="main"} 0.003"#,
            r#"own_kube_event_duration_seconds_count{binding="maps",hook="hooks/a.sh",queue="main"} 1"#,
            r#"own_kube_jq_filter_duration_seconds_sum{binding="maps",hook="hooks/a.sh",queue="main"} 0.003"#,
            r#"own_kube_jq_filter_duration_seconds_count{binding="maps",hook="hooks/a.sh",queue="main"} 1"#,
            r#"own_kube_snapshot_objects{binding="maps",hook="hooks/a.sh",queue="main"} 7"#,
            r#"own_kubernetes_client_watch_errors_total{error_type="expired"} 1"#,
            r#"own_tasks_queue_action_duration_seconds_sum{queue_action="AddLast",queue_name="main"} 0.00015"#,
            r#"own_tasks_queue_action_duration_seconds_count{queue_action="AddLast",queue_name="main"} 1"#,
        ]
    );
    let text = meters.render(None);
    assert!(text.contains(
        "own_tasks_queue_action_duration_seconds_bucket{queue_action=\"AddLast\",queue_name=\"main\",le=\"0.0001\"} 0\n"
    ));
    assert!(text.contains(
        "own_tasks_queue_action_duration_seconds_bucket{queue_action=\"AddLast\",queue_name=\"main\",le=\"0.0002\"} 1\n"
    ));
    meters.add(&table::MODULE_RUN_ERRORS, ["one"], 1.0);
    assert_eq!(reported(&meters).len(), 14, "what only modules have is not shown");
}

#[test]
fn with_modules_a_series_says_whose_it_is() {
    let meters = Meters::new("own_").without_queue_actions();
    report_once(&meters, ModuleName::parse("one").unwrap().into());
    let reported = reported(&meters);
    let labels = r#"{binding="maps",hook="hooks/a.sh",kind="ConfigMap",module="one",queue="main"}"#;
    assert!(
        reported.contains(&format!("own_kube_snapshot_objects{labels} 7")),
        "{reported:#?}"
    );
    assert!(reported.contains(&format!("own_kube_event_duration_seconds_count{labels} 1")));
    assert!(
        !reported.iter().any(|line| line.contains("queue_action")),
        "nobody wants them"
    );
    assert!(
        !reported.iter().any(|line| line.contains("hook_enable")),
        "the original has none with modules"
    );
}

#[test]
fn what_is_gone_leaves_no_series() {
    let meters = Meters::new("own_");
    let hook = hook(Owner::Global);
    let bound = Bound {
        hook: &hook,
        binding: "maps",
        queue: "main",
        kind: "ConfigMap",
    };
    meters.snapshot_gone(&bound);
    meters.snapshot_objects(&bound, 7);
    meters.snapshot_gone(&bound);
    meters.watch_fresh("ConfigMap", "default");
    assert_eq!(reported(&meters), [""; 0]);
    meters.watch_stale("ConfigMap", "default", Duration::from_secs(90));
    assert_eq!(
        reported(&meters),
        [r#"own_kube_watch_stale_seconds{kind="ConfigMap",namespace="default"} 90"#]
    );
    meters.watch_fresh("ConfigMap", "default");
    assert_eq!(reported(&meters), [""; 0]);
}

#[test]
fn a_hook_with_many_tasks_is_shown() {
    let task = |hook: &str| TaskReport {
        kind: "HookRun",
        module: String::new(),
        hook: hook.into(),
        description: String::new(),
    };
    let mut tasks = vec![task("few.sh"); 20];
    tasks.extend(vec![task("many.sh"); 21]);
    let sample = Sample {
        queues: vec![QueueReport {
            name: "main".into(),
            status: String::new(),
            tasks,
        }],
        modules: Vec::new(),
        held: Vec::new(),
        config_lost: Vec::new(),
        outdated: Vec::new(),
        unhealthy: Vec::new(),
    };
    let text = Meters::of_hooks_alone("own_").render(Some(&sample));
    let shown: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("own_") && !line.starts_with('#'))
        .collect();
    assert_eq!(
        shown,
        [
            r#"d8_telemetry_own_tasks_queue_compaction_tasks_by_hook{hook="many.sh",queue_name="main"} 21"#,
            r#"own_tasks_queue_length{queue="main"} 41"#,
        ]
    );
}

/// The whole page with every metric once, without the figures of this process.
fn whole_page(meters: &Meters) -> String {
    for row in table::all().into_iter().filter(|row| row.face.is_of(meters.face)) {
        let values: Vec<String> = row.labels.iter().map(|label| format!("a \"{label}\"\\")).collect();
        touch(meters, row, &values);
        touch(meters, row, &vec![String::new(); values.len()]);
    }
    let task = TaskReport {
        kind: "ModuleRun",
        module: "one".into(),
        hook: "many.sh".into(),
        description: "ModuleRun:main".into(),
    };
    let module = ModuleReport {
        name: "one".into(),
        order: 10,
        enabled: true,
        decided: true,
        enabled_by: "Static".into(),
        state: "Ready".into(),
        waits_for: String::new(),
        error: None,
        hints: Vec::new(),
        remarks: Vec::new(),
        failures: 0,
        fails: true,
        late: true,
        depends_on: Vec::new(),
        failing: Vec::new(),
        needs: Some("two".into()),
        upgrade_held: true,
        in_maintenance: true,
        after: Vec::new(),
        config_problems: Vec::new(),
        config_digest: None,
        health: Health::Healthy,
        unhealthy: None,
        unhealthy_for: None,
    };
    let sample = Sample {
        queues: vec![QueueReport {
            name: "main".into(),
            status: String::new(),
            tasks: vec![task; 21],
        }],
        modules: vec![module],
        held: vec![HeldRemoval {
            release: "three".into(),
            sign: "its module is gone from the directories",
            reason: "3 of our 3 releases would go".into(),
            by: HeldBy::Brake,
        }],
        config_lost: vec!["one".into()],
        outdated: vec![InUse {
            module: "one".into(),
            kind: KindName::new("v1", "Endpoints"),
            state: KindState::Deprecated,
            objects: 3,
        }],
        unhealthy: vec![web()],
    };
    let page = meters.render(Some(&sample));
    let steady = page.lines().filter(|line| !line.starts_with("process_"));
    steady.fold(String::new(), |all, line| all + line + "\n")
}

/// Gives the series with these values two samples, if the meter stores any.
fn touch(meters: &Meters, row: &Row, values: &[String]) {
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let steps = match row.kind {
        Kind::Counter => [SeriesChange::By(2.0), SeriesChange::By(0.25)],
        Kind::Gauge => [SeriesChange::To(-7.5), SeriesChange::By(1.0)],
        Kind::Histogram => [SeriesChange::Of(0.0625), SeriesChange::Of(600.0)],
        Kind::Sampled => return,
    };
    for step in steps {
        meters.kept[row.name].take(&values, step);
    }
}

/// `tests/modules.page` and `tests/hooks.page` have these texts; `UPDATE=1` renews them.
#[test]
fn names_labels_buckets_and_help_are_a_contract() {
    let mut wrong = String::new();
    for (name, meters) in [
        ("modules", Meters::new("own_")),
        ("hooks", Meters::of_hooks_alone("own_")),
    ] {
        let path = format!("{}/src/meters/tests/{name}.page", env!("CARGO_MANIFEST_DIR"));
        let page = whole_page(&meters);
        if std::env::var_os("UPDATE").is_some() {
            fs_err::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/meters/tests")).unwrap();
            fs_err::write(&path, &page).unwrap();
        }
        if fs_err::read_to_string(&path).unwrap_or_default() != page {
            writeln!(wrong, "{path}").unwrap();
        }
    }
    assert_eq!(
        wrong, "",
        "dashboards and alerts know the page as it was; UPDATE=1 writes it anew"
    );
}

/// The text of `docs/reference/metrics.md`; `UPDATE=1` renews it.
fn reference() -> String {
    let mut page = HEAD.to_owned();
    for row in table::all() {
        let kind = match row.kind {
            Kind::Counter => "counter",
            Kind::Gauge | Kind::Sampled => "gauge",
            Kind::Histogram => "histogram",
        };
        let unit = match row.unit {
            Unit::Count => "",
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
        };
        let face = match row.face {
            Face::Any => "",
            Face::Modules => "modules",
            Face::HooksAlone => "hooks alone",
        };
        let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, help, labels) = (row.full_name("P_"), row.help, labels.join(", "));
        writeln!(page, "| `{name}` | {face} | {kind} | {unit} | {labels} | {help} |").unwrap();
    }
    page.push_str("\nWithout the prefix:\n\n| name | meaning |\n|---|---|\n");
    for Shown { name, help, .. } in process::shown() {
        writeln!(page, "| `{name}` | {help} |").unwrap();
    }
    page + TAIL
}

const HEAD: &str = "# Metrics

## Our own

Served at `/metrics`. `P_` stands for the prefix of `--prometheus-metrics-prefix`: `addon_operator_` by default, and
`shell_operator_` with hooks alone. The column *where* names the one that has a metric; if it is empty, both have it.

Histograms count seconds in buckets up to 0, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5 and 10; actions on queues in
buckets up to 0, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2 and .5; requests in Prometheus' default buckets from .005 to 10.

With modules the label `binding` holds the kind of a binding; in `kube_*` and `task_wait_*` it holds the name. With hooks alone it always
holds the name. `activation` is `OperatorStartup` during the first converge and empty after it.

| name | where | kind | unit | labels | meaning |
|---|---|---|---|---|---|
";

const TAIL: &str = "
The two tables are made from `crates/telling/src/meters/table.rs` and the files beside it.

## Those of hooks

Served at `/metrics/hooks`, under the names that the hooks give them. A hook writes operations to the file `METRICS_PATH`: JSON
objects one after the other. They are applied when the hook has ended with exit code 0.

| field | meaning |
|---|---|
| `name` | the metric |
| `action` | `add` to a counter, `set` a gauge, `observe` a value for a histogram, or `expire` a group |
| `value` | the number; fractions are allowed everywhere, negative numbers are not allowed for counters |
| `add`, `set` | short for `action` and `value` |
| `buckets` | upper bounds for `observe`, each larger than the one before; the first observation decides |
| `labels` | a map of strings; the operator sets `hook`, and `module` for hooks of modules |
| `group` | the group of the series; all series of a group are replaced together |

- A run that names a group ends all series of that group first, and then writes. Hooks that name the same group share it.
- A series without a group stays until it is written again; `add` and `observe` accumulate. `expire` without a group ends the series that
  the hook wrote without one.
- A run that writes nothing changes no series. When a module is switched off, the series of its hooks end.
- A file that is invalid fails the hook, and none of its operations is applied: the error names line, operation and field.
- Some operations are left out with a warning: without an action, with an unknown one, with both `add` and `set`, with a negative number
  for a counter, or with a name that cannot be shown.
- A metric keeps its kind while it has a series. Samples of another kind are lost, and the log says so. The same holds for new series
  beyond 8 MiB of names and labels of one hook, and for series that would give a metric more than 64 labels.

### Names

Names of metrics and labels may have any characters of UTF-8 except NUL, up to 256. Labels that begin with two underscores belong to
Prometheus. Prometheus before 3.0 and many other scrapers read letters, digits, `_` and, in names of metrics, `:`, with no digit first. A scraper
asks by its header line `Accept` for one form of other names, as in `text/plain;version=0.0.4;escaping=allow-utf-8`:

| `escaping` | `stub-add.metric` | `5_плод` |
|---|---|---|
| `underscores`, or nothing | `stub_add_metric` | `______` |
| `dots` | `stub__add_dot_metric` | `____________` |
| `values` | `U__stub_2d_add_2e_metric` | `U___35____43f__43b__43e__434_` |
| `allow-utf-8` | `{\"stub-add.metric\"}` | `{\"5_плод\"}` |

Two names may become one, such as `a-b` and `a_b`. The log says so once, and the page stays readable:

- Metrics of one kind become one metric with the series of all. A series that would occur twice is shown once, from the name that needs no
  escaping, otherwise from the first in the order of names. Metrics of another kind are left out. If a metric has the name of a
  histogram's line, such as `a_b_count` beside the histogram `a-b`, the one of the two that needs escaping is left out.
- Labels become one label with the first value that is not empty, in the same order.

A scraper that accepts UTF-8 gets all names unchanged.
";

#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = reference();
    if std::env::var_os("UPDATE").is_some() {
        fs_err::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).unwrap();
        fs_err::write(path, &page).unwrap();
    }
    let written = fs_err::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/metrics.md is not what the table says; run the tests with UPDATE=1"
    );
}
