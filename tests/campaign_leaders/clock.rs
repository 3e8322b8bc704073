//! Wall clocks that are wrong: a library in front of a program's own, compiled on the spot, and a file that says by how much.
//!
//! Clocks that only count stay right, for a program that waits in the kernel goes by the machine's.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use fs_err as fs;
use testbed::process;

/// The library, for a process that is to have a wrong clock.
pub(crate) fn compile(folder: &Path) -> anyhow::Result<PathBuf> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    fs::write(&source, include_str!("clock.c"))?;
    // Whoever builds Rust has one.
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

/// By how much one clock is wrong.
#[derive(Debug)]
pub(crate) struct Ahead(fs::File);

impl Ahead {
    /// Right at first.
    pub(crate) fn none(path: &Path) -> anyhow::Result<Self> {
        let ahead = Self(fs::File::create(path)?);
        ahead.set(0)?;
        Ok(ahead)
    }

    /// It jumps. The file keeps its length: programs look at it as memory.
    pub(crate) fn set(&self, seconds: i64) -> anyhow::Result<()> {
        Ok(self.0.file().write_all_at(&seconds.to_ne_bytes(), 0)?)
    }
}
