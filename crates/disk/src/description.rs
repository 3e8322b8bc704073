//! The file `module.yaml`. An unreadable file must never count as absent.

use std::io;
use std::path::Path;

use addon_core::module::description::{AccountName, Description, Restoring};
use addon_core::module::health::HealthSettings;
use names::ModuleName;
use names::replaceable::Replaceable;

use super::{Fault, Problem, Severity};

pub(super) const FILE: &str = "module.yaml";

/// The fields that the operator uses.
#[derive(Default)]
pub(super) struct Said {
    /// The modules that must succeed first, in the order of the file.
    pub(super) depends_on: Vec<ModuleName>,
    /// The drift of the release that is reverted; none if the file does not name it.
    pub(super) drift: Option<Restoring>,
    /// The service account of the module.
    pub(super) service_account: Option<AccountName>,
    /// The objects that may be made anew.
    pub(super) replace: Vec<Replaceable>,
    /// The settings for the health of the module's objects.
    pub(super) health: HealthSettings,
}

pub(super) fn read(path: &Path, faults: &mut Vec<Problem>, warnings: &mut Vec<Problem>) -> Said {
    let fatal = |fault| Problem::new(Severity::Fatal, path, fault);
    match parse(path) {
        Ok(Description {
            depends_on,
            drift,
            service_account,
            replace,
            health,
            mistakes,
            unknown,
        }) => {
            faults.extend(mistakes.into_iter().map(|mistake| fatal(mistake.into())));
            warnings.extend(unknown.into_iter().map(|field| Problem::warning(path, field.into())));
            Said {
                depends_on,
                drift,
                service_account,
                replace,
                health,
            }
        }
        Err(fault) => {
            faults.push(fatal(fault));
            Said::default()
        }
    }
}

fn parse(path: &Path) -> Result<Description, Fault> {
    match fs_err::read_to_string(path) {
        Ok(text) => Description::parse(&text).map_err(Fault::NotYaml),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(Description::default()),
        Err(error) => Err(Fault::Unreadable(error)),
    }
}
