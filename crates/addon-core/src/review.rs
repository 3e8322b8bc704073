//! Reviews: the requests of the API server, the hooks that answer them, and the answers.
//!
//! [`Routes`](routes::Routes) have all bindings that review requests, and open a [`Review`]. The review names the hook
//! to run and takes the end of the run, until there is a [`Reply`]. Must never run a hook, and never decide in the
//! place of the cluster's failure policy: if there is no answer, the reply says so.

pub mod chain;
pub mod conversion;
pub mod registration;
pub mod reply;
pub mod request;
pub mod response;
pub mod routes;

use std::time::Duration;

use names::HookId;

use crate::hook::config::HookKind;
use crate::hook::context::BindingContext;

use self::conversion::Conversion;
use self::reply::{NoAnswer, Reply, admission_reply};
use self::request::{AdmissionRequest, Head};
use self::response::{AdmissionResponse, HookResponse};
use self::routes::AdmissionRoute;

/// The time that the API server waits for a conversion. No configuration changes it.
pub const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// A run of a hook for a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The hook.
    pub hook: HookId,
    /// The context of the run.
    pub context: BindingContext,
    /// The time limit of the whole review. A run that ends later is useless.
    pub timeout: Duration,
    /// The timeout of this run, if the binding sets one.
    pub limit: Option<Duration>,
}

/// The action that a review needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Run this hook, and call `resume` with its end.
    Run(Box<Run>),
    /// The review is over.
    Answered(Reply),
}

/// The end of a hook's run for a review.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The hook succeeded, with the given response.
    Well(HookResponse),
    /// The hook did not run, failed, wrote invalid files, or its object patches failed.
    Failed,
    /// The time of the review is over. The kind is that of the hook.
    Late(HookKind),
}

/// A review whose hook is running.
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

    /// Takes the end of the hook's run.
    pub fn resume(&mut self, ended: Ended) -> Progress {
        match &mut self.0 {
            Waiting::Admission { head, hook } => Progress::Answered(admitted(head, hook, ended)),
            Waiting::Conversion(conversion) => conversion.resume(ended),
        }
    }
}

/// The reply for an admission. If the hook failed, the request is denied. If the hook was too late, the failure policy
/// decides.
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
