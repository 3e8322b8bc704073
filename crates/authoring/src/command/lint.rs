//! Commands that check files and list their mistakes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use command::question::say;
use command::{Caller, CommandError, Output, print};

use super::Unsound;
use crate::check::Places;
use crate::findings::{self, Checked, Form};
use crate::{check, lint, manifest};

/// The default directory of modules.
const MODULES_DIR: &str = "modules";
/// The default directory of global hooks.
const GLOBAL_HOOKS_DIR: &str = "global-hooks";
const STDIN: &str = "-";

/// The arguments of `config check`.
#[derive(Debug, Args)]
pub struct Check {
    /// File with a manifest of the ConfigMap, or with its data alone; - for standard input
    file: PathBuf,
    /// Directories with modules, joined by colons, whose schemas check the sections [default: modules, if it is there]
    #[arg(long, value_name = "DIRS")]
    modules_dir: Option<String>,
    /// Directory with global hooks, whose schema checks the global section [default: global-hooks, if it is there]
    #[arg(long, value_name = "DIR")]
    global_hooks_dir: Option<PathBuf>,
    /// Format of the findings
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

/// The arguments of `module lint`.
#[derive(Debug, Args)]
pub struct Lint {
    /// Directory of a module, or of modules
    dir: PathBuf,
}

/// The arguments of `module manifest`.
#[derive(Debug, Args)]
pub struct Manifest {
    /// Modules directory; the manifest belongs into it as .addon-operator-manifest.json
    dir: PathBuf,
}

impl Check {
    pub fn run(&self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            file,
            modules_dir,
            global_hooks_dir,
            output,
        } = self;
        let text = read(file).map_err(|source| CommandError::Read {
            file: file.clone(),
            source,
        })?;
        let usual = |dir| Some(PathBuf::from(dir)).filter(|dir| dir.is_dir());
        let places = Places {
            modules_dirs: match modules_dir {
                Some(dirs) => dirs.split(':').map(PathBuf::from).collect(),
                None => usual(MODULES_DIR).into_iter().collect(),
            },
            global_hooks_dir: global_hooks_dir.clone().or_else(|| usual(GLOBAL_HOOKS_DIR)),
        };
        tell(&check::check(file, &text, &places, Some(caller.environment)), *output)
    }
}

fn read(file: &Path) -> std::io::Result<String> {
    if file != Path::new(STDIN) {
        return fs_err::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}

impl Manifest {
    pub fn run(&self) -> Result<(), CommandError> {
        print(&manifest::of(&self.dir)?)
    }
}

impl Lint {
    pub fn run(&self, caller: &Caller<'_>, output: Option<Output>) -> Result<(), CommandError> {
        let checked = lint::lint(&self.dir, caller.environment)?;
        tell(&checked, output.unwrap_or(Output::Text))
    }
}

/// Prints the findings; if there are none, a person reads what was looked at. Fails if a finding is an error.
fn tell(checked: &Checked, output: Output) -> Result<(), CommandError> {
    let Checked {
        findings: found,
        looked_at,
    } = checked;
    let form = match output {
        Output::Text | Output::Wide => Form::Text,
        Output::Json => Form::Json,
        Output::Yaml => Form::Yaml,
    };
    print(&findings::shown(found, form))?;
    if findings::is_bad(found) {
        Err(Unsound::Found.into())
    } else if found.is_empty() {
        say(&format!("{looked_at}: fine\n"))
    } else {
        Ok(())
    }
}
