//! The rate limit of requests: a bucket of tokens that fills at a steady rate, and a queue before it.
//!
//! First come, first served. A request that leaves the queue early takes no token. The time in the queue must never
//! count as time of the API server.

use std::num::NonZero;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use hyper::{Request, Response};
use kube::Client;
use kube::client::Body;
use settings::RateLimit;
use telling::meters::requests::Waited;
use tokio::task_local;
use tokio::time::{sleep, sleep_until};
use tower::Service;
use tracing::debug;

/// The original's defaults for requests per second and for the burst. Each is used if only the other one is set.
const PER_SECOND: f64 = 5.0;
const BURST: NonZero<u16> = NonZero::new(10).expect("ten is not zero");
/// The time in the queue beyond which a request is logged.
const LONG: Duration = Duration::from_millis(50);

/// The queue in which a client's requests wait for the rate limit. Clones share the queue.
#[derive(Debug, Clone)]
pub(super) struct Pace(Arc<Line>);

#[derive(Debug)]
struct Line {
    rate: Rate,
    /// The holder of this lock is the first in the queue: the lock is granted in the order of requests.
    bucket: tokio::sync::Mutex<Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    burst: f64,
}

#[derive(Debug)]
struct Bucket {
    turns: f64,
    /// The time at which the tokens were counted.
    at: Instant,
}

impl Pace {
    /// The queue for a limit; none without one. If only one half of the limit is set, the other is the original's
    /// default.
    pub(super) fn of(limit: RateLimit) -> Option<Self> {
        if limit == RateLimit::default() {
            return None;
        }
        let burst = limit
            .burst
            .map_or(BURST, |burst| NonZero::try_from(burst).unwrap_or(NonZero::<u16>::MAX));
        let rate = Rate {
            per_second: limit.per_second.unwrap_or(PER_SECOND),
            burst: f64::from(burst.get()),
        };
        Some(Self(Arc::new(Line {
            rate,
            bucket: tokio::sync::Mutex::new(Bucket::full(rate, Instant::now())),
        })))
    }

    /// Waits for a token, and returns the duration of the wait.
    async fn turn(&self) -> Duration {
        let line = &*self.0;
        let begin = Instant::now();
        let _held = Held::mark();
        let mut bucket = line.bucket.lock().await;
        while let Err(missing) = bucket.take(line.rate, Instant::now()) {
            sleep(missing).await;
        }
        begin.elapsed()
    }

    /// A client whose requests wait in the queue.
    pub(super) fn before(&self, client: &Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let paced = Paced {
            client: client.clone(),
            pace: self.clone(),
        };
        Client::new(paced, namespace)
    }
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self {
            turns: rate.burst,
            at: now,
        }
    }

    /// Takes a token; the error is the time until the next one.
    fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.turns = (self.turns + passed * rate.per_second).min(rate.burst);
        self.at = self.at.max(now);
        if self.turns >= 1.0 {
            self.turns -= 1.0;
            return Ok(());
        }
        Err(seconds((1.0 - self.turns) / rate.per_second))
    }
}

/// A duration of at least a nanosecond, so that waiting always makes progress. A rate of almost zero gives a very long
/// one.
fn seconds(seconds: f64) -> Duration {
    const LONGEST: Duration = Duration::from_hours(24);
    let exact = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST);
    exact.clamp(Duration::from_nanos(1), LONGEST)
}

task_local! {
    /// The requests of the present task that wait in a queue.
    static STANDING: Arc<Mutex<WorkRequests>>;
}

/// The requests of one task to the API server.
#[derive(Debug)]
struct WorkRequests {
    in_line: u32,
    /// The time at which the last waiting request of the task left the queue.
    went: Instant,
}

impl WorkRequests {
    fn of(shared: &Mutex<Self>) -> MutexGuard<'_, Self> {
        shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in the queue; dropping it removes it.
struct Held(Option<Arc<Mutex<WorkRequests>>>);

impl Held {
    fn mark() -> Self {
        let standing = STANDING.try_with(Arc::clone).ok();
        if let Some(standing) = &standing {
            WorkRequests::of(standing).in_line += 1;
        }
        Self(standing)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(standing) = &self.0 {
            let mut standing = WorkRequests::of(standing);
            standing.in_line -= 1;
            standing.went = Instant::now();
        }
    }
}

/// The result of the work; none if it takes longer than `patience`. The time in a queue does not count.
pub async fn within<T>(patience: Duration, work: impl Future<Output = T>) -> Option<T> {
    let standing = Arc::new(Mutex::new(WorkRequests {
        in_line: 0,
        went: Instant::now(),
    }));
    let mut work = pin!(STANDING.scope(Arc::clone(&standing), work));
    let mut until = Instant::now() + patience;
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            () = sleep_until(until.into()) => {}
        }
        let WorkRequests { in_line, went } = *WorkRequests::of(&standing);
        let now = Instant::now();
        let from = if in_line > 0 { now } else { went };
        until = from + patience;
        if until <= now {
            return None;
        }
    }
}

