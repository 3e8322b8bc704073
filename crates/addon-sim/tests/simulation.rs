//! Cases that once failed, and half a minute of new ones.
//!
//! `SIM_SEED` and `SIM_SECONDS` choose other ones; without them every run looks at the same seeds, as far as it comes.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use addon_sim::generate;
use addon_sim::run::{Case, run};
use addon_sim::shrink::shrink;

/// The most actions in one case.
const ACTIONS: usize = 24;

#[expect(clippy::disallowed_methods, reason = "a test reads its own settings")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn what_once_failed_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());
    let mut failed = Vec::new();
    for file in files {
        let case: Case = serde_json::from_reader(File::open(&file).unwrap()).unwrap();
        if let Some(violation) = run(&case, false).violation {
            failed.push(format!(
                "{} violates {}: {}",
                file.display(),
                violation.invariant,
                violation.text
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn random_histories_hold() {
    let (seed, seconds) = (setting("SIM_SEED", 1), setting("SIM_SECONDS", 30));
    println!("from seed {seed} for {seconds} s");
    let began = Instant::now();
    let mut cases = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        let case = generate::case(seed + cases, ACTIONS);
        cases += 1;
        let Some(violation) = run(&case, false).violation else {
            continue;
        };
        let small = shrink(&case, violation.invariant, Duration::from_secs(20));
        let small = serde_json::to_string_pretty(&small).unwrap();
        panic!(
            "seed {} violates {}: {}\n{small}",
            case.seed, violation.invariant, violation.text
        );
    }
    assert!(cases > 0);
    println!("{cases} cases");
}

#[test]
fn a_run_is_its_case() {
    for seed in 1..20 {
        let case = generate::case(seed, ACTIONS);
        let (one, other) = (run(&case, true), run(&case, true));
        assert_eq!(format!("{:?}", one.log), format!("{:?}", other.log), "seed {seed}");
    }
}
