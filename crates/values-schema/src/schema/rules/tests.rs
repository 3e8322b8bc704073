use serde_json::json;

use super::*;

fn compile(expression: &str) -> Result<Rule, Problem> {
    Rule::read(&json!({"expression": expression, "message": "broken"}))
}

fn run(expression: &str, value: &Value, before: Option<&Value>) -> Outcome {
    compile(expression)
        .unwrap()
        .program
        .run(value, before, &Budget::new(BUDGET))
}

#[test]
fn rules_see_values_as_the_original_shows_them() {
    let value = json!({
        "n": 5, "half": 0.5, "s": "text", "flag": true, "nothing": null, "list": [1, 2, 3], "ports": [{"p": 1}, {"p": 2}],
        "map": {"a": {"x": 1}, "b": {}},
    });
    let holds = [
        "self.n == 5",
        "self.n > 4.5",
        "self.n + 1.0 == 6.0",
        "int(self.n) % 2 == 1",
        "self.s.startsWith('te')",
        "self.s.matches('^t.xt$')",
        "matches(self.s, 'x')",
        r"!self.s.matches('\\d')",
        "self.s.size() == 4",
        "size(self.list) == 3",
        "self.flag",
        "self.nothing == null",
        "has(self.n) && !has(self.other)",
        "'a' in self.map",
        "2.0 in self.list",
        "self.list.all(x, x > 0.0)",
        "self.list.exists(x, x == 2.0)",
        "self.list.exists_one(x, x == 2.0)",
        "self.list.filter(x, x > 1.0).size() == 2",
        "self.list.map(x, x * 2.0) == [2.0, 4.0, 6.0]",
        "self.ports.all(a, self.ports.exists_one(b, a.p == b.p))",
        "self.map.all(k, k.size() == 1)",
        "self.list[0] == 1.0",
        "self['n'] == 5",
        "type(self.n) == double",
        "self.n > 3 ? true : false",
        "self.missing == 1 || true",
        "duration('1h') > duration('30m')",
        "timestamp('2020-01-01T00:00:00Z').getFullYear() == 2020",
        "self.s + 'x' == 'textx'",
        "[self.s].exists(x, x == 'text')",
        "1 == 1.0",
        "self.list.size() in [3]",
        "self.s.contains('ex') && self.s.endsWith('t')",
        "string(self.half) == '0.5'",
        "self.map.a.x == 1.0",
    ];
    for expression in holds {
        assert_eq!(run(expression, &value, None), Outcome::True, "{expression}");
    }
    let rows = [
        ("self.n == 6", Outcome::False),
        ("self.missing == 1", Outcome::Skipped),
        ("has(self.missing.deeper)", Outcome::Skipped),
        ("self.map.c.x == 1.0", Outcome::Skipped),
        ("self == oldSelf", Outcome::Skipped),
        ("self.n.x == 1", Outcome::Skipped),
        ("self.n", Outcome::Failed("rule should return boolean".to_owned())),
    ];
    for (expression, outcome) in rows {
        assert_eq!(run(expression, &value, None), outcome, "{expression}");
    }
    for expression in [
        "self.n + 1 == 6",
        "self.list[7] == 1.0",
        "self.s.matches('(')",
        "!self.s",
        "self.s < 5",
    ] {
        let outcome = run(expression, &value, None);
        let Outcome::Failed(error) = outcome else {
            panic!("{expression}: {outcome:?}")
        };
        assert!(
            error.starts_with(&format!("evaluate the '{expression}' rule: ")),
            "{error}"
        );
        assert!(!error.contains("text"), "{error} shows a value");
    }
}

#[test]
fn rules_look_back_where_there_was_something() {
    let (old, new) = (json!({"a": 1, "b": {"c": 1}}), json!({"a": 2, "b": {"c": 1}}));
    assert_eq!(run("self.a == oldSelf.a", &new, Some(&old)), Outcome::False);
    assert_eq!(run("self.b == oldSelf.b", &new, Some(&old)), Outcome::True);
    assert_eq!(run("self.a == oldSelf.a", &new, None), Outcome::Skipped);
    assert_eq!(
        run("!has(oldSelf.d) || self.d == oldSelf.d", &new, Some(&old)),
        Outcome::True
    );
    assert_eq!(run("oldSelf.d == 1", &new, Some(&old)), Outcome::Skipped);
}

