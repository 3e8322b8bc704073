//! The watch of a judge over a version on trial, and the ruling that follows from it.
//!
//! All times are measured by the judge's own clock, from one observation to the next. Must never count a time in which
//! the judge got no answer from the API server, nor compare the clocks of two pods.

use std::time::Duration;

use clock::Tick;
use jiff::Timestamp;

use super::health::Ailing;
use super::record::{Failures, Ruling, Trial};
use super::sight::{Glance, LeaseSight, PodState, TrialPod};
use super::words::Words;

/// The time for which a pod has to be ready before the lease is handed to it.
pub const SETTLED: Duration = Duration::from_secs(10);
/// The time for which a version has to lead after its first converge to pass.
pub const PROBATION: Duration = Duration::from_mins(1);
/// The longest time between two reports of a version.
pub const SILENCE: Duration = Duration::from_mins(1);
/// The time for which a pod may lack a node or an image.
pub const HINDERED: Duration = Duration::from_mins(2);
/// The longest time between two observations of one watch. After a longer time the watch begins anew.
pub const GAP: Duration = Duration::from_secs(30);
/// The time after a change of the lease in which reports do not count, because they may have been sent before the
/// change.
const LATE: Duration = Duration::from_secs(10);
/// A trial fails after this number of container restarts. Restarts after the lease had run out do not count.
const RESTARTS: u32 = 2;
/// A trial fails if a subject that did not fail before the trial has this number of failures in a row.
const FAILURES: Failures = Failures::InARow(3);
/// A trial ends after this number of lost pods, or after its version has lost the lead this number of times.
pub const LOSSES: u32 = 3;

/// The watch of a judge over one trial.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    /// The time at which the trial began, which identifies it.
    begun: Timestamp,
    /// The time of the last observation.
    heard: Tick,
    pod: Option<PodWatch>,
    /// The time for which the API server did not answer, if that disturbed the version on trial.
    away: Option<Duration>,
}

/// The observations of one pod of the trial, on which its verdict depends.
#[derive(Debug, Clone)]
struct PodWatch {
    uid: String,
    restarts: u32,
    /// The number of restarts after the lease had run out. These are no fault of the version: a busy node delays
    /// renewals. A version that itself delays renewals loses the lease too often to pass.
    overdue: u32,
    state: PodState,
    /// The time since which the pod has been ready. `unready` is the time since which it has been neither ready nor
    /// hindered.
    ready: Option<Tick>,
    unready: Option<Tick>,
    /// The time since which the pod has had no node or no image.
    hindered: Option<Tick>,
    /// The time since which the pod has led without a break.
    leads: Option<Tick>,
    /// The time since which the lease has been available to the pod: the pod leads, or its version is entitled.
    charged: Option<Tick>,
    /// The time at which the pod was first seen to lead.
    led_first: Option<Tick>,
    /// The last report; `said` is the time at which this watch first saw it.
    words: Option<Words>,
    said: Option<Tick>,
    /// The latest of three times: the last report, the beginning of the watch, and `charged`.
    spoke: Tick,
    /// The end of the pod's first converge by its own clock, and the time at which this watch first saw it.
    converged: Option<(Timestamp, Tick)>,
    /// The time since which the pod has led, ready and converged, without a new failure.
    clean: Option<Tick>,
}

impl Watch {
    /// Begins a watch with the first observation of the trial.
    pub(super) fn begin(glance: Glance<'_>) -> Self {
        Self {
            begun: glance.trial.begun,
            heard: glance.heard,
            pod: glance.pod.map(|pod| PodWatch::begin(pod, glance)),
            away: None,
        }
    }

    /// Continues the watch. It begins anew if the observation is of another trial or older than the last one, or if the
    /// gap is too long.
    pub(super) fn go_on(self, glance: Glance<'_>) -> Self {
        if self.begun != glance.trial.begun || glance.heard < self.heard {
            return Self::begin(glance);
        }
        let gap = glance.heard.since(self.heard);
        if gap > GAP {
            let has_suffered = match (&self.pod, glance.pod) {
                (Some(before), Some(now)) => before.has_suffered(now, glance.lease),
                (Some(_) | None, None) | (None, Some(_)) => false,
            };
            return Self {
                away: if has_suffered { Some(gap) } else { self.away },
                ..Self::begin(glance)
            };
        }
        let pod = glance.pod.map(|pod| match self.pod {
            Some(watched) if watched.uid == pod.uid => watched.go_on(pod, glance),
            Some(_) | None => PodWatch::begin(pod, glance),
        });
        Self {
            heard: glance.heard,
            pod,
            ..self
        }
    }

    /// Whether the pod has been ready for long enough to lead.
    pub(super) fn is_settled(&self) -> bool {
        let ready = self.pod.as_ref().and_then(|pod| pod.ready);
        ready.is_some_and(|ready| self.heard.since(ready) >= SETTLED)
    }

    /// Whether the pod has reported although it did not take the lease. A report counts only some time after the lease
    /// became available to the pod, and some time after this replica began to lead (`leads`).
    pub(super) fn has_spoken_without_the_lease(&self, leads: Tick) -> bool {
        self.pod.as_ref().is_some_and(|pod| {
            let since = pod.charged.map(|charged| charged.max(leads) + LATE);
            pod.said.zip(since).is_some_and(|(said, since)| said > since)
        })
    }

