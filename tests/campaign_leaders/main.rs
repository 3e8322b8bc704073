//! The campaign of leaders: three replicas under load. The leader is killed, stopped, frozen, cut off or robbed of its
//! lease, while wall clocks jump. After each change another replica must lead, only one may act, and nothing may be
//! lost.
//!
//! `make campaign-leaders SEED=N ROUNDS=N` plays many rounds; the tests play a few. Equal seeds play equal rounds.
#![expect(clippy::print_stderr, reason = "the harness shows it with a failure, or when asked")]

mod clock;
#[path = "../../examples/demo/cluster.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at other things")]
mod cluster;
#[path = "../../examples/demo/life.rs"]
#[expect(dead_code, reason = "shared with the demo, which has one operator at a time")]
mod life;
mod plan;
mod replica;
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
use world::{Bounds, World};

/// The duration of a lease in seconds. A shorter lease makes a world faster, but a busy machine loses one that is too
/// short.
const LEASE: u64 = 10;

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
struct Play {
    seed: u64,
    bounds: Bounds,
}

impl Play {
    /// Plays the rounds of one world.
    fn world(self, number: usize, rounds: usize) -> anyhow::Result<Tally> {
        let helm = [Part::Helm3, Part::Helm4][number % 2];
        let mut draw = Draw::new(self.seed ^ (number as u64 + 1) << 32);
        let mut world = World::build(helm, self.bounds, draw.clone())?;
        let mut tally = Tally::default();
        for round in 0..rounds {
            let blow = Blow::draw(&mut draw);
            let told = format!("seed {}, world {number} with {helm}, round {round}: {blow}", self.seed);
            let outcome = world.strike(blow).with_context(|| told.clone());
            let outcome = outcome.inspect_err(|error| eprintln!("{error:#}\n{}", world.evidence()))?;
            eprintln!("{told}; {outcome}");
            tally.add(blow.way, outcome);
        }
        world.end()?;
        Ok(tally)
    }
}

#[test]
fn whoever_loses_the_lease_one_leads_and_nothing_is_lost() {
    let campaign = Campaign::of_this_run().unwrap();
    // A test checks that another replica leads, a campaign also how soon.
    let (worlds, leads, settles) = if campaign.rounds().is_some() {
        (4, 2 * LEASE + 5, 90)
    } else {
        (3, 120, 120)
    };
    let [leads, settles] = [leads, settles].map(Duration::from_secs);
    let bounds = Bounds { leads, settles };
    let each = campaign.rounds().unwrap_or(3).div_ceil(worlds);
    let play = Play {
        seed: campaign.seed,
        bounds,
    };
    let played: Vec<anyhow::Result<Tally>> = thread::scope(|scope| {
        let started: Vec<_> = (0..worlds)
            .map(|number| scope.spawn(move || play.world(number, each)))
            .collect();
        started.into_iter().map(|world| world.join().unwrap()).collect()
    });
    let mut tally = Tally::default();
    for world in played {
        tally.merge(world.map_err(|error| format!("{error:#}")).unwrap());
    }
    let text = format!(
        "{}. A lease lasts {LEASE} s; bounds: another leads within {} s, all is as it should be within {} s.\n\n{}",
        tally.line(),
        bounds.leads.as_secs(),
        bounds.settles.as_secs(),
        tally.table()
    );
    eprintln!("{text}");
    campaign.keep("leaders", &text).unwrap();
}
