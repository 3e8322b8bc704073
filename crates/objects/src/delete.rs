//! Operations that delete objects.

use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::object::patch::Dependents;
use hyper::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::address::{Address, Ask};
use super::race::is_missing;

/// The longest wait until an object is deleted.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause before the first check, and the longest pause between two.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Deletes an object. An object that does not exist counts as deleted.
pub(super) async fn delete(
    address: &Address,
    name: &str,
    dependents: Dependents,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let policy = match dependents {
        Dependents::First => "Foreground",
        Dependents::Later => "Background",
        Dependents::Stay => "Orphan",
    };
    let options = json!({"propagationPolicy": policy});
    let ask = Ask {
        body: Some(&options),
        ..Ask::new("delete", Method::DELETE)
    };
    let answer = match address.ask(name, ask).await {
        Err(error) if is_missing(&error) => return Ok(()),
        answer => answer?,
    };
    match dependents {
        Dependents::First => until_gone(address, name, uid(&answer), cancel).await,
        Dependents::Later | Dependents::Stay => Ok(()),
    }
}

/// The UID of the object in the server's answer, which is the object or a status.
fn uid(answer: &Value) -> Option<&str> {
    let found = answer
        .pointer("/metadata/uid")
        .or_else(|| answer.pointer("/details/uid"));
    found.and_then(Value::as_str)
}

/// Waits until the object is deleted. Another object with the same name does not count.
async fn until_gone(
    address: &Address,
    name: &str,
    deleted: Option<&str>,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let (mut pause, longest) = PAUSES;
    loop {
        let found = match address.get(name).await {
            Err(error) if is_missing(&error) => return Ok(()),
            found => found?,
        };
        if deleted.is_some() && uid(&found) != deleted {
            return Ok(());
        }
        if Instant::now() + pause > deadline {
            return Err(still_there(&found));
        }
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(longest),
            () = cancel.cancelled() => {
                return Err(Failure::new(Class::Cancelled, "cancelled while the object was being deleted"));
            }
        }
    }
}

fn still_there(object: &Value) -> Failure {
    let names = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let names: Vec<_> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    let held = if names.is_empty() {
        String::new()
    } else {
        format!(", held by its finalizers: {}", names.join(", "))
    };
    Failure::new(
        Class::TimedOut,
        format!("the object is still there after {PATIENCE:?}{held}"),
    )
    .hint("DeleteInBackground does not wait until the object is gone")
}
