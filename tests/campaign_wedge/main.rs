//! The campaign of wedged releases: records of helm, kinds, fields and objects are damaged, and an upgrade, a removal,
//! a restart or the original operator follows. The release must leave its state by itself, or be held with a command that a person can run and
//! that ends it.
//!
//! `make campaign-wedge SEED=N ROUNDS=N` plays many rounds; the tests play a few. Equal seeds play equal rounds.
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
use plan::Deck;
use tally::Tally;
use testbed::campaign::Campaign;
use testbed::draw::Draw;
use testbed::part::Part;
use world::World;

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
struct Play {
    seed: u64,
    /// The time within which a state must be left, and again after the command of a person.
    bound: Duration,
}

impl Play {
    /// Plays the rounds of one world.
    fn world(self, number: usize, rounds: usize) -> anyhow::Result<Tally> {
        let helm = [Part::Helm3, Part::Helm4][number % 2];
        let mut draw = Draw::new(self.seed ^ (number as u64 + 1) << 32);
        let (mut deck, mut tally) = (Deck::default(), Tally::default());
        let mut world = World::build(helm, self.bound)?;
        for round in 0..rounds {
            let plan = deck.deal(&mut draw);
            let told = format!("seed {}, world {number} with {helm}, round {round}: {plan}", self.seed);
            let left = world.play(&plan).with_context(|| told.clone());
            let left = left.inspect_err(|error| eprintln!("{error:#}\n{}", world.evidence()))?;
            let (alone, helped) = (left.alone.as_secs_f64(), left.helped.map(|time| time.as_secs_f64()));
            eprintln!("{told}; {:?} needed, {alone:.1} s, then {helped:.1?} s", left.help);
            tally.add(left);
        }
        world.end()?;
        Ok(tally)
    }
}

#[test]
fn a_wedged_release_comes_free_alone_or_by_the_command_that_it_names() {
    const WORLDS: usize = 2;
    let campaign = Campaign::of_this_run().unwrap();
    // A test checks that the release comes free, a campaign also how fast.
    let bound = Duration::from_secs(if campaign.rounds().is_some() { 60 } else { 180 });
    let play = Play {
        seed: campaign.seed,
        bound,
    };
    let rounds = campaign.rounds().unwrap_or(2);
    let played: Vec<anyhow::Result<Tally>> = thread::scope(|scope| {
        let worlds = (0..WORLDS).map(|number| {
            let share = (rounds + WORLDS - 1 - number) / WORLDS;
            scope.spawn(move || play.world(number, share))
        });
        let worlds: Vec<_> = worlds.collect();
        worlds.into_iter().map(|world| world.join().unwrap()).collect()
    });
    let mut tally = Tally::default();
    for world in played {
        tally.merge(world.map_err(|error| format!("{error:#}")).unwrap());
    }
    let (summary, table) = (tally.summary(), tally.table());
    eprintln!("{table}\n{summary}");
    campaign.keep("wedge", &format!("{summary}.\n\n{table}")).unwrap();
}
