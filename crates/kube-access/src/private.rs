//! Files with credentials: kubeconfigs and tokens. Other users must never be able to read them, and they must never be
//! missing or incomplete while child processes read them.

use std::io::{self, Write as _};
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;

/// Writes a file that other users can never read. Readers see the old or the new content.
pub(super) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    if new.exists() {
        fs::remove_file(&new)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(&new)?.write_all(content)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn whoever_reads_it_finds_it_in_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (path, done) = (dir.path().join("token"), AtomicBool::new(false));
        let texts = ["a".repeat(9000), "b".repeat(5000)];
        write(&path, texts[0].as_bytes()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for text in texts.iter().cycle().take(500) {
                    write(&path, text.as_bytes()).unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                assert!(texts.contains(&fs::read_to_string(&path).unwrap()));
            }
        });
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
