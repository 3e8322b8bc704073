//! A real OCI registry, alone or in a control plane, and a guard in front of it.
//!
//! Every process of this machine may push and delete. All content is deleted with its folder. The registry uses plain
//! HTTP and must never listen on an address that another machine reaches.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::Duration;

use fs_err as fs;
use serde_json::json;
use thiserror::Error;

use crate::find::{FindError, Finder};
use crate::folder::Folder;
use crate::part::Part;
use crate::plane::component::{Component, ComponentError, wait_for};
use crate::port::KeptPort;

pub mod guard;

pub mod programs;

pub mod push;

pub mod tunnel;

/// A registry that belongs to no control plane.
#[derive(Debug)]
pub struct Registry {
    address: String,
    /// Dropped before the folder with its files.
    _component: Component,
    _folder: Folder,
    _port: KeptPort,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error("cannot start a registry")]
    Find(#[from] FindError),
    #[error("cannot prepare the folder of a registry")]
    Folder(#[from] io::Error),
    #[error("cannot start a registry")]
    Component(#[from] ComponentError),
}

impl Registry {
    /// Finds or builds the program, starts it, and returns when it answers. Dropping the value stops it.
    pub fn start() -> Result<Self, StartError> {
        let tools = Finder::from_environment().find(&[Part::Registry])?;
        let program = tools.get(&Part::Registry).map(|found| found.file.as_path());
        let program = program.ok_or_else(|| FindError::Missing(vec![Part::Registry]))?;
        let folder = Folder::create_for_registry()?;
        let kept = KeptPort::keep()?;
        let port = kept.number();
        let order = prepare(folder.path(), Ipv4Addr::LOCALHOST, port)?;
        let mut component = Component::start(Part::Registry.name(), program, &order, folder.path(), None)?;
        wait_for(std::slice::from_mut(&mut component), "the registry to answer", || {
            answers(port)
        })?;
        Ok(Self {
            address: format!("127.0.0.1:{port}"),
            _component: component,
            _folder: folder,
            _port: kept,
        })
    }

    /// The host and port, as in a reference to an image.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Writes the registry's configuration file, and returns the arguments for its program. `address` is the one on which
/// it listens.
pub(crate) fn prepare(folder: &Path, address: Ipv4Addr, port: u16) -> io::Result<[String; 2]> {
    let file = folder.join("registry.json");
    let setup = json!({
        "version": "0.1",
        "log": { "level": "info", "accesslog": { "disabled": true } },
        "storage": {
            "filesystem": { "rootdirectory": folder.join("registry") },
            "delete": { "enabled": true },
            "maintenance": { "uploadpurging": { "enabled": false } },
        },
        "http": { "addr": format!("{address}:{port}"), "secret": "of no worth elsewhere" },
        "health": { "storagedriver": { "enabled": false } },
    });
    fs::write(&file, setup.to_string())?;
    Ok(["serve".to_owned(), file.display().to_string()])
}

/// Checks that the registry answers its API: an open port alone is not enough.
pub(crate) fn answers(port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /v2/ HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.split(' ').nth(1) == Some("200") {
        Ok(())
    } else {
        Err(io::Error::other(format!("the registry answered {answer:?}")))
    }
}
