use std::fmt::Write as _;

use addon_core::operator::query::TaskReport;

use super::table::{Row, Unit};
use super::*;

fn render_own(meters: &Meters, sample: Option<&Sample>) -> String {
    let text = meters.render(sample);
    text.lines()
        .filter(|line| line.starts_with("own_"))
        .fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn every_meter_of_the_table_is_listed_once() {
    let source = include_str!("table.rs");
    assert_eq!(
        source.matches("\npub static ").count() - 1,
        table::ALL.len(),
        "a meter is missing in `ALL`"
    );
    let mut names: Vec<&str> = table::ALL.iter().map(|row| row.name).collect();
    names.dedup();
    assert_eq!(names.len(), table::ALL.len());
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
        enabled_by: "Static".into(),
        state: "Ready".into(),
        waits_for: String::new(),
        error: None,
        failures: 0,
    };
    let queue = |name: &str, tasks| QueueReport {
        name: name.into(),
        status: String::new(),
        tasks,
    };
    let meters = Meters::new("own_");
    let sample = Sample {
        queues: vec![queue("main", vec![task.clone(), task]), queue("side", vec![])],
        modules: vec![module],
    };
    assert_eq!(
        render_own(&meters, Some(&sample)),
        "own_mm_module_info{critical=\"true\",enabled=\"true\",module=\"one\"} 1\n\
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

/// `docs/metrics.md` is this text; `UPDATE=1` writes it.
fn reference() -> String {
    let mut page = String::from(
        "# Metrics\n\nServed at `/metrics`. Every name begins with the prefix of `--prometheus-metrics-prefix`, `addon_operator_` by default.\n\
         Histograms count seconds in buckets up to 0, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5 and 10.\n\
         `binding` is the kind of a binding; `activation` is `OperatorStartup` during the first converge and empty after it.\n\n\
         | name | kind | unit | labels | meaning |\n|---|---|---|---|---|\n",
    );
    for Row {
        name,
        kind,
        unit,
        help,
        labels,
    } in table::ALL
    {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge | Kind::Sampled => "gauge",
            Kind::Histogram => "histogram",
        };
        let unit = match unit {
            Unit::Count => "",
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
        };
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(page, "| `{name}` | {kind} | {unit} | {} | {help} |", labels.join(", ")).unwrap();
    }
    page.push_str("\nWithout the prefix:\n\n| name | meaning |\n|---|---|\n");
    for family in process::families() {
        writeln!(page, "| `{}` | {} |", family.name(), family.help()).unwrap();
    }
    page.push_str("\nThis page is made from the table in `src/meters/table.rs`.\n");
    page
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    let page = reference();
    if std::env::var_os("UPDATE").is_some() {
        fs_err::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).unwrap();
        fs_err::write(path, &page).unwrap();
    }
    let written = fs_err::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/metrics.md is not what the table says; run the tests with UPDATE=1"
    );
}
