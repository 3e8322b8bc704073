//! `plan`: shows the effects of a change before it is made: an edit of the ConfigMap, other modules directories, another
//! version of the operator's image, or other versions of modules.
//!
//! Files are read here, and the operator makes the plan. Must never edit the ConfigMap.

mod directories;

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use addon_core::operator::edit::Edited;
use addon_core::operator::provenance::CONFIRM_REMOVALS;
use authoring::check::{read_confirmation, read_data};
use authoring::findings::Finding;
use clap::Args;
use command::outside;
use command::pager;
use command::paint::Paint;
use command::{Caller, CommandError, Hinted, Output, Target, print};
use helm_yaml::yaml;
use package::command::Way;
use package::pack::PackError;
use package::transfer::Reach;
use package::unpack::UnpackError;
use plan::document::Plan as Document;
use plan::text::text;
use registry::documents::Platform;
use serde_json::json;
use settings::{ConfigurationError, Machine, Settings};
use thiserror::Error;

use self::directories::{Directories, is_stdin};
use crate::app::rehearsal::{self, NoRehearsal};

const STDIN: &str = "-";
/// The exit code if the change would have an effect.
const CHANGES: u8 = 2;

pub(super) const AFTER_HELP: &str = "\
Exit codes:
  0  nothing would change
  1  there is no plan; the reason is on standard error
  2  something would change, or would not be applied";

#[derive(Debug, Args)]
pub(super) struct Plan {
    #[command(flatten)]
    change: Change,
    /// Directory with global hooks that would take the place of that in use [default: that in use]
    #[arg(long, value_name = "DIR")]
    global_hooks_dir: Option<PathBuf>,
    /// Directory in the image with modules, may be given again [default: as MODULES_DIR of the image names them]
    #[arg(long, value_name = "DIR", requires = "image")]
    in_image: Vec<PathBuf>,
    /// Platform of the image, as linux/arm64 [default: linux with the processor of this machine]
    #[arg(long, value_name = "OS/ARCHITECTURE", requires = "image")]
    platform: Option<Platform>,
    #[command(flatten)]
    target: Target,
    /// Format of the plan
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
    #[command(flatten, next_help_heading = "Registry of --image")]
    way: Way,
}

/// The change whose effects are wanted.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// File with the manifest of the edited ConfigMap, or with its data alone; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["image", "module"])]
    filename: Option<PathBuf>,
    /// Modules directories that would take the place of those in use, separated by colons
    #[arg(long, value_name = "DIR", value_delimiter = ':', conflicts_with_all = ["image", "module"])]
    modules_dir: Vec<PathBuf>,
    /// Image of another version of the operator, whose modules would take the place of those in use. This command pulls it
    #[arg(long, value_name = "REFERENCE", conflicts_with = "module")]
    image: Option<String>,
    /// Version that a module with a source would have, a tag or a digest; may be repeated
    #[arg(long, value_name = "NAME=VERSION", value_parser = version)]
    module: Vec<(String, String)>,
    /// Plan the first converge of an operator that does not run, with the settings of the environment. -f, --modules-dir and
    /// --global-hooks-dir take the place of what these name
    #[arg(long, conflicts_with_all = ["image", "module"])]
    start: bool,
}

