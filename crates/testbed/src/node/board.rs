//! The board of a pod: the state of its containers. The tasks that run the containers write it, and the task that
//! reports the pod's status reads it.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::watch;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Waiting { reason: String, message: String },
    Running { since: Time },
    Ended(Ended),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) started: Time,
    pub(super) finished: Time,
    pub(super) id: String,
}

/// One container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) image_id: String,
    pub(super) id: String,
    /// Whether the container is an init container.
    pub(super) first: bool,
    pub(super) state: State,
    pub(super) last: Option<Ended>,
    pub(super) restarts: i32,
    pub(super) started: bool,
    pub(super) ready: bool,
}

impl View {
    fn new(container: &Container, first: bool) -> Self {
        let reason = if first { "PodInitializing" } else { "ContainerCreating" };
        Self {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            image_id: String::new(),
            id: String::new(),
            first,
            state: State::waiting(reason, ""),
            last: None,
            restarts: 0,
            started: false,
            ready: false,
        }
    }

    /// Sets the state; the end of an earlier run is remembered.
    pub(super) fn turn(&mut self, state: State) {
        if let State::Ended(ended) = std::mem::replace(&mut self.state, state) {
            self.last = Some(ended);
        }
    }

    /// How the container ended, unless it is waiting or running.
    pub(super) fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            State::Waiting { .. } | State::Running { .. } => None,
        }
    }
}

impl State {
    pub(super) fn waiting(reason: &str, message: impl Into<String>) -> Self {
        Self::Waiting {
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// The states of all containers of a pod: first the init containers in their order.
#[derive(Clone, Debug)]
pub(super) struct Board(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    views: watch::Sender<Vec<View>>,
    address: OnceLock<Ipv4Addr>,
}

impl Board {
    pub(super) fn new(spec: &PodSpec) -> Self {
        let first = spec
            .init_containers
            .iter()
            .flatten()
            .map(|container| View::new(container, true));
        let others = spec.containers.iter().map(|container| View::new(container, false));
        Self(Arc::new(Shared {
            views: watch::Sender::new(first.chain(others).collect()),
            address: OnceLock::new(),
        }))
    }

    /// Changes the state of one container. Readers are notified only of a difference.
    pub(super) fn change(&self, index: usize, change: impl FnOnce(&mut View)) {
        self.0.views.send_if_modified(|views| {
            let Some(view) = views.get_mut(index) else {
                return false;
            };
            let before = view.clone();
            change(view);
            *view != before
        });
    }

    /// Sets a reason for all containers that have not run yet.
    pub(super) fn wait(&self, reason: &str, message: &str) {
        let count = self.0.views.borrow().len();
        for index in 0..count {
            self.change(index, |view| {
                if matches!(view.state, State::Waiting { .. }) && view.last.is_none() {
                    view.state = State::waiting(reason, message);
                }
            });
        }
    }

    /// Sets the pod's address.
    pub(super) fn place(&self, address: Ipv4Addr) {
        // A pod gets its address only once.
        let _ = self.0.address.set(address);
        self.0.views.send_modify(|_| {});
    }

    pub(super) fn address(&self) -> Option<Ipv4Addr> {
        self.0.address.get().copied()
    }

    pub(super) fn read(&self) -> watch::Receiver<Vec<View>> {
        self.0.views.subscribe()
    }
}
