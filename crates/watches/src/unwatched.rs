//! Logs the failures of a watch that only saves time: once, until the watch works again. Must never be used for a watch
//! on which a decision depends.

use addon_core::failure::Failure;
use kube::runtime::watcher;
use kube_access::error::{Attempt, RequestError};
use tracing::{debug, warn};

/// The log state of one watch.
#[derive(Debug)]
pub struct Unwatched {
    attempt: Attempt,
    /// How changes are found without the watch, for the message.
    instead: &'static str,
    is_told: bool,
}

impl Unwatched {
    /// A watch without a failure so far.
    pub fn new(attempt: Attempt, instead: &'static str) -> Self {
        Self {
            attempt,
            instead,
            is_told: false,
        }
    }

    /// Records that the watch works.
    pub fn is_over(&mut self) {
        self.is_told = false;
    }

    /// Logs a failure of the watch, which is repeated by itself.
    pub fn tell(&mut self, error: watcher::Error) {
        let error = request_error(&self.attempt, error);
        // The watch of the ConfigMap already logs that the API server does not answer.
        let is_quiet = self.is_told || error.is_unreachable();
        let Failure { report, hints, .. } = error.into();
        if is_quiet {
            debug!(error = report, "A watch still fails");
            return;
        }
        self.is_told = true;
        let hint = (!hints.is_empty()).then(|| hints.join("; "));
        warn!(
            error = report,
            hint,
            instead = self.instead,
            "A watch fails, trying again"
        );
    }
}

/// The error of a failed watch request.
pub fn request_error(about: &Attempt, error: watcher::Error) -> RequestError {
    let attempt = |verb| Attempt { verb, ..about.clone() };
    let (verb, source) = match error {
        watcher::Error::InitialListFailed(source) => ("list", source),
        watcher::Error::WatchStartFailed(source) | watcher::Error::WatchFailed(source) => ("watch", source),
        watcher::Error::WatchError(status) => ("watch", kube::Error::Api(status)),
        watcher::Error::NoResourceVersion => {
            let problem = "it has no resource version".to_owned();
            let attempt = attempt("list");
            return RequestError::Unusable { attempt, problem };
        }
    };
    let source = Box::new(source);
    RequestError::Failed {
        attempt: attempt(verb),
        source,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn the_verb_is_the_one_that_was_refused() {
        let attempt = Attempt {
            verb: "watch",
            resource: "leases".to_owned(),
            name: "ours".to_owned(),
            namespace: Some("ns".to_owned()),
            server: "https://10.0.0.1".to_owned(),
            account: None,
        };
        let status = Status {
            code: 403,
            message: "forbidden".to_owned(),
            ..Status::default()
        };
        let refused = || kube::Error::Api(Box::new(status.clone()));
        for (error, verb) in [
            (watcher::Error::InitialListFailed(refused()), "list"),
            (watcher::Error::WatchStartFailed(refused()), "watch"),
            (watcher::Error::WatchError(Box::new(status.clone())), "watch"),
        ] {
            let failure = Failure::from(request_error(&attempt, error));
            assert_eq!(
                failure.report,
                format!("cannot {verb} leases 'ours' in namespace 'ns': forbidden")
            );
            assert!(failure.hints[0].contains(&format!("'{verb}'")), "{:?}", failure.hints);
        }
    }
}
