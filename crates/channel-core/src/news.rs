//! The news of following and of trials together, for Events, metrics and the log. Each is reported once, by the replica
//! that it concerns.
//!
//! Must never report a state, only its beginning or end.

use super::following::News;
use super::trial::news::TrialNews;

/// News of the channel for people: of following the registry or of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelNews {
    /// News about the registry that the operator follows.
    Followed(News),
    /// News about trials of versions.
    Tried(TrialNews),
}

impl From<News> for ChannelNews {
    fn from(news: News) -> Self {
        Self::Followed(news)
    }
}

impl From<TrialNews> for ChannelNews {
    fn from(news: TrialNews) -> Self {
        Self::Tried(news)
    }
}
