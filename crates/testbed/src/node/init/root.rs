//! The root of a container: its image, a writable layer of its own, and its mounts.
//!
//! All mounts are made in a mount namespace that only the container has, so nothing is ever unmounted. Paths in the
//! image are resolved by hand while the machine's root is still the root, because a link in an image must not lead out
//! of it.

use std::ffi::CString;
use std::io;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::mount::{mount, mount_bind, mount_bind_recursive, mount_change, mount_remount, unmount};
use thiserror::Error;

use crate::node::spec::{Mount, Spec};

#[derive(Debug, Error)]
pub(super) enum RootError {
    #[error("cannot mount {what} at {target}")]
    Mount {
        what: String,
        target: PathBuf,
        source: io::Error,
    },
    #[error("cannot make a place for mounts")]
    PodNetwork(#[from] io::Error),
    #[error("cannot change the root")]
    Pivot(#[source] io::Error),
    #[error("cannot mount a root at {0}: the path has a colon, a comma or a backslash")]
    Path(PathBuf),
    #[error("too many links on the way to {0}")]
    Links(PathBuf),
}

type Outcome<T = ()> = Result<T, RootError>;

/// Builds the root and moves the process into it.
pub(super) fn change(spec: &Spec) -> Outcome {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(failed("nothing", Path::new("/")))?;
    let root = layered(spec)?;
    kernel(&root)?;
    for asked in &spec.mounts {
        bind(&root, asked)?;
    }
    if spec.read_only {
        remount_read_only(&root)?;
    }
    rustix::system::sethostname(spec.hostname.as_bytes()).map_err(|error| RootError::Pivot(error.into()))?;
    pivot(&root).map_err(RootError::Pivot)
}

fn failed<'a, E: Into<io::Error>>(what: &'a str, target: &'a Path) -> impl Fn(E) -> RootError + 'a {
    let (what, target) = (what.to_owned(), target.to_owned());
    move |error| RootError::Mount {
        what: what.clone(),
        target: target.clone(),
        source: error.into(),
    }
}

/// Mounts the image with the container's writable layer over it.
fn layered(spec: &Spec) -> Outcome<PathBuf> {
    let [upper, work, root] = ["upper", "work", "root"].map(|name| spec.folder.join(name));
    for folder in [&upper, &work, &root] {
        fs::create_dir_all(folder)?;
    }
    let named = |path: &Path| {
        let text = path.to_str().filter(|text| !text.contains([':', ',', '\\']));
        text.map(str::to_owned).ok_or_else(|| RootError::Path(path.to_owned()))
    };
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        named(&spec.image)?,
        named(&upper)?,
        named(&work)?
    );
    let options = CString::new(options).map_err(|_| RootError::Path(spec.image.clone()))?;
    mount("overlay", &root, "overlay", MountFlags::empty(), options.as_c_str()).map_err(failed("the image", &root))?;
    Ok(root)
}

/// Mounts `/proc`, `/sys` and `/dev`, reduced to what a container may use.
fn kernel(root: &Path) -> Outcome {
    let still = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    let proc = folder(root, "/proc")?;
    mount("proc", &proc, "proc", still, None).map_err(failed("proc", &proc))?;
    for part in ["sys", "sysrq-trigger", "irq", "bus"].map(|part| proc.join(part)) {
        if part.exists() {
            mount_bind(&part, &part).map_err(failed("a part of proc", &part))?;
            remount_read_only(&part)?;
        }
    }
    let sys = folder(root, "/sys")?;
    mount("sysfs", &sys, "sysfs", still | MountFlags::RDONLY, None).map_err(failed("sysfs", &sys))?;
    devices(&folder(root, "/dev")?)
}

fn devices(dev: &Path) -> Outcome {
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("tmpfs", dev, "tmpfs", quiet, c"mode=755,size=64k").map_err(failed("tmpfs", dev))?;
    for name in ["null", "zero", "full", "random", "urandom", "tty"] {
        let (source, target) = (Path::new("/dev").join(name), dev.join(name));
        fs::write(&target, "")?;
        mount_bind(&source, &target).map_err(failed(name, &target))?;
    }
    for (name, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        fs::os::unix::fs::symlink(format!("/proc/self/fd{to}"), dev.join(name))?;
    }
    let (memory, terminals) = (dev.join("shm"), dev.join("pts"));
    fs::create_dir(&memory)?;
    mount("tmpfs", &memory, "tmpfs", quiet, c"mode=1777,size=64m").map_err(failed("tmpfs", &memory))?;
    fs::create_dir(&terminals)?;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount("devpts", &terminals, "devpts", quiet, options).map_err(failed("devpts", &terminals))?;
    Ok(fs::os::unix::fs::symlink("pts/ptmx", dev.join("ptmx"))?)
}

fn folder(root: &Path, path: &str) -> Outcome<PathBuf> {
    let path = inside(root, Path::new(path))?;
    fs::create_dir_all(&path)?;
    Ok(path)
}

fn bind(root: &Path, asked: &Mount) -> Outcome {
    let target = inside(root, &asked.target)?;
    if asked.source.is_dir() {
        fs::create_dir_all(&target)?;
    } else if !target.exists() {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&target, "")?;
    }
    let what = asked.source.display().to_string();
    mount_bind_recursive(&asked.source, &target).map_err(failed(&what, &target))?;
    if asked.read_only {
        remount_read_only(&target)?;
    }
    Ok(())
}

fn remount_read_only(target: &Path) -> Outcome {
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    mount_remount(target, flags, "").map_err(failed("it again, read-only,", target))
}

/// The path on the machine of a path in the container. Links are followed as the container would follow them.
fn inside(root: &Path, path: &Path) -> Outcome<PathBuf> {
    const MOST: usize = 40;
    let mut found = PathBuf::new();
    let mut left: Vec<PathBuf> = components(path);
    let mut links = 0;
    while let Some(next) = left.pop() {
        if next.as_os_str() == ".." {
            found.pop();
            continue;
        }
        found.push(&next);
        let Ok(link) = std::fs::read_link(root.join(&found)) else {
            continue;
        };
        links += 1;
        if links > MOST {
            return Err(RootError::Links(path.to_owned()));
        }
        found.pop();
        if link.is_absolute() {
            found = PathBuf::new();
        }
        left.extend(components(&link));
    }
    Ok(root.join(found))
}

/// The components of a path, in reverse order.
fn components(path: &Path) -> Vec<PathBuf> {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

/// Changes the root. The old root is then mounted over the new one, and is unmounted from there.
fn pivot(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_an_image_do_not_lead_out_of_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("run/a")).unwrap();
        fs::create_dir_all(root.join("var")).unwrap();
        fs::os::unix::fs::symlink("/run", root.join("var/run")).unwrap();
        fs::os::unix::fs::symlink("../../../../etc", root.join("var/up")).unwrap();
        let found = |path: &str| inside(root, Path::new(path)).unwrap();
        assert_eq!(found("/var/run/a/b"), root.join("run/a/b"));
        assert_eq!(found("/var/up/passwd"), root.join("etc/passwd"));
        assert_eq!(found("/../../x"), root.join("x"));
        fs::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        assert!(matches!(inside(root, Path::new("/loop")), Err(RootError::Links(_))));
    }
}
