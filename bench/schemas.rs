//! `cargo bench -p addon-core --bench schemas`: the time to validate values against schemas. The operator's loop is
//! blocked for that time where a schema has no rules.
//!
//! It only measures and is never a test.
#![expect(clippy::disallowed_types, reason = "this is about time, and nothing is decided")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use addon_core::values::Store;
use addon_core::values::section::ConfigDocument;
use addon_core::values::vetted::Vetted;
use names::{ModuleName, Owner};
use serde_json::{Value, json};
use values_schema::schema::{Files, Kind, Schemas};

/// How many modules are validated.
const MODULES: usize = 50;
const ROUNDS: usize = 20;

/// A schema like those of real modules: nested maps, lists of maps, patterns, enums, limits and rules.
const SCHEMA: &str = r"
type: object
properties:
  replicas: {type: integer, minimum: 1, maximum: 100, default: 2}
  logLevel: {type: string, enum: [Debug, Info, Warn, Error], default: Info}
  image:
    type: object
    required: [repository]
    properties:
      repository: {type: string, pattern: '^[a-z0-9./-]+$'}
      tag: {type: string, default: latest}
      pullPolicy: {type: string, enum: [Always, IfNotPresent, Never], default: IfNotPresent}
  resources:
    type: object
    properties:
      requests: {type: object, properties: {cpu: {type: string, default: 100m}, memory: {type: string, default: 128Mi}}}
      limits: {type: object, properties: {cpu: {type: string}, memory: {type: string}}}
  nodeSelector: {type: object, additionalProperties: {type: string}, default: {}}
  tolerations:
    type: array
    default: []
    items: {type: object, properties: {key: {type: string}, operator: {type: string}, effect: {type: string}, value: {type: string}}}
  ports:
    type: array
    items:
      type: object
      required: [name, port]
      properties: {name: {type: string, maxLength: 15}, port: {type: integer, minimum: 1, maximum: 65535}}
  ingress:
    type: object
    properties:
      enabled: {type: boolean, default: false}
      host: {type: string, format: hostname}
      tls: {type: object, properties: {secretName: {type: string}, mode: {oneOf: [{type: string}, {type: 'null'}]}}}
";

const RULES: &str = "x-deckhouse-validations:\n\
                     - {expression: 'self.replicas > 1.0 || self.logLevel == \"Debug\"', message: one replica is for debugging}\n\
                     - {expression: 'self.ports.all(a, self.ports.exists_one(b, a.name == b.name))', message: names are unique}\n";

/// Rules that never end and have to be cut off.
const ENDLESS: [(&str, &str); 6] = [
    ("loops", "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c > -1.0)))"),
    (
        "short loops",
        "self.l.all(a, self.l.all(b, self.l.all(c, true))) || true",
    ),
    (
        "growing texts",
        "self.l.map(a, self.s + self.s).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).size() > 1",
    ),
    ("comparisons", "self.l.all(a, self == self && self.l == self.l)"),
    (
        "regular expressions",
        "self.l.all(a, self.s.matches('(x+x+)+y' + string(a)) || true)",
    ),
    ("lists of lists", "self.l.all(a, self.l.map(b, self.l).size() > 1)"),
];

fn owner(number: usize) -> Owner {
    let name = format!("module-{}", letters(number));
    ModuleName::parse(&name).expect("letters make a name").into()
}

/// The number as letters, because a digit in a module's name would be lost when the name becomes a key of values.
fn letters(number: usize) -> String {
    let digits = number.to_string();
    let letter = |digit: u8| char::from(b'a' + (digit - b'0'));
    digits.bytes().map(letter).collect()
}

fn section(ports: usize) -> Value {
    let ports: Vec<Value> = (0..ports)
        .map(|port| json!({"name": format!("p{port}"), "port": 8000 + port}))
        .collect();
    json!({
        "replicas": 3, "image": {"repository": "registry.example.com/a/b"}, "ports": ports,
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists", "effect": "NoSchedule"}],
        "ingress": {"enabled": true, "host": "a.example.com", "tls": {"secretName": "s", "mode": null}},
    })
}

