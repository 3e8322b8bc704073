//! Sources and files of the operator are missing, empty, truncated, unreadable or late, alone and in pairs, at its
//! start and while it runs. It must delete nothing. When all sources are back, the releases and their objects must be
//! the same as before.
//!
//! `make campaign-absence` draws `ROUNDS` rounds from `SEED`. The test plays a few fixed rounds.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]
#![expect(clippy::print_stderr, reason = "the harness shows it with a failure, or when asked")]

mod draw;
pub(super) mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use testbed::campaign::Campaign;
use testbed::draw::Draw;

use draw::{Case, Harm, Moment, Thing};
use world::World;

/// The result of a round.
#[derive(Debug)]
struct Round {
    case: Case,
    outcome: Result<(), String>,
}

/// Plays the cases one after another in the same world.
fn play(prefix: &str, cases: Vec<Case>) -> Vec<Round> {
    let mut world = World::build(prefix);
    let mut rounds = Vec::new();
    for (number, case) in cases.into_iter().enumerate() {
        let outcome = world.play(&case);
        let word = outcome.as_ref().err().map_or("nothing was deleted", String::as_str);
        eprintln!("round {number}: {case}: {word}");
        rounds.push(Round { case, outcome });
    }
    rounds
}

/// A table: how often each harm was done to each thing, and in how many of these rounds an object was deleted.
fn histogram(rounds: &[Round]) -> String {
    let mut counts: BTreeMap<(Thing, Harm), (u32, u32)> = BTreeMap::new();
    for Round { case, outcome } in rounds {
        for harmed in &case.harms {
            let count = counts.entry(*harmed).or_default();
            count.0 += 1;
            count.1 += u32::from(outcome.is_err());
        }
    }
    let mut text = "| what | how | rounds | with a loss |\n|---|---|---|---|\n".to_owned();
    for ((thing, harm), (played, lost)) in counts {
        writeln!(text, "| {thing} | {harm} | {played} | {lost} |").unwrap();
    }
    text
}

fn losses(rounds: &[Round]) -> String {
    let lost = rounds.iter().filter_map(|Round { case, outcome }| {
        let what = outcome.as_ref().err()?;
        Some(format!("- {case}: {}\n", what.trim().replace('\n', "; ")))
    });
    lost.collect()
}

#[test]
fn what_is_absent_removes_nothing() {
    let alone = |thing, harm, moment| Case {
        harms: vec![(thing, harm)],
        moment,
    };
    let cases = vec![
        alone(Thing::ValuesFile, Harm::Missing, Moment::AtStart),
        alone(Thing::ModuleDirs, Harm::Unreadable, Moment::AtStart),
        Case {
            harms: vec![(Thing::ValuesFile, Harm::Empty), (Thing::ConfigMap, Harm::Missing)],
            moment: Moment::Running,
        },
    ];
    let rounds = play("absence", cases);
    assert_eq!(losses(&rounds), "", "{}", histogram(&rounds));
}

/// The number of worlds that are played at the same time.
const WORLDS: usize = 5;

/// Only on request: a round takes about ten seconds.
#[test]
fn campaign() {
    let campaign = Campaign::of_this_run().unwrap();
    let Some(rounds) = campaign.rounds() else { return };
    let seed = campaign.seed;
    eprintln!("SEED={seed} ROUNDS={rounds}");
    let mut cases = draw::cases(&mut Draw::new(seed), rounds);
    let each = cases.len().div_ceil(WORLDS).max(1);
    let mut shares = Vec::new();
    while !cases.is_empty() {
        shares.push(cases.split_off(cases.len().saturating_sub(each)));
    }
    let rounds: Vec<Round> = thread::scope(|scope| {
        let worlds = shares
            .into_iter()
            .map(|cases| scope.spawn(|| play("campaign-absence", cases)));
        let worlds: Vec<_> = worlds.collect();
        worlds.into_iter().flat_map(|world| world.join().unwrap()).collect()
    });
    let (losses, table) = (losses(&rounds), histogram(&rounds));
    let lost = if losses.is_empty() { "none\n" } else { losses.as_str() };
    let text = format!("{table}\nRounds in which something was deleted or made anew:\n\n{lost}");
    eprintln!("{text}");
    campaign.keep("absence", &text).unwrap();
    assert_eq!(losses, "", "SEED={seed}");
}
