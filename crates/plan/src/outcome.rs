//! The outcomes of the jobs that a preview leaves to the asker, and their answers for the plan.
//!
//! Must never do a job that changes anything.

use std::collections::{BTreeMap, VecDeque};

use addon_core::failure::Failure;
use addon_core::operator::effect::Job;
use addon_core::operator::event::{CrdObstacle, Finished, HookRan};
use addon_core::operator::policy::OnTrial;
use futures::future::join_all;
use names::{HookId, ModuleName};
use releases::crds::Foreseen;

use crate::world::World;

/// The answers that a preview got on its way.
#[derive(Default)]
pub(crate) struct Foresight {
    /// The patches of objects that tried hooks ask for, a line each. A hook that was not tried has no entry.
    pub(crate) patches: BTreeMap<HookId, Vec<String>>,
    /// The changes of the CRDs of modules, one for each time that they are ensured.
    pub(crate) crds: BTreeMap<ModuleName, VecDeque<Foreseen>>,
}

impl Foresight {
    /// The outcome of a job.
    pub(crate) async fn outcome(&mut self, world: &dyn World, job: Job) -> Finished {
        match job {
            Job::RunHook(run, ticket) => {
                let hook = run.hook.clone();
                let ran = world.try_out(run).await.map(|tried| match tried {
                    Some(tried) => {
                        self.patches.insert(hook, tried.patches);
                        tried.ran
                    }
                    None => HookRan::default(),
                });
                Finished::HookRan(ticket, ran)
            }
            Job::EnsureCrds {
                modules,
                on_trial,
                ticket,
            } => Finished::CrdsEnsured(ticket, Ok(self.obstacles(world, modules, on_trial).await)),
            job => world.ask(job).await,
        }
    }

    /// Foresees the changes of CRDs. Returns the modules that would not go on.
    async fn obstacles(
        &mut self,
        world: &dyn World,
        modules: Vec<ModuleName>,
        on_trial: OnTrial,
    ) -> BTreeMap<ModuleName, CrdObstacle> {
        let foreseen = join_all(modules.iter().map(|module| world.foresee_crds(module, on_trial))).await;
        let mut obstacles = BTreeMap::new();
        for (module, foreseen) in modules.into_iter().zip(foreseen) {
            let foreseen = foreseen.unwrap_or_else(failed);
            obstacles.extend(foreseen.obstacle.clone().map(|obstacle| (module.clone(), obstacle)));
            self.crds.entry(module).or_default().push_back(foreseen);
        }
        obstacles
    }
}

fn failed(failure: Failure) -> Foreseen {
    Foreseen {
        obstacle: Some(CrdObstacle::Failed(failure)),
        ..Foreseen::default()
    }
}
