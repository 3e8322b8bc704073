//! The channel between the election and the part that follows versions: it carries our version, the version that is
//! entitled to the lease, and the state of the lease.
//!
//! Must never delay the election: the election takes messages in its pauses and never waits for a message.

use std::collections::BTreeSet;

use channel_core::leadership::Election;
use channel_core::reference::ImageDigest;
use channel_core::trial::sight::LeaseSight;
use clock::Tick;
use settings::leadership::pod_in;
use tokio::sync::{mpsc, watch};

/// A request to the election.
#[derive(Debug)]
enum Request {
    Versions(BTreeSet<ImageDigest>),
    Entitle(Option<ImageDigest>),
}

/// Talks to the election, for other parts of the program.
#[derive(Debug)]
pub struct LeaseHandle {
    requests: mpsc::UnboundedSender<Request>,
    lease: watch::Receiver<LeaseSight>,
}

/// The ends of the channels that the election holds.
#[derive(Debug)]
pub(super) struct Requests {
    requests: mpsc::UnboundedReceiver<Request>,
    lease: watch::Sender<LeaseSight>,
}

pub(super) fn open() -> (LeaseHandle, Requests) {
    let (sender, requests) = mpsc::unbounded_channel();
    let (lease, seen) = watch::channel(LeaseSight::default());
    let handle = LeaseHandle {
        requests: sender,
        lease: seen,
    };
    (handle, Requests { requests, lease })
}

impl LeaseHandle {
    /// Sets the digests of the version that this process runs.
    pub fn name_versions(&self, versions: BTreeSet<ImageDigest>) {
        // The election may have ended.
        let _ = self.requests.send(Request::Versions(versions));
    }

    /// Sets the version that the lease names as entitled; none for no version.
    pub fn entitle(&self, version: Option<ImageDigest>) {
        let _ = self.requests.send(Request::Entitle(version));
    }

    /// The lease as it was last observed; a watch for changes.
    pub fn lease(&self) -> watch::Receiver<LeaseSight> {
        self.lease.clone()
    }
}

impl Requests {
    /// Waits for the next message. Never returns after all senders are dropped.
    pub(super) async fn heard(&mut self) -> Asked {
        match self.requests.recv().await {
            Some(request) => Asked(request),
            None => std::future::pending().await,
        }
    }

    /// Publishes the state of the lease.
    pub(super) fn show(&self, election: &Election, me: &str, is_ours: bool) {
        let holder = if is_ours { Some(me) } else { election.leader() };
        let sight = LeaseSight {
            holder: holder.map(|name| pod_in(name).unwrap_or(name).to_owned()),
            entitled: election.entitled().cloned(),
        };
        self.lease.send_if_modified(|shown| {
            let differs = *shown != sight;
            *shown = sight;
            differs
        });
    }
}

/// A received message.
#[derive(Debug)]
pub(super) struct Asked(Request);

impl Asked {
    pub(super) fn pass_on(self, election: &mut Election, now: Tick) {
        match self.0 {
            Request::Versions(versions) => election.name_versions(now, versions),
            Request::Entitle(version) => election.entitle(now, version),
        }
    }
}
