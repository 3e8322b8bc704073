//! The image that the demo installs: the operator just built, the packages of the image's lock, and the modules of
//! docs/guides/modules.md on top.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use testbed::process;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// The assembled image, and the program that pushes it to a registry.
#[derive(Debug)]
pub(super) struct Image {
    layout: PathBuf,
    tool: PathBuf,
}

impl Image {
    /// Assembles the image below this folder. If mirrors have deleted pinned packages, today's are used.
    pub(super) fn assemble(folder: &Path, tool: &Path, operator: &Path) -> anyhow::Result<Self> {
        let (layout, packages) = (folder.join("image"), packages()?);
        let definition = run(
            tool,
            &[
                "fetch".as_ref(),
                "--packages".as_ref(),
                packages.as_ref(),
                "--or-today".as_ref(),
                folder.join("image-of-today").as_ref(),
            ],
        )?;
        let small = without_names(folder, operator)?;
        run(
            tool,
            &[
                "build".as_ref(),
                "--definition".as_ref(),
                definition.trim().as_ref(),
                "--to".as_ref(),
                layout.as_ref(),
                "--packages".as_ref(),
                packages.as_ref(),
                "--operator".as_ref(),
                small.as_ref(),
                "--add".as_ref(),
                "examples/modules:/guestbook".as_ref(),
            ],
        )?;
        Ok(Self {
            layout,
            tool: tool.to_owned(),
        })
    }

    /// Pushes the image, and returns its name with its digest.
    pub(super) fn push(&self, reference: &str) -> anyhow::Result<String> {
        run(&self.tool, &["push".as_ref(), self.layout.as_ref(), reference.as_ref()])
    }
}

/// A copy of the program without the names for debuggers, which are most of a debug build.
fn without_names(folder: &Path, operator: &Path) -> anyhow::Result<PathBuf> {
    let small = folder.join("operator-of-image");
    run(Path::new("strip"), &["-o".as_ref(), small.as_ref(), operator.as_ref()])?;
    Ok(small)
}

/// The folder in which `make image` keeps packages, too.
fn packages() -> anyhow::Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::home_dir().map(|home| home.join(".cache"));
    let cache = cache.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("addon-operator/packages"))
}

/// The output of a program that is run in the repository.
fn run(program: &Path, arguments: &[&OsStr]) -> anyhow::Result<String> {
    let mut command = process::command(program);
    command.args(arguments).current_dir(REPOSITORY);
    let output = process::run(command, None).with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}