#[test]
fn what_is_no_rule_is_refused() {
    let deep = format!("{}true{}", "!(".repeat(200), ")".repeat(200));
    let nested = format!("{}true{}", "[1].all(x,".repeat(25), ")".repeat(25));
    let long = format!("1{} == 1", "+1".repeat(200));
    let huge = "x".repeat(5000);
    let rows = [
        ("self.", "1:"),
        ("", "1:"),
        ("other == 1", "undeclared reference to 'other'"),
        ("self.all(x, y)", "undeclared reference to 'y'"),
        ("optional.of(1) == 1", "undeclared reference to 'optional'"),
        ("a.B{x: 1} == 1", "undeclared reference to 'a.B'"),
        (&deep, ""),
        (&nested, ""),
        (&long, "it is nested"),
        (&huge, "it is longer"),
        ("@weigh(1) == 1", "1:"),
        ("self.?a == 1", "1:"),
    ];
    for (expression, said) in rows {
        let Problem::Rule { message, .. } = compile(expression).map(|_| ()).unwrap_err_or(expression) else {
            panic!("{expression}")
        };
        assert!(message.starts_with(said), "{expression}: {message}");
    }
    for entry in [json!(5), json!({}), json!(["a"])] {
        assert_eq!(Rule::read(&entry).unwrap_err(), Problem::RulesInvalid);
    }
    assert_eq!(
        Rule::read(&json!({"message": "m"})).unwrap_err(),
        Problem::RuleIncomplete("expression")
    );
    assert_eq!(
        Rule::read(&json!({"expression": "true", "message": ""})).unwrap_err(),
        Problem::RuleIncomplete("message")
    );
}

trait OrNone {
    fn unwrap_err_or(self, expression: &str) -> Problem;
}

impl OrNone for Result<(), Problem> {
    /// The error of an invalid expression. An empty one is found before it is compiled.
    fn unwrap_err_or(self, expression: &str) -> Problem {
        match self {
            Err(Problem::RuleIncomplete(_)) => Problem::Rule {
                expression: String::new(),
                message: "1:".to_owned(),
            },
            Err(problem) => problem,
            Ok(()) => panic!("{expression} was taken"),
        }
    }
}

#[test]
fn a_rule_that_does_not_end_is_stopped() {
    let list: Vec<u32> = (0..2000).collect();
    let value = json!({"l": list, "s": "x".repeat(100_000)});
    let endless = [
        "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c > -1.0)))",
        "self.l.all(a, self.l.all(b, self.l.all(c, true))) || true",
        "self.l.map(a, self.s + self.s).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).size() > 1",
        "self.l.all(a, self == self && self.l == self.l)",
        "self.l.all(a, self.s.matches('(x+x+)+y' + string(a)) || true)",
        "self.l.all(a, self.l.map(b, self.l).size() > 1)",
        "[1,2,3,4,5,6,7,8,9].all(a,[1,2,3,4,5,6,7,8,9].all(b,[1,2,3,4,5,6,7,8,9].all(c,[1,2,3,4,5,6,7,8,9].all(d,\
         [1,2,3,4,5,6,7,8,9].all(e,[1,2,3,4,5,6,7,8,9].all(f,[1,2,3,4,5,6,7,8,9].all(g,[1,2,3,4,5,6,7,8,9].all(h,true))))))))",
    ];
    for expression in endless {
        let program = compile(expression).unwrap().program;
        let outcome = program.run(&value, None, &Budget::new(BUDGET / 5));
        let Outcome::Failed(error) = outcome else {
            panic!("{expression}: {outcome:?}")
        };
        assert!(error.ends_with("it takes too many steps"), "{error}");
    }
    // A usual rule about a long list stays within the limit.
    let ports: Vec<Value> = (0..300)
        .map(|port| json!({"name": format!("p{port}"), "port": port}))
        .collect();
    let value = json!({"ports": ports});
    let unique = compile("self.ports.all(a, self.ports.exists_one(b, a.name == b.name))").unwrap();
    assert_eq!(unique.program.run(&value, None, &Budget::new(BUDGET)), Outcome::True);
}

