//! What hooks and scripts print becomes log records: a line is one, a JSON object keeps its own level and fields.
//! Never loses a line, also when it began like JSON and was none.

use addon_core::name::{HookId, ModuleName};
use addon_core::operator::effect::HookLabels;
use serde_json::{Map, Value};
use tracing::Level;

use crate::telemetry::MEMBERS;

/// A text that began like JSON and is still none after so many bytes never will be.
const LONGEST_JSON: usize = 1 << 20;
/// Longer JSON records are cut.
const LONGEST_RECORD: usize = 10_000;

/// What every record of one run is labelled with.
#[derive(Debug, Clone)]
pub(in crate::jobs) struct Labels {
    hook: String,
    module: String,
    binding: String,
    queue: String,
}

/// Where a line was printed.
#[derive(Debug, Clone, Copy)]
pub(in crate::jobs) enum Stream {
    Stdout,
    Stderr,
}

impl Labels {
    pub(in crate::jobs) fn of_hook(hook: &HookId, labels: &HookLabels) -> Self {
        let binding = if labels.binding_name.is_empty() {
            labels.binding
        } else {
            &labels.binding_name
        };
        Self {
            hook: hook.name.to_string(),
            module: hook.owner.module().map(ToString::to_string).unwrap_or_default(),
            binding: binding.to_owned(),
            queue: labels.queue.clone(),
        }
    }

    /// Scripts are labelled as a hook of that name, as in the original.
    pub(in crate::jobs) fn of_enabled_script(module: &ModuleName) -> Self {
        let enabled = "enabled".to_owned();
        Self {
            hook: enabled.clone(),
            module: module.to_string(),
            binding: enabled,
            queue: String::new(),
        }
    }

    /// Takes the lines of one stream.
    pub(in crate::jobs) fn sink(&self, stream: Stream) -> impl FnMut(&str) + Send + 'static {
        let output = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let mut relay = Relay {
            labels: self.clone(),
            output,
            begun: String::new(),
        };
        move |line| relay.line(line)
    }
}

struct Relay {
    labels: Labels,
    output: &'static str,
    /// Lines of a JSON object that is not complete.
    begun: String,
}

impl Relay {
    fn line(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if self.begun.is_empty() && !line.starts_with('{') {
            return self.text(line);
        }
        if !self.begun.is_empty() {
            self.begun.push('\n');
        }
        self.begun.push_str(line);
        match serde_json::from_str::<Map<String, Value>>(&self.begun) {
            Ok(object) => {
                self.begun.clear();
                self.object(object);
            }
            Err(error) if error.is_eof() && self.begun.len() < LONGEST_JSON => {}
            Err(_) => self.give_up(),
        }
    }

    /// It was no JSON after all.
    fn give_up(&mut self) {
        for line in std::mem::take(&mut self.begun).lines() {
            self.text(line);
        }
    }

    fn text(&self, line: &str) {
        let Labels {
            hook,
            module,
            binding,
            queue,
        } = &self.labels;
        tracing::info!(hook, module, binding, queue, output = self.output, "{line}");
    }

    fn object(&self, mut object: Map<String, Value>) {
        object.remove("time");
        let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
        let level = text(object.remove("level"));
        let message = text(object.remove("msg")).unwrap_or_else(|| "hook result".to_owned());
        let mut members: Map<_, _> = object
            .into_iter()
            .map(|(key, value)| (format!("hook_{key}"), value))
            .collect();
        let size = Value::Object(members.clone()).to_string();
        if size.len() > LONGEST_RECORD {
            let end = (0..=LONGEST_RECORD)
                .rev()
                .find(|at| size.is_char_boundary(*at))
                .unwrap_or(0);
            let cut: Value = [("truncated".to_owned(), Value::from(&size[..end]))]
                .into_iter()
                .collect();
            members = [("hook".to_owned(), cut)].into_iter().collect();
        }
        members.insert("proxyJsonLog".to_owned(), Value::Bool(true));
        self.record(
            level_of(level.as_deref()),
            &message,
            &Value::Object(members).to_string(),
        );
    }

