//! The volumes of a pod: folders of the machine, filled from objects of the cluster and kept up to date.
//!
//! The files from an object are replaced together, by swapping one link, so that no process sees a mixture of old and
//! new files. A volume of an unknown kind keeps the pod from starting, and the status says so.

mod projected;

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::{chown, symlink};
use k8s_openapi::api::core::v1::{Pod, Volume, VolumeMount};
use kube::Client;
use thiserror::Error;

use super::environment::EnvironmentError;
use super::spec::Mount;

#[derive(Debug, Error)]
pub(super) enum VolumeError {
    #[error("cannot fill volume {volume}")]
    Content { volume: String, source: EnvironmentError },
    #[error("cannot get a token for volume {volume}")]
    Token { volume: String, source: Box<kube::Error> },
    #[error("cannot write volume {volume}")]
    Write { volume: String, source: io::Error },
    #[error("volume {0} is of a kind that is not known here")]
    Kind(String),
    #[error("there is no volume {0}")]
    Missing(String),
    #[error("volume {volume} cannot be mounted at {path}: the path leads out of it")]
    Path { volume: String, path: String },
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    content: Vec<u8>,
    mode: u32,
}

/// The folder of the pod's volumes.
#[derive(Debug)]
pub(super) struct Volumes {
    folder: PathBuf,
    /// The contents of the volumes that come from objects, by volume and path.
    filled: BTreeMap<String, BTreeMap<String, File>>,
}

impl Volumes {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            filled: BTreeMap::new(),
        }
    }

    /// Creates and fills all volumes, or updates them.
    pub(super) async fn fill(&mut self, client: &Client, pod: &Pod) -> Result<(), VolumeError> {
        let spec = pod.spec.clone().unwrap_or_default();
        let owner = Owner::of(pod);
        for volume in spec.volumes.into_iter().flatten() {
            let folder = self.folder.join(&volume.name);
            let failed = |source| VolumeError::Write {
                volume: volume.name.clone(),
                source,
            };
            if volume.empty_dir.is_some() {
                if !folder.exists() {
                    owner.make(&folder).map_err(failed)?;
                }
                continue;
            }
            let old = self.filled.get(&volume.name);
            let files = projected::files(client, pod, &volume, old.is_some()).await?;
            let Some(files) = files.filter(|files| old != Some(files)) else {
                continue;
            };
            write(&folder, &files, &owner).map_err(failed)?;
            self.filled.insert(volume.name.clone(), files);
        }
        Ok(())
    }

    /// The mount of a volume in a container.
    pub(super) fn mount(&self, asked: &VolumeMount) -> Result<Mount, VolumeError> {
        let folder = self.folder.join(&asked.name);
        if !folder.exists() {
            return Err(VolumeError::Missing(asked.name.clone()));
        }
        let path = asked.sub_path.as_deref().unwrap_or_default();
        let source = folder.join(path);
        let leads_out = || VolumeError::Path {
            volume: asked.name.clone(),
            path: path.to_owned(),
        };
        if !self.filled.contains_key(&asked.name) && !source.exists() {
            fs::create_dir_all(&source).map_err(|_| leads_out())?;
        }
        let source = fs::canonicalize(&source).map_err(|_| leads_out())?;
        let folder = fs::canonicalize(&folder).map_err(|_| leads_out())?;
        if !source.starts_with(&folder) {
            return Err(leads_out());
        }
        Ok(Mount {
            source,
            target: PathBuf::from(&asked.mount_path),
            read_only: asked.read_only == Some(true) || self.filled.contains_key(&asked.name),
        })
    }
}

/// The owner of a pod's files.
#[derive(Debug)]
struct Owner {
    group: Option<u32>,
}

impl Owner {
    fn of(pod: &Pod) -> Self {
        let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let group = context.and_then(|context| context.fs_group);
        Self {
            group: group.and_then(|group| u32::try_from(group).ok()),
        }
    }

    fn make(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        chown(folder, None, self.group)?;
        // With the setgid bit, files that are created in the folder get its group.
        let mode = if self.group.is_some() { 0o2777 } else { 0o777 };
        fs::set_permissions(folder, Permissions::from_mode(mode))
    }

    fn write(&self, path: &Path, file: &File) -> io::Result<()> {
        fs::write(path, &file.content)?;
        chown(path, None, self.group)?;
        // The group may read the files that the owner may read.
        let more = if self.group.is_some() { 0o040 } else { 0 };
        fs::set_permissions(path, Permissions::from_mode(file.mode | more))
    }
}

/// The name of the link to a volume's current files. An update of the volume replaces the link.
const DATA: &str = "..data";

fn write(folder: &Path, files: &BTreeMap<String, File>, owner: &Owner) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let fresh = tempfile::Builder::new().prefix("..").tempdir_in(folder)?.keep();
    fs::set_permissions(&fresh, Permissions::from_mode(0o755))?;
    for (path, file) in files {
        let path = fresh.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        owner.write(&path, file)?;
    }
    let old = fs::read_link(folder.join(DATA)).ok();
    let link = folder.join("..next");
    symlink(fresh.file_name().unwrap_or_default(), &link)?;
    fs::rename(link, folder.join(DATA))?;
    let wanted = |name: &str| files.keys().any(|path| path.split('/').next() == Some(name));
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() && entry.file_name() != DATA && !wanted(&entry.file_name().to_string_lossy())
        {
            fs::remove_file(entry.path())?;
        }
    }
    for name in files.keys().filter_map(|path| path.split('/').next()) {
        let link = folder.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(name), link)?;
        }
    }
    match old {
        Some(old) => fs::remove_dir_all(folder.join(old)),
        None => Ok(()),
    }
}

/// The error for a volume of an unknown kind, which names the kind.
fn unknown(volume: &Volume) -> VolumeError {
    VolumeError::Kind(volume.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, File> {
        let file = |content: &str| File {
            content: content.as_bytes().to_vec(),
            mode: 0o640,
        };
        pairs
            .iter()
            .map(|(path, content)| ((*path).to_owned(), file(content)))
            .collect()
    }

    #[test]
    fn a_volume_is_swapped_as_a_whole_and_keeps_nothing_old() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, owner) = (folder.path().join("v"), Owner { group: None });
        write(&folder, &files(&[("a", "1"), ("b/c", "1")]), &owner).unwrap();
        assert_eq!(fs::read_to_string(folder.join("b/c")).unwrap(), "1");
        write(&folder, &files(&[("a", "2"), ("d", "2")]), &owner).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "2");
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("..") || name == DATA)
            .collect();
        names.sort();
        assert_eq!(names, [DATA, "a", "d"]);
        assert_eq!(
            fs::metadata(folder.join("a")).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4, "one folder behind the link");
    }
}
