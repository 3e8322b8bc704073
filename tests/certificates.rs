//! Every document under `tests/corpus/certificates` has the outcome in the file beside it: used or refused, never a
//! panic.
//!
//! `UPDATE=1` writes the outcomes anew.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use certificates::authority::{Stored, renewed};
use certificates::material::{Material, Pem, Texts};
use fs_err as fs;
use jiff::Timestamp;
use report::Chain;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/certificates")
}

/// The valid texts, by the names of the roles that they have.
fn good() -> Texts {
    let pem = |place: &str, file: &str| Pem {
        place: place.to_owned(),
        text: fs::read(folder().join(file)).unwrap(),
    };
    Texts {
        cert: pem("tls.crt", "good.crt"),
        key: pem("tls.key", "good.key"),
        ca: pem("ca.crt", "good-ca.crt"),
    }
}

fn outcome(text: &[u8]) -> String {
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let mut said = String::new();
    for (place, change) in [
        (
            "certificate",
            (|texts: &mut Texts| &mut texts.cert) as fn(&mut Texts) -> &mut Pem,
        ),
        ("private key", |texts| &mut texts.key),
        ("authority", |texts| &mut texts.ca),
    ] {
        let mut texts = good();
        text.clone_into(&mut change(&mut texts).text);
        match Material::read(&texts, now) {
            Ok(material) => writeln!(said, "as {place}: used until {}", material.expires()).unwrap(),
            Err(error) => writeln!(said, "as {place}: {}", Chain(&error)).unwrap(),
        }
    }
    let text = String::from_utf8_lossy(text).into_owned();
    let stored = Stored {
        ca: text.clone(),
        ca_key: Some(text.clone()),
        cert: text.clone(),
        key: text,
    };
    let names = ["svc.ns.svc".to_owned()];
    let made = renewed(Some(&stored), &names, now).unwrap();
    let kept = if made.is_some() { "made anew" } else { "kept" };
    writeln!(said, "as all of our own: {kept}").unwrap();
    said
}

#[test]
fn every_text_has_its_outcome() {
    let mut paths: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pem"));
    paths.sort();
    assert!(paths.len() >= 30, "the corpus is there");
    let mut wrong = String::new();
    for path in paths {
        let now = outcome(&fs::read(&path).unwrap());
        let file = path.with_extension("outcome");
        if env::var_os("UPDATE").is_some() {
            fs::write(&file, &now).unwrap();
        }
        if now != fs::read_to_string(&file).unwrap_or_default() {
            writeln!(wrong, "{}:\n{now}", path.display()).unwrap();
        }
    }
    assert_eq!(wrong, "", "outcomes differ; UPDATE=1 writes them anew");
}
