//! `module push` and `module pull`: modules on their way to a registry and back, without an operator.
//!
//! Must never send a login to a registry that the command does not name, nor keep a package whose signature is bad.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addon_core::failure::Failure;
use authoring::lint;
use blocking::threads::{self, NoThreads};
use certificates::material::Pem;
use channel_core::candidate::Signature;
use channel_core::following::Trouble;
use channel_core::reference;
use channel_core::reference::{ImageDigest, ReferenceError};
use command::Hinted;
use disk::chart_version;
use futures::future::ready;
use inquiry::Inquiry;
use inquiry::office::{self, BadFile, Unusable};
use kube_access::kubeconfig;
use kube_access::kubeconfig::Address;
use names::parse_module_dir;
use registry::credentials::{BadCredentials, Credentials, ReadCredentials};
use registry::error::{Problem, RegistryError};
use registry::fence::Fence;
use registry::place::{BadName, Host, ImagePlace, Reference};
use registry::signatures::Keys;
use registry::way::SetupError;
use registry::wire::Limits;
use registry::{Access, Registry, Rights};
use serde_json::json;
use settings::Environment;
use signing::{Signer, SigningError};
use thiserror::Error;

use crate::choice::NameAndPassword;
use crate::layers::PackageKind;
use crate::pulling::{self, PullError};
use crate::pushing::{self, Artifact, PushError};
use crate::signatures::SendError;

/// The order of a module whose directory has no number. Only the name is used here.
const ORDER: u32 = 1;

/// How the registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// The file with logins, in the form of `docker login` [default: that of Docker, if it is there].
    pub credentials: Option<PathBuf>,
    /// Registries and token issuers without TLS. A registry on this machine needs TLS only with an authority.
    pub plain: Vec<String>,
    /// A file with authorities that are trusted in addition to the machine's.
    pub authority: Option<PathBuf>,
    /// If addresses of this machine, of its link and of the API server are refused: the hosts that may be asked all the
    /// same. `None` if no address is refused.
    pub fence: Option<Vec<String>>,
}

