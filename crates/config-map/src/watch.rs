//! Reads the watched `ConfigMap`: its contents go to the loop, and the reason why it cannot be watched goes to people.
//!
//! The watch itself is one of the monitors, which never ends and recovers by itself. It lists the `ConfigMap` again
//! after each break: the server's store may have been restored from a backup meanwhile, and a watch from our resource
//! version would bring nothing for long. Logs once when the `ConfigMap` cannot be watched, and once when it is watched
//! again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addon_core::failure::Failure;
use addon_core::object::json::Json;
use addon_core::operator::event::{ConfigRead, Event};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ApiResource;
use kube_access::Cluster;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};
use watches::Monitors;
use watches::reader::{Answer, Condition, Reader};
use watches::selection::Selection;

use super::history::History;
use super::{number, present};

/// The reason why the `ConfigMap` cannot be watched, in a sentence for people; `None` if it is watched.
pub type Trouble = watch::Sender<Option<String>>;

/// The channels for readings and troubles to the rest of the program.
pub struct Ways {
    /// The channel on which readings go to the loop.
    pub door: mpsc::Sender<Event>,
    /// The channel on which troubles go to `/readyz`.
    pub trouble: Trouble,
    /// A function that sees each reading before the loop does.
    pub witness: Box<dyn Fn(&ConfigRead) + Send + Sync>,
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ways")
            .field("trouble", &self.trouble)
            .finish_non_exhaustive()
    }
}

/// Watches the `ConfigMap` in the namespace of the operator from now on, until all watches end. Its contents go to the
/// loop, at first and after each change.
pub fn watch(monitors: &Monitors, cluster: &Cluster, name: &str, ways: Ways) {
    let selection = Selection {
        resource: ApiResource::erase::<ConfigMap>(&()),
        namespace: Some(cluster.namespace().to_owned()),
        labels: None,
        fields: Some(format!("metadata.name={name}")),
        metadata_only: false,
        is_read: true,
    };
    let reader = Arc::new(Contents {
        name: name.to_owned(),
        server: cluster.server().to_owned(),
        ways,
        state: Mutex::default(),
    });
    monitors.read(reader, &selection);
}

/// The reader of the ConfigMap's contents, which the head of this file describes.
struct Contents {
    name: String,
    server: String,
    ways: Ways,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    history: History,
    last: Option<ConfigRead>,
    told: Option<Told>,
}

/// The last logged reason why the watch waits.
#[derive(PartialEq, Eq)]
enum Told {
    Unreachable,
    Other(String),
}

impl Reader for Contents {
    fn read(&self, answer: Answer<'_>, objects: &[Json]) -> Result<Vec<Event>, String> {
        let mut state = self.state();
        let (version, is_list) = match answer {
            Answer::List(version) => (version, true),
            Answer::Change(version) => (version, false),
            Answer::Mark(version) => {
                state.history.marked(number(version));
                return Ok(Vec::new());
            }
        };
        let read = self.contents(objects)?;
        let went_back = is_list && self.went_back(&mut state.history, number(version), &read);
        if !is_list {
            state.history.followed(number(version), &read);
            if state.last.as_ref() == Some(&read) {
                return Ok(Vec::new());
            }
        }
        state.last = Some(read.clone());
        drop(state);
        (self.ways.witness)(&read);
        let first = went_back.then_some(Event::HistoryWentBack);
        Ok(first.into_iter().chain([Event::ConfigChanged(read)]).collect())
    }

    fn door(&self) -> &mpsc::Sender<Event> {
        &self.ways.door
    }

    fn hear(&self, condition: Condition<'_>) {
        let told = &mut self.state().told;
        match condition {
            Condition::Overdue => self.tell_silence(told),
            Condition::Fails { trouble, .. } if trouble.error.is_unreachable() => {
                self.tell_unreachable(told, trouble.failure());
            }
            // A single failure may come from a server that shuts down, or from a resource version that has expired. The
            // next request shows whether it is more.
            Condition::Fails { first: true, .. } => {}
            Condition::Fails { trouble, .. } => self.tell_other(told, trouble.failure()),
            Condition::Works => self.tell_recovery(told),
        }
    }
}

impl Contents {
    fn state(&self) -> MutexGuard<'_, State> {
        // The panic of a watch ends the operator elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The contents in an answer. The `ConfigMap` is missing only if the answer lacks it. The answer of a server that
    /// knows no field selectors also has other ConfigMaps.
    fn contents(&self, objects: &[Json]) -> Result<ConfigRead, String> {
        for object in objects {
            let found: ConfigMap = serde_json::from_str(object.as_str()).map_err(|error| error.to_string())?;
            if found.metadata.name.as_ref() == Some(&self.name) {
                return Ok(present(&found));
            }
        }
        Ok(ConfigRead::Missing)
    }

    fn went_back(&self, history: &mut History, version: u64, read: &ConfigRead) -> bool {
        let seen = history.newest();
        let went_back = history.listed(version, read);
        if went_back {
            warn!(
                config_map = self.name,
                version,
                seen,
                "The history of the API server went back: the ConfigMap is taken as it is now, and newer versions that were seen before are forgotten"
            );
        }
        went_back
    }

