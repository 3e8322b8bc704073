//! The lookout's task waits: for changes of watched objects, for results of requests, and for questions.
//!
//! Must never judge a release: it notes which ones may have changed.

use std::sync::Arc;
use std::time::Duration;

use addon_core::object::snapshot::Change;
use addon_core::object::{ObjectName, ObjectView};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};
use watches::own::Turned;

use super::endpoints::is_webhook;
use super::releases::{KindName, revision_of};
use super::{Errand, RELEASES, Watch};

/// The shortest time between two looks at releases. Changes that arrive meanwhile are judged together, so that thousands of them cost
/// few looks; a change after a quiet time is judged at once.
const GATHERS: Duration = Duration::from_millis(10);

impl Watch {
    /// Waits for something to do. The last look was at this time.
    pub(super) async fn wait(&mut self, looked: Instant) {
        let due = self.again.values().copied().chain(self.posts.next());
        let next = due.chain(self.desk.next()).chain(self.causes.next()).min();
        tokio::select! {
            Some(turned) = self.turns.recv() => {
                self.turned(turned);
                self.gather(looked + GATHERS).await;
            }
            Some(errand) = self.errands.join_next() => self.ended(errand),
            Some(asked) = self.desk.asked.recv() => self.asked(asked),
            Ok(()) = self.catalogue.changed() => self.take_settings(),
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
        // Changes that arrive together are judged together, and questions are answered by all that has arrived.
        while let Ok(turned) = self.turns.try_recv() {
            self.turned(turned);
        }
        let now = Instant::now();
        let due = self.again.extract_if(.., |_, at| *at <= now);
        self.dirty.extend(due.map(|(release, _)| release));
    }

    /// Takes changes until then. No question waits for that.
    async fn gather(&mut self, until: Instant) {
        let rest = sleep_until(until);
        tokio::pin!(rest);
        loop {
            tokio::select! {
                Some(errand) = self.errands.join_next() => return self.ended(errand),
                Some(asked) = self.desk.asked.recv() => return self.asked(asked),
                Some(turned) = self.turns.recv() => self.turned(turned),
                () = &mut rest => return,
            }
        }
    }

    fn turned(&mut self, Turned { id, name, change }: Turned) {
        if id == RELEASES {
            let view = match change {
                Change::Added(view) | Change::Modified(view) => Some(view),
                Change::Deleted(_) => None,
            };
            self.saw_secret(&name, view);
            return;
        }
        if self.posts.is_of_endpoints(id) {
            self.recheck(|kind| is_webhook(&kind.kind));
            return;
        }
        let Some(kind) = self.posts.kind(id) else { return };
        let releases = self.inner.releases();
        let touched = releases
            .iter()
            .filter(|(_, release)| release.may_hold(kind, &name.name));
        self.dirty.extend(touched.map(|(release, _)| release.clone()));
    }

    /// Has the releases checked that have objects of these kinds.
    fn recheck(&mut self, is_meant: impl Fn(&KindName) -> bool) {
        let releases = self.inner.releases();
        let touched = releases.iter().filter(|(_, release)| release.kinds().any(&is_meant));
        self.dirty.extend(touched.map(|(release, _)| release.clone()));
    }

    /// Takes over the present state of a helm Secret, or its deletion.
    pub(super) fn saw_secret(&mut self, secret: &Arc<ObjectName>, view: Option<ObjectView>) {
        let essence = view.and_then(|view| Some(view.filter_result?.to_value()));
        let mut releases = self.inner.releases();
        let name = if let Some((revision, is_unmanaged)) = essence.and_then(revision_of) {
            let (name, number) = (revision.release.clone(), revision.newest.revision);
            self.secrets.insert(Arc::clone(secret), (name.clone(), number));
            releases.entry(name.clone()).or_default().see(revision, is_unmanaged);
            name
        } else {
            let Some((name, number)) = self.secrets.remove(secret) else {
                return;
            };
            if let Some(release) = releases.get_mut(&name) {
                release.lose(number, &secret.name);
            }
            name
        };
        self.inner.changed.send_replace(());
        self.dirty.insert(name);
    }

    fn ended(&mut self, errand: Result<Errand, JoinError>) {
        match errand {
            Ok(Errand::Joined(kind, id, joined)) => {
                if self.posts.joined(&kind, id, joined, Instant::now()) {
                    self.recheck(|own| *own == kind);
                }
            }
            Ok(Errand::JoinedEndpoints(service, id, joined)) => {
                self.posts.joined_endpoints(&service, id, joined, Instant::now());
                self.recheck(|kind| is_webhook(&kind.kind));
            }
            Ok(Errand::Spared(release, revision)) => self.is_spared(&release, revision),
            Ok(Errand::Read(revision, read)) => self.has_read(*revision, read),
            Ok(Errand::Compared(comparison)) => self.has_compared(comparison),
            Ok(Errand::Explained(explained)) => self.has_explained(explained),
            Err(error) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}
