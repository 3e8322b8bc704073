//! The news of channel and trials together, for Events, meters and the log: each is reported once, by the replica that
//! it happens to.
//!
//! Must never report a state, only its beginning or end.

use super::following::News;
use super::trial::news::TrialNews;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelNews {
    /// While the registry was followed.
    Followed(News),
    /// Between trials, or in one.
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
