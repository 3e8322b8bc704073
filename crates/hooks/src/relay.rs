//! Turns the output of hooks and scripts into log records: a line becomes one record, and a JSON object keeps its own
//! level and fields. No output is dropped: secrets are masked, and very long lines are cut. A line is masked before it
//! is cut, because half of a secret could not be recognised.

mod gathering;

use addon_core::operator::effect::HookLabels;
use names::{HookId, ModuleName};
use serde_json::{Map, Value};
use tracing::Level;

use gathering::{Gathering, Piece};
use report::secrets::Secrets;
use settings::HookOutput;
use telling::telemetry::{LOGGER, MEMBERS};

/// The length in characters at which texts and members of objects are cut.
const LONGEST_RECORD: usize = 10_000;
/// The logger by which log pipelines of shell-operator select the records of hooks.
const LOGGER_OF_HOOKS: &str = "shell-operator.hook-manager.hook.executor";

/// The settings of a program for the output of its hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub labels: LabelSet,
    pub output: HookOutput,
}

impl Default for Style {
    /// The settings of a program with modules: a record for each line.
    fn default() -> Self {
        Self {
            labels: LabelSet::Modules,
            output: HookOutput::Lines,
        }
    }
}

/// The labels of a record, which the contract defines for each program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelSet {
    /// hook, module, binding, queue.
    Modules,
    /// hook, binding, event, queue, task, and a fixed logger.
    HooksAlone,
}

/// The fields of every record of one run.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    members: Map<String, Value>,
    style: Style,
    secrets: Secrets,
}

/// The stream of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Labels {
    pub(crate) fn of_hook(hook: &HookId, labels: &HookLabels, style: Style, secrets: &Secrets) -> Self {
        let HookLabels {
            cause,
            binding_name,
            queue,
            ..
        } = labels;
        let hook_name = hook.name.to_string();
        let members = match style.labels {
            LabelSet::Modules => {
                let module = hook.owner.module().map(ToString::to_string).unwrap_or_default();
                let binding = if binding_name.is_empty() {
                    cause.key()
                } else {
                    binding_name.as_str()
                };
                [
                    ("hook", hook_name.as_str()),
                    ("module", &module),
                    ("binding", binding),
                    ("queue", queue),
                ]
                .map(member)
                .into_iter()
                .collect()
            }
            LabelSet::HooksAlone => [
                ("hook", hook_name.as_str()),
                ("binding", binding_name),
                ("event", cause.key()),
                ("queue", queue),
                ("task", "HookRun"),
            ]
            .map(member)
            .into_iter()
            .collect(),
        };
        Self {
            members,
            style,
            secrets: secrets.clone(),
        }
    }

    /// The labels of an enabled script: those of a hook with that name, as in the original.
    pub(crate) fn of_enabled_script(module: &ModuleName, style: Style, secrets: &Secrets) -> Self {
        let members = [
            ("hook", "enabled"),
            ("module", module.as_str()),
            ("binding", "enabled"),
            ("queue", ""),
        ];
        Self {
            members: members.map(member).into_iter().collect(),
            style,
            secrets: secrets.clone(),
        }
    }

    /// A receiver for the lines of one stream.
    pub(crate) fn sink(&self, stream: Stream) -> impl FnMut(&str) + Send + 'static {
        let output = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let mut members = self.members.clone();
        members.extend([member(("output", output))]);
        let mut relay = Relay {
            members,
            logger: match self.style.labels {
                LabelSet::Modules => None,
                LabelSet::HooksAlone => Some(LOGGER_OF_HOOKS),
            },
            gathering: Gathering::new(self.style.output),
            secrets: self.secrets.clone(),
        };
        move |line| relay.line(line)
    }
}

fn member((name, value): (&str, &str)) -> (String, Value) {
    (name.to_owned(), value.into())
}

struct Relay {
    members: Map<String, Value>,
    logger: Option<&'static str>,
    gathering: Gathering,
    secrets: Secrets,
}

impl Relay {
    fn line(&mut self, line: &str) {
        let pieces = self.gathering.line(line);
        self.tell(pieces);
    }

    fn tell(&self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.text(&text),
                Piece::Object(object) => self.object(object),
            }
        }
    }

    fn text(&self, text: &str) {
        let members = self.members.clone();
        let text = self.secrets.before_cut(text, LONGEST_RECORD);
        match cut(&text) {
            None => self.record(Level::INFO, &text, members),
            Some(start) => self.record(Level::INFO, &format!("{start}:truncated"), members),
        }
    }

    fn object(&self, mut object: Map<String, Value>) {
        object.remove("time");
        let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
        let level = text(object.remove("level"));
        let message = text(object.remove("msg")).unwrap_or_else(|| "hook result".to_owned());
        let mut own: Map<_, _> = object
            .into_iter()
            .map(|(key, value)| (format!("hook_{key}"), value))
            .collect();
        if cut(&Value::Object(own.clone()).to_string()).is_some() {
            let mut whole = Value::Object(own);
            self.secrets.mask(&mut whole);
            let shown = whole.to_string();
            let start = cut(&shown).unwrap_or(&shown);
            let cut: Value = [("truncated".to_owned(), Value::from(start))].into_iter().collect();
            own = [("hook".to_owned(), cut)].into_iter().collect();
        }
        let mut members = self.members.clone();
        members.insert("proxyJsonLog".to_owned(), Value::Bool(true));
        members.extend(own);
        self.record(level_of(level.as_deref()), &message, members);
    }

    fn record(&self, level: Level, message: &str, members: Map<String, Value>) {
        let (logger, members) = (self.logger, Value::Object(members).to_string());
        let members = members.as_str();
        macro_rules! record {
            ($level:expr) => {
                tracing::event!($level, { LOGGER } = logger, { MEMBERS } = members, "{message}")
            };
        }
        // The macro needs a constant level.
        match level {
            Level::TRACE => record!(Level::TRACE),
            Level::DEBUG => record!(Level::DEBUG),
            Level::INFO => record!(Level::INFO),
            Level::WARN => record!(Level::WARN),
            Level::ERROR => record!(Level::ERROR),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let pieces = self.gathering.end();
        self.tell(pieces);
    }
}

/// The beginning of a text that is too long.
fn cut(text: &str) -> Option<&str> {
    text.char_indices().nth(LONGEST_RECORD).map(|(end, _)| &text[..end])
}

fn level_of(word: Option<&str>) -> Level {
    match word.unwrap_or_default().to_ascii_lowercase().as_str() {
        "trace" => Level::TRACE,
        "debug" => Level::DEBUG,
        "warn" | "warning" => Level::WARN,
        "error" | "fatal" | "panic" => Level::ERROR,
        _ => Level::INFO,
    }
}

#[cfg(test)]
mod tests;
