//! What can be changed while we run: at present the log level, for good or for a while.
//!
//! Must never forget to undo what was meant for a while.

use std::fmt;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::settings::{LogLevel, duration};

const LOG_LEVEL: &str = "log.level";
const LOG_LEVEL_ABOUT: &str = "Global log level. Default duration for debug level is 30m0s";
/// So that nobody forgets a talkative log.
const DEBUG_FOR: Duration = Duration::from_mins(30);

/// Why a parameter was not set. The texts are those of the original.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    #[error("unknown runtime parameter \"{name}\"")]
    UnknownParameter { name: String },
    #[error("'value' parameter is invalid: no level found")]
    BadValue { value: String },
    #[error("parse duration \"{text}\" failed: it should be like 90s, 20m or 1h30m")]
    BadDuration { text: String },
}

/// One parameter as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    name: &'static str,
    description: &'static str,
    default: &'static str,
    value: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expire_at: Option<String>,
}

/// The parameters and what they act on.
pub struct Parameters {
    default: LogLevel,
    state: Mutex<State>,
    apply: Box<dyn Fn(LogLevel) + Send + Sync>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy)]
struct State {
    value: LogLevel,
    temporary: Option<Temporary>,
}

#[derive(Debug, Clone, Copy)]
struct Temporary {
    back_to: LogLevel,
    until: Instant,
    shown_as: Timestamp,
}

impl Parameters {
    /// The log level as the settings say, and how to change it.
    pub fn new(level: LogLevel, apply: impl Fn(LogLevel) + Send + Sync + 'static) -> Self {
        Self {
            default: level,
            state: Mutex::new(State {
                value: level,
                temporary: None,
            }),
            apply: Box::new(apply),
            changed: Notify::new(),
        }
    }

    /// Sets a parameter, for a while if a duration is given.
    pub fn set(&self, name: &str, value: &str, duration: Option<&str>) -> Result<(), SetError> {
        if name != LOG_LEVEL {
            return Err(SetError::UnknownParameter { name: name.to_owned() });
        }
        let level = LogLevel::parse(value).ok_or_else(|| SetError::BadValue {
            value: value.to_owned(),
        })?;
        let wanted = match duration {
            Some(text) => Some(duration::parse(text).ok_or_else(|| SetError::BadDuration { text: text.to_owned() })?),
            None => matches!(level, LogLevel::Debug | LogLevel::Trace).then_some(DEBUG_FOR),
        };
        let mut state = self.state();
        let back_to = state.temporary.map_or(state.value, |temporary| temporary.back_to);
        state.temporary = wanted.map(|wanted| Temporary {
            back_to,
            until: Instant::now() + wanted,
            shown_as: SignedDuration::try_from(wanted)
                .ok()
                .and_then(|wanted| Timestamp::now().checked_add(wanted).ok())
                .unwrap_or(Timestamp::MAX),
        });
        state.value = level;
        drop(state);
        (self.apply)(level);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes back what was meant for a while, when it is over. Never ends.
    pub async fn expire(&self) {
        loop {
            let until = self.state().temporary.map(|temporary| temporary.until);
            tokio::select! {
                () = self.changed.notified() => continue,
                () = async { match until { Some(until) => sleep_until(until).await, None => pending().await } } => {}
            }
            let mut state = self.state();
            let Some(over) = state.temporary.take_if(|temporary| temporary.until <= Instant::now()) else {
                continue;
            };
            state.value = over.back_to;
            drop(state);
            (self.apply)(over.back_to);
        }
    }

    /// All parameters, by name.
    pub fn list(&self) -> Vec<Parameter> {
        let State { value, temporary } = *self.state();
        vec![Parameter {
            name: LOG_LEVEL,
            description: LOG_LEVEL_ABOUT,
            default: name_of(self.default),
            value: name_of(value),
            expire_at: temporary.map(|temporary| format!("{:.0}", temporary.shown_as)),
        }]
    }

    /// All parameters as a table.
    pub fn table(&self) -> String {
        let mut table = row(["NAME", "VALUE", "EXPIRE AT", "DESCRIPTION"]);
        for parameter in self.list() {
            let expire_at = parameter.expire_at.unwrap_or_default();
            table.push_str(&row([
                parameter.name,
                parameter.value,
                &expire_at,
                parameter.description,
            ]));
        }
        table
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

fn row([name, value, expire_at, description]: [&str; 4]) -> String {
    let mut row = String::new();
    let _ = write!(row, "{name:<30} {value:<20} {expire_at:<20} {description:<40}");
    row.truncate(row.trim_end().len());
    row + "\n"
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters")
            .field("default", &self.default)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn parameters() -> (Arc<Parameters>, UnboundedReceiver<LogLevel>) {
        let (sender, applied) = unbounded_channel();
        (
            Arc::new(Parameters::new(LogLevel::Info, move |level| {
                sender.send(level).unwrap();
            })),
            applied,
        )
    }

    #[test]
    fn bad_wishes_change_nothing() {
        let (parameters, mut applied) = parameters();
        let rows = [
            (parameters.set("x", "info", None), "unknown runtime parameter \"x\""),
            (
                parameters.set("log.level", "loud", None),
                "'value' parameter is invalid: no level found",
            ),
            (
                parameters.set("log.level", "info", Some("soon")),
                "parse duration \"soon\" failed: it should be like 90s, 20m or 1h30m",
            ),
        ];
        for (result, expected) in rows {
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
        assert!(applied.try_recv().is_err());
        assert_eq!(parameters.list()[0].value, "info");
    }

    #[test]
    fn the_level_is_listed_with_the_end_of_a_debug_time() {
        let (parameters, mut applied) = parameters();
        parameters.set("log.level", "debug", None).unwrap();
        assert_eq!(applied.try_recv(), Ok(LogLevel::Debug));
        let listed = serde_json::to_value(parameters.list()).unwrap();
        assert_eq!(
            (&listed[0]["default"], &listed[0]["value"]),
            (&"info".into(), &"debug".into())
        );
        let ends: Timestamp = listed[0]["expireAt"].as_str().unwrap().parse().unwrap();
        let left = ends.duration_since(Timestamp::now()).as_secs();
        assert!((29 * 60..=30 * 60).contains(&left), "{left}");
        let table = parameters.table();
        assert!(table.starts_with("NAME                           VALUE                EXPIRE AT            DESCRIPTION\nlog.level                      debug                20"), "{table}");
        parameters.set("log.level", "warn", None).unwrap();
        assert_eq!(
            serde_json::to_value(parameters.list()).unwrap()[0].get("expireAt"),
            None
        );
    }

    #[tokio::test]
    async fn what_was_set_for_a_while_returns_to_what_was_before() {
        let (parameters, mut applied) = parameters();
        let expiring = Arc::clone(&parameters);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move { expiring.expire().await });
        parameters.set("log.level", "debug", Some("1h")).unwrap();
        parameters.set("log.level", "trace", Some("20ms")).unwrap();
        for expected in [LogLevel::Debug, LogLevel::Trace, LogLevel::Info] {
            assert_eq!(applied.recv().await, Some(expected));
        }
        assert_eq!(
            serde_json::to_value(parameters.list()).unwrap()[0].get("expireAt"),
            None
        );
    }
}