    /// The time at which the next ruling may be due by time alone.
    pub(super) fn due(&self, limit: Duration) -> Option<Tick> {
        let pod = self.pod.as_ref()?;
        let ends = [
            pod.ready.filter(|_| pod.charged.is_none()).map(|tick| tick + SETTLED),
            pod.unready.map(|tick| tick + limit),
            pod.hindered.map(|tick| tick + HINDERED),
            pod.charged.map(|_| pod.spoke + SILENCE),
            pod.led_first.map(|tick| tick + limit),
            pod.clean.map(|tick| tick + PROBATION),
        ];
        ends.into_iter().flatten().filter(|tick| *tick > self.heard).min()
    }

    /// The time for which the version still has to lead before it passes.
    pub(super) fn left(&self) -> Option<Duration> {
        let clean = self.pod.as_ref()?.clean?;
        Some(PROBATION.saturating_sub(self.heard.since(clean)))
    }

    /// The worst new failure, or the module that is not healthy any more, in a few words.
    pub(super) fn trouble(&self) -> Option<String> {
        let pod = self.pod.as_ref()?;
        let failing = pod
            .worst()
            .map(|(subject, _)| format!("{subject} fails, and did not before"));
        let hindered = || Some(format!("the cluster hinders {}", pod.hindered()?));
        failing.or_else(hindered).or_else(|| pod.ailing()?.trouble())
    }

    /// The ruling by the last observation, and its reason as a sentence; `None` while the trial goes on.
    pub(super) fn ruling(&self, trial: &Trial) -> Option<(Ruling, String)> {
        if let Some(away) = self.away {
            let why = format!(
                "the API server was away for {} s, and it has suffered from that",
                away.as_secs()
            );
            return Some((Ruling::Unclear, why));
        }
        if trial.lost >= LOSSES {
            return Some((Ruling::Unclear, format!("its pod was lost {} times", trial.lost)));
        }
        let pod = self.pod.as_ref()?;
        let failed = pod.failure(self.heard, trial.limit);
        let failed = failed.map(|why| (Ruling::Failed, why));
        failed
            .or_else(|| pod.hindrance(self.heard))
            .or_else(|| pod.end(self.heard, trial.limit))
    }
}

impl PodWatch {
    fn begin(pod: &TrialPod, glance: Glance<'_>) -> Self {
        let watch = Self {
            uid: pod.uid.clone(),
            restarts: pod.restarts,
            overdue: u32::from(pod.was_overdue && pod.restarts > 0),
            state: pod.state.clone(),
            ready: None,
            unready: None,
            hindered: None,
            leads: None,
            charged: None,
            led_first: None,
            words: None,
            said: None,
            spoke: glance.heard,
            converged: None,
            clean: None,
        };
        let words = watch.words_in(pod, glance);
        Self { words, ..watch }.go_on(pod, glance)
    }

    fn go_on(mut self, pod: &TrialPod, glance: Glance<'_>) -> Self {
        let heard = glance.heard;
        if pod.was_overdue && pod.restarts > self.restarts {
            self.overdue += 1;
        }
        self.restarts = pod.restarts;
        self.state = pod.state.clone();
        let (is_ready, is_hindered) = match &pod.state {
            PodState::Ready => (true, false),
            PodState::Unscheduled(_) | PodState::NotPulled(_) => (false, true),
            PodState::Starting | PodState::Crashed(_) | PodState::Lost(_) => (false, false),
        };
        keep(&mut self.ready, is_ready, heard);
        keep(&mut self.hindered, is_hindered, heard);
        keep(&mut self.unready, !is_ready && !is_hindered, heard);
        let leads = glance.lease.holder.as_ref() == Some(&pod.name);
        keep(&mut self.leads, leads, heard);
        if leads {
            self.led_first.get_or_insert(heard);
        }
        let entitled = glance.lease.entitled.as_ref();
        let is_charged = leads || entitled.is_some_and(|digest| glance.trial.to_digests.contains(digest));
        if is_charged && self.charged.is_none() {
            self.spoke = heard;
        }
        keep(&mut self.charged, is_charged, heard);
        let words = self.words_in(pod, glance);
        if words != self.words {
            (self.said, self.spoke) = (Some(heard), heard);
        }
        self.hear(words, heard);
        self
    }

    fn hear(&mut self, words: Option<Words>, heard: Tick) {
        let converged = words.as_ref().and_then(|words| words.converged);
        if self.converged.map(|(at, _)| at) != converged {
            // Another process has reported, or the first converge has just ended.
            self.converged = converged.map(|at| (at, heard));
            self.clean = None;
        }
        let is_clean = self.ready.is_some()
            && self.leads.is_some()
            && self.converged.is_some()
            && words.as_ref().is_some_and(Words::are_good);
        keep(&mut self.clean, is_clean, heard);
        self.words = words;
    }

