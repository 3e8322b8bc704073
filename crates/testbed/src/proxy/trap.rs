//! A trap: an action at one chosen write. With it a test hits a program exactly between two of its steps.
//!
//! It springs once, and must never touch a request that is not counted.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use hyper::Request;

use super::asked::{agent, is_write};

/// The moment of the action, relative to the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before the write, which then never happens.
    Before,
    /// After the write, whose answer is lost.
    After,
}

/// A trap at the `nth` write, counted from 1, of clients whose user agent begins with `agent`.
pub struct Trap {
    pub agent: &'static str,
    pub nth: usize,
    pub side: Side,
    /// The action of the trap. The write waits until the action has ended, and then the connection ends.
    pub deed: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Trap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            agent,
            nth,
            side,
            deed: _,
        } = self;
        write!(out, "a trap {side:?} write {nth} of {agent}")
    }
}

/// The current trap, and the writes that were counted.
#[derive(Debug, Default)]
pub(super) struct Traps(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    agent: &'static str,
    writes: Vec<String>,
    set: Option<Trap>,
    sprung: Option<String>,
}

impl Traps {
    pub(super) fn set(&self, trap: Trap) {
        *self.state() = State {
            agent: trap.agent,
            writes: Vec::new(),
            set: Some(trap),
            sprung: None,
        };
    }

    /// Counts writes of these clients from now on, without a trap.
    pub(super) fn count(&self, agent: &'static str) {
        *self.state() = State {
            agent,
            ..State::default()
        };
    }

    pub(super) fn disarm(&self) -> bool {
        self.state().set.take().is_some()
    }

    pub(super) fn writes(&self) -> Vec<String> {
        self.state().writes.clone()
    }

    pub(super) fn sprung(&self) -> Option<String> {
        self.state().sprung.clone()
    }

    pub(super) fn has_sprung(&self, at: String) {
        self.state().sprung = Some(at);
    }

    /// Counts a request. Returns the trap and the name of the write if the trap springs here.
    pub(super) fn meet<B>(&self, request: &Request<B>) -> Option<(Trap, String)> {
        let mut state = self.state();
        if state.agent.is_empty() || !agent(request).starts_with(state.agent) || !is_write(request) {
            return None;
        }
        let told = format!("{} {}", request.method(), request.uri().path());
        state.writes.push(told.clone());
        let count = state.writes.len();
        let trap = state.set.take_if(|trap| trap.nth == count)?;
        Some((trap, told))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // The lock is not held during an action, so a panic there cannot leave this state inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use hyper::Method;
    use hyper::header::USER_AGENT;

    use super::*;

    fn request(agent: &str, method: Method, path: &str) -> Request<()> {
        Request::builder()
            .method(method)
            .uri(path)
            .header(USER_AGENT, agent)
            .body(())
            .unwrap()
    }

    #[test]
    fn it_springs_once_at_the_write_that_was_named() {
        let traps = Traps::default();
        let helms = |method, path| request("Helm/3.22.0", method, path);
        let at = |nth| Trap {
            agent: "Helm/",
            nth,
            side: Side::After,
            deed: Box::new(|| {}),
        };
        assert!(traps.meet(&helms(Method::POST, "/a")).is_none(), "none is set");
        traps.set(at(1));
        assert!(traps.disarm(), "it has not sprung");
        assert!(traps.meet(&helms(Method::POST, "/a")).is_none(), "it was taken away");
        traps.set(at(2));
        let passed = [
            helms(Method::POST, "/first"),
            helms(Method::GET, "/a"),
            helms(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
            request("addon-operator/0.1.0", Method::PATCH, "/b"),
        ];
        for request in passed {
            assert!(traps.meet(&request).is_none(), "{} does not count", request.uri());
        }
        let met = traps.meet(&helms(Method::DELETE, "/second"));
        assert_eq!(met.map(|(_, at)| at).as_deref(), Some("DELETE /second"));
        assert!(traps.meet(&helms(Method::PUT, "/third")).is_none(), "it has sprung");
        assert_eq!(traps.writes(), ["POST /first", "DELETE /second", "PUT /third"]);
        assert!(!traps.disarm(), "it has sprung");
    }
}
