//! Wrong wall clocks for single processes: a preloaded library, compiled here, adds the seconds that a file contains.
//!
//! Monotonic clocks stay right, because a program that waits in the kernel waits by the machine's clock.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use fs_err as fs;
use testbed::process;

/// Compiles the library, which a process has to preload.
pub(crate) fn compile(folder: &Path) -> anyhow::Result<PathBuf> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    fs::write(&source, include_str!("clock.c"))?;
    // A machine that can build Rust has a C compiler.
    let mut compiler = process::command("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source]);
    let output = process::run(compiler, None)?;
    ensure!(
        output.status.success(),
        "cc cannot compile the clock: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(library)
}

/// The file with the error of one clock.
#[derive(Debug)]
pub(crate) struct Ahead(fs::File);

impl Ahead {
    /// A clock without an error.
    pub(crate) fn none(path: &Path) -> anyhow::Result<Self> {
        let ahead = Self(fs::File::create(path)?);
        ahead.set(0)?;
        Ok(ahead)
    }

    /// Sets the error in seconds. The file keeps its length, because programs map it into memory.
    pub(crate) fn set(&self, seconds: i64) -> anyhow::Result<()> {
        Ok(self.0.file().write_all_at(&seconds.to_ne_bytes(), 0)?)
    }
}