    fn record(&self, level: Level, message: &str, members: &str) {
        let Labels {
            hook,
            module,
            binding,
            queue,
        } = &self.labels;
        let output = self.output;
        macro_rules! record {
            ($level:expr) => {
                tracing::event!(
                    $level,
                    hook,
                    module,
                    binding,
                    queue,
                    output,
                    { MEMBERS } = members,
                    "{message}"
                )
            };
        }
        // The level of a record must be known when the program is built.
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
        self.give_up();
    }
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
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    use super::*;

    type Records = Arc<Mutex<Vec<(Level, Map<String, Value>)>>>;

    struct Keep(Records);

    struct Fields(Map<String, Value>);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0.insert(field.name().to_owned(), format!("{value:?}").into());
        }

        fn record_str(&mut self, field: &Field, value: &str) {
            self.0.insert(field.name().to_owned(), value.into());
        }
    }

    impl<S: tracing::Subscriber> Layer<S> for Keep {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            let mut fields = Fields(Map::new());
            event.record(&mut fields);
            self.0.lock().unwrap().push((*event.metadata().level(), fields.0));
        }
    }

    fn relayed(lines: &[&str]) -> Vec<(Level, Map<String, Value>)> {
        let records = Records::default();
        let subscriber = tracing_subscriber::registry().with(Keep(Arc::clone(&records)));
        tracing::subscriber::with_default(subscriber, || {
            let labels = Labels {
                hook: "h".to_owned(),
                module: "m".to_owned(),
                binding: "b".to_owned(),
                queue: "q".to_owned(),
            };
            let mut sink = labels.sink(Stream::Stderr);
            for line in lines {
                sink(line);
            }
        });
        std::mem::take(&mut *records.lock().unwrap())
    }

    fn messages(lines: &[&str]) -> Vec<String> {
        relayed(lines)
            .iter()
            .map(|(_, fields)| fields["message"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_line_is_a_record_with_the_labels_of_its_run() {
        let records = relayed(&["  hello ", "", "   "]);
        assert_eq!(records.len(), 1);
        let (level, fields) = &records[0];
        assert_eq!(*level, Level::INFO);
        for (name, value) in [
            ("message", "hello"),
            ("hook", "h"),
            ("module", "m"),
            ("binding", "b"),
            ("queue", "q"),
            ("output", "stderr"),
        ] {
            assert_eq!(fields[name], value, "{name}");
        }
    }

    #[test]
    fn a_json_object_keeps_its_level_and_members() {
        let records = relayed(&[r#"{"level":"warning","msg":"careful","time":"x","n":1.5}"#]);
        let (level, fields) = &records[0];
        assert_eq!((*level, fields["message"].as_str()), (Level::WARN, Some("careful")));
        assert_eq!(fields[MEMBERS], r#"{"hook_n":1.5,"proxyJsonLog":true}"#);
        assert_eq!(messages(&["{}"]), ["hook result"]);
    }

    #[test]
    fn an_object_may_span_lines_and_what_is_none_is_not_lost() {
        assert_eq!(messages(&["{\"msg\":", "\"two\"", "}", "after"]), ["two", "after"]);
        assert_eq!(messages(&["{foo", "bar"]), ["{foo", "bar"]);
        assert_eq!(
            messages(&["{\"msg\": \"cut", "off\"", "end"]),
            ["{\"msg\": \"cut", "off\"", "end"]
        );
        assert_eq!(messages(&["[1]", "5"]), ["[1]", "5"]);
    }

    #[test]
    fn a_huge_object_is_cut() {
        let records = relayed(&[&format!(r#"{{"msg":"m","x":"{}"}}"#, "ü".repeat(20_000))]);
        let members: Value = serde_json::from_str(records[0].1[MEMBERS].as_str().unwrap()).unwrap();
        assert!(members["hook"]["truncated"].as_str().unwrap().len() <= LONGEST_RECORD);
    }
}
