use serde_json::Value;

use super::*;
use crate::number;

type Read = fn(&str) -> Result<Value, YamlError>;

/// Rows in which we differ from the original's reader on purpose, with the reason.
const DIFFERENCES: &[(&str, &str)] = &[(
    "json_sur",
    "the original refuses surrogate pairs, which many JSON printers write; reading them only adds documents",
)];

#[test]
fn every_row_of_the_oracle_reads_as_recorded() {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in include_str!("../../tests/oracles/yaml.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = row["text"].as_str().unwrap();
        let name = row["name"].as_str().unwrap();
        let readers: [(&str, Read); 3] = [
            ("sigs", from_str_v2),
            ("sigs_strict", from_str_v2_strict),
            ("v3", from_str_v3),
        ];
        for (column, read) in readers {
            rows += 1;
            let recorded = row[column].as_str().unwrap();
            let found = read(text);
            let same = match &found {
                Ok(found) => is_recorded(found, recorded),
                Err(_) => recorded.starts_with("ERR"),
            };
            let listed = DIFFERENCES.iter().any(|(listed, _)| *listed == name);
            if same == listed {
                wrong.push(format!("{name} {column}: {found:?}, recorded {recorded}"));
            }
        }
    }
    assert_eq!(rows, 3 * 114);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_recorded(found: &Value, recorded: &str) -> bool {
    match serde_json::from_str::<Value>(recorded) {
        Ok(mut expected) => {
            number::settle(&mut expected);
            *found == expected
        }
        // The value is nested deeper than the JSON parser allows.
        Err(_) => serde_json::to_string(found).unwrap() == recorded,
    }
}

#[test]
fn hard_values_are_read_back_unchanged_by_both_readers() {
    let mut value: Value = serde_json::from_str(include_str!("../../tests/oracles/yaml_emit_values.json")).unwrap();
    number::settle(&mut value);
    let text = to_string(&value);
    for read in [from_str_v2, from_str_v2_strict, from_str_v3] {
        let back = read(&text).unwrap();
        for (key, expected) in value.as_object().unwrap() {
            assert_eq!(&back[key], expected, "{key} in {text}");
        }
        assert_eq!(back, value);
    }
}

#[test]
fn errors_tell_line_and_column() {
    let rows: [(&str, Read, &str); 8] = [
        ("a: 1\nb: [1, 2", from_str_v2, "line 2, column 4"),
        (
            "a: 1\na: 2",
            from_str_v2_strict,
            "line 2, column 1: key \"a\" already set in map",
        ),
        (
            "x:\n  a: 1\n  a: 2",
            from_str_v3,
            "line 3, column 3: mapping key \"a\" already defined at line 2",
        ),
        (
            "a:\n- .nan",
            from_str_v2,
            "line 2, column 3: NaN is no number that JSON knows",
        ),
        ("a: 1\nb: !!int x", from_str_v3, "line 2, column "),
        (
            "a: \"x\u{1}\"",
            from_str_v2,
            "line 1, column 6: control characters are not allowed",
        ),
        ("a: *b", from_str_v2, "line 1, column 4"),
        ("a: &a [*a]", from_str_v2, "line 1, column 8: an anchor contains itself"),
    ];
    for (text, read, message) in rows {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn depth_is_limited_through_aliases_too() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(from_str_v2(&nested(MAX_DEPTH)).is_ok());
    assert!(from_str_v2(&nested(MAX_DEPTH + 2)).is_err());
    let half = MAX_DEPTH / 2 + 2;
    let text = format!("a: &a {}\nb: {}*a{}", nested(half), "[".repeat(half), "]".repeat(half));
    let error = from_str_v2(&text).unwrap_err().to_string();
    assert!(error.contains("nested deeper than"), "{error}");
    let lines: Vec<_> = (0..MAX_DEPTH + 10)
        .map(|depth| format!("{}a:", " ".repeat(depth)))
        .collect();
    assert!(from_str_v3(&lines.join("\n")).is_err());
}

#[test]
fn aliases_may_repeat_much_but_not_everything() {
    let base = "base: &b {x: 1, y: [1, 2, 3]}\n";
    let users: Vec<_> = (0..200).map(|user| format!("u{user}: *b")).collect();
    assert!(from_str_v2(&format!("{base}{}", users.join("\n"))).is_ok());
    let level = |level: usize| {
        format!(
            "a{level}: &a{level} [{}]",
            vec![format!("*a{}", level - 1); 9].join(",")
        )
    };
    let bomb = (1..9).map(level).collect::<Vec<_>>().join("\n");
    for read in [from_str_v2, from_str_v3] {
        let error = read(&format!("a0: &a0 x\n{bomb}")).unwrap_err();
        assert!(error.message.contains("excessive aliasing"), "{error}");
    }
}

#[test]
fn merges_of_lists_prefer_what_comes_first() {
    let text = "p: &p {x: 1, k: p}\nq: &q {x: 2, k: q, l: q}\nr:\n  <<: [*p, *q]\n  k: own";
    let expected = serde_json::json!({"x": 1, "k": "own", "l": "q"});
    assert_eq!(from_str_v3(text).unwrap()["r"], expected);
    assert_eq!(from_str_v2(text).unwrap()["r"], expected);
    let quoted = "p: &p {x: 1}\nr:\n  '<<': *p";
    assert_eq!(from_str_v2(quoted).unwrap()["r"], serde_json::json!({"<<": {"x": 1}}));
}

#[test]
fn scalars_that_the_oracle_leaves_out() {
    let v2 = |text: &str| from_str_v2(text).map(|value| value.to_string());
    let v3 = |text: &str| from_str_v3(text).map(|value| value.to_string());
    let rows = [
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("+18446744073709551615", "1.8446744073709552e+19"),
        ("1_000", "1000"),
        ("0x_FF", "255"),
        ("123e456", "\"123e456\""),
        ("1e3", "1000"),
        ("2.50", "2.5"),
        ("! 5", "\"5\""),
        ("!!str 5", "\"5\""),
        ("!!float 5", "5"),
        ("!!int '5'", "5"),
        ("!Ref 5", "\"5\""),
        ("!!timestamp 2001-01-01T25:00:00Z", ""),
    ];
    for (text, expected) in rows {
        for read in [v2(text), v3(text)] {
            assert_eq!(read.unwrap_or_default(), expected, "{text}");
        }
    }
    for (text, expected) in [
        ("2001-1-2", "\"2001-01-02T00:00:00Z\""),
        (
            "2001-12-14t21:59:43.123456789+05:30",
            "\"2001-12-14T21:59:43.123456789+05:30\"",
        ),
        ("2001-02-30", "\"2001-02-30\""),
        ("2001-12-14 21:59:43 Z", "\"2001-12-14 21:59:43 Z\""),
    ] {
        assert_eq!(v3(text).unwrap(), expected, "{text}");
        assert_eq!(v2(text).unwrap(), format!("\"{text}\""));
    }
    for (text, expected) in [
        ("1e6: a", r#"{"1e+06":"a"}"#),
        ("0x10: a", r#"{"16":"a"}"#),
        ("1e-5: a", r#"{"1e-05":"a"}"#),
        ("123456.5: a", r#"{"123456.5":"a"}"#),
    ] {
        assert_eq!(v2(text).unwrap(), expected, "{text}");
    }
    assert_eq!(v3("1e6: a").unwrap(), r#"{"1e+06":"a"}"#);
}

#[test]
fn comments_are_no_nodes() {
    let text = "# head\na: # right\n  # above\n  - 1 # end\n  # between\n  - {x: 1, # inside\n     y: 2}\n# foot\nb: c # last\n";
    let expected = serde_json::json!({"a": [1, {"x": 1, "true": 2}], "b": "c"});
    assert_eq!(from_str_v2(text), Ok(expected));
}

#[test]
fn all_documents_of_a_stream_are_read() {
    let read = |text| documents_v2(text).map(|documents| serde_json::to_string(&documents).unwrap());
    assert_eq!(
        read("a: 1\n---\nb: yes\n---\n").unwrap(),
        r#"[{"a":1},{"b":true},null]"#
    );
    assert_eq!(read("").unwrap(), "[]");
    assert!(read("a: 1\n---\nb: [").is_err());
    assert!(
        from_str_v2("a: 1\n---\nb: [").is_ok(),
        "only the first document is looked at"
    );
}

#[test]
fn a_second_document_is_refused_where_only_one_counts() {
    for text in [
        "",
        "a: 1\n",
        "---\na: 1\n---\n",
        "a: 1\n...\n---\n# nothing\n",
        "\u{feff}a: 1\n",
        "a: |\n ---\n b\n",
    ] {
        assert_eq!(only_v2(text), from_str_v2(text), "{text}");
        assert_eq!(only_v3(text), from_str_v3(text), "{text}");
    }
    for (text, line) in [
        ("a: 1\n---\nb: 2\n", 3),
        ("---\n---\nb: 2\n", 3),
        ("a: 1\n---\n---\n- b\n", 4),
        ("a: 1\n---\nb: [", 3),
    ] {
        for error in [only_v2(text).unwrap_err(), only_v3(text).unwrap_err()] {
            assert_eq!(error.line, line, "{text}: {error}");
        }
    }
    let told = only_v3("a: 1\n---\nb: 2\n").unwrap_err().to_string();
    assert!(
        told.starts_with("line 3, column 1: a second document begins here"),
        "{told}"
    );
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "[-a-c0-2:{}\\[\\]\\-,&*!<|>\"' \n\t?#~.]{0,60}") {
            for read in [from_str_v2, from_str_v2_strict, from_str_v3] {
                if let Err(error) = read(&text) {
                    prop_assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty(), "{:?}", error);
                }
            }
        }

        #[test]
        fn json_is_read_as_what_it_is(text in "[ -~]{0,20}", number in -1_000_000_i64..1_000_000, truth: bool) {
            let value = serde_json::json!({"text": text, "list": [number, truth, null], "map": {}});
            prop_assert_eq!(from_str_v2(&value.to_string()), Ok(value.clone()));
            prop_assert_eq!(from_str_v3(&value.to_string()), Ok(value));
        }
    }
}
