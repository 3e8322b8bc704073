//! A campaign: rounds of random faults, all drawn from one seed. A person asks for many rounds, a test plays a few.
//!
//! It only reads the request and keeps the results. It must never decide what happens in a round.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fs_err as fs;
use thiserror::Error;

use crate::environment;

#[derive(Debug, Error)]
pub enum CampaignError {
    #[error("{name}={text} is no number")]
    NoNumber { name: &'static str, text: String },
    #[error("cannot write the results of the campaign")]
    Results(#[from] std::io::Error),
}

/// The request, from the environment: `CAMPAIGN_SEED`, `CAMPAIGN_ROUNDS`, `CAMPAIGN_COMMIT` and `CAMPAIGN_RESULTS`, each of
/// them optional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// The seed of the rounds. Two campaigns with the same seed play the same rounds.
    pub seed: u64,
    rounds: Option<usize>,
    /// The commit under test, which the results name.
    commit: Option<String>,
    results: Option<PathBuf>,
}

impl Campaign {
    /// Reads the request from the environment. Without a seed in it, the seed is the current time.
    pub fn of_this_run() -> Result<Self, CampaignError> {
        Self::asked(environment::campaign)
    }

    fn asked(text: impl Fn(&'static str) -> Option<String>) -> Result<Self, CampaignError> {
        let number = |name| {
            let parsed = text(name).map(|text| text.parse::<u64>().map_err(|_| CampaignError::NoNumber { name, text }));
            parsed.transpose()
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            seed: number("CAMPAIGN_SEED")?.unwrap_or(now.as_secs() % 1_000_000),
            rounds: number("CAMPAIGN_ROUNDS")?.map(|rounds| usize::try_from(rounds).unwrap_or(usize::MAX)),
            commit: text("CAMPAIGN_COMMIT"),
            results: text("CAMPAIGN_RESULTS").map(PathBuf::from),
        })
    }

    /// The rounds that a person asks for; `None` in a test.
    pub fn rounds(&self) -> Option<usize> {
        self.rounds
    }

    /// Writes the results as Markdown, if the person asked for it: a title, the command that plays the same rounds
    /// again, and the text.
    pub fn keep(&self, name: &str, text: &str) -> Result<(), CampaignError> {
        let Some(file) = &self.results else { return Ok(()) };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, self.page(name, text))?;
        Ok(())
    }

    fn page(&self, name: &str, text: &str) -> String {
        let rounds = self
            .rounds
            .map(|rounds| format!(" ROUNDS={rounds}"))
            .unwrap_or_default();
        let command = format!("make campaign-{name} SEED={}{rounds}", self.seed);
        let commit = self.commit.as_ref();
        let commit = commit
            .map(|commit| format!(" on commit `{commit}`"))
            .unwrap_or_default();
        format!(
            "# Last run of the campaign \"{name}\"\n\n`{command}`{commit}\n\n{}\n",
            text.trim()
        )
    }
}

/// A percentile of the durations, for a percentage from 0 to 100; `None` without durations.
pub fn percentile(times: impl IntoIterator<Item = Duration>, percent: usize) -> Option<Duration> {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort();
    let last = times.len().checked_sub(1)?;
    Some(times[(times.len() * percent / 100).min(last)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_of_rounds() {
        let times = || [3, 1, 2, 4].map(Duration::from_secs);
        let at = |percent| percentile(times(), percent).map(|time| time.as_secs());
        assert_eq!([at(0), at(50), at(99), at(100)], [Some(1), Some(3), Some(4), Some(4)]);
        assert_eq!(percentile([], 50), None);
    }

    #[test]
    fn the_environment_names_seed_and_rounds_or_the_test_is_small() {
        let asked = |name| match name {
            "CAMPAIGN_SEED" => Some("7".to_owned()),
            "CAMPAIGN_ROUNDS" => Some("300".to_owned()),
            "CAMPAIGN_COMMIT" => Some("0123abc".to_owned()),
            _ => None,
        };
        let campaign = Campaign::asked(asked).unwrap();
        assert_eq!((campaign.seed, campaign.rounds()), (7, Some(300)));
        let page = campaign.page("kill", "\nall healed\n");
        assert!(
            page.ends_with("\n\n`make campaign-kill SEED=7 ROUNDS=300` on commit `0123abc`\n\nall healed\n"),
            "{page}"
        );
        assert_eq!(Campaign::asked(|_| None).unwrap().rounds(), None);
        let wrong = Campaign::asked(|name| (name == "CAMPAIGN_ROUNDS").then(|| "many".to_owned()));
        assert_eq!(wrong.unwrap_err().to_string(), "CAMPAIGN_ROUNDS=many is no number");
    }
}
