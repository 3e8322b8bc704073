//! The campaign of kills: operator, helm, or both, at each write that helm makes and at random moments, over install,
//! upgrade and removal. After each the rest must heal alone, with nothing deleted that nobody asked to be deleted.
//!
//! `make campaign-kill SEED=N ROUNDS=N` plays many; the tests play a few. A seed plays the same kills again.
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
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use fs_err as fs;
use plan::Blow;
use tally::Tally;
use testbed::draw::Draw;
use testbed::part::Part;
use world::World;

/// How a run is played.
#[derive(Clone, Copy, Debug)]
struct Campaign {
    seed: u64,
    /// Kills in all.
    rounds: usize,
    /// All must be healed within this.
    patience: Duration,
}

impl Campaign {
    /// As the environment asks, otherwise a small one with a seed of its own.
    fn of_this_run() -> anyhow::Result<Self> {
        let asked = |name: &str| {
            let text = std::env::var_os(name)
                .and_then(|text| text.into_string().ok())
                .filter(|text| !text.is_empty());
            text.map(|text| {
                text.parse::<u64>()
                    .with_context(|| format!("{name} is no number: {text}"))
            })
            .transpose()
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let rounds = asked("CAMPAIGN_ROUNDS")?;
        Ok(Self {
            seed: asked("CAMPAIGN_SEED")?.unwrap_or(now % 1_000_000),
            rounds: usize::try_from(rounds.unwrap_or(12))?,
            // A test says that it heals, a campaign how fast.
            patience: Duration::from_secs(if rounds.is_some() { 30 } else { 120 }),
        })
    }

    /// One world's share of it.
    fn play(self, number: usize, helm: Part, rounds: usize) -> anyhow::Result<Tally> {
        let mut draw = Draw::new(self.seed ^ (number as u64 + 1) << 32);
        let mut world = World::build(helm, self.patience)?;
        let mut tally = Tally::default();
        for round in 0..rounds {
            let blow = Blow::draw(&mut draw, world.is_installed(), world.writes());
            let told = format!("seed {}, world {number} with {helm}, round {round}: {blow}", self.seed);
            let healed = world.strike(blow).with_context(|| told.clone());
            let healed = healed.inspect_err(|_| eprintln!("{}", world.evidence()))?;
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

/// Worlds that are played side by side; the first half of them with helm 3, the others with helm 4.
const WORLDS: usize = 2;

#[test]
fn whoever_is_killed_the_rest_heals_alone() {
    let campaign = Campaign::of_this_run().unwrap();
    let each = campaign.rounds.div_ceil(WORLDS);
    let played: Vec<anyhow::Result<Tally>> = thread::scope(|scope| {
        let worlds = (0..WORLDS).map(|number| {
            let helm = [Part::Helm3, Part::Helm4][number * 2 / WORLDS];
            scope.spawn(move || campaign.play(number, helm, each))
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
    if let Some(file) = std::env::var_os("CAMPAIGN_RESULTS") {
        let head = "# The campaign of kills, last run\n\nMade by `make campaign-kill`.";
        let text = format!(
            "{head}\n\nSeed {}: {times}. Releases met: {met}.\n\n{table}",
            campaign.seed
        );
        fs::write(file, text).unwrap();
    }
}
