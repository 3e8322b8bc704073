//! `module push` and `module pull`: a module on its way to a registry and back.

use std::path::PathBuf;

use clap::Args;

use super::{Caller, CommandError, print};
use crate::app::packages::{self, Pulled, Pushed, Reach};

/// The flags that tell how a registry is reached.
#[derive(Debug, Args)]
struct Way {
    /// File with logins for registries, as `docker login` writes it [default: config.json in $DOCKER_CONFIG or ~/.docker,
    /// if it is there]
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Registry or token issuer that is asked without TLS, may be given again [default: a registry on this machine,
    /// unless there is --authority]
    #[arg(long, value_name = "HOST")]
    plain_http: Vec<String>,
    /// File with certificates of authorities, in PEM form, that are trusted in addition to the machine's
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
}

/// The arguments of `module push`.
#[derive(Debug, Args)]
pub(super) struct Push {
    /// Directory of the module, as in modules/100-ingress
    dir: PathBuf,
    /// Repository and tag, as in registry.example/modules/ingress:1.4.0
    reference: String,
    /// File with a private key that signs the module, PKCS#8 in PEM form without a password [default: it is not signed]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    way: Way,
}

/// The arguments of `module pull`.
#[derive(Debug, Args)]
pub(super) struct Pull {
    /// Repository with tag or digest, as in registry.example/modules/ingress:1.4.0
    reference: String,
    /// Directory for the module, which must not exist yet
    dir: PathBuf,
    /// File or directory with public keys, one of which must have signed the module [default: signatures are not checked]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    way: Way,
}

impl Way {
    fn reach(self) -> Reach {
        let Self {
            credentials,
            plain_http,
            authority,
        } = self;
        Reach {
            credentials,
            plain: plain_http,
            authority,
        }
    }
}

impl Push {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            dir,
            reference,
            key,
            way,
        } = self;
        let pushed = packages::push(&dir, &reference, key.as_deref(), &way.reach(), caller.environment)?;
        let Pushed { place, digest } = pushed;
        print(&format!("{place}@{digest}"))
    }
}

impl Pull {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            reference,
            dir,
            keys,
            way,
        } = self;
        let pulled = packages::pull(&reference, &dir, keys.as_deref(), &way.reach(), caller.environment)?;
        let Pulled { place, digest, kind } = pulled;
        print(&format!("{place}@{digest}  {}", kind.name()))
    }
}
