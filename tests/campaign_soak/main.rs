//! The soak: many modules, one edit a second, hooks that fail at random, objects that are deleted at random, and an API
//! server that is killed in the middle. At the end the state is as the last edits want it, and nothing has leaked.
//!
//! `make soak SEED=N ROUNDS=N` runs it for this many seconds; the tests run a few.
#![expect(clippy::print_stderr, reason = "the harness shows it with a failure, or when asked")]

#[path = "../../examples/demo/cluster.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at other things")]
mod cluster;
mod figures;
#[path = "../../examples/demo/life.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows logs and ages")]
mod life;
#[path = "../../examples/demo/stage.rs"]
mod stage;
mod world;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use figures::Samples;
use testbed::campaign::Campaign;
use testbed::draw::Draw;
use testbed::plane::{ControlPlane, Options};
use testbed::wait::wait_until;
use world::{Size, World};

/// The time between two edits.
const BEAT: Duration = Duration::from_secs(1);
/// The number of edits between two measurements of the operator.
const LOOK_EVERY: usize = 5;
/// The largest allowed growth of memory from the first third to the last, in KiB.
const GROWTH: u64 = 5 * 1024;

/// The release build of the operator, beside that of the tests. Memory figures of a debug build mean nothing.
fn released() -> anyhow::Result<PathBuf> {
    let ours = Path::new(env!("CARGO_BIN_EXE_addon-operator"));
    let folder = ours.ancestors().nth(2).context("it lies two folders deep")?;
    let released = folder.join("release/addon-operator");
    ensure!(
        released.exists(),
        "`cargo build --release` makes {}",
        released.display()
    );
    Ok(released)
}

/// Edits for this many beats, and returns the measurements.
fn play(world: &mut World, draw: &mut Draw, beats: usize) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    let begun = Instant::now();
    for beat in 0..beats {
        let due = BEAT * u32::try_from(beat)?;
        wait_until(due + BEAT, "the next beat", || {
            Ok::<_, String>((begun.elapsed() >= due).then_some(()))
        })?;
        if beat == beats / 2 {
            world.restart_api_server()?;
        }
        world.edit(draw)?;
        if draw.below(4) == 0 {
            world.delete(draw)?;
        }
        if beat % LOOK_EVERY == 0 {
            samples.add(world.usage()?);
        }
    }
    Ok(samples)
}

fn soak(campaign: &Campaign) -> anyhow::Result<String> {
    let (beats, size, operator) = match campaign.rounds() {
        Some(rounds) => (rounds, Size::LARGE, released()?),
        None => (10, Size::SMALL, env!("CARGO_BIN_EXE_addon-operator").into()),
    };
    // The API server is killed, so the control plane is not shared.
    let plane = ControlPlane::start(&Options::default())?;
    let mut draw = Draw::new(campaign.seed);
    let mut world = World::build(&plane, size, operator)?;
    let before = world.quiet()?;
    eprintln!("seed {}, before: {before}", campaign.seed);
    let played = play(&mut world, &mut draw, beats);
    let samples = played.inspect_err(|_| eprintln!("{}", world.evidence()))?;
    let asked = Instant::now();
    world
        .settle(Duration::from_mins(10))
        .inspect_err(|_| eprintln!("{}", world.evidence()))?;
    let settled = asked.elapsed();
    let after = world
        .quiet_as(&before)
        .inspect_err(|_| eprintln!("{}", world.evidence()))?;
    eprintln!("seed {}, after: {after}", campaign.seed);
    let text = format!(
        "{}; all edits in force {:.1} s after the last one. {}\n\n{}",
        world.line(),
        settled.as_secs_f64(),
        samples.memory(),
        samples.table(&before, &after)
    );
    world.end()?;
    if campaign.rounds().is_some() {
        let growth = samples.growth();
        ensure!(growth <= GROWTH, "memory has grown by {growth} KiB:\n{text}");
    }
    Ok(text)
}

#[test]
fn after_a_long_time_all_is_in_force_and_nothing_has_leaked() {
    let campaign = Campaign::of_this_run().unwrap();
    let text = soak(&campaign).map_err(|error| format!("{error:#}")).unwrap();
    eprintln!("{text}");
    campaign.keep("soak", &text).unwrap();
}
