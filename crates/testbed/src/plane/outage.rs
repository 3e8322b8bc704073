//! Outages: parts of a control plane are killed and started again, and the store can be reset to an earlier state.
//!
//! Only the owner of a control plane can do this. A process that joined one cannot kill its programs.

use std::io;
use std::path::Path;

use fs_err as fs;
use tempfile::TempDir;
use thiserror::Error;

use super::ControlPlane;
use super::component::{ComponentError, wait_for};
use super::launch::SOON;
use crate::part::Part;

#[derive(Debug, Error)]
pub enum OutageError {
    #[error("{0} does not run here")]
    NotOurs(&'static str),
    #[error("cannot bring the control plane back")]
    Component(#[from] ComponentError),
    #[error("cannot copy what is stored")]
    Copy(#[from] io::Error),
}

/// A copy of the store at one moment.
#[derive(Debug)]
pub struct Backup(TempDir);

/// The folder of etcd's data, in the folder of the control plane.
pub(super) const STORE: &str = "etcd";

impl ControlPlane {
    /// Kills these parts, calls the closure while they are down, starts them again in the same way, and returns when
    /// the API server is ready.
    pub fn outage(
        &self,
        parts: &[Part],
        meanwhile: impl FnOnce() -> Result<(), OutageError>,
    ) -> Result<(), OutageError> {
        let mut running = self.running();
        let is_hit = |name: &str| parts.iter().any(|part| part.name() == name);
        for part in parts {
            if !running.iter().any(|component| component.name() == part.name()) {
                return Err(OutageError::NotOurs(part.name()));
            }
        }
        for component in running.iter_mut().rev().filter(|component| is_hit(component.name())) {
            component.kill()?;
        }
        let done = meanwhile();
        let admin = self.admin();
        // In the order of the first start: the API server needs etcd, and all others need the API server.
        for last in 0..running.len() {
            let name = running[last].name();
            if is_hit(name) {
                running[last].again()?;
            }
            if is_hit(name) && name != Part::Etcd.name() || name == Part::KubeApiserver.name() {
                wait_for(&mut running[..=last], "the API server to be ready again", || {
                    admin.run(["get", "--raw", "/readyz", SOON])
                })?;
            }
        }
        done
    }

    /// Kills a part and starts it again.
    pub fn restart(&self, part: Part) -> Result<(), OutageError> {
        self.outage(&[part], || Ok(()))
    }

    /// Copies the store. etcd is stopped for it, because files can be copied safely only while no process writes them.
    pub fn backup(&self) -> Result<Backup, OutageError> {
        let kept = tempfile::Builder::new().prefix("backup-").tempdir_in(&self.path)?;
        self.outage(&[Part::Etcd], || {
            Ok(copy(&self.path.join(STORE), &kept.path().join(STORE))?)
        })?;
        Ok(Backup(kept))
    }

    /// Resets the store to the backup. Everything stored later is lost, and resource versions continue from the
    /// backup's. As the manual of Kubernetes demands, all parts of the control plane are restarted.
    pub fn restore(&self, backup: &Backup) -> Result<(), OutageError> {
        let parts = [Part::Etcd, Part::KubeApiserver, Part::KubeControllerManager];
        self.outage(&parts, || {
            let store = self.path.join(STORE);
            fs::remove_dir_all(&store)?;
            Ok(copy(&backup.0.path().join(STORE), &store)?)
        })
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(from)?.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
