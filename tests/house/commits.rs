//! The form of commit messages: `.ci/commit-form` refuses a message for each possible mistake, and accepts a correct
//! one.
#![expect(
    clippy::disallowed_methods,
    reason = "a script of the repository is asked; process.rs belongs to the program"
)]

use std::process::Command;

use crate::repository;

/// The complaints about a message, without their headline; none if it is accepted.
fn complaints(message: &str) -> Vec<String> {
    let file = tempfile::NamedTempFile::new().expect("there is room for a file of a line");
    fs_err::write(file.path(), message).expect("there is room for a file of a line");
    let output = Command::new(repository::root().join(".ci/commit-form"))
        .arg(file.path())
        .output()
        .expect("bash is there wherever the checks run");
    let said = String::from_utf8(output.stderr).expect("it writes UTF-8");
    let complaints: Vec<_> = said.lines().skip(1).map(|line| line.trim().to_owned()).collect();
    assert_eq!(output.status.success(), complaints.is_empty(), "{said}");
    complaints
}

#[test]
fn each_way_to_miss_the_form_is_refused() {
    for good in [
        "Keep a failing head at its place\n\nIt went to the end of its queue.\n",
        "Pass the class on\n\nOthers need it.\n# a remark of git\n",
        "fixup! Keep a failing head",
    ] {
        assert_eq!(complaints(good), Vec::<String>::new(), "{good}");
    }
    let long = format!("Keep {}\n\nbody\n", "x".repeat(68));
    for (bad, part) in [
        (long.as_str(), "72 are the most"),
        ("Keeps a head\n\nbody\n", "take the imperative"),
        ("Keeping a head\n\nbody\n", "take the imperative"),
        ("Moved a head\n\nbody\n", "take the imperative"),
        ("keep a head\n\nbody\n", "begin with a verb"),
        ("Keep a head.\n\nbody\n", "ends with a stop"),
        ("Keep a head; drop a tail\n\nbody\n", "semicolon"),
        ("Keep a head\nbody\n\nbody\n", "second line"),
        ("Keep a head\n\n# only a remark\n", "no body"),
    ] {
        let said = complaints(bad);
        assert!(matches!(&said[..], [one] if one.contains(part)), "{bad}: {said:?}");
    }
}
