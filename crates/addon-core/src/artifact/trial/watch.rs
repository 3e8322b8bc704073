//! The watch that a judge keeps over a version on trial, and the ruling that follows from it.
//!
//! All times are of the judge's own clock, from one observation to another. Must never count a time over which the judge has
//! heard nothing, nor compare the clocks of two pods.

use std::time::Duration;

use jiff::Timestamp;

use super::record::{Failures, Report, Ruling, Trial};
use super::sight::{LeaseSight, PodState, TrialPod};
use crate::time::Tick;

/// So long a pod has been ready before the lease is handed to it.
pub const SETTLED: Duration = Duration::from_secs(10);
/// So long a version leads after its first converge before it has passed.
pub const PROBATION: Duration = Duration::from_mins(1);
/// The longest silence of a version.
pub const SILENCE: Duration = Duration::from_mins(1);
/// So long a pod may be without a machine or an image.
pub const HINDERED: Duration = Duration::from_mins(2);
/// Between two observations of one watch; after a longer time it begins anew.
pub const GAP: Duration = Duration::from_secs(30);
/// Words that were on their way when the lease changed hands do not count.
const LATE: Duration = Duration::from_secs(10);
/// So often the container of the trial may not be started again.
const RESTARTS: u32 = 2;
/// So often in a row a subject may not fail that did not fail before.
const FAILURES: Failures = Failures::InARow(3);
/// So many pods, or times in the lead, may not be lost.
pub const LOSSES: u32 = 3;

/// The watch over one trial.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    /// Tells the trial.
    begun: Timestamp,
    /// The last observation.
    heard: Tick,
    pod: Option<PodWatch>,
    /// The API server did not answer for this time, which has disturbed the version on trial.
    away: Option<Duration>,
}

/// The watch over one pod.
#[derive(Debug, Clone)]
struct PodWatch {
    uid: String,
    restarts: u32,
    state: PodState,
    /// Since when it has been ready, or has not.
    ready: Option<Tick>,
    unready: Option<Tick>,
    /// Since when it has had no machine or no image.
    hindered: Option<Tick>,
    /// Since when it has led, without a break.
    leads: Option<Tick>,
    /// Since when the lease has been for it to take: it leads, or its version is entitled.
    charged: Option<Tick>,
    /// When it was first seen to lead.
    led_first: Option<Tick>,
    /// Its last words, and when they were first seen in this watch.
    words: Option<Words>,
    said: Option<Tick>,
    /// The same, or the later time at which the watch or the charge began.
    spoke: Tick,
    /// The end of its first converge, and since when it has been known.
    converged: Option<(Timestamp, Tick)>,
    /// Since when it has led, ready and converged, without a failure that is new.
    clean: Option<Tick>,
}

/// The part of a report by which another process is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    number: u64,
    converged: Option<Timestamp>,
    /// Its worst failure that is new.
    worst: Option<(String, Failures)>,
}

/// One observation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glance<'a> {
    pub(super) trial: &'a Trial,
    pub(super) pod: Option<&'a TrialPod>,
    pub(super) lease: &'a LeaseSight,
    pub(super) report: Option<&'a Report>,
    pub(super) heard: Tick,
}

impl Watch {
    /// Begins with this observation.
    pub(super) fn begin(glance: Glance<'_>) -> Self {
        Self {
            begun: glance.trial.begun,
            heard: glance.heard,
            pod: glance.pod.map(|pod| PodWatch::begin(pod, glance)),
            away: None,
        }
    }

    /// Continues with this sight; a sight of another trial, or an older one, begins anew.
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

    /// Whether the version has spoken although it does not lead: so long after the lease was for it to take, and this replica
    /// came to lead.
    pub(super) fn has_spoken_without_the_lease(&self, leads: Tick) -> bool {
        self.pod.as_ref().is_some_and(|pod| {
            let since = pod.charged.map(|charged| charged.max(leads) + LATE);
            pod.said.zip(since).is_some_and(|(said, since)| said > since)
        })
    }

    /// When the next ruling may be due by time alone.
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

    /// How long it has still to lead to pass, if nothing comes between.
    pub(super) fn left(&self) -> Option<Duration> {
        let clean = self.pod.as_ref()?.clean?;
        Some(PROBATION.saturating_sub(self.heard.since(clean)))
    }

