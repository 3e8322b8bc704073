use addon_core::operator::query::FailingTask;

use super::*;

fn report(state: &str, health: Health) -> ModuleReport {
    ModuleReport {
        name: "web".to_owned(),
        order: 10,
        enabled: true,
        decided: true,
        enabled_by: String::new(),
        state: state.to_owned(),
        waits_for: String::new(),
        error: None,
        hints: Vec::new(),
        remarks: Vec::new(),
        failures: 0,
        fails: false,
        late: false,
        depends_on: Vec::new(),
        failing: Vec::new(),
        needs: None,
        upgrade_held: false,
        in_maintenance: false,
        after: Vec::new(),
        config_problems: Vec::new(),
        config_digest: None,
        health,
        unhealthy: None,
        unhealthy_for: None,
    }
}

/// The conditions as `Type=Status:Reason`.
fn told(report: &ModuleReport) -> Vec<String> {
    let sheet = ModuleSheet::of(report, Facts::default(), Timestamp::UNIX_EPOCH);
    let conditions = sheet.conditions.iter();
    conditions
        .map(|condition| format!("{}={:?}:{}", condition.kind, condition.status, condition.reason))
        .collect()
}

#[test]
fn a_module_is_ready_once_it_is_installed_and_its_objects_work() {
    let healthy = report("Ready", Health::Healthy);
    assert_eq!(told(&healthy), ["Ready=True:Healthy", "Healthy=True:Healthy"]);
    let unknown = report("Ready", Health::Unknown);
    assert_eq!(told(&unknown), ["Ready=True:Installed"]);
    let rolling = report("Ready", Health::RollingOut);
    let expected = [
        "Ready=False:RollingOut",
        "Reconciling=True:RollingOut",
        "Healthy=Unknown:RollingOut",
    ];
    assert_eq!(told(&rolling), expected);
    let unhealthy = report("Ready", Health::Unhealthy);
    let expected = [
        "Ready=False:Unhealthy",
        "Stalled=True:Unhealthy",
        "Healthy=False:Unhealthy",
    ];
    assert_eq!(told(&unhealthy), expected);
    let releasing = report("Releasing", Health::Healthy);
    let expected = [
        "Ready=False:Releasing",
        "Reconciling=True:Releasing",
        "Healthy=True:Healthy",
    ];
    assert_eq!(told(&releasing), expected);
}

#[test]
fn a_failure_is_stalled_with_the_time_of_the_next_try() {
    let mut failed = report("Releasing", Health::Unknown);
    failed.fails = true;
    failed.failures = 3;
    failed.error = Some("helm says no".to_owned());
    failed.hints = vec!["ask it again".to_owned()];
    failed.waits_for = "the next try in 7s, after 3 failures: helm says no".to_owned();
    let retry = |seconds| FailingTask {
        queue: "main".to_owned(),
        task: "ModuleRun",
        hook: String::new(),
        failures: 3,
        error: String::new(),
        retry_in: seconds,
    };
    failed.failing = vec![retry(None), retry(Some(7))];
    assert_eq!(told(&failed), ["Ready=False:Failed", "Stalled=True:Failed"]);
    let sheet = ModuleSheet::of(&failed, Facts::default(), Timestamp::UNIX_EPOCH);
    // It would change each second.
    assert_eq!(sheet.waits_for, "");
    let expected = Failure {
        message: "helm says no".to_owned(),
        hint: "ask it again".to_owned(),
        times: 3,
        next_try: Some(Timestamp::from_second(7).unwrap()),
    };
    assert_eq!(sheet.failure, Some(expected));
}

#[test]
fn a_disabled_module_is_not_waited_for() {
    let mut off = report("Disabled", Health::Unknown);
    off.enabled = false;
    assert_eq!(told(&off), [""; 0]);
    off.state = "Deleting".to_owned();
    assert_eq!(told(&off), ["Reconciling=True:Deleting"]);
}

