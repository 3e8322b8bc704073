//! Requests that several tasks want at the same time: each is made once, and all tasks get its answer.
//!
//! Must never hold its lock across a request, nor keep a request alive that no task waits for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};

/// The requests that are under way, by key.
pub(super) struct UnderWay<K, T: Clone>(Mutex<BTreeMap<K, WeakShared<BoxFuture<'static, T>>>>);

impl<K: Ord, T: Clone> UnderWay<K, T> {
    /// Joins the request of this key, or begins it. The request ends with its answer, or with the last task that waits
    /// for it.
    pub(super) fn join(&self, key: K, begin: impl FnOnce() -> BoxFuture<'static, T>) -> Shared<BoxFuture<'static, T>> {
        let mut requests = self.requests();
        requests.retain(|_, known| known.upgrade().is_some_and(|request| request.peek().is_none()));
        if let Some(known) = requests.get(&key).and_then(WeakShared::upgrade) {
            return known;
        }
        let request = begin().shared();
        if let Some(known) = request.downgrade() {
            requests.insert(key, known);
        }
        request
    }

    /// Later tasks get no answer that was asked for before this moment.
    pub(super) fn forget(&self, key: &K) {
        self.requests().remove(key);
    }

    fn requests(&self) -> MutexGuard<'_, BTreeMap<K, WeakShared<BoxFuture<'static, T>>>> {
        // Nothing that is done under the lock leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, T: Clone> Default for UnderWay<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, T: Clone> fmt::Debug for UnderWay<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnderWay").field(&self.requests().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::poll;
    use tokio::sync::Semaphore;

    use super::*;

    /// Requests that are answered with their number, once the semaphore lets them.
    struct Server {
        begun: Arc<AtomicU32>,
        answers: Arc<Semaphore>,
    }

    impl Server {
        fn request(&self) -> BoxFuture<'static, u32> {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let answers = Arc::clone(&self.answers);
            async move {
                answers.acquire().await.unwrap().forget();
                number
            }
            .boxed()
        }
    }

    #[tokio::test]
    async fn tasks_at_the_same_time_share_a_request_and_a_later_task_makes_its_own() {
        let (begun, answers) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let server = Server { begun, answers };
        let requests = UnderWay::default();
        let (mut one, mut two) = (
            requests.join("a", || server.request()),
            requests.join("a", || server.request()),
        );
        let mut other = requests.join("b", || server.request());
        assert!(poll!(&mut one).is_pending() && poll!(&mut two).is_pending() && poll!(&mut other).is_pending());
        requests.forget(&"a");
        let after = requests.join("a", || server.request());
        server.answers.add_permits(4);
        assert_eq!((one.await, two.await, other.await, after.await), (0, 0, 1, 2));
        assert_eq!(
            requests.join("a", || server.request()).await,
            3,
            "the one before has ended"
        );
    }

    #[tokio::test]
    async fn a_request_that_every_task_gave_up_is_not_waited_for() {
        let (begun, answers) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let server = Server { begun, answers };
        let requests = UnderWay::default();
        let mut one = requests.join((), || server.request());
        assert!(poll!(&mut one).is_pending());
        let two = requests.join((), || server.request());
        drop(one);
        server.answers.add_permits(1);
        assert_eq!(two.await, 0, "the other task goes on");
        drop(requests.join((), || server.request()));
        server.answers.add_permits(1);
        assert_eq!(requests.join((), || server.request()).await, 2);
    }
}
