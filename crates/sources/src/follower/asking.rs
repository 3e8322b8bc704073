//! The questions of a follower to the registry of its source, and the news that follow from the answers.
//!
//! Must never use a login for another registry than the one that the source names.

use std::sync::Arc;

use channel_core::choice::Subject;
use channel_core::following::{Answer, News, Question, Trouble};
use channel_core::platform::Platform;
use inquiry::Inquiry;
use registry::documents;
use tracing::{info, warn};

use super::Follower;
use crate::login;

impl Follower {
    pub(super) async fn ask(&mut self, question: &Question) -> Result<Answer, Trouble> {
        let inquiry = self.inquiry()?;
        let answer = inquiry.answer(question).await?;
        Ok(for_any_platform(answer))
    }

    pub(super) fn inquiry(&mut self) -> Result<Arc<Inquiry>, Trouble> {
        if let Some(inquiry) = &self.inquiry {
            return Ok(Arc::clone(inquiry));
        }
        let read = match &self.source.auth {
            Some(name) => login::of_secret(
                self.taker.desk.ground.cluster.clone(),
                name.clone(),
                &self.source.repository,
            ),
            None => self.office.logins(),
        };
        let inquiry = Arc::new(self.office.of_module(&self.source.repository, read)?);
        self.inquiry = Some(Arc::clone(&inquiry));
        Ok(inquiry)
    }

    pub(super) fn tell_news(&mut self) {
        let module = self.taker.module.as_str();
        for news in self.following.news() {
            match news {
                News::Checked { .. } => self.has_checked = true,
                News::Unreachable(error) => {
                    warn!(module, error, "The registry of a module does not answer, trying again");
                }
                News::Answers => info!(module, "The registry of a module answers again"),
                News::Available(target) => {
                    info!(
                        module,
                        digest = target.digest.as_str(),
                        "Another version of a module is available"
                    );
                }
                News::Waits { target, reasons } => {
                    let reasons: Vec<String> = reasons.iter().map(|reason| reason.told(Subject::Module)).collect();
                    info!(
                        module,
                        digest = target.digest.as_str(),
                        reasons = reasons.join("; "),
                        "A version of a module waits"
                    );
                }
                News::Missing(_) => warn!(
                    module,
                    "The registry no longer has the version of a module that is in use"
                ),
            }
        }
    }
}

/// The platform of this machine.
pub(super) fn own_platform() -> Platform {
    let own = documents::Platform::own().to_string();
    Platform::parse(&own).expect("the platform of this build has a name")
}

/// Files of a module fit every platform, unless the registry has different ones for several platforms.
fn for_any_platform(answer: Answer) -> Answer {
    match answer {
        Answer::Candidate(Some(mut candidate)) if candidate.manifests.len() <= 1 => {
            candidate.manifests = [(own_platform(), candidate.digest.clone())].into();
            Answer::Candidate(Some(candidate))
        }
        other => other,
    }
}