fn schemas(text: &str) -> Schemas {
    let mut files = Files::default();
    files.insert("c", text);
    files.insert("v", "x-extend: {schema: c}\nx-required-for-helm: image\n");
    Schemas::load(&files, Some("c"), Some("v")).expect("schemas of benches are sound")
}

/// A store of fifty modules that all have this section.
fn store(schema: &str, section: &Value) -> Store {
    let mut store = Store::new();
    for number in 0..MODULES {
        let owner = owner(number);
        let taken = store.set_schemas(&owner, schemas(schema));
        let taken = taken.and_then(|_| store.set_config(&owner, Some(section.clone())));
        taken.expect("values of benches are sound");
    }
    store
}

/// The shortest and the median duration. Other work of the machine can make a duration longer, never shorter.
fn timed(rounds: usize, mut work: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort();
    (times[0], times[times.len() / 2])
}

fn row(text: &mut String, what: &str, rounds: usize, work: impl FnMut()) {
    let (shortest, middle) = timed(rounds, work);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    writeln!(
        text,
        "| {what} | {:.3} | {:.3} |",
        milliseconds(shortest),
        milliseconds(middle)
    )
    .expect("a text takes text");
}

/// The same section for each module.
fn config_map(section: &Value) -> BTreeMap<String, String> {
    let key = |number| (owner(number).values_key(), section.to_string());
    (0..MODULES).map(key).collect()
}

fn all_modules(text: &mut String, what: &str, schema: &str, section: &Value) {
    let store = store(schema, section);
    let document = ConfigDocument::parse(&config_map(section));
    row(text, &format!("{MODULES} sections, {what}"), ROUNDS, || {
        let unfit = Vetted::at_once(|vetted| store.unfit(&document, |_| false, vetted));
        assert!(unfit.is_empty(), "good sections");
    });
    row(text, &format!("{MODULES} releases, {what}"), ROUNDS, || {
        for number in 0..MODULES {
            let vetting = store.vetting_for_helm(&owner(number)).expect("there is a schema");
            vetting.for_helm().expect("good values");
        }
    });
}

fn main() -> io::Result<()> {
    let mut text = String::from("| what | ms, at best | ms, in the middle |\n|---|---|---|\n");
    let (few, many) = (section(5), section(100));
    all_modules(&mut text, "no rules", SCHEMA, &few);
    let ruled = format!("{SCHEMA}{RULES}");
    all_modules(&mut text, "two rules, 5 ports", &ruled, &few);
    all_modules(&mut text, "two rules, 100 ports", &ruled, &many);
    let store = store(&ruled, &few);
    let data = config_map(&few);
    row(&mut text, "a whole ConfigMap, read and judged", ROUNDS, || {
        assert!(store.judge(&data, None, &BTreeMap::new()).problems.is_empty());
    });
    row(&mut text, "a whole ConfigMap, read alone", ROUNDS, || {
        assert!(store.judge(&data, None, &data).problems.is_empty());
    });
    row(&mut text, "a copy of the values", ROUNDS, || drop(store.clone()));
    let value = json!({"l": (0..2000).collect::<Vec<u32>>(), "s": "x".repeat(100_000)});
    for (what, expression) in ENDLESS {
        let rule = json!({"x-deckhouse-validations": [{"expression": expression, "message": "m"}]});
        let schemas = schemas(&rule.to_string());
        row(&mut text, &format!("an endless rule: {what}"), 5, || {
            drop(schemas.check(Kind::Config, "one", &value, None));
        });
    }
    let ports = json!({"ports": section(300)["ports"]});
    let rule = "{x-deckhouse-validations: [{expression: 'self.ports.all(a, self.ports.exists_one(b, a.name == b.name))', message: m}]}";
    let schemas = schemas(rule);
    row(&mut text, "unique names among 300", 20, || {
        drop(schemas.check(Kind::Config, "one", &ports, None));
    });
    io::stdout().write_all(text.as_bytes())
}
