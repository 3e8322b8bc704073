use serde_json::json;

use super::*;

const FILE: &str = "openapi/values.yaml";

/// A schema as it is in a file, without the rules that we add.
fn raw(schema: &Value) -> Result<Node, SchemaError> {
    let mut files = Files::default();
    files.insert(FILE, schema.to_string());
    read::read(&files, FILE)
}

fn schemas(config: Option<&str>, values: Option<&str>) -> Result<Schemas, SchemaError> {
    let mut files = Files::default();
    let mut add = |path: &'static str, text: Option<&str>| {
        text.map(|text| {
            files.insert(path, text);
            path
        })
    };
    let (config, values) = (add("openapi/config-values.yaml", config), add(FILE, values));
    Schemas::load(&files, config, values)
}

fn values_schema(text: &str) -> Schemas {
    schemas(None, Some(text)).unwrap()
}

fn chain(error: &SchemaError) -> String {
    format!("{error}: {}", error.problem)
}

#[test]
fn every_row_of_the_oracle_comes_as_recorded() {
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for line in include_str!("../../tests/oracles/schema.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let node = raw(&row["schema"]).unwrap();
        for case in row["cases"].as_array().unwrap() {
            rows += 1;
            let errors = check::check(&node, &case["value"], Path::Root("root")).into_errors();
            // The recorded errors lack the words about a body.
            let mut said: String = errors
                .iter()
                .map(|error| error.replace(" in body", "") + " | ")
                .collect();
            said.insert_str(0, if errors.is_empty() { "ok" } else { "bad " });
            if said != case["verdict"] {
                wrong.push(format!(
                    "{}: {}: {said}, not {}",
                    row["name"], case["value"], case["verdict"]
                ));
            }
        }
    }
    assert!(rows > 100, "{rows}");
    assert!(wrong.is_empty(), "{} of {rows}: {wrong:#?}", wrong.len());
}

fn verdict(schemas: &Schemas, kind: Kind, section: &Value) -> String {
    match schemas.check(kind, "one", section, None) {
        Ok(()) => "ok".to_owned(),
        Err(invalid) => invalid.to_string(),
    }
}

#[test]
fn keys_that_nobody_mentioned_are_forbidden_where_the_original_forbids_them() {
    let schemas = values_schema(
        "properties:\n  closed: {properties: {a: {}}}\n  open: {additionalProperties: true, properties: {a: {properties: {b: {}}}}}\n  \
         list: {items: {properties: {a: {}}}}\n  alternatives: {additionalProperties: {properties: {a: {}}}, anyOf: [{properties: {a: {}}}]}\n",
    );
    let rows = [
        (json!({"other": 1}), "one.other in body is a forbidden property"),
        (
            json!({"closed": {"b": 1}}),
            "one.closed.b in body is a forbidden property",
        ),
        (json!({"open": {"b": 1}}), "ok"),
        (json!({"open": {"a": {"c": 1}}}), "ok"),
        (
            json!({"list": [{"b": 1}]}),
            "one.list.0.b in body is a forbidden property",
        ),
        (json!({"alternatives": {"a": {"b": 1}, "c": {"d": 1}}}), "ok"),
        (json!({"$schema": 1, "id": 1}), "ok"),
    ];
    for (section, said) in rows {
        assert_eq!(verdict(&schemas, Kind::Values, &section), said, "{section}");
    }
    // A file with comments only allows nothing.
    assert_eq!(
        verdict(&values_schema("# nothing\n"), Kind::Values, &json!({"a": 1})),
        "one.a in body is a forbidden property"
    );
}