#[test]
fn holds_drift_and_maintenance_are_told_beside_the_rest() {
    let mut held = report("UpgradeHeld", Health::Healthy);
    held.in_maintenance = true;
    let expected = [
        "Ready=False:UpgradeHeld",
        "Stalled=True:UpgradeHeld",
        "Healthy=True:Healthy",
        "Held=True:UpgradeHeld",
        "Maintenance=True:InConfigMap",
    ];
    assert_eq!(told(&held), expected);
    let drift = vec!["ConfigMap page: data.text is left to kubectl".to_owned()];
    let facts = Facts {
        drift,
        ..Facts::default()
    };
    let sheet = ModuleSheet::of(&report("Ready", Health::Healthy), facts, Timestamp::UNIX_EPOCH);
    let last = sheet.conditions.last().unwrap();
    assert_eq!(
        (last.kind.as_str(), last.message.as_str()),
        ("Drifted", "ConfigMap page: data.text is left to kubectl")
    );
}

#[test]
fn long_texts_are_cut_at_a_character() {
    let mut failed = report("Releasing", Health::Unknown);
    failed.fails = true;
    failed.error = Some("ä".repeat(1_000));
    let sheet = ModuleSheet::of(&failed, Facts::default(), Timestamp::UNIX_EPOCH);
    assert_eq!(sheet.failure.unwrap().message.len(), 1_024);
}

/// The objects that were given to kstatus itself, and its answers: `crates/health-core/tests/oracles/kstatus`.
const ASKED: &str = include_str!("../../../health-core/tests/oracles/kstatus/objects.jsonl");
const TOLD: &str = include_str!("../../../health-core/tests/oracles/kstatus.jsonl");

/// The part of the line with this case.
fn of_case(lines: &str, case: &str, part: &str) -> serde_json::Value {
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut found = lines.filter(|line| line["case"] == case);
    found.next().unwrap_or_default()[part].take()
}

#[test]
fn kstatus_judges_modules_as_people_do() {
    let mut off = report("Disabled", Health::Unknown);
    off.enabled = false;
    let mut failed = report("Releasing", Health::Healthy);
    (failed.fails, failed.error) = (true, Some("helm says no".to_owned()));
    let cases = [
        ("module ready", report("Ready", Health::Healthy), "Current"),
        ("module without health", report("Ready", Health::Unknown), "Current"),
        ("module off", off, "Current"),
        ("module releasing", report("Releasing", Health::Healthy), "InProgress"),
        ("module rolling out", report("Ready", Health::RollingOut), "InProgress"),
        ("module unhealthy", report("Ready", Health::Unhealthy), "Failed"),
        ("module failed", failed, "Failed"),
        ("module held", report("UpgradeHeld", Health::Healthy), "Failed"),
    ];
    for (case, report, _) in &cases {
        let sheet = ModuleSheet::of(report, Facts::default(), Timestamp::UNIX_EPOCH);
        let object = serde_json::json!({
            "apiVersion": "addon-operator.io/v1", "kind": "Module",
            "metadata": {"name": "web", "generation": 1}, "status": sheet,
        });
        assert_eq!(object, of_case(ASKED, case, "object"), "{case}: {object}");
    }
    for (case, _, expected) in cases {
        assert_eq!(of_case(TOLD, case, "status"), expected, "{case}");
    }
}

/// The script for Argo CD, and its judgements of the same objects: `tests/oracles/argocd`.
const SCRIPT: &str = include_str!("../../tests/oracles/argocd/health.lua");
const ARGO_CD: &str = include_str!("../../tests/oracles/argocd.jsonl");
const PAGE: &str = include_str!("../../../../docs/reference/status-objects.md");

#[test]
fn argo_cd_judges_modules_as_kstatus_does() {
    let of_kstatus = |told: &str| match told {
        "Current" => "Healthy",
        "InProgress" => "Progressing",
        "Failed" => "Degraded",
        other => panic!("{other}"),
    };
    let lines: Vec<serde_json::Value> = ARGO_CD
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (of_both, alone) = lines.split_at(8);
    for line in of_both {
        let case = line["case"].as_str().unwrap();
        let told = of_case(TOLD, case, "status");
        assert_eq!(line["status"], of_kstatus(told.as_str().unwrap()), "{case}");
    }
    let told: Vec<&str> = alone.iter().filter_map(|line| line["status"].as_str()).collect();
    assert_eq!(told, ["Suspended", "Degraded", "Progressing"], "{alone:?}");
    let indented: Vec<String> = SCRIPT.lines().map(|line| format!("    {line}")).collect();
    assert!(PAGE.contains(&indented.join("\n")), "the page has another script");
}