    fn tell_silence(&self, told: &mut Option<Told>) {
        if told.as_ref() != Some(&Told::Unreachable) {
            let (config_map, server) = (&self.name, &self.server);
            warn!(config_map, server, "API server has not answered yet, waiting for it");
            let sentence = format!("API server cannot be reached: no answer from {server} yet");
            self.ways.trouble.send_replace(Some(sentence));
            *told = Some(Told::Unreachable);
        }
    }

    fn tell_unreachable(&self, told: &mut Option<Told>, failure: Failure) {
        if told.as_ref() == Some(&Told::Unreachable) {
            return;
        }
        let Failure { report, hints, .. } = failure;
        let (config_map, server, hint) = (&self.name, &self.server, hints.join("; "));
        warn!(
            config_map,
            server,
            error = report,
            hint,
            "API server cannot be reached, trying until it answers; the last good configuration stays applied"
        );
        let sentence = format!("API server at {server} cannot be reached: {report}");
        self.ways.trouble.send_replace(Some(sentence));
        *told = Some(Told::Unreachable);
    }

    fn tell_other(&self, told: &mut Option<Told>, failure: Failure) {
        let Failure { report, hints, .. } = failure;
        if matches!(told, Some(Told::Other(told)) if *told == report) {
            return;
        }
        let hint = (!hints.is_empty()).then(|| hints.join("; "));
        warn!(
            config_map = self.name,
            error = report,
            hint,
            "cannot watch the ConfigMap, trying again; the last good configuration stays applied"
        );
        let sentence = format!("ConfigMap is not watched: {report}");
        self.ways.trouble.send_replace(Some(sentence));
        *told = Some(Told::Other(report));
    }

    fn tell_recovery(&self, told: &mut Option<Told>) {
        let config_map = &self.name;
        match told.take() {
            None => return,
            Some(Told::Unreachable) => info!(config_map, server = self.server, "API server answers again"),
            Some(Told::Other(_)) => info!(config_map, "watching the ConfigMap again"),
        }
        self.ways.trouble.send_replace(None);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn contents() -> (Contents, watch::Receiver<Option<String>>) {
        let (trouble, told) = watch::channel(None);
        let ways = Ways {
            door: mpsc::channel(1).0,
            trouble,
            witness: Box::new(|_| {}),
        };
        let contents = Contents {
            name: "ours".to_owned(),
            server: "https://10.0.0.1".to_owned(),
            ways,
            state: Mutex::default(),
        };
        (contents, told)
    }

    fn object(name: &str, version: &str, data: &Value) -> Json {
        Json::from(&json!({"metadata": {"name": name, "resourceVersion": version}, "data": data}))
    }

    /// The events, a letter each: `m` for a missing ConfigMap, its key `k` for one that is there, `!` for a history
    /// that went back.
    fn read(contents: &Contents, answer: Answer<'_>, objects: &[Json]) -> Result<String, String> {
        let events = contents.read(answer, objects)?;
        let letters = events.into_iter().map(|event| match event {
            Event::HistoryWentBack => "!".to_owned(),
            Event::ConfigChanged(ConfigRead::Missing) => "m".to_owned(),
            Event::ConfigChanged(ConfigRead::Present { data, .. }) => data["k"].clone(),
            other => unreachable!("{other:?}"),
        });
        Ok(letters.collect())
    }

    #[test]
    fn each_state_is_read_once_after_a_change_and_always_after_a_list() {
        let (contents, _told) = contents();
        let other = object("other", "2", &json!({"k": "x"}));
        let (a, b) = (
            object("ours", "5", &json!({"k": "a"})),
            object("ours", "7", &json!({"k": "b"})),
        );
        let read = |answer, objects: &[Json]| read(&contents, answer, objects).unwrap();
        assert_eq!(read(Answer::List("4"), std::slice::from_ref(&other)), "m");
        assert_eq!(read(Answer::Change("5"), &[other.clone(), a.clone()]), "a");
        assert_eq!(
            read(Answer::Change("6"), std::slice::from_ref(&a)),
            "",
            "another object has changed"
        );
        assert_eq!(read(Answer::Mark("6"), &[]), "", "a mark says nothing of objects");
        assert_eq!(read(Answer::Change("7"), std::slice::from_ref(&b)), "b");
        assert_eq!(read(Answer::List("9"), &[b]), "b");
        assert_eq!(read(Answer::List("8"), &[a]), "!a");
        assert_eq!(read(Answer::Change("10"), &[]), "m");
    }

    #[test]
    fn an_answer_that_is_no_config_map_is_no_reading() {
        let (contents, _told) = contents();
        let bad = object("ours", "5", &json!({"k": 5}));
        assert!(read(&contents, Answer::List("5"), &[bad]).is_err());
        let good = object("ours", "3", &json!({"k": "a"}));
        assert_eq!(
            read(&contents, Answer::List("4"), &[good]).unwrap(),
            "a",
            "its version is not believed either"
        );
    }
}
