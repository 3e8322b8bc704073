//! Starts the effects of the operator: jobs begin, and actions that waited for them happen.

use addon_core::operator::effect::{Effect, Job};

use super::{Due, Run};
use crate::life::Running;

/// The deadline of an enabled script, in milliseconds.
const SCRIPT_DEADLINE: u64 = 60_000;

/// The deadline of helm, in milliseconds.
const HELM_DEADLINE: u64 = 1_200_000;

impl Run<'_> {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::StartJob(job) => self.start(job),
            Effect::CancelJob(id) => {
                if let Some(running) = self.life.running.get_mut(&id) {
                    running.cancelled = true;
                    self.plan(50, Due::Ends(id));
                }
            }
            Effect::JudgeFiles(module, edition, verdict) => self.judged(module.as_str(), edition, &verdict),
            Effect::Tell(_) | Effect::Reply(..) | Effect::TakeUpFiles(..) => {}
            Effect::StopMonitors(ids) => self.life.monitors.stop(&ids),
            Effect::Exit | Effect::GiveUp(_) => self.life.exited = true,
        }
    }

    fn start(&mut self, job: Job) {
        let id = job.id();
        self.note_deed(&job);
        let mut millis = self.world.duration(&job, self.life.number);
        let mut late = false;
        let most = match &job {
            Job::RunHook(run, _) => u64::try_from(run.deadline.as_millis()).ok(),
            Job::RunEnabledScript { .. } => Some(SCRIPT_DEADLINE),
            Job::SyncRelease { .. } | Job::DeleteRelease { .. } => Some(HELM_DEADLINE),
            _ => None,
        };
        if let Some(most) = most {
            late = millis > most;
            millis = millis.min(most);
        }
        self.spring(&job, millis);
        if let Job::SaveConfig { .. } = &job {
            self.life.told.save_begins(id);
        }
        match &job {
            Job::SaveConfig { .. } | Job::SaveState { .. } | Job::StartMonitors { .. } => {
                self.plan(millis / 2, Due::Writes(id));
            }
            Job::WatchReleases { expected, .. } => {
                let expected = expected.iter().map(ToString::to_string).collect();
                self.list_releases(expected);
            }
            Job::RunHook(..) => {
                let reads = self.world.dice("reads").between(0, millis + 1);
                self.plan(reads, Due::Reads(id));
            }
            _ => {}
        }
        let running = Running {
            job,
            cancelled: false,
            late,
            warms: !self.life.leads,
            read: None,
            finished: None,
        };
        self.life.running.insert(id, running);
        self.plan(millis, Due::Ends(id));
    }

    /// Plays an action that waited for a job of this kind, while the job is running.
    fn spring(&mut self, job: &Job, millis: u64) {
        let (what, action) = match job {
            Job::RunHook(run, _) if run.labels.cause.key() == "beforeAll" => ("ambush", self.ambushes.pop_front()),
            Job::SaveConfig { .. } => ("meddle", self.meddlers.pop_front()),
            _ => return,
        };
        if let Some(action) = action {
            let delay = self.world.dice(what).between(0, millis + 1);
            self.plan(delay, Due::Acts(action));
        }
    }
}
