//! A kill at a given moment, and the state right after it.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::process;
use testbed::proxy::Trap;
use testbed::wait::wait_until;

use super::World;
use super::look::revisions;
use crate::life;
use crate::plan::{Blow, Moment, Victim};

/// The state right after a kill.
pub(super) struct Scene {
    /// The statuses of the vault's revisions, by number.
    pub(super) revisions: BTreeMap<u32, String>,
    pub(super) missed: bool,
}

impl Scene {
    pub(super) fn left(&self) -> String {
        let newest = self.revisions.last_key_value();
        newest.map_or_else(|| "none".to_owned(), |(_, status)| status.clone())
    }
}

/// A kill that has been prepared.
pub(super) struct Ambush {
    told: Receiver<anyhow::Result<Scene>>,
}

impl Ambush {
    /// Returns after the kill, or when the moment was missed.
    pub(super) fn meet(self, world: &mut World, blow: Blow) -> anyhow::Result<Scene> {
        let scene = wait_until(world.patience, "the moment of the kill", || {
            match self.told.try_recv() {
                Ok(scene) => Ok(Some(Some(scene))),
                // Either the change is complete and helm made fewer writes than expected, or the kill happens right
                // now.
                Err(_) => world.look().map(|()| Some(None)),
            }
        })?;
        let scene = match scene {
            Some(scene) => scene,
            // A trap that was missed must not spring in the next round.
            None if world.proxy.disarm() => {
                return Ok(Scene {
                    revisions: revisions(&world.objects()?)?,
                    missed: true,
                });
            }
            None => self.told.recv_timeout(world.patience).context("a blow that falls")?,
        };
        if blow.victim.ends_the_life() {
            world.life.take().context("it was alive")?.kill()?;
            let gone = || {
                let left = world.stage.children();
                if left.is_empty() {
                    Ok(Some(()))
                } else {
                    Err(format!("{left:?}"))
                }
            };
            wait_until(
                Duration::from_secs(10),
                "the end of what a killed operator had started",
                gone,
            )?;
        }
        scene
    }
}

impl World {
    /// Prepares the kill, and asks for the change.
    pub(super) fn set(&mut self, blow: &Blow) -> anyhow::Result<Ambush> {
        let (tell, told) = mpsc::channel();
        let deed = self.deed(blow.victim)?;
        let mut deed = Some(move || {
            let _ = tell.send(deed());
        });
        match blow.moment {
            Moment::Write(nth, side) => {
                let deed = Box::new(deed.take().context("it is done once")?);
                self.proxy.trap(Trap {
                    agent: "Helm/",
                    nth,
                    side,
                    deed,
                });
                self.ask_for(blow.phase)?;
            }
            Moment::After(delay) => {
                self.proxy.count("Helm/");
                self.ask_for(blow.phase)?;
                let begun = Instant::now();
                wait_until(delay + Duration::from_secs(5), "a moment", || {
                    Ok::<_, String>((begun.elapsed() >= delay).then_some(()))
                })?;
                deed.take().context("it is done once")?();
            }
        }
        Ok(Ambush { told })
    }

    /// The action of the trap: kills the victim and reads the state right after it. The state includes what was killed.
    fn deed(&self, victim: Victim) -> anyhow::Result<impl FnOnce() -> anyhow::Result<Scene> + Send + 'static> {
        let operator = self.life.as_ref().context("an operator runs before each blow")?.id();
        let (objects, mark) = (self.objects()?, self.stage.tmp());
        Ok(move || {
            if victim.ends_the_life() {
                process::signal(operator, libc::SIGKILL);
            }
            let is_helm = |line: &str| {
                [" upgrade vault", " uninstall vault"]
                    .iter()
                    .any(|part| line.contains(part))
            };
            let helms: Vec<u32> = life::marked(&mark)
                .into_iter()
                .filter(|(id, line)| *id != operator && is_helm(line))
                .map(|(id, _)| id)
                .collect();
            if victim != Victim::Operator {
                for helm in &helms {
                    process::signal(*helm, libc::SIGKILL);
                }
            }
            Ok(Scene {
                revisions: revisions(&objects)?,
                missed: helms.is_empty() && victim == Victim::Helm,
            })
        })
    }
}
