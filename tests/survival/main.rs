//! The promise that after a `kill -9` at any moment the next start can finish without help.
//!
//! Twenty kills at moments drawn from a seed: a number of requests after a start, an edit, or an event such as a
//! pending release, a saved section or a begun deletion. `SURVIVAL_SEED=N` plays the kills of seed N again.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]
#![expect(clippy::print_stderr, reason = "the harness shows it with a failure, or when asked")]

#[path = "../../examples/demo/cluster.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at other things")]
mod cluster;
#[path = "../../examples/demo/life.rs"]
#[expect(dead_code, reason = "shared with the demo, which shows logs and ages")]
mod life;
#[path = "../../examples/demo/modules.rs"]
#[expect(dead_code, reason = "shared with the demo, whose crowd is larger")]
mod modules;
mod moment;
mod plan;
#[path = "../../examples/demo/stage.rs"]
#[expect(dead_code, reason = "shared with the demo, which looks at probes")]
mod stage;
mod world;

use plan::{ROUNDS, Seed};
use testbed::part::Part;
use world::World;

/// Kills an operator once during the first installation, and then in each round of its world. Every second world has
/// helm 4.
fn survive(number: usize) {
    let seed = Seed::of_this_run();
    let helm = [Part::Helm3, Part::Helm4][number % 2];
    let mut world = World::build(helm);
    for (round, kill) in seed.kills(number).into_iter().enumerate() {
        let told = format!("SURVIVAL_SEED={seed}, world {number} with {helm}, round {round}: {kill}");
        let died = world.kill(&kill).map_err(|error| format!("{told}: {error:#}")).unwrap();
        eprintln!("{told}; {died}");
        world
            .recover(&kill)
            .map_err(|error| format!("{told}; {died}: {error:#}"))
            .unwrap();
    }
    world.end().unwrap();
}

// Independent worlds, so that their tests can run at the same time.

#[test]
fn the_first_world_survives() {
    survive(0);
}

#[test]
fn the_second_world_survives() {
    survive(1);
}

#[test]
fn the_third_world_survives() {
    survive(2);
}

#[test]
fn the_fourth_world_survives() {
    survive(3);
}

#[test]
fn there_are_twenty_kills_of_every_kind() {
    for seed in 0..50 {
        let kills: Vec<_> = (0..4).flat_map(|world| Seed(seed).kills(world)).collect();
        assert_eq!(kills.len(), 20);
        assert_eq!(kills.len(), 4 * ROUNDS);
        for action in plan::Action::ALL {
            assert!(
                kills.iter().any(|kill| kill.action == action),
                "seed {seed} never does {action:?}"
            );
        }
    }
}