    /// The subject whose failure is new and worst.
    pub(super) fn fails(&self) -> Option<&str> {
        self.pod.as_ref()?.worst().map(|(subject, _)| subject.as_str())
    }

    /// The ruling as of the last observation, with a sentence that says why; nothing while the trial goes on.
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
            // Another process, or its first report.
            self.converged = converged.map(|at| (at, heard));
            self.clean = None;
        }
        let is_clean = self.ready.is_some()
            && self.leads.is_some()
            && self.converged.is_some()
            && words.as_ref().is_some_and(|words| words.worst.is_none());
        keep(&mut self.clean, is_clean, heard);
        self.words = words;
    }

    fn words_in(&self, pod: &TrialPod, glance: Glance<'_>) -> Option<Words> {
        let report = glance.report?;
        if report.pod != pod.name || !glance.trial.to_digests.contains(&report.of) {
            return self.words.clone();
        }
        let new = report
            .failing
            .iter()
            .filter(|(subject, _)| !glance.trial.failing.contains(*subject));
        let worst = new.max_by_key(|(_, failures)| **failures);
        Some(Words {
            number: report.number,
            converged: report.converged,
            worst: worst.map(|(subject, failures)| (subject.clone(), *failures)),
        })
    }

    /// Whether it has lost the lead or its process while nothing was heard.
    fn has_suffered(&self, now: &TrialPod, lease: &LeaseSight) -> bool {
        let has_lost_the_lead = self.leads.is_some() && lease.holder.as_ref() != Some(&now.name);
        now.uid == self.uid && (now.restarts > self.restarts || has_lost_the_lead)
    }

    fn worst(&self) -> Option<&(String, Failures)> {
        self.words.as_ref()?.worst.as_ref()
    }

    /// Why it has failed.
    fn failure(&self, heard: Tick, limit: Duration) -> Option<String> {
        let is_over = |since: Option<Tick>, time: Duration| since.is_some_and(|since| heard.since(since) >= time);
        if self.restarts >= RESTARTS {
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
        if is_over(self.unready, limit) {
            return Some(format!("its pod was not ready within {}", shown(limit)));
        }
        if self.charged.is_some() && heard.since(self.spoke) >= SILENCE && self.is_there() {
            return Some(format!("it was to lead and has said nothing for {}", shown(SILENCE)));
        }
        (is_over(self.led_first, limit) && self.converged.is_none())
            .then(|| format!("its first converge was not over within {}", shown(limit)))
    }

    /// Why nothing can be found out.
    fn hindrance(&self, heard: Tick) -> Option<(Ruling, String)> {
        self.hindered.filter(|since| heard.since(*since) >= HINDERED)?;
        let why = match &self.state {
            PodState::Unscheduled(reason) => format!("no machine was found for its pod: {reason}"),
            PodState::NotPulled(reason) => format!("its image could not be pulled: {reason}"),
            PodState::Starting | PodState::Ready | PodState::Crashed(_) | PodState::Lost(_) => return None,
        };
        Some((Ruling::Unclear, why))
    }

    /// The end of the time in which it has to prove itself.
    fn end(&self, heard: Tick, limit: Duration) -> Option<(Ruling, String)> {
        // Said after that time, not before it.
        if let Some(clean) = self.clean.filter(|clean| self.spoke.since(*clean) >= PROBATION) {
            let led = heard.since(clean);
            let why = format!(
                "it has led for {} s since its first converge, and nothing new failed",
                led.as_secs()
            );
            return Some((Ruling::Passed, why));
        }
        let (_, since) = self.converged?;
        (heard.since(since) >= limit.max(PROBATION * 2)).then(|| {
            let why = format!(
                "it has converged, and has not led for {} without new failures within {}",
                shown(PROBATION),
                shown(limit)
            );
            (Ruling::Unclear, why)
        })
    }

    fn is_there(&self) -> bool {
        match self.state {
            PodState::Starting | PodState::Ready | PodState::Crashed(_) => true,
            PodState::Unscheduled(_) | PodState::NotPulled(_) | PodState::Lost(_) => false,
        }
    }
}

/// Since when something has been so.
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
