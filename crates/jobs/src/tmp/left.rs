//! Reads a path that was a file for a child process, after the child's end. It may still be the file, or a link, pipe
//! or directory that the child put there. Must never block on a pipe, follow a link, or hold more of the file in memory
//! than is used.

use std::fmt;
use std::fs::FileType;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use thiserror::Error;

/// The size limit, above any useful size: a file is in memory as text and parsed at the same time.
pub const LONGEST_FILE: u64 = 16 << 20;

/// Why a file of a child was not read.
#[derive(Debug, Error)]
pub enum LeftError {
    #[error("cannot read {}, which is {what} now and no file", path.display())]
    NoFile { path: PathBuf, what: Kind },
    #[error("cannot read {}, which holds {size} bytes: at most {LONGEST_FILE} are read", path.display())]
    TooLong { path: PathBuf, size: u64 },
    #[error("line {line} is not in UTF-8")]
    NotText { line: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LeftError {
    /// The remedy for the author of the program.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoFile { .. } => Some("write into the file that the variable names, and leave it where it is"),
            Self::TooLong { .. } => Some("write less at a time: leave out lines that do not change from run to run"),
            Self::NotText { .. } | Self::Io(_) => None,
        }
    }
}

/// The kinds of things that may be at the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    Link,
    Pipe,
    Socket,
    Device,
}

impl Kind {
    fn of(found: FileType) -> Self {
        if found.is_dir() {
            Self::Directory
        } else if found.is_symlink() {
            Self::Link
        } else if found.is_fifo() {
            Self::Pipe
        } else if found.is_socket() {
            Self::Socket
        } else {
            Self::Device
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::Link => "a link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

/// The text of the file.
pub fn read(path: &Path) -> Result<String, LeftError> {
    let mut options = fs::OpenOptions::new();
    // Opening a pipe does not wait for a writer, and opening a link fails.
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).map_err(|error| stands_for(path, error))?;
    let found = file.metadata()?;
    if !found.is_file() {
        let what = Kind::of(found.file_type());
        let path = path.to_owned();
        return Err(LeftError::NoFile { path, what });
    }
    let too_long = |size| LeftError::TooLong {
        path: path.to_owned(),
        size,
    };
    if found.len() > LONGEST_FILE {
        return Err(too_long(found.len()));
    }
    let mut bytes = Vec::new();
    // Another process may still be writing.
    let read = file.take(LONGEST_FILE + 1).read_to_end(&mut bytes)?;
    if read as u64 > LONGEST_FILE {
        return Err(too_long(read as u64));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        LeftError::NotText {
            line: 1 + good.filter(|byte| **byte == b'\n').count(),
        }
    })
}

/// The error of opening a link or a socket, which the kernel refuses.
fn stands_for(path: &Path, error: io::Error) -> LeftError {
    match fs::symlink_metadata(path).map(|found| found.file_type()) {
        Ok(found) if !found.is_file() => LeftError::NoFile {
            path: path.to_owned(),
            what: Kind::of(found),
        },
        _ => LeftError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_a_file_of_a_reasonable_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let sized = |name: &str, size: u64| {
            fs::File::create(at(name)).unwrap().set_len(size).unwrap();
            at(name)
        };
        assert_eq!(
            read(&sized("longest", LONGEST_FILE)).unwrap().len() as u64,
            LONGEST_FILE
        );
        let error = read(&sized("longer", LONGEST_FILE + 1)).unwrap_err();
        let LeftError::TooLong { size, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*size, LONGEST_FILE + 1);
        assert!(
            error.to_string().contains("longer, which holds 16777217 bytes"),
            "{error}"
        );

        fs::create_dir(at("directory")).unwrap();
        symlink("/dev/zero", at("link")).unwrap();
        symlink(at("longest"), at("link to a file")).unwrap();
        symlink(at("nowhere"), at("dangling link")).unwrap();
        UnixListener::bind(at("socket")).unwrap();
        for (name, expected) in [
            ("directory", Kind::Directory),
            ("link", Kind::Link),
            ("link to a file", Kind::Link),
            ("dangling link", Kind::Link),
            ("socket", Kind::Socket),
        ] {
            let error = read(&at(name)).unwrap_err();
            let LeftError::NoFile { what, .. } = &error else {
                panic!("{name}: {error}")
            };
            assert_eq!(*what, expected, "{name}");
            assert!(error.hint().is_some());
        }
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert!(error.to_string().contains("/dev/zero, which is a device"), "{error}");
    }

    #[test]
    fn what_is_no_text_is_told_by_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, b"one\ntwo\n\xff\n").unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "line 3 is not in UTF-8");
        assert!(matches!(read(&dir.path().join("nowhere")), Err(LeftError::Io(_))));
    }
}
