//! `plan`: shows the effects of a change before it is made: an edit of the ConfigMap, other modules directories, or other versions of
//! modules.
//!
//! Files are read here, and the operator makes the plan. Must never edit the ConfigMap, nor leave unpacked files behind.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use addon_core::operator::provenance::CONFIRM_REMOVALS;
use authoring::check::{read_confirmation, read_data};
use authoring::findings::Finding;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use command::outside::typed;
use command::paint::Paint;
use command::{Caller, CommandError, Hinted, Output, Target, print};
use helm_yaml::yaml;
use package::pack::{self, PackError};
use package::unpack::{self, Compression, Layer, UnpackError};
use plan::document::Plan as Document;
use plan::text::text;
use serde_json::json;
use settings::Environment;
use tempfile::TempDir;
use thiserror::Error;

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
    #[command(flatten)]
    target: Target,
    /// Format of the plan
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

/// The change whose effects are wanted.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Change {
    /// File with the manifest of the edited ConfigMap, or with its data alone; - for standard input
    #[arg(short, long, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// Modules directories that would take the place of those in use, separated by colons
    #[arg(long, value_name = "DIR", value_delimiter = ':')]
    modules_dir: Vec<PathBuf>,
    /// Version that a module with a source would have, a tag or a digest; may be repeated
    #[arg(long, value_name = "NAME=VERSION", value_parser = version)]
    module: Vec<(String, String)>,
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
    #[error("{message}")]
    Refused { message: String },
}

impl Hinted for NoPlan {
    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Unreadable(_) => "`addon-operator config check FILE` shows all mistakes of a ConfigMap",
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

impl Plan {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<u8, CommandError> {
        if let Some(place) = caller.place(&self.target) {
            let (flags, input) = self.change.for_the_pod()?;
            let words = ["addon-operator", "plan", "-o", self.output.extension()];
            let words = words.into_iter().map(ToOwned::to_owned).chain(flags).collect();
            return typed::run_words(&place, caller, words, input.as_deref());
        }
        let (fields, _unpacked) = self.change.fields(caller)?;
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let socket = self.target.socket(caller)?;
        let answer = socket.post_patiently("/plan", &fields).map_err(refused)?;
        let plan: Document = serde_json::from_str(&answer).map_err(NoPlan::Answer)?;
        let shown = match self.output {
            Output::Json => answer,
            Output::Yaml => yaml::to_string(&serde_json::to_value(&plan).map_err(NoPlan::Answer)?),
            Output::Text | Output::Wide => text(&plan, Paint::of(caller.environment)),
        };
        print(&shown)?;
        Ok(if plan.is_empty() { 0 } else { CHANGES })
    }
}

impl Change {
    /// The flags and the standard input of the same command in the pod, which has none of our files.
    fn for_the_pod(&self) -> Result<(Vec<String>, Option<String>), CommandError> {
        let flag = |name: &str, value: &str| [name.to_owned(), value.to_owned()];
        if let Some(file) = &self.filename {
            return Ok((flag("-f", STDIN).into(), Some(Edit::read(file)?.manifest())));
        }
        if self.modules_dir.is_empty() {
            let pairs = self.module.iter().map(|(name, version)| format!("{name}={version}"));
            return Ok((pairs.flat_map(|pair| flag("--module", &pair)).collect(), None));
        }
        let packed: Result<Vec<String>, NoPlan> = self.modules_dir.iter().map(|dir| packed(dir)).collect();
        let packed = serde_json::to_string(&packed?).expect("texts are JSON");
        Ok((flag("--modules-dir", STDIN).into(), Some(packed)))
    }

    /// The fields of the request with their values, and the folder of directories that were unpacked for it.
    fn fields(&self, caller: &Caller<'_>) -> Result<(Fields, Option<TempDir>), CommandError> {
        if let Some(file) = &self.filename {
            let Edit { data, confirms } = Edit::read(file)?;
            let data = serde_json::to_string(&data).expect("texts by key are JSON");
            let confirms = confirms.map(|confirms| ("confirms", confirms));
            return Ok(([("data", data)].into_iter().chain(confirms).collect(), None));
        }
        if self.modules_dir.is_empty() {
            let versions: serde_json::Map<_, _> = self
                .module
                .iter()
                .map(|(name, version)| (name.clone(), version.clone().into()))
                .collect();
            let versions = serde_json::Value::Object(versions).to_string();
            return Ok((vec![("versions", versions)], None));
        }
        let (dirs, unpacked) = if self.modules_dir == [Path::new(STDIN)] {
            let (dirs, folder) = unpacked(caller.environment)?;
            (dirs, Some(folder))
        } else {
            let dirs = self.modules_dir.iter().map(|dir| {
                fs_err::canonicalize(dir).map_err(|source| CommandError::Read {
                    file: dir.clone(),
                    source,
                })
            });
            (dirs.collect::<Result<_, _>>()?, None)
        };
        let dirs = serde_json::to_string(&dirs).map_err(NoPlan::Paths)?;
        Ok((vec![("directories", dirs)], unpacked))
    }
}

fn version(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, version)) if !name.is_empty() && !version.is_empty() => Ok((name.to_owned(), version.to_owned())),
        _ => Err("a module and its version are wanted, as in `ingress=1.2.0`".to_owned()),
    }
}

fn packed(dir: &Path) -> Result<String, NoPlan> {
    let packed = pack::pack(dir).map_err(|source| NoPlan::Pack {
        path: dir.to_owned(),
        source,
    })?;
    Ok(STANDARD.encode(packed))
}

/// The directories that the command outside of the pod has packed.
fn unpacked(environment: &Environment) -> Result<(Vec<PathBuf>, TempDir), CommandError> {
    // The root of a pod may be read only, and this directory is the operator's for such files.
    let parent = environment.get("ADDON_OPERATOR_TMP_DIR").map(PathBuf::from);
    let parent = parent.filter(|dir| dir.is_dir()).unwrap_or_else(std::env::temp_dir);
    // By this prefix the next start of the operator removes the folder of a killed process.
    let prefix = format!("run-{}-plan-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
    let folder = folder.map_err(NoPlan::Folder)?;
    let text = read_stdin().map_err(NoPlan::Stdin)?;
    let packed: Vec<String> = serde_json::from_str(&text).map_err(NoPlan::Stream)?;
    let mut dirs = Vec::new();
    for (number, packed) in packed.iter().enumerate() {
        let dir = folder.path().join(number.to_string());
        let layer = Layer {
            compression: Compression::Gzip,
            bytes: STANDARD.decode(packed).map_err(NoPlan::Coded)?.into(),
        };
        fs_err::create_dir(&dir).map_err(NoPlan::Folder)?;
        unpack::unpack(&[layer], &dir).map_err(NoPlan::Unpack)?;
        dirs.push(dir);
    }
    Ok((dirs, folder))
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
    fn manifest(self) -> String {
        let annotations: BTreeMap<&str, String> =
            self.confirms.map(|text| (CONFIRM_REMOVALS, text)).into_iter().collect();
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
