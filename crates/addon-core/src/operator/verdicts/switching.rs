//! Modules that programs switch to and fro: after a few switches a module keeps its state for a while that grows.
//!
//! Must never delay a switch by the ConfigMap, which people write.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use clock::Tick;
use names::ModuleName;

use crate::module::enabling::{Source, Verdict};

/// The number of switches within [`WINDOW`] from which on the module keeps its state.
const MANY: usize = 3;
const WINDOW: Duration = Duration::from_mins(10);
/// The first hold. Each further switch doubles it.
const FIRST_HOLD: Duration = Duration::from_mins(1);
const LONGEST_HOLD: Duration = Duration::from_mins(30);

/// The switches of all modules that programs have switched.
#[derive(Debug, Clone, Default)]
pub(super) struct Switching(BTreeMap<ModuleName, Switches>);

#[derive(Debug, Clone, Default)]
struct Switches {
    /// The times of the last switches, at most [`MANY`].
    recent: VecDeque<Tick>,
    /// The number of holds in a row.
    holds: u32,
    /// Whether a verdict was refused during the hold, so that the scripts are asked again at its end.
    refused: bool,
    /// The flag in the ConfigMap at the last switch.
    config: Option<bool>,
}

/// A hold, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) struct Kept {
    pub(in crate::operator) until: Tick,
    /// The number of switches that caused the hold.
    pub(in crate::operator) times: usize,
}

impl Switches {
    fn until(&self) -> Option<Tick> {
        let hold = match self.holds {
            0 => return None,
            holds => (FIRST_HOLD * (1 << (holds - 1).min(5))).min(LONGEST_HOLD),
        };
        self.recent.back().map(|last| *last + hold)
    }

    fn switched(&mut self, config: Option<bool>, now: Tick) {
        if self.until().is_some_and(|until| now - until > WINDOW) {
            *self = Self::default();
        }
        self.config = config;
        self.recent.push_back(now);
        while self.recent.len() > MANY {
            self.recent.pop_front();
        }
        let is_fast = self.recent.len() == MANY && self.recent.front().is_some_and(|first| now - *first <= WINDOW);
        if self.holds > 0 || is_fast {
            self.holds = self.holds.saturating_add(1);
        }
    }
}

impl Switching {
    /// The hold, if the module keeps its verdict `before` instead of the different verdict `after`. `config` is the
    /// module's flag in the ConfigMap.
    pub(super) fn keeps(
        &mut self,
        module: &ModuleName,
        (before, after): (&Verdict, &Verdict),
        config: Option<bool>,
        now: Tick,
    ) -> Option<Kept> {
        let is_by_program = is_program(&after.source) || is_program(&before.source) && after.source != Source::Config;
        if !is_by_program {
            self.0.remove(module);
            return None;
        }
        let switches = self.0.entry(module.clone()).or_default();
        if switches.config != config {
            // A person has edited the flag since.
            *switches = Switches::default();
        }
        if let Some(until) = switches.until().filter(|until| *until > now) {
            switches.refused = true;
            let times = switches.recent.len();
            return Some(Kept { until, times });
        }
        switches.switched(config, now);
        None
    }

    /// Notes that a verdict agrees with the one before, so that nothing waits.
    pub(super) fn agrees(&mut self, module: &ModuleName) {
        if let Some(switches) = self.0.get_mut(module) {
            switches.refused = false;
        }
    }

    /// The hold of a module that another verdict would switch.
    pub(super) fn kept(&self, module: &ModuleName, now: Tick) -> Option<Kept> {
        let switches = self.0.get(module).filter(|switches| switches.refused)?;
        let until = switches.until().filter(|until| *until > now)?;
        let times = switches.recent.len();
        Some(Kept { until, times })
    }

    /// The end of the next hold that a verdict waits for.
    pub(super) fn next(&self) -> Option<(Tick, &ModuleName)> {
        let waiting = self.0.iter().filter(|(_, switches)| switches.refused);
        waiting
            .filter_map(|(module, switches)| Some((switches.until()?, module)))
            .min()
    }

    /// Whether a hold is over that a verdict waited for.
    pub(super) fn take_over(&mut self, now: Tick) -> bool {
        let mut any = false;
        for switches in self.0.values_mut().filter(|switches| switches.refused) {
            if switches.until().is_none_or(|until| until <= now) {
                switches.refused = false;
                any = true;
            }
        }
        any
    }
}

fn is_program(source: &Source) -> bool {
    match source {
        Source::Dynamic | Source::Script(_) => true,
        Source::Default | Source::Static | Source::Supply | Source::Config => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(enabled: bool, source: Source) -> Verdict {
        Verdict { enabled, source }
    }

    fn minute(minute: u64) -> Tick {
        Tick::from_micros(minute * 60_000_000)
    }

    /// Tries to switch at each of these minutes. Returns the lengths, in minutes, of the holds that refused a switch.
    fn holds(minutes: &[u64]) -> Vec<u64> {
        let (mut switching, mut enabled) = (Switching::default(), false);
        let module = ModuleName::parse("one").unwrap();
        let mut found = Vec::new();
        for at in minutes {
            let (before, after) = (verdict(enabled, Source::Dynamic), verdict(!enabled, Source::Dynamic));
            match switching.keeps(&module, (&before, &after), None, minute(*at)) {
                Some(kept) => found.push((kept.until - minute(*at)).as_secs() / 60),
                None => enabled = !enabled,
            }
        }
        found
    }

    #[test]
    fn the_fourth_switch_in_ten_minutes_waits_and_the_next_ones_longer() {
        assert_eq!(
            holds(&[0, 0, 0, 0, 1, 1, 3, 3, 7, 7, 15, 15, 31, 31, 61, 61]),
            [1, 2, 4, 8, 16, 30, 30]
        );
        assert_eq!(holds(&[0, 6, 12, 18, 24]), [0; 0]);
    }

    #[test]
    fn calm_ends_the_holds() {
        assert_eq!(holds(&[0, 0, 0, 12, 12]), [0; 0]);
    }

    #[test]
    fn the_config_map_switches_at_once() {
        let mut switching = Switching::default();
        let module = ModuleName::parse("one").unwrap();
        let (on, off) = (verdict(true, Source::Dynamic), verdict(false, Source::Dynamic));
        for pair in [(&on, &off), (&off, &on), (&on, &off)] {
            assert_eq!(switching.keeps(&module, pair, None, minute(1)), None);
        }
        assert!(switching.keeps(&module, (&off, &on), None, minute(1)).is_some());
        assert!(switching.kept(&module, minute(1)).is_some());
        let by_person = verdict(true, Source::Config);
        assert_eq!(
            switching.keeps(&module, (&off, &by_person), Some(true), minute(1)),
            None
        );
        assert_eq!(switching.kept(&module, minute(1)), None);
    }
}
