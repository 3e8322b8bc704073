//! The results of cases in the XML format of `JUnit`, which build servers read.
//!
//! Every text is escaped, and characters that XML does not allow are left out.

use std::fmt::Write as _;
use std::time::Duration;

use super::results::{Outcome, Report, Tested};

/// The whole document: a suite for each module.
pub(super) fn document(report: &Report) -> String {
    let mut modules: Vec<&str> = report.tested.iter().map(|one| one.module.as_str()).collect();
    modules.dedup();
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let (all, failed, took) = (report.tested.len(), report.failed(), seconds(report.took));
    let errors = count(&report.tested, is_mistake);
    line(
        &mut text,
        &format!(
            "<testsuites tests=\"{all}\" failures=\"{}\" errors=\"{errors}\" time=\"{took}\">",
            failed - errors
        ),
    );
    for module in modules {
        let tested: Vec<Tested> = report
            .tested
            .iter()
            .filter(|one| one.module == module)
            .cloned()
            .collect();
        suite(&mut text, module, &tested);
    }
    text + "</testsuites>\n"
}

fn suite(text: &mut String, module: &str, tested: &[Tested]) {
    let failures = count(tested, |one| matches!(one.outcome, Outcome::Failed(_)));
    let (errors, took) = (
        count(tested, is_mistake),
        seconds(tested.iter().map(|one| one.took).sum()),
    );
    line(
        text,
        &format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{took}\">",
            escaped(module),
            tested.len()
        ),
    );
    for one in tested {
        let head = format!(
            "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{}\"",
            escaped(module),
            escaped(&one.name),
            escaped(&one.file.display().to_string()),
            one.line,
            seconds(one.took)
        );
        let told = one.told();
        let element = if is_mistake(one) { "error" } else { "failure" };
        match told.first() {
            None => line(text, &format!("{head}/>")),
            Some(first) => {
                let message = escaped(first.lines().next().unwrap_or_default());
                line(text, &format!("{head}>"));
                let body = escaped(&told.join("\n"));
                line(
                    text,
                    &format!("      <{element} message=\"{message}\">{body}</{element}>"),
                );
                line(text, "    </testcase>");
            }
        }
    }
    line(text, "  </testsuite>");
}

fn is_mistake(one: &Tested) -> bool {
    matches!(one.outcome, Outcome::Mistake(..))
}

fn count(tested: &[Tested], is_meant: impl Fn(&Tested) -> bool) -> usize {
    tested.iter().filter(|one| is_meant(one)).count()
}

fn seconds(took: Duration) -> String {
    format!("{:.3}", took.as_secs_f64())
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// A text for an attribute or an element.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // In an attribute these would become spaces.
            '\n' | '\t' => drop(write!(escaped, "&#{};", u32::from(c))),
            c if (c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}')) => {}
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_an_element_and_every_text_is_escaped() {
        let tested = |name: &str, outcome| Tested {
            module: "one".to_owned(),
            file: "tests/a.yaml".into(),
            line: 3,
            name: name.to_owned(),
            took: Duration::from_millis(1500),
            outcome,
        };
        let cases = vec![
            tested("good", Outcome::Passed),
            tested(
                "\"a\" & <b>\u{1b}[31m",
                Outcome::Failed(vec!["x: expected <1>\n  got 2".to_owned()]),
            ),
            tested("odd", Outcome::Mistake(4, "hook: there is none".to_owned())),
        ];
        let text = Report::new(cases, Duration::from_secs(2)).junit();
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites tests=\"3\" failures=\"1\" errors=\"1\" time=\"2.000\">
  <testsuite name=\"one\" tests=\"3\" failures=\"1\" errors=\"1\" time=\"4.500\">
    <testcase classname=\"one\" name=\"good\" file=\"tests/a.yaml\" line=\"3\" time=\"1.500\"/>
    <testcase classname=\"one\" name=\"&quot;a&quot; &amp; &lt;b&gt;[31m\" file=\"tests/a.yaml\" line=\"3\" time=\"1.500\">
      <failure message=\"x: expected &lt;1&gt;\">x: expected &lt;1&gt;&#10;  got 2</failure>
    </testcase>
    <testcase classname=\"one\" name=\"odd\" file=\"tests/a.yaml\" line=\"3\" time=\"1.500\">
      <error message=\"tests/a.yaml:4: hook: there is none\">tests/a.yaml:4: hook: there is none</error>
    </testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(text, expected);
    }
}