/// The fields of the request with their values.
type Fields = Vec<(&'static str, String)>;

/// Why there is no plan.
#[derive(Debug, Error)]
enum NoPlan {
    #[error("{0}")]
    Unreadable(Finding),
    #[error("cannot pack {}", path.display())]
    Pack { path: PathBuf, source: PackError },
    #[error("cannot unpack the directories from standard input")]
    Stream(#[source] serde_json::Error),
    #[error("cannot unpack the directories from standard input")]
    Coded(#[from] base64::DecodeError),
    #[error("cannot unpack the directories from standard input")]
    Unpack(#[from] UnpackError),
    #[error("cannot read standard input")]
    Stdin(#[source] io::Error),
    #[error("the paths of the directories are no text")]
    Paths(#[source] serde_json::Error),
    #[error("cannot make a folder for the directories from standard input")]
    Folder(#[source] io::Error),
    #[error("cannot understand the operator's answer")]
    Answer(#[source] serde_json::Error),
    #[error("--pod and --debug-unix-socket name an operator, and --start plans without one")]
    Elsewhere,
    #[error("-f and --modules-dir go together with --start alone")]
    Both,
    #[error("--global-hooks-dir needs --modules-dir or --start")]
    HooksAlone,
    #[error(transparent)]
    Settings(ConfigurationError),
    #[error("the start cannot be planned")]
    Rehearsal(#[source] NoRehearsal),
    #[error("the plan ended in the pod with the exit code {code}")]
    Ended { code: u8 },
    #[error("the directories are larger than the pod can take")]
    Large,
    #[error("the image has no directory {}", path.display())]
    NotInImage { path: PathBuf },
    #[error("flags that tell how a registry is reached need --image")]
    WayWithoutImage,
    #[error("{message}")]
    Refused { message: String },
}

impl Hinted for NoPlan {
    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Unreadable(_) => "`addon-operator config check FILE` shows all mistakes of a ConfigMap",
            Self::NotInImage { .. } => {
                "--in-image names the directories with modules, as the settings of the operator's Deployment do"
            }
            Self::Rehearsal(error) => return error.hints(),
            Self::Ended { .. } => {
                "code 137 says that it was killed, as for its memory: `kubectl describe pod` tells the last state of the container"
            }
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

impl Plan {
    pub(super) fn run(mut self, caller: &Caller<'_>) -> Result<u8, CommandError> {
        if self.change.start {
            return self.rehearse(caller);
        }
        let read = self.read(caller)?;
        if let Some(place) = caller.place(&self.target) {
            let (flags, input) = read.for_the_pod()?;
            let words = ["addon-operator", "plan", "-o", "json"];
            let words = words.into_iter().map(ToOwned::to_owned).chain(flags).collect();
            let (code, answer) = outside::outcome(&place, caller, words, input.as_deref())?;
            return match code {
                0 | CHANGES => {
                    drop(read);
                    self.show(&answer, caller)
                }
                // The reason is told already.
                1 => Ok(1),
                code => Err(NoPlan::Ended { code }.into()),
            };
        }
        let fields = read.fields()?;
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let socket = self.target.socket(caller)?;
        let answer = socket.post_patiently("/plan", &fields).map_err(refused)?;
        drop(read);
        self.show(&answer, caller)
    }

    /// Plans the start of an operator, here and without one.
    fn rehearse(&mut self, caller: &Caller<'_>) -> Result<u8, CommandError> {
        let reach = std::mem::take(&mut self.way).reach();
        if reach != Reach::default() {
            return Err(NoPlan::WayWithoutImage.into());
        }
        if self.target.pod.is_some() || self.target.debug_unix_socket.is_some() {
            return Err(NoPlan::Elsewhere.into());
        }
        let Change {
            filename, modules_dir, ..
        } = &self.change;
        let mut args = self.target.start_args(None);
        let dirs: Vec<_> = modules_dir.iter().map(|dir| dir.display().to_string()).collect();
        args.modules_dir = (!dirs.is_empty()).then(|| dirs.join(":"));
        let hooks = self.global_hooks_dir.as_ref();
        args.global_hooks_dir = hooks.map(|dir| dir.display().to_string());
        let settings = Settings::check(&args, caller.environment, &Machine::this()).map_err(NoPlan::Settings)?;
        let edited = filename.as_deref().map(Edit::read).transpose()?;
        let edited = edited.map(|Edit { data, confirms }| Edited { data, confirms });
        let answer = rehearsal::plan(&settings, caller.environment, edited).map_err(NoPlan::Rehearsal)?;
        self.show(&answer, caller)
    }

    fn show(&self, answer: &str, caller: &Caller<'_>) -> Result<u8, CommandError> {
        let plan: Document = serde_json::from_str(answer).map_err(NoPlan::Answer)?;
        match self.output {
            Output::Json => print(answer)?,
            Output::Yaml => print(&yaml::to_string(&serde_json::to_value(&plan).map_err(NoPlan::Answer)?))?,
            Output::Text | Output::Wide => {
                let environment = caller.environment;
                pager::show(&text(&plan, Paint::of(environment)), environment)?;
            }
        }
        Ok(if plan.is_empty() { 0 } else { CHANGES })
    }
}

/// The change as this machine has it.
enum Read {
    Edit(Edit),
    Directories(Directories),
    Versions(Vec<(String, String)>),
}

impl Plan {
    fn read(&mut self, caller: &Caller<'_>) -> Result<Read, CommandError> {
        let Change {
            filename,
            modules_dir,
            image,
            module,
            start: _,
        } = &self.change;
        if filename.is_some() && !modules_dir.is_empty() {
            return Err(NoPlan::Both.into());
        }
        if self.global_hooks_dir.is_some() && modules_dir.is_empty() {
            return Err(NoPlan::HooksAlone.into());
        }
        let reach = std::mem::take(&mut self.way).reach();
        if image.is_none() && reach != Reach::default() {
            return Err(NoPlan::WayWithoutImage.into());
        }
        if let Some(file) = filename {
            return Ok(Read::Edit(Edit::read(file)?));
        }
        if let Some(image) = image {
            let platform = self.platform.clone().unwrap_or_else(Platform::own);
            let image = (image.as_str(), &platform);
            let read = Directories::of_image(image, &self.in_image, &reach, caller.environment);
            return Ok(Read::Directories(read?));
        }
        let hooks = self.global_hooks_dir.as_deref();
        match &modules_dir[..] {
            [] => Ok(Read::Versions(module.clone())),
            [only] if is_stdin(only) => {
                let read = Directories::on_stdin(hooks.is_some(), caller.environment);
                Ok(Read::Directories(read?))
            }
            dirs => Ok(Read::Directories(Directories::here(dirs, hooks)?)),
        }
    }
}

impl Read {
    /// The flags and the standard input of the same command in the pod, which has none of our files.
    fn for_the_pod(&self) -> Result<(Vec<String>, Option<String>), CommandError> {
        let flag = |name: &str, value: &str| [name.to_owned(), value.to_owned()];
        match self {
            Self::Edit(edit) => Ok((flag("-f", STDIN).into(), Some(edit.manifest()))),
            Self::Directories(directories) => {
                let hooks = directories.global_hooks.as_ref();
                let hooks = hooks.into_iter().flat_map(|_| flag("--global-hooks-dir", STDIN));
                let flags = flag("--modules-dir", STDIN).into_iter().chain(hooks);
                Ok((flags.collect(), Some(directories.packed()?)))
            }
            Self::Versions(versions) => {
                let pairs = versions.iter().map(|(name, version)| format!("{name}={version}"));
                Ok((pairs.flat_map(|pair| flag("--module", &pair)).collect(), None))
            }
        }
    }

    /// The fields of the request with their values.
    fn fields(&self) -> Result<Fields, CommandError> {
        match self {
            Self::Edit(Edit { data, confirms }) => {
                let data = serde_json::to_string(data).expect("texts by key are JSON");
                let confirms = confirms.clone().map(|confirms| ("confirms", confirms));
                Ok([("data", data)].into_iter().chain(confirms).collect())
            }
            Self::Directories(directories) => {
                let modules = serde_json::to_string(&directories.modules).map_err(NoPlan::Paths)?;
                let hooks = directories.global_hooks.as_ref();
                let hooks = hooks.map(|hooks| ("global_hooks", hooks.display().to_string()));
                Ok([("directories", modules)].into_iter().chain(hooks).collect())
            }
            Self::Versions(versions) => {
                let versions: serde_json::Map<_, _> = versions
                    .iter()
                    .map(|(name, version)| (name.clone(), version.clone().into()))
                    .collect();
                Ok(vec![("versions", serde_json::Value::Object(versions).to_string())])
            }
        }
    }
}

fn version(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, version)) if !name.is_empty() && !version.is_empty() => Ok((name.to_owned(), version.to_owned())),
        _ => Err("a module and its version are wanted, as in `ingress=1.2.0`".to_owned()),
    }
}

fn refused(error: command::socket::SocketError) -> CommandError {
    match error {
        command::socket::SocketError::Refused { message, .. } => NoPlan::Refused { message }.into(),
        other => other.into(),
    }
}

/// The edited ConfigMap in a file.
struct Edit {
    data: BTreeMap<String, String>,
    /// The annotation that confirms removals.
    confirms: Option<String>,
}

impl Edit {
    fn read(file: &Path) -> Result<Self, CommandError> {
        let text = read(file).map_err(|source| CommandError::Read {
            file: file.to_owned(),
            source,
        })?;
        Ok(Self {
            data: read_data(file, &text).map_err(NoPlan::Unreadable)?,
            confirms: read_confirmation(&text),
        })
    }

    /// The ConfigMap for the same command elsewhere.
    fn manifest(&self) -> String {
        let annotations: BTreeMap<&str, String> = self
            .confirms
            .iter()
            .map(|text| (CONFIRM_REMOVALS, text.clone()))
            .collect();
        let manifest = json!({"kind": "ConfigMap", "metadata": {"annotations": annotations}, "data": self.data});
        manifest.to_string()
    }
}

fn read(file: &Path) -> io::Result<String> {
    if file == Path::new(STDIN) {
        return read_stdin();
    }
    fs_err::read_to_string(file)
}

fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
