//! Directories that would take the place of those in use: here, on standard input, or in an image.
//!
//! Must never leave unpacked files behind.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use command::CommandError;
use package::image::{self, ImageConfig, Unpacked};
use package::pack;
use package::transfer::Reach;
use package::unpack::{self, Compression, Layer};
use settings::Environment;
use tempfile::TempDir;

use super::{NoPlan, STDIN, read_stdin};

/// The variables by which an operator finds its modules, the first of which counts.
const MODULES: [&str; 2] = ["ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"];
/// The same for global hooks.
const GLOBAL_HOOKS: [&str; 3] = [
    "ADDON_OPERATOR_GLOBAL_HOOKS_DIR",
    "GLOBAL_HOOKS_DIR",
    "SHELL_OPERATOR_HOOKS_DIR",
];

/// Directories on this machine.
#[derive(Debug)]
pub(super) struct Directories {
    pub(super) modules: Vec<PathBuf>,
    /// None if those in use stay.
    pub(super) global_hooks: Option<PathBuf>,
    /// Has files that were unpacked for the plan.
    _folder: Option<TempDir>,
}

impl Directories {
    /// Directories that people named.
    pub(super) fn here(modules: &[PathBuf], global_hooks: Option<&Path>) -> Result<Self, CommandError> {
        let whole = |dir: &Path| {
            fs_err::canonicalize(dir).map_err(|source| CommandError::Read {
                file: dir.to_owned(),
                source,
            })
        };
        Ok(Self {
            modules: modules.iter().map(|dir| whole(dir)).collect::<Result<_, _>>()?,
            global_hooks: global_hooks.map(whole).transpose()?,
            _folder: None,
        })
    }

    /// The directories that the command outside of the pod has packed. Global hooks are the last of them.
    pub(super) fn on_stdin(has_global_hooks: bool, environment: &Environment) -> Result<Self, CommandError> {
        let folder = folder(environment)?;
        let text = read_stdin().map_err(NoPlan::Stdin)?;
        let packed: Vec<String> = serde_json::from_str(&text).map_err(NoPlan::Stream)?;
        let mut modules = Vec::new();
        for (number, packed) in packed.iter().enumerate() {
            let dir = folder.path().join(number.to_string());
            let layer = Layer {
                compression: Compression::Gzip,
                bytes: STANDARD.decode(packed).map_err(NoPlan::Coded)?.into(),
            };
            fs_err::create_dir(&dir).map_err(NoPlan::Folder)?;
            unpack::unpack(&[layer], &dir).map_err(NoPlan::Unpack)?;
            modules.push(dir);
        }
        let global_hooks = if has_global_hooks { modules.pop() } else { None };
        Ok(Self {
            modules,
            global_hooks,
            _folder: Some(folder),
        })
    }

    /// The directories of an image: these, or else those that the operator of the image would use.
    pub(super) fn of_image(
        text: &str,
        modules: &[PathBuf],
        reach: &Reach,
        environment: &Environment,
    ) -> Result<Self, CommandError> {
        let folder = folder(environment)?;
        let wanted = |config: &ImageConfig| wanted(config, modules);
        let unpacked = image::fetch(text, wanted, folder.path(), reach, environment)?;
        let Unpacked { digest, directories } = unpacked;
        // The tag may move before the image is used.
        drop(writeln!(io::stderr(), "The plan is for {digest}."));
        let mut directories = directories;
        let hooks = directories.pop().filter(|hooks| hooks.here.is_dir());
        if let Some(missing) = directories.iter().find(|dir| !dir.here.is_dir()) {
            let path = missing.path.clone();
            return Err(NoPlan::NotInImage { path }.into());
        }
        let no_hooks = folder.path().join("none");
        fs_err::create_dir(&no_hooks).map_err(NoPlan::Folder)?;
        Ok(Self {
            modules: directories.into_iter().map(|dir| dir.here).collect(),
            global_hooks: Some(hooks.map_or(no_hooks, |hooks| hooks.here)),
            _folder: Some(folder),
        })
    }

    /// All directories as `on_stdin` reads them.
    pub(super) fn packed(&self) -> Result<String, CommandError> {
        let directories = self.modules.iter().chain(&self.global_hooks);
        let packed: Result<Vec<String>, NoPlan> = directories.map(|dir| packed(dir)).collect();
        Ok(serde_json::to_string(&packed?).expect("texts are JSON"))
    }
}

/// The modules directories of an image, and its global hooks at the end.
fn wanted(config: &ImageConfig, modules: &[PathBuf]) -> Vec<PathBuf> {
    let said = |names: &[&str], default: &str| {
        let set = names.iter().filter_map(|name| config.environment.get(*name));
        let first = set.into_iter().find(|value| !value.is_empty());
        first.map_or_else(|| default.to_owned(), Clone::clone)
    };
    let mut wanted = modules.to_vec();
    if wanted.is_empty() {
        let dirs = said(&MODULES, "modules");
        wanted.extend(dirs.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from));
    }
    wanted.push(said(&GLOBAL_HOOKS, "global-hooks").into());
    wanted
}

fn packed(dir: &Path) -> Result<String, NoPlan> {
    let packed = pack::pack(dir).map_err(|source| NoPlan::Pack {
        path: dir.to_owned(),
        source,
    })?;
    Ok(STANDARD.encode(packed))
}

/// A folder for the files of one plan.
fn folder(environment: &Environment) -> Result<TempDir, NoPlan> {
    // The root of a pod may be read only, and this directory is the operator's for such files.
    let parent = environment.get("ADDON_OPERATOR_TMP_DIR").map(PathBuf::from);
    let parent = parent.filter(|dir| dir.is_dir()).unwrap_or_else(std::env::temp_dir);
    // By this prefix the next start of the operator removes the folder of a killed process.
    let prefix = format!("run-{}-plan-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
    folder.map_err(NoPlan::Folder)
}

/// Whether a path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == OsStr::new(STDIN)
}