#[test]
fn the_deepest_rule_and_the_deepest_value_fit_the_stack() {
    let deepest = std::thread::Builder::new().stack_size(1536 * 1024).spawn(|| {
        let value = (0..300).fold(json!(1), |inner, _| json!({ "a": inner }));
        let mut ran = 0;
        for wrap in [
            ("!(", ")"),
            ("[", "][0]"),
            ("[1].all(x, ", ")"),
            ("", " + 1"),
            ("(true ? ", " : false)"),
            ("size([", "])"),
        ] {
            for depth in 1..200 {
                let expression = format!("{}true{}", wrap.0.repeat(depth), wrap.1.repeat(depth));
                if let Ok(rule) = compile(&expression) {
                    rule.program.run(&value, Some(&value), &Budget::new(BUDGET));
                    ran += 1;
                }
            }
        }
        assert_eq!(run("self == oldSelf", &value, Some(&value)), Outcome::True);
        ran
    });
    assert!(deepest.unwrap().join().unwrap() > 50);
}

#[test]
fn rules_of_properties_come_before_those_of_what_they_belong_to() {
    let mut files = super::super::Files::default();
    files.insert(
        "values.yaml",
        "x-deckhouse-validations: [{expression: 'false', message: root}]\nproperties:\n  \
         b: {x-deckhouse-validations: [{expression: 'false', message: b}, {expression: 'self == oldSelf', message: changed}]}\n  \
         a: {X-Deckhouse-Validations: [{expression: 'self > 1.0', message: a}]}\n  \
         l: {items: {x-deckhouse-validations: nonsense that nobody reads}}\n",
    );
    let schemas = super::super::Schemas::load(&files, None, Some("values.yaml")).unwrap();
    let check = |value: &Value, before: Option<&Value>| {
        let invalid = schemas
            .check(super::super::Kind::Values, "one", value, before)
            .unwrap_err();
        invalid.to_string()
    };
    assert_eq!(check(&json!({"a": 1, "b": 1, "unknown": 1}), None), "a\nb\nroot");
    assert_eq!(check(&json!({"b": 1}), Some(&json!({"b": 2}))), "b\nchanged\nroot");
    assert_eq!(check(&json!({"b": 1}), Some(&json!({"b": null}))), "b\nroot");
    assert_eq!(
        check(&json!({"a": "x", "b": 1}), None),
        "evaluate the 'self > 1.0' rule: found no matching overload for '_>_' applied to '(string, double)'"
    );
}

/// The recorded result of cel-go for an expression. The original evaluates rules with cel-go.
#[derive(serde::Deserialize)]
struct Told {
    expression: String,
    outcome: String,
}

/// The expressions with another result than in cel-go, and our result. The reasons: types are not checked before a rule
/// runs, a macro has a second name, and keys of maps are texts, whole numbers or booleans.
const DIFFERENCES: [(&str, &str); 15] = [
    ("\"abc\"[0]", "skipped"),
    ("\"abc\".x", "skipped"),
    ("1.5.x", "skipped"),
    ("1 == 1.0", "true"),
    ("1 == 1u", "true"),
    ("1u == 1.0", "true"),
    ("1 < 1.5", "true"),
    ("2u > 1.5", "true"),
    ("1 < 2u", "true"),
    ("1 in [1.0]", "true"),
    ("1.0 in [1, 2]", "true"),
    ("null == false", "false"),
    ("{\"a\": 1} == {\"a\": 1.0}", "true"),
    ("type({1.5: 2}) == map && ({1.5: 2}) == {1.5: 2}", "error"),
    ("self.list.existsOne(x, x > 2.0)", "true"),
];

#[test]
fn rules_mean_what_they_mean_to_the_original() {
    let mut lines = include_str!("../../../tests/oracles/cel.jsonl").lines();
    let seen: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let mut differences = Vec::new();
    for line in lines {
        let Told { expression, outcome } = serde_json::from_str(line).unwrap();
        let ours = match compile(&expression) {
            Err(_) => "error",
            Ok(rule) => match rule
                .program
                .run(&seen["self"], Some(&seen["oldSelf"]), &Budget::new(BUDGET))
            {
                Outcome::True => "true",
                Outcome::False => "false",
                Outcome::Skipped => "skipped",
                Outcome::Failed(_) => "error",
            },
        };
        if ours != outcome {
            differences.push((expression, ours));
        }
    }
    let differences: Vec<_> = differences.iter().map(|(text, ours)| (text.as_str(), *ours)).collect();
    assert_eq!(differences, DIFFERENCES);
}
