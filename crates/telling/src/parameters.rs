//! Settings that can be changed at run time, for good or for a time: the log level, and log records about the
//! ConfigMap.
//!
//! A change for a time must always be undone at its end.

use std::fmt;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use settings::{LogLevel, boolean, duration};
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

const LOG_LEVEL: &str = "log.level";
const LOG_LEVEL_ABOUT: &str = "Global log level. Default duration for debug level is 30m0s";
const CONFIG_EVENTS: &str = "log.configmap.events";
const CONFIG_EVENTS_ABOUT: &str = "Set to true to log all operations with Configuration manager/*configmap.Backend";
/// The default time for which the debug level stays, so that it is not forgotten.
const DEBUG_FOR: Duration = Duration::from_mins(30);

/// Why a parameter was not set. The texts are the original's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    #[error("unknown runtime parameter \"{name}\"")]
    UnknownParameter { name: String },
    #[error("'value' parameter is invalid: {}", kind.expected())]
    BadValue { value: String, kind: Kind },
    #[error("parse duration \"{text}\" failed: it should be like 90s, 20m or 1h30m")]
    BadDuration { text: String },
}

/// The allowed values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Level,
    Switch,
}

impl Kind {
    fn expected(self) -> &'static str {
        match self {
            Self::Level => "no level found",
            Self::Switch => "it should be true or false",
        }
    }

    fn parse(self, text: &str) -> Option<Setting> {
        match self {
            Self::Level => LogLevel::parse(text).map(Setting::Level),
            Self::Switch => boolean::parse(text).map(Setting::Switch),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Level(LogLevel),
    Switch(bool),
}

impl Setting {
    fn kind(self) -> Kind {
        match self {
            Self::Level(_) => Kind::Level,
            Self::Switch(_) => Kind::Switch,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Level(LogLevel::Trace) => "trace",
            Self::Level(LogLevel::Debug) => "debug",
            Self::Level(LogLevel::Info) => "info",
            Self::Level(LogLevel::Warn) => "warn",
            Self::Level(LogLevel::Error) => "error",
            Self::Switch(true) => "true",
            Self::Switch(false) => "false",
        }
    }

    /// The default time for which a value stays.
    fn lasts(self) -> Option<Duration> {
        matches!(self, Self::Level(LogLevel::Debug | LogLevel::Trace)).then_some(DEBUG_FOR)
    }
}

/// A parameter in the list.
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

/// The parameters and their effects.
#[derive(Debug)]
pub struct Parameters {
    /// The parameters by name.
    all: Vec<Knob>,
    changed: Notify,
}

/// A parameter with its effect.
struct Knob {
    name: &'static str,
    about: &'static str,
    default: Setting,
    state: Mutex<State>,
    apply: Box<dyn Fn(Setting) + Send + Sync>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    value: Setting,
    temporary: Option<Temporary>,
}

#[derive(Debug, Clone, Copy)]
struct Temporary {
    back_to: Setting,
    until: Instant,
    shown_as: Timestamp,
}

impl Parameters {
    /// The log level of the settings, and its effect.
    pub fn new(level: LogLevel, apply: impl Fn(LogLevel) + Send + Sync + 'static) -> Self {
        let apply = move |setting| {
            if let Setting::Level(level) = setting {
                apply(level);
            }
        };
        Self {
            all: vec![Knob::new(LOG_LEVEL, LOG_LEVEL_ABOUT, Setting::Level(level), apply)],
            changed: Notify::new(),
        }
    }

    /// Adds the parameter for records about the ConfigMap, which is off.
    #[must_use]
    pub fn with_config_events(mut self, apply: impl Fn(bool) + Send + Sync + 'static) -> Self {
        let apply = move |setting| {
            if let Setting::Switch(on) = setting {
                apply(on);
            }
        };
        let knob = Knob::new(CONFIG_EVENTS, CONFIG_EVENTS_ABOUT, Setting::Switch(false), apply);
        self.all.insert(0, knob);
        self
    }

    /// Sets a parameter; for a time if a duration is given.
    pub fn set(&self, name: &str, value: &str, duration: Option<&str>) -> Result<(), SetError> {
        let unknown = || SetError::UnknownParameter { name: name.to_owned() };
        let knob = self.all.iter().find(|knob| knob.name == name).ok_or_else(unknown)?;
        let kind = knob.default.kind();
        let setting = kind.parse(value).ok_or_else(|| SetError::BadValue {
            value: value.to_owned(),
            kind,
        })?;
        let lasts = match duration {
            Some(text) => Some(duration::parse(text).ok_or_else(|| SetError::BadDuration { text: text.to_owned() })?),
            None => setting.lasts(),
        };
        knob.set(setting, lasts);
        self.changed.notify_one();
        Ok(())
    }

    /// Undoes changes at the end of their time. Never ends.
    pub async fn expire(&self) {
        loop {
            let until = self.all.iter().filter_map(Knob::until).min();
            tokio::select! {
                () = self.changed.notified() => continue,
                () = async { match until { Some(until) => sleep_until(until).await, None => pending().await } } => {}
            }
            self.all.iter().for_each(Knob::expire);
        }
    }

    /// All parameters, by name.
    pub fn list(&self) -> Vec<Parameter> {
        self.all.iter().map(Knob::shown).collect()
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
}

impl Knob {
    fn new(
        name: &'static str,
        about: &'static str,
        default: Setting,
        apply: impl Fn(Setting) + Send + Sync + 'static,
    ) -> Self {
        let state = Mutex::new(State {
            value: default,
            temporary: None,
        });
        Self {
            name,
            about,
            default,
            state,
            apply: Box::new(apply),
        }
    }

    fn set(&self, value: Setting, lasts: Option<Duration>) {
        let mut state = self.state();
        let back_to = state.temporary.map_or(state.value, |temporary| temporary.back_to);
        state.temporary = lasts.map(|lasts| Temporary {
            back_to,
            until: Instant::now() + lasts,
            shown_as: SignedDuration::try_from(lasts)
                .ok()
                .and_then(|lasts| Timestamp::now().checked_add(lasts).ok())
                .unwrap_or(Timestamp::MAX),
        });
        state.value = value;
        drop(state);
        (self.apply)(value);
    }

    fn until(&self) -> Option<Instant> {
        self.state().temporary.map(|temporary| temporary.until)
    }

    fn expire(&self) {
        let mut state = self.state();
        let Some(over) = state.temporary.take_if(|temporary| temporary.until <= Instant::now()) else {
            return;
        };
        state.value = over.back_to;
        drop(state);
        (self.apply)(over.back_to);
    }

    fn shown(&self) -> Parameter {
        let State { value, temporary } = *self.state();
        Parameter {
            name: self.name,
            description: self.about,
            default: self.default.word(),
            value: value.word(),
            expire_at: temporary.map(|temporary| format!("{:.0}", temporary.shown_as)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn row([name, value, expire_at, description]: [&str; 4]) -> String {
    let mut row = String::new();
    let _ = write!(row, "{name:<30} {value:<20} {expire_at:<20} {description:<40}");
    row.truncate(row.trim_end().len());
    row + "\n"
}

impl fmt::Debug for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Knob")
            .field("name", &self.name)
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

    #[test]
    fn a_switch_is_there_if_somebody_listens_to_it() {
        let (sender, mut applied) = unbounded_channel();
        let parameters = Parameters::new(LogLevel::Info, |_| {});
        assert!(parameters.set("log.configmap.events", "true", None).is_err());
        let parameters = parameters.with_config_events(move |on| sender.send(on).unwrap());
        let names: Vec<_> = parameters.list().iter().map(|parameter| parameter.name).collect();
        assert_eq!(names, ["log.configmap.events", "log.level"]);
        parameters.set("log.configmap.events", "1", None).unwrap();
        assert_eq!((parameters.list()[0].value, applied.try_recv()), ("true", Ok(true)));
        assert_eq!(
            parameters
                .set("log.configmap.events", "yes", None)
                .unwrap_err()
                .to_string(),
            "'value' parameter is invalid: it should be true or false"
        );
    }
}
