//! `module.yaml`, field by field.

use super::*;

#[test]
fn a_service_account_has_a_name_that_an_api_server_takes() {
    let said = |text: &str| Description::parse(text).unwrap();
    let name = said("serviceAccount: small.rights-2").service_account;
    assert_eq!(name.unwrap().as_str(), "small.rights-2");
    let long = format!("serviceAccount: {}", "a".repeat(254));
    for text in [
        "serviceAccount: ''",
        "serviceAccount: ../a",
        "serviceAccount: a..b",
        "serviceAccount: A",
        &long,
    ] {
        assert_eq!(said(text).mistakes, [Mistake::Account { line: 1 }], "{text}");
    }
    assert_eq!(
        said("serviceAccountName: a").mistakes[0].to_string(),
        "line 1: unknown field serviceAccountName, is serviceAccount meant?"
    );
}

#[test]
fn what_is_put_right_is_one_of_three_words() {
    for (text, expected) in [
        ("drift: off", Some(Restoring::Off)),
        ("drift: 'off'", Some(Restoring::Off)),
        ("drift: absent", Some(Restoring::Absent)),
        ("drift: changed\ndependsOn: [a]", Some(Restoring::Changed)),
        ("dependsOn: [a]", None),
    ] {
        let description = Description::parse(text).unwrap();
        assert_eq!(
            (description.drift, description.mistakes),
            (expected, Vec::new()),
            "{text}"
        );
    }
    for text in ["drift: all", "drift: true", "drift: [off]", "drift:"] {
        let told = Description::parse(text).unwrap().mistakes;
        assert_eq!(told, [Mistake::Drift { line: 1 }], "{text}");
        assert_eq!(
            told[0].to_string(),
            "line 1: drift should be one of off, absent, changed"
        );
    }
}
#[test]
fn a_second_document_is_refused_and_a_mark_of_byte_order_is_not() {
    let said = |text: &str| Description::parse(text).unwrap();
    let second = Mistake::SecondDocument { line: 3 };
    assert_eq!(said("drift: off\n---\ndependsOn: [a]\n").mistakes, [second]);
    for text in ["---\ndrift: off\n---\n", "\u{feff}drift: off\n...\n"] {
        let one = said(text);
        assert_eq!((one.drift, one.mistakes), (Some(Restoring::Off), Vec::new()), "{text}");
    }
}

#[test]
fn what_may_be_replaced_is_named_by_kind_and_name_and_never_holds_data() {
    let said = |text: &str| Description::parse(text).unwrap();
    let right = said("replace: [Deployment/web, 'Service/*']");
    let named: Vec<_> = right.replace.iter().map(ToString::to_string).collect();
    assert_eq!(
        (named, right.mistakes),
        (vec!["Deployment/web".to_owned(), "Service/*".to_owned()], Vec::new())
    );
    for (text, expected) in [
        (
            "replace: Deployment/web",
            "line 1: replace should be a list of objects as KIND/NAME, but is a text",
        ),
        (
            "\nreplace: [1]",
            "line 2: replace[0] should be an object as KIND/NAME, but is a number",
        ),
        ("replaces: []", "line 1: unknown field replaces, is replace meant?"),
        (
            "replace:\n- Deployment/web\n- web",
            "line 1: replace[1] names no object that may be replaced: 'web' should be KIND/NAME, as in Deployment/web; \
             KIND/* names all objects of the kind",
        ),
        (
            "replace: [PersistentVolumeClaim/data]",
            "line 1: replace[0] names no object that may be replaced: 'PersistentVolumeClaim/data': a \
             PersistentVolumeClaim holds data or other objects and is never replaced; leave it out",
        ),
    ] {
        let mistakes = said(text).mistakes;
        let [mistake] = mistakes.as_slice() else {
            panic!("{text}: {mistakes:?}");
        };
        let cause = std::error::Error::source(mistake).map_or_else(String::new, |cause| format!(": {cause}"));
        assert_eq!(format!("{mistake}{cause}"), expected);
    }
}
