//! Waits for the moment of a kill. It reads the audit log directly, because a call of kubectl takes longer than some of
//! these moments last.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use fs_err as fs;
use serde_json::Value;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::wait::wait_closely;

use crate::cluster;
use crate::plan::Event;

/// Every event has to come within this time; otherwise the operator does not do its work.
const PATIENCE: Duration = Duration::from_mins(1);

/// The requests since a moment.
pub(crate) struct Watch {
    log: PathBuf,
    read_to: u64,
    /// The beginning of a line that was not complete yet.
    rest: Vec<u8>,
    namespace: String,
    notes: PathBuf,
    noted: u64,
}

impl Watch {
    /// Watches from now on. `notes` is the file to which a hook appends.
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
            rest: Vec::new(),
            namespace: namespace.name().to_owned(),
            noted: length(notes),
            notes: notes.to_owned(),
        })
    }

    /// Returns when the operator and its helm have made this many requests after the event.
    pub(crate) fn wait(&mut self, event: Event, requests: usize) -> anyhow::Result<()> {
        let (mut has_come, mut seen) = (event == Event::None, 0);
        wait_closely(PATIENCE, &format!("request {requests} after {event:?}"), || {
            for [verb, resource, name] in self.read()? {
                if has_come {
                    seen += 1;
                } else {
                    has_come = is_it(event, &verb, &resource, &name);
                }
            }
            has_come |= event == Event::HookRan && length(&self.notes) > self.noted;
            if has_come && seen >= requests {
                return Ok(Some(()));
            }
            let told = if has_come { "it came" } else { "it did not come" };
            Err(anyhow::anyhow!("{told}, and {seen} requests after it"))
        })?;
        Ok(())
    }

    /// The requests of the operator in the namespace since the last call: verb, resource and name of each.
    fn read(&mut self) -> anyhow::Result<Vec<[String; 3]>> {
        let mut file = fs::File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.read_to))?;
        let mut bytes = Vec::new();
        self.read_to += file.read_to_end(&mut bytes)? as u64;
        self.rest.extend(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        let mut requests = Vec::new();
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: Value = serde_json::from_slice(line)?;
            let object = &record["objectRef"];
            let is_here = text(&object["namespace"]) == self.namespace;
            if is_here && text(&record["user"]["username"]) == User::Operator.name() {
                let request = [&record["verb"], &object["resource"], &object["name"]];
                requests.push(request.map(|value| text(value).to_owned()));
            }
        }
        Ok(requests)
    }
}

/// Whether a request is the event.
fn is_it(event: Event, verb: &str, resource: &str, name: &str) -> bool {
    match event {
        Event::None | Event::HookRan => false,
        Event::PendingRelease => verb == "create" && resource == "secrets" && name.starts_with("sh.helm.release.v1."),
        Event::SectionSaved => {
            ["update", "patch"].contains(&verb) && resource == "configmaps" && name == cluster::CONFIG
        }
        Event::DeleteBegun => verb == "delete",
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The length of a file that may not exist yet; then 0.
fn length(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.len())
}