#[test]
fn the_schema_of_values_takes_over_what_it_extends() {
    let config = "type: object\nrequired: [size, name]\nadditionalProperties: true\nminProperties: 9\n\
                  properties: {size: {type: integer}, name: {type: string}, both: {type: string}}\n\
                  patternProperties: {'^x-': {type: string}}\n\
                  x-required-for-helm: late\nx-deckhouse-validations: [{expression: 'self.size > 0.0', message: too small}]\n";
    let values = "x-extend: {schema: config-values.yaml}\nrequired: [own]\nproperties: {own: {}, both: {type: integer}, late: {}}\n";
    let both = schemas(Some(config), Some(values)).unwrap();
    let good = json!({"size": 1, "name": "n", "own": 1, "both": 1, "x-a": "text"});
    assert_eq!(verdict(&both, Kind::Values, &good), "ok");
    assert_eq!(verdict(&both, Kind::Helm, &good), "one.late in body is required");
    assert_eq!(
        verdict(&both, Kind::Values, &json!({"both": "text", "other": 1, "x-a": 1})),
        "one.other in body is a forbidden property\none.x-a in body must be of type string: \"number\"\n\
         one.both in body must be of type integer: \"string\"\none.size in body is required\none.name in body is required\n\
         one.own in body is required"
    );
    assert_eq!(verdict(&both, Kind::Values, &json!({"size": 0})), "too small");
    // Without a schema of config values, or without `x-extend`, nothing is taken over.
    let alone = schemas(None, Some(values)).unwrap();
    assert_eq!(verdict(&alone, Kind::Values, &json!({"own": 1})), "ok");
    let unrelated = schemas(Some(config), Some("properties: {own: {}}")).unwrap();
    assert_eq!(verdict(&unrelated, Kind::Values, &json!({"own": 1})), "ok");
}

#[test]
fn more_is_required_for_helm_at_every_level_of_properties() {
    let schemas = values_schema(
        "x-required-for-helm: a\nrequired: [b]\nproperties:\n  a: {}\n  b: {}\n  c: {x-required-for-helm: [d], properties: {d: {}}}\n",
    );
    assert_eq!(verdict(&schemas, Kind::Values, &json!({"b": 1, "c": {}})), "ok");
    assert_eq!(
        verdict(&schemas, Kind::Helm, &json!({"c": {}})),
        "one.c.d in body is required\none.b in body is required\none.a in body is required"
    );
    assert!(schemas.has(Kind::Helm) && !schemas.has(Kind::Config));
    assert_eq!(verdict(&schemas, Kind::Config, &json!({"anything": 1})), "ok");
}

#[test]
fn defaults_fill_what_is_missing_and_nothing_else() {
    let schemas = values_schema(
        "default: {never: 1}\nproperties:\n  given: {default: d}\n  zero: {default: 0.0}\n  nothing: {default: null}\n  \
         nested: {default: {}, properties: {inner: {default: i}, deeper: {properties: {never: {default: n}}}}}\n  \
         items: {items: {properties: {size: {default: 1}}}}\n  places: {items: [{properties: {never: {default: n}}}]}\n  \
         open: {additionalProperties: {properties: {never: {default: n}}}}\n",
    );
    let mut section = json!({"given": null, "items": [{"size": 2}, {}], "places": [{}], "open": {"x": {}}});
    schemas.fill(Kind::Values, &mut section);
    let filled = json!({
        "given": null, "zero": 0, "nested": {"inner": "i"}, "items": [{"size": 2}, {"size": 1}], "places": [{}],
        "open": {"x": {}},
    });
    assert_eq!(section, filled);
    schemas.fill(Kind::Values, &mut section);
    assert_eq!(section, filled, "once is enough");
    assert_eq!(
        schemas.defaults(Kind::Values),
        json!({"given": "d", "zero": 0, "nested": {"inner": "i"}})
    );
}

#[test]
fn references_are_followed_within_the_files_that_were_given() {
    let mut files = Files::default();
    files.insert(
        "m/openapi/values.yaml",
        "properties: {a: {$ref: '#/definitions/a'}, b: {$ref: 'lib/b.yaml#/b'}}\ndefinitions: {a: {type: string}}\n",
    );
    files.insert(
        "m/openapi/lib/b.yaml",
        "b: {properties: {c: {$ref: '#/c/0'}}}\nc: [{type: integer, $comment: x}]\n",
    );
    let schemas = Schemas::load(&files, None, Some("m/openapi/values.yaml")).unwrap();
    assert_eq!(
        verdict(&schemas, Kind::Values, &json!({"a": 1, "b": {"c": "x", "d": 1}})),
        "one.a in body must be of type string: \"number\"\none.b.d in body is a forbidden property\n\
         one.b.c in body must be of type integer: \"string\""
    );
}

#[test]
fn anchors_and_merges_are_read() {
    let schemas = values_schema(
        "properties:\n  a: &a {type: object, properties: {x: {type: string}}}\n  b: {<<: *a, nullable: true}\n",
    );
    assert_eq!(
        verdict(&schemas, Kind::Values, &json!({"a": {"x": "x"}, "b": null})),
        "ok"
    );
    assert_eq!(
        verdict(&schemas, Kind::Values, &json!({"b": {"x": 1}})),
        "one.b.x in body must be of type string: \"number\""
    );
}