/// See [`Pace::before`].
struct Paced {
    client: Client,
    pace: Pace,
}

impl Service<Request<Body>> for Paced {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    /// Lets a new request join the queue, where it waits by itself.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (client, pace) = (self.client.clone(), self.pace.clone());
        Box::pin(async move {
            let waited = pace.turn().await;
            if waited > LONG {
                let (verb, path) = (request.method(), request.uri().path());
                debug!(%verb, path, ?waited, "a request waited for the rate limit");
            }
            request.extensions_mut().insert(Waited(waited));
            client.send(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::poll;

    use super::*;

    fn pace(per_second: f64, burst: usize) -> Pace {
        let limit = RateLimit {
            per_second: Some(per_second),
            burst: NonZero::new(burst),
        };
        Pace::of(limit).unwrap()
    }

    fn rate(limit: RateLimit) -> Option<(f64, f64)> {
        Pace::of(limit).map(|pace| (pace.0.rate.per_second, pace.0.rate.burst))
    }

    #[test]
    fn half_a_limit_is_completed_as_in_the_original_and_none_is_none() {
        let limit = RateLimit::default();
        assert_eq!(rate(limit), None);
        let per_second = Some(50.0);
        assert_eq!(rate(RateLimit { per_second, ..limit }), Some((50.0, 10.0)));
        let burst = NonZero::new(100);
        assert_eq!(rate(RateLimit { burst, ..limit }), Some((5.0, 100.0)));
        assert_eq!(rate(RateLimit { per_second, burst }), Some((50.0, 100.0)));
        let burst = Some(NonZero::<usize>::MAX);
        assert_eq!(rate(RateLimit { burst, ..limit }), Some((5.0, 65_535.0)));
    }

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_one_turn_at_a_time() {
        let rate = Rate {
            per_second: 4.0,
            burst: 2.0,
        };
        let begin = Instant::now();
        let after = |millis| begin + Duration::from_millis(millis);
        let mut bucket = Bucket::full(rate, begin);
        assert_eq!(bucket.take(rate, begin), Ok(()));
        assert_eq!(bucket.take(rate, begin), Ok(()));
        assert_eq!(bucket.take(rate, begin), Err(Duration::from_millis(250)));
        assert_eq!(bucket.take(rate, after(125)), Err(Duration::from_millis(125)));
        assert_eq!(bucket.take(rate, after(250)), Ok(()));
        assert_eq!(bucket.take(rate, after(250)), Err(Duration::from_millis(250)));
        // The bucket never holds more than its burst, even after a long pause.
        for _ in 0..2 {
            assert_eq!(bucket.take(rate, after(60_000)), Ok(()));
        }
        assert_eq!(bucket.take(rate, after(60_000)), Err(Duration::from_millis(250)));
        let never = Rate {
            per_second: f64::MIN_POSITIVE,
            burst: 1.0,
        };
        let mut bucket = Bucket { turns: 0.0, at: begin };
        assert_eq!(bucket.take(never, begin), Err(Duration::from_hours(24)));
    }

    #[tokio::test]
    async fn turns_come_no_faster_than_the_rate() {
        let (pace, begin) = (pace(50.0, 2), Instant::now());
        for _ in 0..7 {
            pace.turn().await;
        }
        assert!(begin.elapsed() >= Duration::from_millis(100), "{:?}", begin.elapsed());
        assert!(pace.turn().await > Duration::ZERO);
    }

    #[tokio::test]
    async fn the_line_keeps_its_order_and_who_leaves_it_takes_no_turn() {
        let pace = pace(20.0, 1);
        pace.turn().await;
        let mut first = Box::pin(pace.turn());
        let mut second = Box::pin(pace.turn());
        let mut third = Box::pin(pace.turn());
        for turn in [&mut second, &mut first, &mut third] {
            assert!(poll!(turn).is_pending());
        }
        drop(second);
        let begin = Instant::now();
        first.await;
        assert!(
            begin.elapsed() < Duration::from_millis(95),
            "{:?}: the turn of one who had left was lost",
            begin.elapsed()
        );
        assert!(poll!(&mut third).is_pending());
        third.await;
    }

    #[tokio::test]
    async fn patience_begins_when_the_line_ends() {
        let (pace, patience) = (pace(10.0, 1), Duration::from_millis(150));
        let all = (0..5).map(|_| within(patience, pace.turn()));
        let waits = futures::future::join_all(all).await;
        let longest = waits.into_iter().map(Option::unwrap).max().unwrap();
        assert!(longest > 2 * patience, "{longest:?}");

        let begin = Instant::now();
        let silent = async {
            pace.turn().await;
            pending::<()>().await;
        };
        assert_eq!(within(patience, silent).await, None);
        let waited = begin.elapsed();
        assert!(waited >= patience + Duration::from_millis(80), "{waited:?}");
        let begin = Instant::now();
        assert_eq!(within(patience, pending::<()>()).await, None);
        assert!(begin.elapsed() >= patience);
    }
}
