use serde_json::json;

use super::*;

fn text(current: Option<&str>, in_progress: Option<&str>, failed: Option<&str>) -> RuleText {
    RuleText {
        api_version: "example.org/v1".to_owned(),
        kind: "Database".to_owned(),
        current: current.map(str::to_owned),
        in_progress: in_progress.map(str::to_owned),
        failed: failed.map(str::to_owned),
    }
}

fn database(phase: &str) -> Value {
    json!({"apiVersion": "example.org/v2", "kind": "Database", "metadata": {"generation": 2},
        "status": {"phase": phase, "observedGeneration": 2}})
}

fn found(rule: &RuleText, object: &Value) -> (State, String) {
    let finding = Rule::compile(rule).unwrap().judge(object, Timestamp::UNIX_EPOCH);
    (finding.state, finding.sentence)
}

fn phases() -> RuleText {
    text(
        Some("status.phase == 'up'"),
        Some("status.phase in ['starting', 'both']"),
        Some("status.phase in ['broken', 'both']"),
    )
}

#[test]
fn the_first_expression_that_is_true_decides() {
    let state = |phase| found(&phases(), &database(phase)).0;
    assert_eq!(state("up"), State::Current);
    assert_eq!(state("starting"), State::InProgress);
    assert_eq!(state("broken"), State::Failed);
    assert_eq!(state("both"), State::InProgress);
    let (state, sentence) = found(&phases(), &database("other"));
    assert_eq!(
        (state, sentence.as_str()),
        (State::InProgress, "its rule does not call it current yet")
    );
}

#[test]
fn deletion_and_generation_come_before_the_expressions() {
    let mut object = database("up");
    object["status"]["observedGeneration"] = json!(1);
    assert_eq!(found(&phases(), &object).0, State::InProgress);
    object["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
    assert_eq!(found(&phases(), &object).0, State::Terminating);
    object["metadata"]["deletionTimestamp"] = json!(3);
    assert_eq!(found(&phases(), &object).0, State::Unknown);
}

#[test]
fn an_expression_that_fails_decides_nothing() {
    let object = json!({"apiVersion": "example.org/v1", "kind": "Database"});
    let (state, sentence) = found(&phases(), &object);
    assert_eq!(state, State::InProgress);
    assert_eq!(
        sentence,
        "the rule `inProgress` could not be evaluated: the field 'status' is missing"
    );

    let only_failed = text(None, None, Some("status.phase == 'broken'"));
    let (state, sentence) = found(&only_failed, &object);
    assert_eq!(state, State::Current);
    assert_eq!(
        sentence,
        "the rule `failed` could not be evaluated: the field 'status' is missing"
    );

    let unready = json!({"apiVersion": "example.org/v1", "kind": "Database", "status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "Waits", "message": "for a volume"}]}});
    let (state, sentence) = found(&only_failed, &unready);
    assert_eq!((state, sentence.as_str()), (State::InProgress, "Waits: for a volume"));
}

#[test]
fn a_condition_gives_the_sentence() {
    let rule = text(
        None,
        None,
        Some("status.conditions.exists(c, c.type == 'Ready' && c.reason == 'Bad')"),
    );
    let object = json!({"apiVersion": "example.org/v1", "kind": "Database", "status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "Bad", "message": "no\nlicence"}]}});
    assert_eq!(found(&rule, &object), (State::Failed, "Bad: no licence".to_owned()));
}

#[test]
fn a_rule_is_for_all_versions_of_its_group_and_for_no_other_kind() {
    let mut rules = Rules::default();
    rules.add(&phases()).unwrap();
    assert_eq!(
        rules.of_kind("example.org/v2", "Database").map(Rule::text),
        Some(&phases())
    );
    assert_eq!(rules.of_kind("example.com/v1", "Database"), None);
    assert_eq!(rules.of_kind("example.org/v1", "Table"), None);
}

#[test]
fn an_expression_without_an_end_is_stopped() {
    let rule = text(Some("data.items.all(a, data.items.all(b, a + b >= 0))"), None, None);
    let object = json!({"apiVersion": "example.org/v1", "kind": "Database",
        "data": {"items": (0..2000).collect::<Vec<_>>()}});
    let (state, sentence) = found(&rule, &object);
    assert_eq!(state, State::InProgress);
    assert_eq!(
        sentence,
        "the rule `current` could not be evaluated: it takes too many steps"
    );
}

#[test]
fn a_rule_with_a_mistake_is_refused_with_its_position() {
    let error = Rule::compile(&text(None, None, Some("status.phase ===")))
        .unwrap_err()
        .to_string();
    let beginning = "the expression `failed` of the health rule for example.org/Database: line 1, column ";
    assert!(error.starts_with(beginning), "{error}");
    let refused = |text: RuleText| Rule::compile(&text).unwrap_err().to_string();
    assert_eq!(
        refused(text(None, None, None)),
        "the health rule for example.org/Database has no expression"
    );
    let nameless = RuleText {
        kind: String::new(),
        ..phases()
    };
    assert_eq!(
        refused(nameless),
        "a health rule is for no kind: apiVersion 'example.org/v1', kind ''"
    );
    let mut rules = Rules::default();
    rules.add(&phases()).unwrap();
    let twice = rules.add(&phases()).unwrap_err();
    assert_eq!(twice.to_string(), "there are two health rules for example.org/Database");
}

#[test]
fn a_rule_is_read_from_json() {
    let text: RuleText =
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Thing", "inProgress": "true"})).unwrap();
    assert_eq!(text.in_progress.as_deref(), Some("true"));
    assert!(serde_json::from_value::<RuleText>(json!({"apiVersion": "v1", "kind": "Thing", "ready": "true"})).is_err());
}