#[test]
fn a_schema_that_makes_no_sense_is_named_with_its_place() {
    let deep = "{properties: {a: ".repeat(70) + &"}}".repeat(70);
    let rows: [(&str, &str); 16] = [
        ("properties: {a: [", "load schema openapi/values.yaml: bad yaml: line "),
        (
            "[]",
            "load schema openapi/values.yaml: should be a schema, which is a map",
        ),
        (
            "properties: {a: 5}",
            "load schema openapi/values.yaml, at properties.a: should be a schema, which is a map",
        ),
        (
            "properties: {a: {minLength: 1.5}}",
            "load schema openapi/values.yaml, at properties.a.minLength: should be a whole number",
        ),
        (
            "exclusiveMinimum: 5",
            "load schema openapi/values.yaml, at exclusiveMinimum: should be a boolean",
        ),
        (
            "required: a",
            "load schema openapi/values.yaml, at required: should be a list of strings",
        ),
        (
            "additionalProperties: x",
            "load schema openapi/values.yaml, at additionalProperties: should be a boolean or a schema",
        ),
        (
            "allOf: [{}, {type: 5}]",
            "load schema openapi/values.yaml, at allOf.1.type: should be a string or a list of strings",
        ),
        (
            "items: {$ref: '#/nowhere'}",
            "load schema openapi/values.yaml, at items: refers to \"#/nowhere\", which is not there",
        ),
        (
            "items: {$ref: 'x.yaml'}",
            "load schema openapi/values.yaml, at items: refers to the file openapi/x.yaml, which is not there",
        ),
        (
            "$ref: 'http://x/y'",
            "load schema openapi/values.yaml: refers to \"http://x/y\", and only files are read",
        ),
        (
            "properties: {a: {$ref: '#'}}",
            "load schema openapi/values.yaml, at properties.a: refers to \"#\" in a circle",
        ),
        (
            "properties: {a: {$ref: '#/definitions/a'}}\ndefinitions: {a: {items: {$ref: '#/definitions/a'}}}",
            "load schema openapi/values.yaml, at definitions.a.items: refers to \"#/definitions/a\" in a circle",
        ),
        (&deep, "load schema openapi/values.yaml, at "),
        (
            "x-deckhouse-validations: 5",
            "load schema openapi/values.yaml, at x-deckhouse-validations: x-deckhouse-validations invalid",
        ),
        (
            "x-deckhouse-validations: [{expression: 'true'}]",
            "load schema openapi/values.yaml, at x-deckhouse-validations: x-deckhouse-validations invalid: missing message",
        ),
    ];
    for (text, said) in rows {
        let error = chain(&schemas(None, Some(text)).unwrap_err());
        assert!(error.starts_with(said), "{text}: {error}");
    }
}

#[test]
fn references_cannot_make_a_schema_grow_without_end() {
    let twice = |level: usize| {
        let below = level - 1;
        format!("  d{level}: {{anyOf: [{{$ref: '#/definitions/d{below}'}}, {{$ref: '#/definitions/d{below}'}}]}}\n")
    };
    let levels: String = (1..30).map(twice).collect();
    let text = format!("definitions:\n  d0: {{type: string}}\n{levels}$ref: '#/definitions/d29'\n");
    assert!(matches!(
        schemas(None, Some(&text)).unwrap_err().problem,
        Problem::TooLarge(_)
    ));
}

#[test]
fn errors_are_listed_as_the_original_lists_them() {
    let schemas = values_schema("properties: {a: {type: string}, b: {type: string}}\n");
    let invalid = schemas
        .check(Kind::Values, "one", &json!({"a": 1, "b": 2}), None)
        .unwrap_err();
    assert_eq!(
        invalid.listed(Some("cannot apply values patch for module values")),
        "3 errors occurred:\n\t* cannot apply values patch for module values\n\t* one.a in body must be of type string: \"number\"\
         \n\t* one.b in body must be of type string: \"number\""
    );
    let one = schemas.check(Kind::Values, "one", &json!({"a": 1}), None).unwrap_err();
    assert_eq!(
        one.listed(None),
        "1 error occurred:\n\t* one.a in body must be of type string: \"number\""
    );
    let many: Map<String, Value> = (0..500).map(|key| (format!("k{key}"), json!(1))).collect();
    let listed = schemas
        .check(Kind::Values, "one", &Value::Object(many), None)
        .unwrap_err()
        .listed(None);
    assert!(
        listed.starts_with("500 errors occurred") && listed.ends_with("400 more"),
        "{listed}"
    );
}

