//! Starts a program, or finds the reason why it cannot be started.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::mark::Mark;
use super::program::Program;
use super::spawner::{Child, Pipes, Spawner, Unborn};
use super::{ProcessError, Spawn};

/// The timeout of a start. Only a file system that hangs needs longer.
const START_WITHIN: Duration = Duration::from_mins(1);
/// The number of retries for a busy file: one that was just written may still be open in a child that was forked at the
/// same time (ETXTBSY).
const BUSY_RETRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(25);
const NO_FORMAT: &str =
    "is it built for this machine's processor? a script needs a first line like `#!/bin/sh` that names its interpreter";
/// The kernel reads at most this much of a first line.
const FIRST_LINE: u64 = 256;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Spawner {
    // Takes `&mut` although nothing is changed: a sink need not be `Sync`, and the future has to be `Send`.
    pub(super) async fn start(
        &self,
        spawn: &mut Spawn,
        mark: &Mark,
        cancel: &CancellationToken,
    ) -> Result<(Child, Pipes), ProcessError> {
        let within = START_WITHIN.min(spawn.deadline);
        let until = Instant::now() + within;
        let mut busy = 0;
        loop {
            let started = match Program::of(spawn, mark) {
                Ok(program) => self.spawn(program, mark.clone(), until, cancel).await,
                Err(error) => Err(Unborn::Refused(error)),
            };
            let why = match started {
                Ok(started) => return Ok(started),
                Err(why) => why,
            };
            let program = spawn.program.clone();
            return Err(match why {
                Unborn::Refused(source)
                    if source.kind() == io::ErrorKind::ExecutableFileBusy && busy < BUSY_RETRIES =>
                {
                    busy += 1;
                    sleep(BUSY_PAUSE).await;
                    continue;
                }
                Unborn::Refused(source) => ProcessError::Start {
                    program,
                    hint: start_hint(spawn, &source),
                    source,
                },
                Unborn::Stuck => ProcessError::Stuck {
                    program,
                    waited: within,
                },
                Unborn::Cancelled => ProcessError::Cancelled {
                    program,
                    finished: None,
                },
            });
        }
    }
}

/// A hint for the kernel's "no such file", which may mean the program, its interpreter or the working directory.
fn start_hint(spawn: &Spawn, error: &io::Error) -> Option<String> {
    if let Some(hint) = exhausted(error) {
        return Some(hint.to_owned());
    }
    if error.raw_os_error() == Some(libc::ENOEXEC) {
        return Some(marked(&spawn.program).unwrap_or_else(|| NO_FORMAT.to_owned()));
    }
    match error.kind() {
        io::ErrorKind::NotFound if spawn.cwd.as_deref().is_some_and(|cwd| !cwd.is_dir()) => {
            Some("the working directory does not exist".to_owned())
        }
        io::ErrorKind::NotFound if spawn.program.exists() => windows_ends(&spawn.program).or_else(|| {
            Some(match interpreter_of(&spawn.program) {
                Some(interpreter) => format!("bad interpreter? the first line of the file asks for `{interpreter}`"),
                None => "bad interpreter? the program needs a loader that is not here".to_owned(),
            })
        }),
        io::ErrorKind::PermissionDenied if spawn.program.is_dir() => Some("it is a directory".to_owned()),
        io::ErrorKind::PermissionDenied => {
            Some("is the file executable, is its volume mounted without `noexec`? try chmod +x".to_owned())
        }
        _ => None,
    }
}

/// The resource that is exhausted, according to the error.
pub fn exhausted(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error().or_else(|| told_of_a_file(error))? {
        libc::EMFILE => Some("the operator has no file descriptors left: raise its limit of open files"),
        libc::ENFILE => Some("the machine has no file descriptors left"),
        libc::EAGAIN => {
            Some("no more processes may be started: see the limit of processes of the pod, its node and its user")
        }
        libc::ENOMEM => {
            Some("there is no memory for another process: raise the memory limit, or run fewer hooks at a time")
        }
        _ => None,
    }
}

/// The system's error code, if the error names a file: then only the text of the error has the code.
fn told_of_a_file(error: &io::Error) -> Option<i32> {
    let told = error.to_string();
    let is_told = |code: &i32| told.ends_with(&io::Error::from_raw_os_error(*code).to_string());
    [libc::EMFILE, libc::ENFILE].into_iter().find(is_told)
}

/// A hint for a script whose first line ends as on Windows: the kernel takes the carriage return for a part of the
/// interpreter's name.
pub fn windows_ends(program: &Path) -> Option<String> {
    let is_so = first_line(program)?.ends_with(b"\r");
    is_so.then(|| {
        let file = program.display();
        format!(
            "its lines end as on Windows, and the interpreter is searched with that end: `sed -i 's/\\r$//' {file}`"
        )
    })
}

/// A hint for a script with a byte order mark, behind which the kernel does not find `#!`.
fn marked(program: &Path) -> Option<String> {
    head(program)?.starts_with(BYTE_ORDER_MARK).then(|| {
        let file = program.display();
        format!(
            "saved with a byte order mark: save it as UTF-8 without one, as by `sed -i '1s/^\\xEF\\xBB\\xBF//' {file}`"
        )
    })
}

/// The beginning of a file.
fn head(program: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = fs_err::File::open(program).ok()?;
    file.take(FIRST_LINE).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The first line of a script, without `#!`.
fn first_line(program: &Path) -> Option<Vec<u8>> {
    head(program)?
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()
        .map(<[u8]>::to_vec)
}

/// The program after `#!` in the first line.
fn interpreter_of(program: &Path) -> Option<String> {
    Some(
        String::from_utf8_lossy(&first_line(program)?)
            .trim_matches([' ', '\t'])
            .escape_debug()
            .to_string(),
    )
}
