//! `plan`: shows what an edit of the ConfigMap would do, before it is made.
//!
//! The file is read here, and the operator makes the plan. Must never edit the ConfigMap.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use authoring::check::read_data;
use authoring::findings::Finding;
use clap::Args;
use command::outside::typed;
use command::paint::Paint;
use command::{Caller, CommandError, Hinted, Output, Target, print};
use helm_yaml::yaml;
use plan::document::Plan as Document;
use plan::text::text;
use thiserror::Error;

const STDIN: &str = "-";
/// The exit code if the edit would change something.
const CHANGES: u8 = 2;

pub(super) const AFTER_HELP: &str = "\
Exit codes:
  0  nothing would change
  1  there is no plan; the reason is on standard error
  2  something would change, or would not be applied";

#[derive(Debug, Args)]
pub(super) struct Plan {
    /// File with the manifest of the edited ConfigMap, or with its data alone; - for standard input
    #[arg(short, long, value_name = "FILE")]
    filename: PathBuf,
    #[command(flatten)]
    target: Target,
    /// Format of the plan
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

/// Why there is no plan.
#[derive(Debug, Error)]
enum NoPlan {
    #[error("{0}")]
    Unreadable(Finding),
    #[error("cannot understand the operator's answer")]
    Answer(#[from] serde_json::Error),
    #[error("{message}")]
    Refused { message: String },
}

impl Hinted for NoPlan {
    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Unreadable(_) => "`addon-operator config check FILE` shows all mistakes of a ConfigMap",
            Self::Answer(_) | Self::Refused { .. } => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

impl Plan {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<u8, CommandError> {
        let data = self.data()?;
        if let Some(place) = caller.place(&self.target) {
            let data = serde_json::to_string(&data).expect("texts by key are JSON");
            let words = ["addon-operator", "plan", "-f", STDIN, "-o", self.output.extension()];
            let words = words.map(ToOwned::to_owned).to_vec();
            return typed::run_words(&place, caller, words, Some(&data));
        }
        let data = serde_json::to_string(&data).expect("texts by key are JSON");
        let socket = self.target.socket(caller)?;
        let answer = socket.post_patiently("/plan", &[("data", &data)]).map_err(refused)?;
        let plan: Document = serde_json::from_str(&answer).map_err(NoPlan::Answer)?;
        let shown = match self.output {
            Output::Json => answer,
            Output::Yaml => yaml::to_string(&serde_json::to_value(&plan).map_err(NoPlan::Answer)?),
            Output::Text | Output::Wide => text(&plan, Paint::of(caller.environment)),
        };
        print(&shown)?;
        Ok(if plan.is_empty() { 0 } else { CHANGES })
    }

    fn data(&self) -> Result<BTreeMap<String, String>, CommandError> {
        let file = &self.filename;
        let text = read(file).map_err(|source| CommandError::Read {
            file: file.clone(),
            source,
        })?;
        Ok(read_data(file, &text).map_err(NoPlan::Unreadable)?)
    }
}

fn refused(error: command::socket::SocketError) -> CommandError {
    match error {
        command::socket::SocketError::Refused { message, .. } => NoPlan::Refused { message }.into(),
        other => other.into(),
    }
}

fn read(file: &Path) -> io::Result<String> {
    if file == Path::new(STDIN) {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    fs_err::read_to_string(file)
}