/// Why a module was not pushed or pulled.
#[derive(Debug, Error)]
pub enum PackageError {
    #[error("{} is no module: a module's directory has a name like 100-my-module, and a chart or hooks in it", dir.display())]
    NoModule { dir: PathBuf },
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error("'{text}' has a digest: a module is pushed under a tag")]
    PushedDigest { text: String },
    #[error(transparent)]
    Host(#[from] BadName),
    #[error("cannot read the logins in {}", file.display())]
    Credentials { file: PathBuf, source: io::Error },
    #[error("cannot use the logins in {}", file.display())]
    CredentialsSyntax { file: PathBuf, source: BadCredentials },
    #[error("cannot read {}", file.display())]
    Authority { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Signer(#[from] SigningError),
    #[error(transparent)]
    Keys(#[from] BadFile),
    #[error("cannot use the proxy of the environment")]
    Proxy(#[from] Unusable),
    #[error("cannot ask registries")]
    Setup(#[from] SetupError),
    #[error("cannot start")]
    Start(#[from] NoThreads),
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("cannot look for signatures: {0}")]
    Unverified(String),
    #[error("{digest} is not signed by a key of {}: {why}", file.display())]
    NotSigned {
        digest: ImageDigest,
        file: PathBuf,
        why: String,
    },
}

impl Hinted for PackageError {
    fn hints(&self) -> Vec<String> {
        let problem = match self {
            Self::Push(PushError::Registry(error) | PushError::Signature(SendError::Registry(error)))
            | Self::Pull(PullError::Registry(error)) => error,
            Self::NoModule { .. } => return vec!["`addon-operator module lint` checks a module".to_owned()],
            _ => return Vec::new(),
        };
        let RegistryError { asked, problem, .. } = &**problem;
        let host = &asked.place.host;
        match problem {
            Problem::Denied { .. } => vec![format!(
                "log in to {host}, or name a file with a login for it by --credentials"
            )],
            Problem::Way(_) => vec![format!(
                "--plain-http {host} asks without TLS, --authority names a file with the registry's authority"
            )],
            _ => Vec::new(),
        }
    }
}

/// A pushed module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    pub place: ImagePlace,
    pub digest: ImageDigest,
}

/// A pulled package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    pub place: ImagePlace,
    pub digest: ImageDigest,
    pub kind: PackageKind,
}

/// Pushes a module's directory under a tag, signed if there is a file with a private key.
pub fn push(
    dir: &Path,
    text: &str,
    key: Option<&Path>,
    reach: &Reach,
    environment: &Environment,
) -> Result<Pushed, PackageError> {
    let signer = key.map(Signer::read).transpose()?;
    let place = fs_err::canonicalize(dir).ok().filter(|place| lint::is_module(place));
    let module = place.ok_or_else(|| PackageError::NoModule { dir: dir.to_owned() })?;
    let name = module.file_name().and_then(|name| name.to_str());
    let name = name.and_then(|name| parse_module_dir(name, ORDER).ok());
    let name = name.ok_or_else(|| PackageError::NoModule { dir: dir.to_owned() })?.1;
    let named = reference::Reference::parse(text)?;
    if named.digest.is_some() {
        let text = text.to_owned();
        return Err(PackageError::PushedDigest { text });
    }
    let (place, reference) = target(&named)?;
    let registry = registry(&place.host, reach, Rights::Push, environment)?;
    let artifact = Artifact::of(&module, &name.to_string(), chart_version(&module).as_deref())?;
    let sent = pushing::push(&registry, &place, &reference, &artifact, signer.as_ref());
    threads::runtime()?.block_on(sent)?;
    let digest = artifact.digest();
    Ok(Pushed { place, digest })
}

/// Pulls a package into a directory that does not exist yet. With keys it must be signed by one of them.
pub fn pull(
    text: &str,
    dir: &Path,
    keys: Option<&Path>,
    reach: &Reach,
    environment: &Environment,
) -> Result<Pulled, PackageError> {
    let (place, reference) = target(&reference::Reference::parse(text)?)?;
    let registry = || registry(&place.host, reach, Rights::Pull, environment);
    let asked = registry()?;
    let verified = keys.map(|file| {
        let read: Keys = office::keys(file)?;
        Ok::<_, PackageError>((Inquiry::new(registry()?, place.clone(), Some(read)), file))
    });
    let verified = verified.transpose()?;
    threads::runtime()?.block_on(async {
        let mut reference = reference;
        if let Some((inquiry, file)) = &verified {
            // The signature is checked before any content is read. Then the content is read by the digest, because the
            // tag may move in between.
            let digest = asked.head(&place, &reference).await.map_err(PullError::from)?.digest;
            verify(inquiry, file, &digest).await?;
            reference = Reference::Digest(digest);
        }
        let package = pulling::pull(&asked, &place, &reference).await?;
        let (digest, kind) = (package.digest.clone(), package.kind);
        package.unpack(dir.to_owned()).await?;
        Ok(Pulled { place, digest, kind })
    })
}

async fn verify(inquiry: &Inquiry, file: &Path, digest: &ImageDigest) -> Result<(), PackageError> {
    let found = inquiry.signature(digest).await;
    match found.map_err(|Trouble { text, .. }| PackageError::Unverified(text))? {
        Signature::Good | Signature::NotAsked => Ok(()),
        Signature::Bad(why) => Err(PackageError::NotSigned {
            digest: digest.clone(),
            file: file.to_owned(),
            why,
        }),
    }
}

/// The repository and the version that a person named.
pub(crate) fn target(named: &reference::Reference) -> Result<(ImagePlace, Reference), BadName> {
    let place = office::place(&named.repository)?;
    let reference = match &named.digest {
        Some(digest) => Reference::Digest(digest.clone()),
        None => Reference::Tag(named.followed_tag().expect("a name without a digest follows a tag")),
    };
    Ok((place, reference))
}

/// A client that reads one registry. With `login` it uses this login instead of the logins in files.
pub fn client(
    repository: &reference::Repository,
    login: Option<&NameAndPassword>,
    reach: &Reach,
    environment: &Environment,
) -> Result<Registry, PackageError> {
    let host = office::place(repository)?.host;
    let access = access(&host, reach, Rights::Pull, Limits::default(), environment)?;
    let read = match login {
        None => logins(reach, environment)?,
        Some(NameAndPassword { username, password }) => {
            let entry = json!({"auths": {host.to_string(): {"username": username, "password": password}}});
            let login = Credentials::config(entry.to_string().as_bytes());
            constant(login.expect("a name and a password are a login"))
        }
    };
    Ok(Registry::new(access, read)?)
}

/// A client for one registry. Pushes of large modules take longer than the questions of the channel.
pub(crate) fn registry(
    host: &Host,
    reach: &Reach,
    rights: Rights,
    environment: &Environment,
) -> Result<Registry, PackageError> {
    let limits = Limits {
        whole: Duration::from_mins(10),
        call: Duration::from_mins(30),
        ..Limits::default()
    };
    let access = access(host, reach, rights, limits, environment)?;
    Ok(Registry::new(access, logins(reach, environment)?)?)
}

fn access(
    host: &Host,
    reach: &Reach,
    rights: Rights,
    limits: Limits,
    environment: &Environment,
) -> Result<Access, PackageError> {
    let mut plain = reach
        .plain
        .iter()
        .map(|host| host.parse())
        .collect::<Result<BTreeSet<Host>, _>>()?;
    if is_here(host) && reach.authority.is_none() {
        plain.insert(host.clone());
    }
    let authorities = reach.authority.as_deref().map(|file| {
        let text = fs_err::read(file).map_err(|source| PackageError::Authority {
            file: file.to_owned(),
            source,
        })?;
        let place = file.display().to_string();
        Ok::<_, PackageError>(Pem { place, text })
    });
    Ok(Access {
        allowed: BTreeSet::from([host.clone()]),
        plain,
        mirrors: BTreeMap::new(),
        authorities: authorities.transpose()?,
        proxies: office::proxies(environment).map_err(Unusable::Proxy)?,
        fence: reach.fence.as_ref().map(|near| fence(near, environment)).transpose()?,
        limits,
        rights,
    })
}

/// A fence with these exceptions.
fn fence(near: &[String], environment: &Environment) -> Result<Fence, BadName> {
    let permitted = near.iter().map(|host| host.parse()).collect::<Result<_, _>>()?;
    let address = Address {
        kube_config: environment
            .get("KUBECONFIG")
            .map(env::split_paths)
            .into_iter()
            .flatten()
            .collect(),
        home: environment.get("HOME").map(PathBuf::from),
        ..Address::default()
    };
    // Without a cluster there is no API server to protect.
    let server = kubeconfig::server(&address).unwrap_or_default();
    let server = server.and_then(|url| url.split("://").last()?.split('/').next()?.parse().ok());
    let service = environment.get("KUBERNETES_SERVICE_HOST").and_then(OsStr::to_str);
    let service = service.and_then(|name| {
        let address = if name.contains(':') {
            format!("[{name}]")
        } else {
            name.to_owned()
        };
        address.parse().ok()
    });
    Ok(Fence {
        permitted,
        servers: server.into_iter().chain(service).collect(),
    })
}

/// Whether a host is this machine, where no TLS is needed.
fn is_here(host: &Host) -> bool {
    host.name() == "localhost" || host.name() == "[::1]" || host.name().starts_with("127.")
}

fn logins(reach: &Reach, environment: &Environment) -> Result<ReadCredentials, PackageError> {
    let credentials = match &reach.credentials {
        Some(file) => read_logins(file)?,
        None => match usual_logins(environment).filter(|file| file.exists()) {
            Some(file) => read_logins(&file)?,
            None => Credentials::default(),
        },
    };
    Ok(constant(credentials))
}

fn constant(credentials: Credentials) -> ReadCredentials {
    Box::new(move || Box::pin(ready(Ok::<_, Failure>(credentials.clone()))))
}

fn read_logins(file: &Path) -> Result<Credentials, PackageError> {
    let text = fs_err::read(file).map_err(|source| PackageError::Credentials {
        file: file.to_owned(),
        source,
    })?;
    Credentials::config(&text).map_err(|source| PackageError::CredentialsSyntax {
        file: file.to_owned(),
        source,
    })
}

/// The file in which Docker and other engines keep logins.
fn usual_logins(environment: &Environment) -> Option<PathBuf> {
    if let Some(folder) = environment.get("DOCKER_CONFIG") {
        return Some(Path::new(folder).join("config.json"));
    }
    Some(Path::new(environment.get("HOME")?).join(".docker/config.json"))
}
