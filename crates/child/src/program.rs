//! A program with everything that the kernel needs to run it. It is complete before the child exists, because the child
//! has no memory of its own until it runs the program. Never starts anything.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString, c_char};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;

use super::Spawn;
use super::mark::{self, Mark};

/// Where a program without a slash in its name is searched if its environment has no `PATH`.
const PLACES: &str = "/bin:/usr/bin";

/// The files, arguments, environment, folder and input of a child, as the kernel takes them.
#[derive(Debug)]
pub(super) struct Program {
    /// The files that may be the program; the first one that exists is run.
    pub(super) files: Vec<CString>,
    pub(super) args: Vec<CString>,
    pub(super) env: Vec<CString>,
    pub(super) cwd: Option<CString>,
    /// Whether the child's input is a pipe; otherwise it is empty.
    pub(super) is_fed: bool,
}

impl Program {
    /// The program of a run. Fails if a text contains a zero byte.
    pub(super) fn of(spawn: &Spawn, mark: &Mark) -> io::Result<Self> {
        let args = std::iter::once(spawn.program.as_os_str()).chain(spawn.args.iter().map(OsString::as_os_str));
        let mark = [(OsStr::new(mark::VARIABLE), OsStr::new(mark.as_str()))];
        let given = spawn
            .env
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let path = spawn.env.iter().rev().find(|(name, _)| name == "PATH");
        let files = candidates(&spawn.program, path.map_or(OsStr::new(PLACES), |(_, value)| value));
        Ok(Self {
            files: files
                .iter()
                .map(|file| text(file.as_os_str()))
                .collect::<io::Result<_>>()?,
            args: args.map(text).collect::<io::Result<_>>()?,
            env: environment(given.chain(mark))?,
            cwd: spawn.cwd.as_ref().map(|cwd| text(cwd.as_os_str())).transpose()?,
            is_fed: spawn.stdin.is_some(),
        })
    }
}

/// The pointers to the texts, with a null pointer at the end.
pub(super) fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// The files that a program's name may mean.
fn candidates(program: &Path, path: &OsStr) -> Vec<PathBuf> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    std::env::split_paths(path).map(|place| place.join(program)).collect()
}

/// `NAME=VALUE` for each variable. If a name comes more than once, its last value counts.
fn environment<'a>(variables: impl Iterator<Item = (&'a OsStr, &'a OsStr)>) -> io::Result<Vec<CString>> {
    let last: BTreeMap<_, _> = variables.collect();
    let pairs = last.into_iter().map(|(name, value)| {
        let mut pair = name.to_owned();
        pair.push("=");
        pair.push(value);
        text(&pair)
    });
    pairs.collect()
}

fn text(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// The ends of the child's streams that the child gets.
#[derive(Debug)]
pub(super) struct Theirs {
    stdin: OwnedFd,
    stdout: PipeWriter,
    stderr: PipeWriter,
}

impl Theirs {
    /// Standard input, output and error.
    pub(super) fn all(&self) -> [BorrowedFd<'_>; 3] {
        [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()]
    }
}

/// The operator's ends of the child's streams.
#[derive(Debug)]
pub(super) struct Ours {
    /// None if the input is empty.
    pub(super) stdin: Option<PipeWriter>,
    pub(super) stdout: PipeReader,
    pub(super) stderr: PipeReader,
}

impl Program {
    /// New streams for a child. All these descriptors are close-on-exec.
    pub(super) fn streams(&self) -> io::Result<(Ours, Theirs)> {
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let (stdin, their_stdin) = if self.is_fed {
            let (theirs, ours) = io::pipe()?;
            (Some(ours), theirs.into())
        } else {
            (None, fs_err::File::open("/dev/null")?.into_file().into())
        };
        let theirs = Theirs {
            stdin: their_stdin,
            stdout: their_stdout,
            stderr: their_stderr,
        };
        Ok((Ours { stdin, stdout, stderr }, theirs))
    }
}
