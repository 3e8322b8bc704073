//! `module new`: writes a module and prints the paths of its files.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use command::{CommandError, print};

use crate::draft::{self, NewModule};

/// The arguments of `module new`.
#[derive(Debug, Args)]
pub struct New {
    /// Name of the module: small letters, digits and dashes
    name: String,
    /// Directory of modules
    #[arg(long, value_name = "DIR", default_value = "modules")]
    dir: PathBuf,
    /// Order number: modules with a higher number run later
    #[arg(long, value_name = "N", default_value = "100")]
    order: u32,
    /// Copy this chart into the module, whose values become those of the chart; without it the module is an example
    #[arg(long, value_name = "DIR")]
    from_chart: Option<PathBuf>,
}

impl New {
    pub fn run(&self) -> Result<(), CommandError> {
        let Self {
            name,
            dir,
            order,
            from_chart,
        } = self;
        let written = draft::write(&NewModule {
            name,
            dir,
            order: *order,
            chart: from_chart.as_deref(),
        })?;
        let paths: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        print(&paths.join("\n"))?;
        let module = dir.join(format!("{order:03}-{name}"));
        // Without standard error the hint is lost, and nothing else.
        drop(writeln!(
            io::stderr(),
            "hint: `addon-operator module test {}` plays its cases",
            module.display()
        ));
        Ok(())
    }
}
