//! Waiting for the moment of a kill. Follows the audit log by itself, because to ask kubectl takes longer than some of
//! these moments last.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fs_err as fs;
use serde_json::Value;
use testbed::namespace::Namespace;
use testbed::plane::User;

use crate::cluster;
use crate::plan::Event;

/// Every event comes within this, or the operator does not do what it was asked.
const PATIENCE: Duration = Duration::from_mins(1);

/// Much less than anything takes that a kill can interrupt.
const LOOK: Duration = Duration::from_millis(3);

/// What has happened since a moment.
pub(crate) struct Watch {
    log: PathBuf,
    read_to: u64,
    /// The beginning of a line that was not complete yet.
    rest: String,
    namespace: String,
    notes: PathBuf,
    noted: u64,
}

impl Watch {
    /// From now on. `notes` is the file to which a hook appends.
    pub(crate) fn begin(namespace: &Namespace<'_>, notes: &Path) -> anyhow::Result<Self> {
        let environment = namespace.plane().environment(User::Admin);
        let log = PathBuf::from(
            environment
                .get("TESTBED_AUDIT_LOG")
                .context("a control plane has an audit log")?,
        );
        Ok(Self {
            read_to: fs::metadata(&log)?.len(),
            log,
            rest: String::new(),
            namespace: namespace.name().to_owned(),
            noted: length(notes),
            notes: notes.to_owned(),
        })
    }

    /// Returns a while after the event.
    pub(crate) fn wait(&mut self, event: Event, delay: Duration) -> anyhow::Result<()> {
        let started = Instant::now();
        while !self.has_come(event)? {
            if started.elapsed() > PATIENCE {
                bail!("waited {} s for {event:?}", PATIENCE.as_secs());
            }
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(delay);
        Ok(())
    }

    fn has_come(&mut self, event: Event) -> anyhow::Result<bool> {
        match event {
            Event::None => Ok(true),
            Event::HookRan => Ok(length(&self.notes) > self.noted),
            Event::PendingRelease => self.saw(|verb, resource, name| {
                verb == "create" && resource == "secrets" && name.starts_with("sh.helm.release.v1.")
            }),
            Event::SectionSaved => self.saw(|verb, resource, name| {
                (verb == "update" || verb == "patch") && resource == "configmaps" && name == cluster::CONFIG
            }),
            Event::DeleteBegun => self.saw(|verb, _, _| verb == "delete"),
        }
    }

    /// Whether the operator made such a request in the namespace since the last look.
    fn saw(&mut self, wanted: impl Fn(&str, &str, &str) -> bool) -> anyhow::Result<bool> {
        let mut file = fs::File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.read_to))?;
        let mut bytes = Vec::new();
        self.read_to += file.read_to_end(&mut bytes)? as u64;
        self.rest.push_str(&String::from_utf8_lossy(&bytes));
        let Some(end) = self.rest.rfind('\n') else {
            return Ok(false);
        };
        let lines = self.rest.drain(..=end).collect::<String>();
        for line in lines.lines() {
            let record: Value = serde_json::from_str(line)?;
            let object = &record["objectRef"];
            let [verb, resource, name] = [&record["verb"], &object["resource"], &object["name"]].map(text);
            let is_here = text(&object["namespace"]) == self.namespace;
            let is_operators = text(&record["user"]["username"]) == User::Operator.name();
            if is_here && is_operators && wanted(verb, resource, name) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Of a file that may not be there yet.
fn length(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.len())
}
