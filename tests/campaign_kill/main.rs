//! The campaign of kills: the operator, helm or both are killed at each write of helm and at random moments, during
//! install, upgrade and removal. After each kill the system must recover by itself and delete nothing that no one asked
//! to be deleted.
//!
//! `make campaign-kill SEED=N ROUNDS=N` plays many kills; the tests play a few. Equal seeds play equal kills.
#![expect(clippy::print_stderr, reason = "the harness shows it with a failure, or when asked")]

#[path = "../../examples/demo/cluster.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at other things")]
mod cluster;
#[path = "../../examples/demo/life.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows logs and ages")]
mod life;
mod plan;
#[path = "../../examples/demo/stage.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at probes")]
mod stage;
mod tally;
mod world;

use std::thread;
use std::time::Duration;

use anyhow::Context;
use plan::Blow;
use tally::Tally;
use testbed::campaign::Campaign;
use testbed::draw::Draw;
use testbed::part::Part;
use world::World;

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
struct Play {
    seed: u64,
    /// The time within which the state must be as it should be.
    patience: Duration,
}

impl Play {
    /// Plays the kills of one world.
    fn world(self, number: usize, helm: Part, rounds: usize) -> anyhow::Result<Tally> {
        let mut draw = Draw::new(self.seed ^ (number as u64 + 1) << 32);
        let mut world = World::build(helm, self.patience)?;
        let mut tally = Tally::default();
        for round in 0..rounds {
            let blow = Blow::draw(&mut draw, world.is_installed(), world.writes());
            let told = format!("seed {}, world {number} with {helm}, round {round}: {blow}", self.seed);
            let healed = world.strike(blow).with_context(|| told.clone());
            let healed = healed.inspect_err(|error| eprintln!("{error:#}\n{}", world.evidence()))?;
            eprintln!(
                "{told}; left {}, healed after {:.1} s",
                healed.left,
                healed.took.as_secs_f64()
            );
            tally.add(healed);
        }
        world.end()?;
        Ok(tally)
    }
}

/// The number of worlds that are played at the same time: half of them with helm 3, half with helm 4.
fn worlds(campaign: &Campaign) -> usize {
    if campaign.rounds().is_some() { 4 } else { 2 }
}

#[test]
fn whoever_is_killed_the_rest_heals_alone() {
    let campaign = Campaign::of_this_run().unwrap();
    // A test checks that the system recovers, a campaign also how fast.
    let patience = Duration::from_secs(if campaign.rounds().is_some() { 30 } else { 120 });
    let worlds = worlds(&campaign);
    let each = campaign.rounds().unwrap_or(10).div_ceil(worlds);
    let play = Play {
        seed: campaign.seed,
        patience,
    };
    let played: Vec<anyhow::Result<Tally>> = thread::scope(|scope| {
        let worlds = (0..worlds).map(|number| {
            let helm = [Part::Helm3, Part::Helm4][number % 2];
            scope.spawn(move || play.world(number, helm, each))
        });
        let worlds: Vec<_> = worlds.collect();
        worlds.into_iter().map(|world| world.join().unwrap()).collect()
    });
    let mut tally = Tally::default();
    for world in played {
        tally.merge(world.map_err(|error| format!("{error:#}")).unwrap());
    }
    let (table, times) = (tally.table(), tally.times());
    let hits =
        ["pending-install", "pending-upgrade", "uninstalling"].map(|state| format!("{} {state}", tally.hits(state)));
    let met = hits.join(", ");
    eprintln!("{table}\n{times}\nreleases met: {met}");
    let text = format!("{times}. Releases met: {met}.\n\n{table}");
    campaign.keep("kill", &text).unwrap();
}
