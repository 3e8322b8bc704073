//! Builds programs from the pinned Go modules into a cache that all checkouts of the repository share.
//!
//! An entry of the cache is named after everything that shapes a binary: the pinned modules, the flags and the version
//! of Go. When several processes want the same entry, one builds under a lock and the others wait. A file appears in an
//! entry only by a rename, complete. This module must never write into the repository.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fs_err as fs;
use md5::{Digest, Md5};
use thiserror::Error;

use crate::find::is_executable;
use crate::part::{Module, Part};
use crate::process::{self, Bond, Bound};
use crate::progress::{Progress, Times, say};

#[derive(Debug, Error)]
pub enum BuildError {
    #[error("cannot use the cache")]
    Cache(#[from] io::Error),
    #[error("cannot lock {file}")]
    Lock { file: PathBuf, source: io::Error },
    #[error("cannot run go")]
    Start(#[source] io::Error),
    #[error("go build failed; the end of what it said:\n{said}")]
    Go { said: String, go: String },
    #[error("the build was interrupted")]
    Interrupted,
}

impl BuildError {
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Go { said, go } if said.contains("requires go >=") => {
                vec![format!(
                    "the Go on PATH is {go}; install a newer one, or let it fetch one (unset GOTOOLCHAIN)"
                )]
            }
            Self::Go { .. } => {
                vec!["modules come from the proxy named by `go env GOPROXY`; check that it answers".into()]
            }
            Self::Cache(_) | Self::Lock { .. } => vec!["TESTBED_CACHE may name another folder".to_owned()],
            Self::Start(_) | Self::Interrupted => Vec::new(),
        }
    }
}

/// A Go toolchain.
#[derive(Debug)]
pub(crate) struct Go {
    program: PathBuf,
    /// As in `go1.26.8`.
    version: String,
    /// The search path on which Go was found. Builds run with the same path.
    path: OsString,
}

impl Go {
    pub(crate) fn ask(program: PathBuf, path: OsString) -> io::Result<Self> {
        let mut command = process::command(&program);
        // Run outside of any module, because the answer must not depend on the current folder.
        command.args(["env", "GOVERSION"]).env("PATH", &path).current_dir("/");
        let output = process::run(command, None)?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || version.is_empty() {
            return Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        Ok(Self { program, version, path })
    }
}

/// The folder with all programs that were built.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn times(&self) -> Times {
        Times::of(&self.folder)
    }

    /// A program from an earlier build. Without `go` there is no version to compare with, so a build by any version of
    /// Go counts.
    pub(crate) fn get(&self, part: Part, go: Option<&Go>) -> Option<PathBuf> {
        let stem = stem(part.module());
        let file = if let Some(go) = go {
            self.folder.join(entry(part.module(), go)).join(part.name())
        } else {
            let entries = fs::read_dir(&self.folder).ok()?.filter_map(Result::ok);
            let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&stem));
            ours.map(|entry| entry.path().join(part.name()))
                .filter(|file| is_executable(file))
                .max()?
        };
        is_executable(&file).then_some(file)
    }

    /// Builds a program, unless another process has built it meanwhile. `left` is the number of programs to be built
    /// after it.
    pub(crate) fn build(&self, part: Part, go: &Go, left: usize) -> Result<PathBuf, BuildError> {
        fs::create_dir_all(&self.folder)?;
        let _lock = match self.turn(part, go)? {
            Turn::Ours(lock) => lock,
            Turn::Built(file) => return Ok(file),
        };
        let module = part.module();
        let prefix = format!(".building-{}-", module.name);
        self.sweep(&prefix);
        let site = tempfile::Builder::new().prefix(&prefix).tempdir_in(&self.folder)?;
        fs::write(site.path().join("go.mod"), module.go_mod)?;
        fs::write(site.path().join("go.sum"), module.go_sum)?;
        if let Some(main) = module.main {
            fs::write(site.path().join("main.go"), main)?;
        }
        let took = compile(part, go, site.path(), left, self.times().expected(part))?;
        self.times().remember(part, took);
        let entry = self.folder.join(entry(module, go));
        fs::create_dir_all(&entry)?;
        let file = entry.join(part.name());
        fs::rename(site.path().join(part.name()), &file)?;
        Ok(file)
    }

    /// Takes the lock of a module, so that only one process builds from it. The kernel releases the lock when its
    /// holder ends. The holder may go on with other programs of the module, so the wait also ends when `part` is built.
    fn turn(&self, part: Part, go: &Go) -> Result<Turn, BuildError> {
        let path = self.folder.join(format!("{}.lock", part.module().name));
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)?;
        let mut progress: Option<Progress> = None;
        let turn = loop {
            let tried = file.file().try_lock();
            if let Some(built) = self.get(part, Some(go)) {
                break Turn::Built(built);
            }
            match tried {
                Ok(()) => break Turn::Ours(file),
                Err(std::fs::TryLockError::WouldBlock) => {}
                Err(std::fs::TryLockError::Error(source)) => return Err(BuildError::Lock { file: path, source }),
            }
            if process::interrupted() {
                return Err(BuildError::Interrupted);
            }
            progress
                .get_or_insert_with(|| {
                    let what = format!("waiting for another process that builds {part}");
                    Progress::begin(what, self.times().expected(part))
                })
                .look();
            std::thread::sleep(LOOK);
        };
        if let Some(progress) = progress {
            progress.end();
        }
        Ok(turn)
    }

    /// Removes the remains of killed builds. The caller holds the module's lock, so no build of the module is running.
    fn sweep(&self, prefix: &str) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok);
        for dead in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
            // A remainder that cannot be removed does no harm.
            let _ = fs::remove_dir_all(dead.path());
        }
    }
}

