//! The campaign of faults between operator, helm and API server. People keep editing while faults last. After the
//! faults the cluster must reach the same state as without them.
//!
//! `make campaign-faults SEED=N ROUNDS=N` plays many rounds; the tests play a few. Equal seeds draw equal rounds.
#![expect(clippy::print_stderr, reason = "the harness shows it with a failure, or when asked")]

#[path = "../../examples/demo/cluster.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at other things")]
mod cluster;
#[path = "../../examples/demo/life.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows logs and ages")]
mod life;
#[path = "../../examples/demo/metrics.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows metrics")]
mod metrics;
mod plan;
#[path = "../../examples/demo/stage.rs"]
mod stage;
mod tally;
mod world;

use std::thread;
use std::time::Duration;

use anyhow::Context;
use plan::{Outage, Plan};
use tally::Tally;
use testbed::campaign::Campaign;
use testbed::draw::Draw;
use testbed::part::Part;
use testbed::plane::{ControlPlane, Options};
use testbed::shared;
use world::World;

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
struct Play {
    seed: u64,
    /// The time from the end of the last fault within which the state must be as without faults.
    bound: Duration,
}

/// The control plane of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// The control plane that all tests share, which must not be harmed.
    Shared,
    /// A control plane of the world's own, which is restarted and restored from backups.
    Own,
}

impl Play {
    /// Plays the rounds of one world.
    fn world(self, number: usize, ground: Ground, rounds: usize) -> anyhow::Result<Tally> {
        let helm = [Part::Helm3, Part::Helm4][number % 2];
        match ground {
            Ground::Shared => {
                let world = World::build(shared::plane(), helm)?;
                self.rounds(number, world, rounds, |draw, _| Plan::draw(draw))
            }
            Ground::Own => {
                let plane = ControlPlane::start(&Options::default())?;
                let outage = |round| Outage::ALL[round % Outage::ALL.len()];
                let plan = |draw: &mut Draw, round| Plan::draw_with(outage(round), draw);
                self.rounds(number, World::build(&plane, helm)?, rounds, plan)
            }
        }
    }

    fn rounds(
        self,
        number: usize,
        mut world: World<'_>,
        rounds: usize,
        plan: impl Fn(&mut Draw, usize) -> Plan,
    ) -> anyhow::Result<Tally> {
        let mut draw = Draw::new(self.seed ^ (number as u64 + 1) << 32);
        let mut tally = Tally::default();
        for round in 0..rounds {
            let plan = plan(&mut draw, round);
            let told = format!("seed {}, world {number}, round {round}: {plan}", self.seed);
            let healed = world.play(plan, self.bound).with_context(|| told.clone());
            let healed = healed.inspect_err(|error| eprintln!("{error:#}\n{}", world.evidence()))?;
            let word = if healed.deposed { ", lease lost" } else { "" };
            eprintln!(
                "{told}; {} hits{word}, healed after {:.1} s",
                healed.hits,
                healed.took.as_secs_f64()
            );
            tally.add(healed);
        }
        world.end()?;
        Ok(tally)
    }
}

/// The number of rounds of each world. The last world has a control plane of its own and gets every tenth round.
fn shares(rounds: Option<usize>) -> Vec<(Ground, usize)> {
    let (worlds, shared, own) = match rounds {
        Some(rounds) => (6, (rounds - rounds / 10).div_ceil(6), rounds / 10),
        None => (3, 1, 1),
    };
    let mut shares = vec![(Ground::Shared, shared); worlds];
    if own > 0 {
        shares.push((Ground::Own, own));
    }
    shares
}

#[test]
fn whatever_comes_between_it_comes_to_the_same_end() {
    let campaign = Campaign::of_this_run().unwrap();
    // A test checks that the operator recovers, a campaign also how fast.
    let bound = Duration::from_secs(if campaign.rounds().is_some() { 60 } else { 180 });
    let play = Play {
        seed: campaign.seed,
        bound,
    };
    let played: Vec<anyhow::Result<Tally>> = thread::scope(|scope| {
        let worlds = shares(campaign.rounds()).into_iter().enumerate();
        let worlds = worlds.map(|(number, (ground, rounds))| scope.spawn(move || play.world(number, ground, rounds)));
        let worlds: Vec<_> = worlds.collect();
        worlds.into_iter().map(|world| world.join().unwrap()).collect()
    });
    let mut tally = Tally::default();
    for world in played {
        tally.merge(world.map_err(|error| format!("{error:#}")).unwrap());
    }
    let (summary, table, histogram) = (tally.summary(bound), tally.table(), tally.histogram());
    eprintln!("{table}\n{histogram}\n{summary}");
    let text = format!("{summary}.\n\n{table}\n{histogram}");
    campaign.keep("faults", &text).unwrap();
}
