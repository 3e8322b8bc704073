//! Settings of the log: its level and form, and the requests that it tells. Must never write a record.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    pub level: LogLevel,
    pub format: LogFormat,
    pub client: ClientLog,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// Parses a level. `fatal` is the same as `error`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "trace" => Some(Self::Trace),
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "warn" | "warning" => Some(Self::Warn),
            "error" | "fatal" => Some(Self::Error),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Text(Timestamps),
    Color(Timestamps),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    Shown,
    Left,
}

/// Whether the requests to the API server are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientLog {
    Quiet,
    Requests,
}
