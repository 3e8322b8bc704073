//! Reviews: the requests of the API server, the hooks that answer them, and the answers.
//!
//! [`Routes`](routes::Routes) know every binding that reviews something. They open a [`Review`], which names the hook
//! to run and takes its outcome, until there is a [`Reply`]. Must never run a hook, and never decide in place of the
//! cluster's own failure policy: a review without an answer is reported as such.

pub mod chain;
pub mod conversion;
pub mod registration;
pub mod reply;
pub mod request;
pub mod response;
pub mod routes;

use std::time::Duration;

use crate::hook::config::HookKind;
use crate::hook::context::BindingContext;
use crate::name::HookId;

use self::conversion::Conversion;
use self::reply::{NoAnswer, Reply, admission_reply};
use self::request::{AdmissionRequest, Head};
use self::response::{AdmissionResponse, HookResponse};
use self::routes::AdmissionRoute;

/// How long the API server waits for a conversion, which no configuration changes.
pub const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// One hook run that a review needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which hook.
    pub hook: HookId,
    /// Its context.
    pub context: BindingContext,
    /// How long the whole review may take; a run that has not ended by then is useless.
    pub timeout: Duration,
    /// The timeout of this run, if its binding sets one.
    pub limit: Option<Duration>,
}

/// The next step of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Run this hook, and resume with how it ended.
    Run(Box<Run>),
    /// It is over.
    Answered(Reply),
}

/// How a hook run of a review ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// Well, with its output.
    Well(HookResponse),
    /// It did not run, exited with an error, left files that are none, or its object patches failed.
    Failed,
    /// The time of the review is over. The kind is that of the hook.
    Late(HookKind),
}

/// A review that waits for a hook.
#[derive(Debug, Clone)]
pub struct Review(Waiting);

#[derive(Debug, Clone)]
enum Waiting {
    Admission { head: Head, hook: HookId },
    Conversion(Box<Conversion>),
}

impl Review {
    fn admission(route: &AdmissionRoute, request: AdmissionRequest) -> (Self, Progress) {
        let AdmissionRequest { head, review } = request;
        let run = Run {
            hook: route.hook.clone(),
            context: BindingContext::Review {
                told: route.told.clone(),
                ask: route.kind.ask(),
                review,
            },
            timeout: route.timeout,
            limit: route.binding.timeout,
        };
        let hook = route.hook.clone();
        (Self(Waiting::Admission { head, hook }), Progress::Run(Box::new(run)))
    }

    fn conversion(conversion: Conversion) -> Self {
        Self(Waiting::Conversion(Box::new(conversion)))
    }

    /// Takes how the hook run ended that was asked for last.
    pub fn resume(&mut self, ended: Ended) -> Progress {
        match &mut self.0 {
            Waiting::Admission { head, hook } => Progress::Answered(admitted(head, hook, ended)),
            Waiting::Conversion(conversion) => conversion.resume(ended),
        }
    }
}

/// A hook that ran badly denies; one that had no time to answer leaves it to the failure policy.
fn admitted(head: &Head, hook: &HookId, ended: Ended) -> Reply {
    match ended {
        Ended::Well(HookResponse {
            admission: Some(response),
            ..
        }) => admission_reply(head, &response),
        Ended::Well(_) => reply::admission_error(head, reply::NO_RESPONSE),
        Ended::Failed => {
            let denied = AdmissionResponse {
                message: "Hook failed".to_owned(),
                ..AdmissionResponse::default()
            };
            admission_reply(head, &denied)
        }
        Ended::Late(kind) => Reply::NoAnswer(NoAnswer::Late(hook.clone(), kind)),
    }
}

#[cfg(test)]
mod tests;