/// The end of the wait for a program.
enum Turn {
    /// This process holds the lock of the module, and has to build.
    Ours(fs::File),
    /// Another process has built the program.
    Built(PathBuf),
}

/// The interval at which a waiting process tries the lock again.
const LOOK: Duration = Duration::from_millis(50);

/// Nobody debugs these programs, and the linker would drop the names for debuggers that the compiler has written.
const FLAGS: [&str; 3] = ["-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"];

/// The heap of a compiler at which it begins to collect garbage. Nearly all compilers end before they reach it.
const HEAP: &str = "1500MiB";

fn stem(module: &Module) -> String {
    let mut hash = Md5::new();
    for input in [module.go_mod, module.go_sum, &module.linker_flags()]
        .into_iter()
        .chain(module.main)
        .chain(FLAGS)
    {
        hash.update(input);
        hash.update([0]);
    }
    // 48 bits are enough to keep the few entries of one cache apart.
    let short = hash
        .finalize()
        .iter()
        .take(6)
        .fold(0_u64, |short, &byte| short << 8 | u64::from(byte));
    format!("{}-{}-{short:012x}-", module.name, module.version())
}

fn entry(module: &Module, go: &Go) -> String {
    // The version of some builds of Go contains spaces and other characters.
    stem(module)
        + &go
            .version
            .replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.', "_")
}

/// Builds a program in a folder of its own, and returns the time that it took.
fn compile(part: Part, go: &Go, site: &Path, left: usize, expected: Duration) -> Result<Duration, BuildError> {
    let mut command = process::command(&go.program);
    command
        .arg("build")
        .args(FLAGS)
        .arg("-ldflags")
        .arg(part.module().linker_flags());
    command.arg("-o").arg(site.join(part.name())).arg(part.package());
    command.current_dir(site).env("PATH", &go.path).env("CGO_ENABLED", "0");
    // Go settings of the machine must not change the binary, and `go.sum` must not be altered.
    command
        .env("GOFLAGS", "-mod=readonly")
        .env("GOWORK", "off")
        .env("GOTMPDIR", site);
    if std::env::var_os("GOGC").is_none() {
        command.env("GOGC", "off").env("GOMEMLIMIT", HEAP);
    }
    command.env_remove("GOOS").env_remove("GOARCH");
    command.stdout(Stdio::null()).stderr(Stdio::piped());

    let after = if left == 0 {
        String::new()
    } else {
        format!(", {left} more to build after it")
    };
    let mut progress = Progress::begin(format!("building {part} with {}{after}", go.version), expected);
    // Go stops its compilers when it is interrupted, but not when it is killed.
    let mut build = Bound::start(command, Bond::PoliteGroup(libc::SIGINT)).map_err(BuildError::Start)?;
    let listener = build
        .take_stderr()
        .map(|stderr| std::thread::spawn(move || listen(stderr)));
    let status = loop {
        if let Some(status) = build.ended().map_err(BuildError::Start)? {
            break status;
        }
        if process::interrupted() {
            return Err(BuildError::Interrupted);
        }
        progress.look();
        std::thread::sleep(LOOK);
    };
    let said = listener.and_then(|listener| listener.join().ok()).unwrap_or_default();
    if !status.success() {
        return Err(BuildError::Go {
            said,
            go: go.version.clone(),
        });
    }
    let took = progress.end();
    say(&format!("built {part} in {} s", took.as_secs()));
    Ok(took)
}

/// Returns the last lines, for an error message. Lines about downloads are left out.
fn listen(stderr: impl io::Read) -> String {
    const KEPT: usize = 20;
    let mut lines = std::collections::VecDeque::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if line.starts_with("go: downloading ") {
            continue;
        }
        lines.push_back(line);
        if lines.len() > KEPT {
            lines.pop_front();
        }
    }
    Vec::from(lines).join("\n")
}