#[test]
fn formats_are_held_against_texts() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        (
            "date-time",
            &["2020-01-01T00:00:00Z", "2020-01-01t23:59:59.5+01:00"],
            &["2020-01-01", "2020-02-30T00:00:00Z", "2020-01-01T24:00:00Z"],
        ),
        (
            "date",
            &["2020-02-29"],
            &["2021-02-29", "2020-1-1", "+020-01-01", "20200101"],
        ),
        ("duration", &["1h", "1h30m", "5 days", "0", "PT1H"], &["x", "1", "h"]),
        (
            "uri",
            &["http://x", "mailto:a@b", "/path"],
            &["x", "http://a b", "http://a%zz"],
        ),
        (
            "email",
            &["a@b", "A B <a@b.c>", "\"a b\"@c"],
            &["a", "a@", "@b", "a b@c"],
        ),
        (
            "hostname",
            &["a.bc", "localhost", "1a.example.org"],
            &["a.b", "-x", "a_b", ""],
        ),
        ("ipv4", &["1.2.3.4"], &["1.2.3", "01.2.3.4", "::1"]),
        ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", ":"]),
        (
            "cidr",
            &["10.0.0.0/8", "::/0"],
            &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "x/8"],
        ),
        (
            "mac",
            &["00:11:22:33:44:55", "0011.2233.4455"],
            &["00:11:22:33:44", "00:11-22:33:44:55"],
        ),
        (
            "uuid",
            &[
                "a8098c1a-f86e-11da-bd1a-00112444be1e",
                "a8098c1af86e11dabd1a00112444be1e",
            ],
            &["x", "a8098c1a-f86e-11da-bd1a-00112444be1"],
        ),
        (
            "uuid4",
            &["a8098c1a-f86e-41da-bd1a-00112444be1e"],
            &["a8098c1a-f86e-11da-bd1a-00112444be1e"],
        ),
        ("byte", &["YQ==", ""], &["Y", "a*"]),
        ("hexcolor", &["#fff", "ffffff"], &["#ffff", "ggg"]),
        ("rgbcolor", &["rgb(0, 12,255)"], &["rgb(0,0,256)", "rgb(0,0)"]),
        (
            "isbn",
            &["0-306-40615-2", "978-0-306-40615-7"],
            &["0-306-40615-3", "978"],
        ),
        ("creditcard", &["4111 1111 1111 1111"], &["4111111111111112"]),
        ("ssn", &["111-22-3333"], &["111-2-333"]),
        ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
        ("ulid", &["01ARZ3NDEKTSV4RRFFQ69G5FAV"], &["81ARZ3NDEKTSV4RRFFQ69G5FAV"]),
        ("password", &["x"], &[]),
    ];
    for (format, good, bad) in rows {
        for text in *good {
            assert_eq!(formats::holds(format, text), Some(true), "{format} {text}");
        }
        for text in *bad {
            assert_eq!(formats::holds(format, text), Some(false), "{format} {text}");
        }
    }
    assert_eq!(formats::holds("quantity", "x"), None);
    assert_eq!(formats::holds("", "x"), None);
}

#[test]
fn the_deepest_schema_and_the_deepest_value_fit_the_stack() {
    let deepest = std::thread::Builder::new().stack_size(1536 * 1024).spawn(|| {
        let nested =
            |levels: usize, open: &str, close: &str| format!("{}{}", open.repeat(levels), close.repeat(levels));
        for (open, close) in [
            ("{properties: {a: ", "}}"),
            ("{items: ", "}"),
            ("{anyOf: [", "]}"),
            ("{not: ", "}"),
        ] {
            let text = nested(63, open, close)
                .replacen(": }", ": {}}", 1)
                .replacen("[]", "[{}]", 1);
            let schemas = values_schema(&text);
            let maps = (0..300).fold(json!(1), |inner, _| json!({ "a": inner }));
            let lists = (0..300).fold(json!(1), |inner, _| json!([inner]));
            for mut value in [maps, lists] {
                schemas.fill(Kind::Values, &mut value);
                verdict(&schemas, Kind::Values, &value);
            }
            assert_eq!(schemas.clone(), schemas);
        }
    });
    deepest.unwrap().join().unwrap();
}
