//! The settings that are read once before a registry is asked: authorities, keys, mirrors, the proxy.
//!
//! Must never go on without a key or an authority that a person named: the start fails with an error that names the
//! variable.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use certificates::material::{BadCertificate, Pem};
use channel_core::following::Trouble;
use channel_core::reference::Repository;
use registry::credentials::ReadCredentials;
use registry::place::{BadName, Host, ImagePlace};
use registry::proxies::{BadProxy, Proxies};
use registry::signatures::Keys;
use registry::signatures::keys::KeysError;
use registry::way::SetupError;
use registry::wire::Limits;
use registry::{Access, Mirror, Registry, Rights};
use report::Chain;
use settings::Environment;
use settings::channel::{AUTHORITY, ChannelSettings, KEYS, MirrorAt, NOTIFY_TOKEN};
use thiserror::Error;

use crate::Inquiry;

/// A file that a variable names and that cannot be used.
#[derive(Debug, Error)]
pub enum BadFile {
    #[error("cannot read {}, which {variable} names", path.display())]
    Unread {
        variable: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot use {}, which {variable} names", path.display())]
    Keys {
        variable: &'static str,
        path: PathBuf,
        source: KeysError,
    },
    #[error("cannot use the file that {variable} names")]
    Authority {
        variable: &'static str,
        source: BadCertificate,
    },
    #[error("{} holds no {wanted}, and {variable} names it", path.display())]
    Empty {
        variable: &'static str,
        path: PathBuf,
        wanted: &'static str,
    },
}

/// Why registries cannot be asked although the operator's own variables are valid.
#[derive(Debug, Error)]
pub enum Unusable {
    #[error("cannot use the proxy that HTTPS_PROXY names")]
    Proxy(#[from] BadProxy),
    #[error("cannot use an address of the settings")]
    Name(#[from] BadName),
}

/// Makes inquiries for repositories.
pub struct Office {
    access: Access,
    keys: Option<Keys>,
    read: Box<dyn Fn() -> ReadCredentials + Send + Sync>,
}

impl fmt::Debug for Office {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Office")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// The contents of the files that variables name, all valid.
#[derive(Debug)]
pub struct Files {
    authorities: Option<Pem>,
    keys: Option<Keys>,
}

impl Files {
    pub fn read(settings: &ChannelSettings) -> Result<Self, BadFile> {
        if let Some(path) = &settings.notify_token {
            let (variable, path) = (NOTIFY_TOKEN, path.clone());
            if text(variable, &path)?.trim().is_empty() {
                let wanted = "token";
                return Err(BadFile::Empty { variable, path, wanted });
            }
        }
        Ok(Self {
            authorities: settings.authority.as_deref().map(authorities).transpose()?,
            keys: settings.keys.as_deref().map(keys).transpose()?,
        })
    }
}

impl Office {
    /// An office that has not asked a registry yet.
    pub fn new(
        settings: &ChannelSettings,
        Files { authorities, keys }: Files,
        environment: &Environment,
        read: Box<dyn Fn() -> ReadCredentials + Send + Sync>,
    ) -> Result<Self, Unusable> {
        let hosts = |names: &BTreeSet<String>| -> Result<BTreeSet<Host>, BadName> {
            names.iter().map(|name| name.parse()).collect()
        };
        let mut mirrors = BTreeMap::new();
        for (of, listed) in &settings.mirrors {
            let listed: Result<Vec<Mirror>, BadName> = listed.iter().map(mirror).collect();
            mirrors.insert(of.parse()?, listed?);
        }
        let access = Access {
            allowed: hosts(&settings.registries)?,
            plain: hosts(&settings.plain)?,
            mirrors,
            authorities,
            proxies: proxies(environment)?,
            fence: None,
            limits: Limits::default(),
            rights: Rights::Pull,
        };
        Ok(Self { access, keys, read })
    }

    /// Whether keys are set, so that signatures are checked.
    pub fn verifies(&self) -> bool {
        self.keys.is_some()
    }

    /// An inquiry for the repository of a module, with this login. The module's registry may be asked, because
    /// people have named it.
    pub fn of_module(&self, repository: &Repository, read: ReadCredentials) -> Result<Inquiry, Trouble> {
        let place = place(repository).map_err(|error| bad(&error))?;
        let mut access = self.access.clone();
        access.allowed.insert(place.host.clone());
        // The files of a module are larger than the documents of the channel.
        access.limits = Limits {
            whole: Duration::from_mins(5),
            call: Duration::from_mins(10),
            ..Limits::default()
        };
        let registry = Registry::new(access, read).map_err(|error: SetupError| bad(&error))?;
        Ok(Inquiry::new(registry, place, self.keys.clone()))
    }

    /// The logins of the operator's pod.
    pub fn logins(&self) -> ReadCredentials {
        (self.read)()
    }

    /// An inquiry for this repository. The registry of the operator's own image may always be asked.
    pub fn inquiry(&self, repository: &Repository, own: &Repository) -> Result<Inquiry, Trouble> {
        let place = place(repository).map_err(|error| bad(&error))?;
        let mut access = self.access.clone();
        access
            .allowed
            .insert(self::place(own).map_err(|error| bad(&error))?.host);
        let registry = Registry::new(access, (self.read)()).map_err(|error: SetupError| bad(&error))?;
        Ok(Inquiry::new(registry, place, self.keys.clone()))
    }
}

/// The name of a repository as requests need it.
pub fn place(repository: &Repository) -> Result<ImagePlace, BadName> {
    Ok(ImagePlace {
        host: repository.registry().parse()?,
        repository: repository.path().parse()?,
    })
}

fn bad(error: &dyn std::error::Error) -> Trouble {
    Trouble {
        text: format!("cannot ask the registry: {}", Chain(error)),
        pause: None,
    }
}

fn mirror(at: &MirrorAt) -> Result<Mirror, BadName> {
    Ok(Mirror {
        host: at.host.parse()?,
        below: at.below.as_deref().map(str::parse).transpose()?,
    })
}

/// The proxy settings of the environment, in capital or small letters as in Go.
pub fn proxies(environment: &Environment) -> Result<Proxies, BadProxy> {
    let said = |names: [&str; 2]| {
        let value = names.iter().find_map(|name| environment.get(name))?;
        Some(value.to_string_lossy().into_owned())
    };
    let (proxy, none) = (said(["HTTPS_PROXY", "https_proxy"]), said(["NO_PROXY", "no_proxy"]));
    Proxies::new(proxy.as_deref(), none.as_deref())
}

fn authorities(path: &Path) -> Result<Pem, BadFile> {
    let pem = Pem {
        place: path.display().to_string(),
        text: text(AUTHORITY, path)?.into_bytes(),
    };
    match pem.roots() {
        Ok(_) => Ok(pem),
        Err(source) => Err(BadFile::Authority {
            variable: AUTHORITY,
            source,
        }),
    }
}

/// The keys of a file, or of all files of a directory.
pub fn keys(path: &Path) -> Result<Keys, BadFile> {
    let mut all = String::new();
    for file in files(KEYS, path)? {
        let text = text(KEYS, &file)?;
        // Parsed file by file, so that an error names the file.
        Keys::parse(&text).map_err(|source| bad_keys(&file, source))?;
        all.push_str(&text);
        all.push('\n');
    }
    if all.is_empty() {
        let (variable, path, wanted) = (KEYS, path.to_owned(), "file with keys");
        return Err(BadFile::Empty { variable, path, wanted });
    }
    Keys::parse(&all).map_err(|source| bad_keys(path, source))
}

fn bad_keys(path: &Path, source: KeysError) -> BadFile {
    let (variable, path) = (KEYS, path.to_owned());
    BadFile::Keys { variable, path, source }
}

/// A single file, or the files of a directory by name. Entries that begin with a dot are skipped: a mounted ConfigMap
/// has folders and links with these names.
fn files(variable: &'static str, path: &Path) -> Result<Vec<PathBuf>, BadFile> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs_err::read_dir(path).map_err(|error| unread(variable, path, &error))? {
        let entry = entry.map_err(|error| unread(variable, path, &error))?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn text(variable: &'static str, path: &Path) -> Result<String, BadFile> {
    fs_err::read_to_string(path).map_err(|error| unread(variable, path, &error))
}

/// The error without the path that `fs_err` adds, which the text already has.
fn unread(variable: &'static str, path: &Path, error: &io::Error) -> BadFile {
    BadFile::Unread {
        variable,
        path: path.to_owned(),
        source: error.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use settings::channel::Follow;

    use super::*;

    fn settings() -> ChannelSettings {
        ChannelSettings {
            follow: Follow::NoPod,
            registries: BTreeSet::new(),
            mirrors: BTreeMap::new(),
            plain: BTreeSet::new(),
            authority: None,
            keys: None,
            notify_token: None,
        }
    }

    fn key(name: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/signatures/keys");
        fs_err::read_to_string(folder.join(name)).unwrap()
    }

    fn refused(settings: &ChannelSettings) -> String {
        Chain(&Files::read(settings).unwrap_err()).to_string()
    }

    #[test]
    fn keys_are_those_of_a_file_or_of_all_files_of_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let read = |path: &Path| {
            let keys = Some(path.to_owned());
            let files = Files::read(&ChannelSettings { keys, ..settings() }).unwrap();
            files.keys.unwrap().ids().count()
        };
        fs_err::write(dir.path().join("one.pub"), key("p256.pub")).unwrap();
        // The layout of a mounted ConfigMap.
        fs_err::create_dir(dir.path().join("..data")).unwrap();
        fs_err::write(dir.path().join("..data/two.pub"), key("rsa.pub")).unwrap();
        fs_err::os::unix::fs::symlink("..data/two.pub", dir.path().join("two.pub")).unwrap();
        assert_eq!((read(&dir.path().join("one.pub")), read(dir.path())), (1, 2));
        let broken = dir.path().join("three.pub");
        fs_err::write(&broken, "no key").unwrap();
        let error = refused(&ChannelSettings {
            keys: Some(dir.path().to_owned()),
            ..settings()
        });
        let told = format!(
            "cannot use {}, which {KEYS} names: there is no public key",
            broken.display()
        );
        assert!(error.starts_with(&told), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_variable() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, nowhere) = (dir.path().join("empty"), PathBuf::from("/nowhere/file"));
        fs_err::write(&empty, " \n").unwrap();
        let with_keys = |path: &Path| {
            refused(&ChannelSettings {
                keys: Some(path.to_owned()),
                ..settings()
            })
        };
        let with_authority = |path: &Path| {
            refused(&ChannelSettings {
                authority: Some(path.to_owned()),
                ..settings()
            })
        };
        let with_token = |path: &Path| {
            refused(&ChannelSettings {
                notify_token: Some(path.to_owned()),
                ..settings()
            })
        };
        for (error, variable) in [
            (with_keys(&nowhere), KEYS),
            (with_keys(&empty), KEYS),
            (with_authority(&nowhere), AUTHORITY),
            (with_authority(&empty), AUTHORITY),
            (with_token(&nowhere), NOTIFY_TOKEN),
            (with_token(&empty), NOTIFY_TOKEN),
        ] {
            assert!(error.contains(variable), "{error}");
        }
        fs_err::remove_file(&empty).unwrap();
        assert!(with_keys(dir.path()).contains("holds no file with keys"));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named() {
        let environment = |name: &str| Environment::from_iter([(name.to_owned(), "socks5://proxy.example".to_owned())]);
        for name in ["HTTPS_PROXY", "https_proxy"] {
            let read = Box::new(|| -> ReadCredentials { unreachable!() });
            let files = Files::read(&settings()).unwrap();
            let unusable = Office::new(&settings(), files, &environment(name), read).unwrap_err();
            assert!(
                Chain(&unusable)
                    .to_string()
                    .starts_with("cannot use the proxy that HTTPS_PROXY names: ")
            );
        }
    }
}
