//! The requests that the API server answered, read from its audit log.
//!
//! Tests and campaigns count writes here and not in the metrics of the program under test, because that program may
//! count wrongly.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use fs_err as fs;
use serde::Deserialize;
use thiserror::Error;

use crate::kubectl::KubectlError;
use crate::plane::{ControlPlane, User};
use crate::wait::{TimedOut, wait_until};

/// The audit log of one control plane.
#[derive(Debug)]
pub struct Audit<'a> {
    plane: &'a ControlPlane,
    file: PathBuf,
}

/// A position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

#[derive(Debug, Error)]
pub enum AuditError {
    #[error("cannot read the audit log")]
    Read(#[from] io::Error),
    #[error("cannot understand a line of the audit log: {line}")]
    Parse { line: String, source: serde_json::Error },
    #[error("cannot leave a trace in the audit log")]
    Trace(#[from] KubectlError),
    #[error("cannot find our own trace in the audit log")]
    Lost(#[from] TimedOut),
}

/// An answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The verb of Kubernetes: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    pub user: String,
    /// The id of the user's token, as in `JTI=5b1c…`; empty if the user showed another credential.
    pub credential: String,
    /// The account as which the user acted; empty if it was the user's own.
    pub acting_as: String,
    pub user_agent: String,
    /// The resource, as in `configmaps`; empty for a request that is about no object, such as `/readyz`.
    pub resource: String,
    /// The subresource, as in `status`; empty for a request about the object itself.
    pub subresource: String,
    pub group: String,
    pub namespace: String,
    pub name: String,
    pub uri: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// The time at which the request came in, as in `2027-01-31T12:00:00.000000Z`.
    pub time: String,
}

impl Record {
    /// Whether the request's verb changes something. A refused request counts, too.
    pub fn mutates(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }

    /// Whether the request's verb deletes something.
    pub fn deletes(&self) -> bool {
        matches!(self.verb.as_str(), "delete" | "deletecollection")
    }

    pub fn succeeded(&self) -> bool {
        self.code < 400
    }
}

/// The requests of a period, in the order of their answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records(pub Vec<Record>);

impl Records {
    #[must_use]
    pub fn of(self, user: User) -> Self {
        self.that(|record| record.user == user.name())
    }

    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        self.that(|record| record.namespace == namespace)
    }

    #[must_use]
    pub fn mutating(self) -> Self {
        self.that(Record::mutates)
    }

    #[must_use]
    pub fn deleting(self) -> Self {
        self.that(Record::deletes)
    }

    #[must_use]
    pub fn that(mut self, keep: impl FnMut(&Record) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The text of a failed assertion.
impl std::fmt::Display for Records {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Record {
            time,
            code,
            verb,
            user,
            uri,
            ..
        } in &self.0
        {
            writeln!(out, "{time} {code} {verb:<6} {user} {uri}")?;
        }
        Ok(())
    }
}

impl<'a> Audit<'a> {
    pub(crate) fn new(plane: &'a ControlPlane, file: PathBuf) -> Self {
        Self { plane, file }
    }

    /// The current position. All requests answered before this call are before it.
    pub fn mark(&self) -> Result<Mark, AuditError> {
        self.settle()?;
        Ok(Mark(fs::metadata(&self.file)?.len()))
    }

    /// The position before the first request.
    pub fn beginning(&self) -> Mark {
        Mark(0)
    }

    /// All requests after the mark that were answered before this call.
    pub fn since(&self, mark: Mark) -> Result<Records, AuditError> {
        self.settle()?;
        let records = self.read(mark)?;
        Ok(records.that(|record| !record.uri.starts_with(TRACE)))
    }

    /// Waits until the log is complete. The thread that answers a request writes its line just after the answer, and
    /// our own request takes many times longer than that gap. So when the line of our request is in the log, the lines
    /// of all earlier answers are there too.
    fn settle(&self) -> Result<(), AuditError> {
        let start = Mark(fs::metadata(&self.file)?.len());
        let mine = format!("{TRACE}{}-{}", std::process::id(), start.0);
        self.plane.kubectl(["get", "--raw", &mine])?;
        wait_until(Duration::from_secs(10), "our own request in the audit log", || {
            self.read(start)
                .map(|records| records.0.iter().any(|record| record.uri == mine).then_some(()))
        })?;
        Ok(())
    }

    fn read(&self, mark: Mark) -> Result<Records, AuditError> {
        let mut file = fs::File::open(&self.file)?;
        let before = mark.0.saturating_sub(1);
        file.seek(SeekFrom::Start(before))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = String::from_utf8_lossy(whole_lines(&text, mark.0 > 0));
        let records = whole.lines().map(|line| {
            parse(line).map_err(|source| AuditError::Parse {
                line: line.to_owned(),
                source,
            })
        });
        let answered = records.filter(|line| !matches!(line, Ok(line) if line.stage == "ResponseStarted"));
        answered
            .map(|line| line.map(Record::from))
            .collect::<Result<_, _>>()
            .map(Records)
    }
}

/// A killed server leaves an incomplete line, and the next server continues that line. The two-part line is parsed from
/// its last event.
fn parse(line: &str) -> Result<Line, serde_json::Error> {
    let behind = line.rfind(BEGIN).map_or(line, |begin| &line[begin..]);
    serde_json::from_str(line).or_else(|_| serde_json::from_str(behind))
}

/// The beginning of each event.
const BEGIN: &str = r#"{"kind":"Event","#;

/// The complete lines of this piece of the log. The last line may be incomplete and is left out. If `is_inside`, the
/// piece starts with the byte before the mark. The log is written in blocks, so the mark may be within a line. That
/// line belongs to the time before the mark.
fn whole_lines(text: &[u8], is_inside: bool) -> &[u8] {
    let end_of_line = |byte: &u8| *byte == b'\n';
    let begin = if is_inside {
        text.iter().position(end_of_line).map_or(text.len(), |end| end + 1)
    } else {
        0
    };
    let text = &text[begin..];
    text.iter().rposition(end_of_line).map_or(&[], |end| &text[..end])
}

/// The path of a harmless request that can be recognised in the log by its number.
const TRACE: &str = "/version?trace=";

/// The fields of a line that are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: Asker,
    #[serde(default)]
    impersonated_user: Asker,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Reference,
    #[serde(default)]
    response_status: Status,
    request_received_timestamp: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Asker {
    username: String,
    extra: Extra,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Extra {
    #[serde(rename = "authentication.kubernetes.io/credential-id")]
    credential: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    resource: String,
    subresource: String,
    api_group: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

impl From<Line> for Record {
    fn from(line: Line) -> Self {
        let Reference {
            resource,
            subresource,
            api_group,
            namespace,
            name,
        } = line.object_ref;
        Self {
            verb: line.verb,
            user: line.user.username,
            credential: line.user.extra.credential.concat(),
            acting_as: line.impersonated_user.username,
            user_agent: line.user_agent,
            resource,
            subresource,
            group: api_group,
            namespace,
            name,
            uri: line.request_uri,
            code: line.response_status.code,
            time: line.request_received_timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, whole_lines};

    #[test]
    fn a_line_behind_half_a_line_is_read() {
        let whole = r#"{"kind":"Event","stage":"ResponseComplete","verb":"get","requestURI":"/a","user":{},"requestReceivedTimestamp":"now"}"#;
        for line in [whole.to_owned(), format!("{}{whole}", &whole[..40])] {
            assert_eq!(parse(&line).unwrap().request_uri, "/a", "{line}");
        }
        assert!(parse(&whole[..40]).is_err());
    }

    #[test]
    fn a_mark_in_the_midst_of_a_line_skips_it() {
        let cases: [(&[u8], bool, &[u8]); 6] = [
            (b"one\ntwo\nthr", false, b"one\ntwo"),
            (b"\ntwo\nthr", true, b"two"),
            (b"ne\ntwo\n", true, b"two"),
            (b"ne\ntw", true, b""),
            (b"ne", true, b""),
            (b"", false, b""),
        ];
        for (text, is_inside, whole) in cases {
            assert_eq!(whole_lines(text, is_inside), whole);
        }
    }
}
