//! Directories that would take the place of those in use: here, on standard input, or in an image.
//!
//! Must never leave unpacked files behind.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use command::CommandError;
use package::image::{self, ImageConfig, Unpacked};
use package::pack;
use package::transfer::Reach;
use package::unpack::{self, Compression, Layer};
use registry::documents::Platform;
use settings::Environment;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::{NoPlan, STDIN};

/// The size limit of all packed directories, in bytes as standard input has them. The program in the pod holds them in memory.
const MOST: usize = 128 << 20;
/// The variables by which an operator finds its modules, the first of which counts.
const MODULES: [&str; 2] = ["ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"];
/// The same for global hooks.
const GLOBAL_HOOKS: [&str; 3] = [
    "ADDON_OPERATOR_GLOBAL_HOOKS_DIR",
    "GLOBAL_HOOKS_DIR",
    "SHELL_OPERATOR_HOOKS_DIR",
];

/// Directories on this machine for one plan, and the folder of those that were unpacked for it.
#[derive(Debug)]
pub(super) struct Directories {
    pub(super) modules: Vec<PathBuf>,
    /// None if those in use stay.
    pub(super) global_hooks: Option<PathBuf>,
    _folder: Option<TempDir>,
}

impl Directories {
    /// The whole paths of directories that people named by flags.
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
        let mut modules = Vec::new();
        for (number, packed) in packed_on_stdin()?.into_iter().enumerate() {
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
        (text, platform): (&str, &Platform),
        modules: &[PathBuf],
        reach: &Reach,
        environment: &Environment,
    ) -> Result<Self, CommandError> {
        let folder = folder(environment)?;
        let wanted = |config: &ImageConfig| wanted(config, modules);
        let unpacked = image::fetch(text, platform, wanted, folder.path(), reach, environment)?;
        let Unpacked { digest, directories } = unpacked;
        // The tag may move before the image is used.
        drop(writeln!(io::stderr(), "The plan is for {digest}."));
        if let Some(missing) = directories.iter().find(|dir| !dir.here.is_dir()) {
            let path = missing.path.clone();
            return Err(NoPlan::NotInImage { path }.into());
        }
        let mut modules: Vec<PathBuf> = directories.into_iter().map(|dir| dir.here).collect();
        Ok(Self {
            global_hooks: modules.pop(),
            modules,
            _folder: Some(folder),
        })
    }

    /// All directories as `on_stdin` reads them.
    pub(super) fn packed(&self) -> Result<String, CommandError> {
        let directories = self.modules.iter().chain(&self.global_hooks);
        let packed: Result<Vec<String>, NoPlan> = directories.map(|dir| packed(dir)).collect();
        let packed = serde_json::to_string(&packed?).expect("texts are JSON");
        if packed.len() > MOST {
            return Err(NoPlan::Large.into());
        }
        Ok(packed)
    }
}

fn packed_on_stdin() -> Result<Vec<String>, NoPlan> {
    let mut text = String::new();
    let mut limited = io::stdin().take(MOST as u64);
    limited.read_to_string(&mut text).map_err(NoPlan::Stdin)?;
    serde_json::from_str(&text).map_err(NoPlan::Stream)
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
    let folder = folder.map_err(NoPlan::Folder)?;
    let path = folder.path().to_owned();
    thread::spawn(move || sweep(&path));
    Ok(folder)
}

/// Ends the process on a signal once it has removed the folder. Without the folder the signal is heeded by nobody, as by a pager.
#[expect(clippy::exit, reason = "the command is at any place, and has nothing else to end")]
fn sweep(folder: &Path) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return;
    };
    runtime.block_on(async {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
            return;
        };
        loop {
            let number = tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                _ = hangup.recv() => 1,
            };
            if folder.exists() {
                // Under another name the command writes no more into it.
                let aside = folder.with_extension("ended");
                drop(fs_err::rename(folder, &aside).and_then(|()| fs_err::remove_dir_all(&aside)));
                std::process::exit(128 + number);
            }
        }
    });
}

/// Whether a path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == OsStr::new(STDIN)
}
