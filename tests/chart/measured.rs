//! Alerts and the dashboard use only metrics and labels that exist.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;
use testbed::part::Part;

use super::tool::{objects, rendered, root};

/// Labels that Prometheus adds to every target in a cluster, and that of histograms.
const OF_PROMETHEUS: [&str; 3] = ["namespace", "pod", "le"];

/// All metrics and their labels, as the reference page lists them.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs_err::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[0].trim_end_matches('`').replace("P_", "addon_operator_");
        if cells.get(1) == Some(&"hooks alone") {
            continue;
        }
        let labels = cells.get(4).copied().unwrap_or_default().split(", ");
        let labels = labels.map(|label| label.trim_matches('`').to_owned());
        let names = match cells.get(2) {
            Some(&"histogram") => ["_bucket", "_count", "_sum"].map(|end| format!("{name}{end}")).to_vec(),
            _ => vec![name],
        };
        for name in names {
            metrics.entry(name).or_default().extend(labels.clone());
        }
    }
    assert!(metrics.len() > 30, "{metrics:?}");
    metrics
}

/// The mistakes in an expression.
fn complaints(expression: &str, metrics: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut labels: BTreeSet<&str> = OF_PROMETHEUS.into();
    let name = Regex::new(r"\b(addon_operator|process|d8)_\w+").unwrap();
    if !name.is_match(expression) {
        complaints.push("it names no metric".to_owned());
    }
    for name in name.find_iter(expression) {
        match metrics.get(name.as_str()) {
            Some(known) => labels.extend(known.iter().map(String::as_str)),
            None => complaints.push(format!("{} does not exist", name.as_str())),
        }
    }
    let grouped = Regex::new(r"by \(([^)]*)\)").unwrap();
    let chosen = Regex::new(r#"[{,]\s*(\w+)\s*=~?""#).unwrap();
    let by = grouped.captures_iter(expression).map(|found| found[1].to_owned());
    let by: Vec<String> = by
        .flat_map(|list| list.split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let chosen = chosen.captures_iter(expression).map(|found| found[1].to_owned());
    for label in by.into_iter().chain(chosen) {
        if !labels.contains(label.as_str()) {
            complaints.push(format!("no metric in it has the label {label}"));
        }
    }
    complaints
}

#[test]
fn an_expression_is_held_against_the_reference() {
    let metrics = metrics();
    for (expression, expected) in [
        (
            "sum by (module) (addon_operator_module_run_errors_total{namespace=\"x\"})",
            vec![],
        ),
        (
            "addon_operator_no_such_thing",
            vec!["addon_operator_no_such_thing does not exist"],
        ),
        (
            "sum by (hook) (addon_operator_module_run_errors_total)",
            vec!["no metric in it has the label hook"],
        ),
        (
            "addon_operator_mm_module_info{on=\"1\"}",
            vec!["no metric in it has the label on"],
        ),
        ("vector(0)", vec!["it names no metric"]),
    ] {
        assert_eq!(complaints(expression, &metrics), expected, "{expression}");
    }
}

fn shown() -> Vec<Value> {
    let on = ["monitoring.prometheusRule", "monitoring.dashboard", "channel"];
    let on = on.map(|part| format!("--set={part}.enabled=true"));
    objects(&rendered(Part::Helm3, &on.each_ref().map(String::as_str)))
}

fn rules() -> Vec<Value> {
    let all = shown();
    let rules = all.iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    let rules = rules["spec"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() > 5);
    rules.clone()
}

#[test]
fn alerts_use_metrics_that_exist() {
    let (metrics, rules) = (metrics(), rules());
    let used = Regex::new(r"\$labels\.(\w+)").unwrap();
    for rule in &rules {
        let (name, expression) = (&rule["alert"], rule["expr"].as_str().unwrap());
        assert_eq!(
            complaints(expression, &metrics),
            Vec::<String>::new(),
            "{name}: {expression}"
        );
        assert!(expression.contains("namespace=\"addons\""), "{name}: {expression}");
        let texts = rule["annotations"].as_object().unwrap();
        assert!(
            texts.contains_key("summary") && texts.contains_key("description"),
            "{name}"
        );
        for text in texts.values().filter_map(Value::as_str) {
            for label in used.captures_iter(text) {
                // The text may name only labels that are left after an aggregation.
                let is_told = !expression.contains("by (")
                    || Regex::new(&format!(r"by \([^)]*\b{}\b", &label[1]))
                        .unwrap()
                        .is_match(expression);
                assert!(is_told, "{name}: {text}");
            }
        }
    }
}

/// A state that only appears on a dashboard is noticed too late, so it needs an alert.
#[test]
fn states_that_do_not_end_by_themselves_have_an_alert() {
    let all: Vec<String> = rules().iter().map(|rule| rule["expr"].to_string()).collect();
    for state in [
        "channel_running_missing",
        "configuration_lost",
        "module_failing",
        "module_late",
        "module_outdated_objects",
        "module_upgrade_held",
        "module_waits_for_need",
        "removal_held",
    ] {
        let name = format!("addon_operator_{state}{{");
        assert!(all.iter().any(|expression| expression.contains(&name)), "{state}");
    }
}

/// The states have the names that `channel status` prints.
#[test]
fn states_of_the_channel_that_need_a_person_have_an_alert_where_there_is_a_channel() {
    let all: Vec<String> = rules().iter().map(|rule| rule["expr"].to_string()).collect();
    for state in ["stopped", "rolling-out"] {
        let chosen = format!("state=\\\"{state}\\\"");
        let found = all
            .iter()
            .filter(|expression| expression.contains("channel_info") && expression.contains(&chosen));
        assert_eq!(found.count(), 1, "{state}: {all:?}");
    }
    let off = objects(&rendered(
        Part::Helm3,
        &["--set=monitoring.prometheusRule.enabled=true"],
    ));
    let rule = off.iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    assert!(!rule.to_string().contains("addon_operator_channel_"), "{rule}");
}

/// The duration of a rule in minutes.
fn minutes(time: &str) -> u32 {
    let (number, unit) = time.split_at(time.len() - 1);
    let number: u32 = number.parse().unwrap();
    match unit {
        "m" => number,
        "h" => number * 60,
        _ => unreachable!("{time}"),
    }
}

/// The alert about an event that is not repeated. It lasts as long as a person needs to notice it.
const ONCE: &str = "AddonOperatorTrialFailed";

/// An alert reports what lasts. If its window were longer than its `for`, a single event would trigger it, and keep it
/// for as long. A window with fewer than two scrapes sees nothing; the schema allows an interval of at most two
/// minutes.
#[test]
fn what_happened_once_is_over_before_its_alert_is_due() {
    let window = Regex::new(r"\[(\w+)\]").unwrap();
    let mut seen = 0;
    for rule in rules() {
        let (name, expression) = (&rule["alert"], rule["expr"].as_str().unwrap());
        if name == ONCE {
            continue;
        }
        for window in window.captures_iter(expression) {
            let window = minutes(&window[1]);
            assert!(window >= 5, "{name}: {expression}");
            match rule["for"].as_str() {
                Some(due) => assert!(minutes(due) > window, "{name}: {expression}, {due}"),
                None => assert!(expression.contains("> 5"), "{name} counts several: {expression}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 3, "{seen}");
}

/// A pod has two metrics endpoints. Each is a target of its own with its own `up`.
#[test]
fn targets_of_one_pod_are_told_apart() {
    let all = objects(&rendered(
        Part::Helm3,
        &["--set=monitoring.serviceMonitor.enabled=true"],
    ));
    let monitor = all.iter().find(|object| object["kind"] == "ServiceMonitor").unwrap();
    let endpoints = monitor["spec"]["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 2);
    for endpoint in endpoints {
        let path = serde_json::json!([{"sourceLabels": ["__metrics_path__"], "targetLabel": "metrics_path"}]);
        assert_eq!(endpoint["relabelings"], path);
    }
}

#[test]
fn the_dashboard_uses_metrics_that_exist() {
    let (metrics, all) = (metrics(), shown());
    let map = all
        .iter()
        .find(|object| object["metadata"]["name"] == "ao-addon-operator-dashboard")
        .unwrap();
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let dashboard: Value = serde_json::from_str(map["data"]["addon-operator.json"].as_str().unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let found = complaints(expression, &metrics);
            assert_eq!(found, Vec::<String>::new(), "{}: {expression}", panel["title"]);
        }
    }
    let variables = dashboard["templating"]["list"].to_string();
    for name in Regex::new(r"addon_operator_\w+").unwrap().find_iter(&variables) {
        assert!(metrics.contains_key(name.as_str()), "{}", name.as_str());
    }
}
