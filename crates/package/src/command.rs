//! `module push`, `module pull` and `package choose`: modules and other packages in registries.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use command::{Caller, CommandError, print};
use serde_json::Value;

use crate::choice::{self, ChooseError, FollowedPackage, Found, Manners, RunningVersion};
use crate::transfer::{self, Pulled, Pushed, Reach};

/// The flags that tell how a registry is reached.
#[derive(Debug, Default, Args)]
pub struct Way {
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
    /// Refuse addresses of this machine, of its link and of the API server, also in redirects [default: every
    /// address is asked]
    #[arg(long)]
    only_outside: bool,
    /// Registry, token issuer or address that is asked in spite of --only-outside, may be given again [default: none]
    #[arg(long, value_name = "HOST", requires = "only_outside")]
    near: Vec<String>,
}

/// The arguments of `module push`.
#[derive(Debug, Args)]
pub struct Push {
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
pub struct Pull {
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

/// `package`: questions about packages in registries.
#[derive(Debug, Args)]
pub struct Package {
    #[command(subcommand)]
    command: PackageCommand,
}

#[derive(Debug, Subcommand)]
enum PackageCommand {
    /// Print the version that a package should have: the tag for a mask or a range, and its digest
    Choose(Choose),
}

/// The arguments of `package choose`.
#[derive(Debug, Args)]
struct Choose {
    /// Repository, as in registry.example/apps/shop
    #[arg(required_unless_present = "batch")]
    repository: Option<String>,
    /// Version: a tag as stable, a mask as 1.2.*, a range as '>=1.4 <2', or a digest
    #[arg(required_unless_present = "batch")]
    version: Option<String>,
    /// Tag of the version that runs. Of the same range no lower version is chosen [default: any version may be chosen]
    #[arg(long, value_name = "TAG")]
    running: Option<String>,
    /// Digest of the version that runs, the answer if that version stays [default: the registry is asked for it]
    #[arg(long, value_name = "DIGEST", requires = "running")]
    digest: Option<String>,
    /// File with many packages as a JSON list, - for standard input; the answers are a JSON list, too
    #[arg(long, value_name = "FILE", conflicts_with_all = ["repository", "version", "running", "digest"])]
    batch: Option<PathBuf>,
    /// Number of questions a second that one registry gets
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    per_second: u32,
    /// Number of seconds after which no more questions are asked
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    within: u64,
    #[command(flatten)]
    way: Way,
}

impl Package {
    pub fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        match self.command {
            PackageCommand::Choose(choose) => choose.run(caller),
        }
    }
}

impl Choose {
    fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let manners = Manners {
            per_second: self.per_second,
            within: Duration::from_secs(self.within),
        };
        let reach = self.way.reach();
        if let Some(file) = &self.batch {
            let packages = choice::read(&text(file)?)?;
            let answers = choice::choose(packages, &reach, manners, caller.environment)?;
            return print(&json_of(&answers));
        }
        let one = FollowedPackage {
            id: Value::Null,
            repository: self.repository.unwrap_or_default(),
            version: self.version.unwrap_or_default(),
            running: self.running.map(|tag| RunningVersion {
                tag: Some(tag),
                digest: self.digest,
            }),
            login: None,
        };
        let answers = choice::choose(vec![one], &reach, manners, caller.environment)?;
        match answers.into_iter().next().map(|answer| answer.found) {
            Some(Found::Failed { error, .. }) => Err(ChooseError::Failed(error).into()),
            Some(chosen) => print(&json_of(&chosen)),
            None => Ok(()),
        }
    }
}

/// The text of a file, or of standard input.
fn text(file: &Path) -> Result<String, ChooseError> {
    let read = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        fs_err::read_to_string(file)
    };
    read.map_err(ChooseError::Unread)
}

fn json_of(answer: &impl serde::Serialize) -> String {
    serde_json::to_string(answer).expect("answers are plain texts and numbers")
}

impl Way {
    /// How a registry is reached by these flags.
    pub fn reach(self) -> Reach {
        let Self {
            credentials,
            plain_http,
            authority,
            only_outside,
            near,
        } = self;
        Reach {
            credentials,
            plain: plain_http,
            authority,
            fence: only_outside.then_some(near),
        }
    }
}

impl Push {
    pub fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            dir,
            reference,
            key,
            way,
        } = self;
        let pushed = transfer::push(&dir, &reference, key.as_deref(), &way.reach(), caller.environment)?;
        let Pushed { place, digest } = pushed;
        print(&format!("{place}@{digest}"))
    }
}

impl Pull {
    pub fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            reference,
            dir,
            keys,
            way,
        } = self;
        let pulled = transfer::pull(&reference, &dir, keys.as_deref(), &way.reach(), caller.environment)?;
        let Pulled { place, digest, kind } = pulled;
        print(&format!("{place}@{digest}  {}", kind.name()))
    }
}
