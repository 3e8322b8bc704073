//! The size of helm's record of a release, and of its parts. Helm stores the whole chart in it, with every
//! file that `.helmignore` does not leave out.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use walkdir::{DirEntry, WalkDir};

use super::chart::Chart;
use super::ignored::Ignored;

/// The size of a record in bytes as it is stored, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSize {
    /// The size of the record.
    pub all: usize,
    /// The files and rendered objects, each with its own size, the largest first.
    pub parts: Vec<(String, usize)>,
}

/// The number of bytes that a Secret holds.
pub const SECRET_LIMIT: usize = 1 << 20;
/// The number of parts that a sentence names.
const NAMED: usize = 3;

impl RecordSize {
    /// The largest parts, in words.
    pub fn largest(&self) -> String {
        let told = |(name, size): &(String, usize)| format!("{name} {} KiB", size.div_ceil(1 << 10));
        let largest: Vec<_> = self.parts.iter().take(NAMED).map(told).collect();
        largest.join(", ")
    }

    /// The size of the record of a chart that renders these objects, each with its name and its text.
    pub fn of(module: &Path, chart: Chart, rendered: impl IntoIterator<Item = (String, String)>) -> io::Result<Self> {
        let mut contents = BTreeMap::new();
        for (name, bytes) in files(module, chart)? {
            contents.insert(name, STANDARD.encode(bytes));
        }
        contents.extend(
            rendered
                .into_iter()
                .map(|(name, text)| (format!("rendered {name}"), text)),
        );
        let all = packed(contents.values().map(String::as_bytes))?;
        let sized = contents
            .into_iter()
            .map(|(name, text)| Ok((name, packed([text.as_bytes()])?)));
        let mut parts = sized.collect::<io::Result<Vec<_>>>()?;
        parts.sort_by_key(|(_, size)| usize::MAX - size);
        Ok(Self { all, parts })
    }
}

/// The files that helm loads, each with its path in the chart.
fn files(module: &Path, chart: Chart) -> io::Result<Vec<(String, Vec<u8>)>> {
    let ignored = match chart {
        Chart::Whole => Ignored::of(module),
        Chart::Made => Ignored::default(),
    };
    let relative = |entry: &DirEntry| entry.path().strip_prefix(module).unwrap_or(entry.path()).to_owned();
    let is_part = |entry: &DirEntry| {
        let is_dir = entry.file_type().is_dir();
        entry.depth() == 0
            || !(is_dir && chart.leaves_out(entry.file_name()) || ignored.covers(&relative(entry), is_dir))
    };
    let mut files = Vec::new();
    for entry in WalkDir::new(module)
        .follow_links(true)
        .into_iter()
        .filter_entry(is_part)
    {
        let entry = entry?;
        if entry.file_type().is_file() {
            files.push((relative(&entry).display().to_string(), fs_err::read(entry.path())?));
        }
    }
    Ok(files)
}

/// The number of bytes that these texts need in a Secret with a release.
pub fn packed<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> io::Result<usize> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    for text in texts {
        gzip.write_all(text)?;
    }
    Ok(gzip.finish()?.len().div_ceil(3) * 4)
}

#[cfg(test)]
mod tests {
    use addon_core::digest::Digest;

    use super::*;

    /// Bytes that hardly compress.
    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut digest = Digest::of_bytes(b"seed");
        while bytes.len() < length {
            digest = Digest::of_bytes(digest.to_string().as_bytes());
            bytes.extend(digest.to_string().bytes());
        }
        bytes
    }

    #[test]
    fn the_largest_parts_come_first_and_ignored_files_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("Chart.yaml", b"name: a".to_vec()),
            ("hooks/dump.bin", noise(400_000)),
            ("images/big.bin", noise(900_000)),
            (".helmignore", b"images/\n".to_vec()),
            ("templates/a.yaml", noise(50_000)),
        ] {
            let path = dir.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, bytes).unwrap();
        }
        let rendered = [("ConfigMap/c".to_owned(), "x".repeat(100))];
        let size = RecordSize::of(dir.path(), Chart::Whole, rendered).unwrap();
        let names: Vec<_> = size.parts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..2], ["hooks/dump.bin", "templates/a.yaml"]);
        assert!(names.contains(&"rendered ConfigMap/c"), "{names:?}");
        assert!(!names.contains(&"images/big.bin"), "{names:?}");
        // A made chart has no ignore file, and neither hooks nor images.
        let size = RecordSize::of(dir.path(), Chart::Made, []).unwrap();
        assert_eq!(size.parts[0].0, "templates/a.yaml");
        assert!(size.largest().starts_with("templates/a.yaml "), "{}", size.largest());
    }
}