    fn words_in(&self, pod: &TrialPod, glance: Glance<'_>) -> Option<Words> {
        let Some(report) = glance.report_by(pod) else {
            return self.words.clone().filter(|_| glance.report.is_some());
        };
        Some(Words::of(report, glance.trial))
    }

    /// Whether the pod has lost the lead or restarted while the API server gave no answer.
    fn has_suffered(&self, now: &TrialPod, lease: &LeaseSight) -> bool {
        let has_lost_the_lead = self.leads.is_some() && lease.holder.as_ref() != Some(&now.name);
        now.uid == self.uid && (now.restarts > self.restarts || has_lost_the_lead)
    }

    fn worst(&self) -> Option<&(String, Failures)> {
        self.words.as_ref()?.worst.as_ref()
    }

    fn hindered(&self) -> Option<&String> {
        self.words.as_ref()?.hindered.as_ref()
    }

    fn ailing(&self) -> Option<&Ailing> {
        self.words.as_ref()?.ailing.as_ref()
    }

    /// The reason for which the version has failed its trial; `None` if it has not failed.
    fn failure(&self, heard: Tick, limit: Duration) -> Option<String> {
        let is_over = |since: Option<Tick>, time: Duration| since.is_some_and(|since| heard.since(since) >= time);
        if self.restarts.saturating_sub(self.overdue) >= RESTARTS {
            let last = match &self.state {
                PodState::Crashed(reason) => format!(": {reason}"),
                PodState::Unscheduled(_)
                | PodState::NotPulled(_)
                | PodState::Starting
                | PodState::Ready
                | PodState::Lost(_) => String::new(),
            };
            return Some(format!("its container was started again {} times{last}", self.restarts));
        }
        if let Some((subject, failures)) = self.worst().filter(|(_, failures)| *failures >= FAILURES) {
            return Some(match *failures {
                Failures::InARow(times) => format!("{subject} failed {times} times in a row and did not fail before"),
                Failures::ForGood => format!("{subject} cannot be run as it is declared, and did not fail before"),
            });
        }
        if let Some(why) = self.ailing().and_then(Ailing::failure) {
            return Some(why);
        }
        if is_over(self.unready, limit) {
            return Some(format!("its pod was not ready within {}", shown(limit)));
        }
        if self.charged.is_some() && heard.since(self.spoke) >= SILENCE && self.is_there() {
            return Some(format!("it was to lead and has said nothing for {}", shown(SILENCE)));
        }
        (is_over(self.led_first, limit) && self.converged.is_none() && self.hindered().is_none())
            .then(|| format!("its first converge was not over within {}", shown(limit)))
    }

    /// The reason for which the trial can have no result.
    fn hindrance(&self, heard: Tick) -> Option<(Ruling, String)> {
        self.hindered.filter(|since| heard.since(*since) >= HINDERED)?;
        let why = match &self.state {
            PodState::Unscheduled(reason) => format!("no machine was found for its pod: {reason}"),
            PodState::NotPulled(reason) => format!("its image could not be pulled: {reason}"),
            PodState::Starting | PodState::Ready | PodState::Crashed(_) | PodState::Lost(_) => return None,
        };
        Some((Ruling::Unclear, why))
    }

    /// The ruling at the end of the time in which the version has to prove itself.
    fn end(&self, heard: Tick, limit: Duration) -> Option<(Ruling, String)> {
        // The last report must have come after the end of this time.
        if let Some(clean) = self.clean.filter(|clean| self.spoke.since(*clean) >= PROBATION) {
            let led = heard.since(clean);
            let why = format!(
                "it has led for {} s since its first converge, and nothing new failed",
                led.as_secs()
            );
            return Some((Ruling::Passed, why));
        }
        let since = match self.converged {
            Some((_, since)) => since,
            None => self.led_first.filter(|_| self.hindered().is_some())?,
        };
        // A module that is well at the limit has the time to stay so. A module that is well only now and then breaks it off.
        if heard.since(since) < limit.max(PROBATION * 2) || self.clean.is_some() {
            return None;
        }
        if let Some(subject) = self.hindered() {
            let why = format!("the cluster has hindered {subject} for longer than {}", shown(limit));
            return Some((Ruling::Unclear, why));
        }
        self.ailing().and_then(|ailing| ailing.end(&shown(limit))).or_else(|| {
            let why = format!(
                "it has converged, and has not led for {} without new failures within {}",
                shown(PROBATION),
                shown(limit)
            );
            Some((Ruling::Unclear, why))
        })
    }

    fn is_there(&self) -> bool {
        match self.state {
            PodState::Starting | PodState::Ready | PodState::Crashed(_) => true,
            PodState::Unscheduled(_) | PodState::NotPulled(_) | PodState::Lost(_) => false,
        }
    }
}

/// Keeps the time since which a condition has held.
pub(super) fn keep(since: &mut Option<Tick>, is_so: bool, heard: Tick) {
    if is_so {
        since.get_or_insert(heard);
    } else {
        *since = None;
    }
}

fn shown(time: Duration) -> String {
    match time.as_secs() {
        secs if secs % 60 == 0 => format!("{} min", secs / 60),
        secs => format!("{secs} s"),
    }
}
