//! The time zone of crontabs that name none, found by the rules of Go, which the originals follow. Must never prevent
//! the start.

use std::ffi::OsStr;
use std::path::Path;

use jiff::tz::TimeZone;
use report::Chain;
use tracing::warn;

/// The file with the time zone of the computer.
pub(super) const LOCALTIME: &str = "/etc/localtime";

/// `TZ` names a zone, or a zone's file by its absolute path. A leading colon has no meaning, and the empty text is UTC.
/// Without the variable the machine's zone counts, and UTC if it has none.
pub(super) fn local(variable: Option<&OsStr>, of_machine: &Path) -> TimeZone {
    let Some(variable) = variable else {
        return of_file(of_machine).unwrap_or(TimeZone::UTC);
    };
    let text = variable.to_string_lossy();
    let found = match text.strip_prefix(':').unwrap_or(&text) {
        "" => return TimeZone::UTC,
        path if path.starts_with('/') => of_file(Path::new(path)),
        name => TimeZone::get(name).map_err(|error| Chain(&error).to_string()),
    };
    found.unwrap_or_else(|error| {
        warn!(error, "TZ names no known time zone, crontabs are read in UTC");
        TimeZone::UTC
    })
}

fn of_file(path: &Path) -> Result<TimeZone, String> {
    let bytes = fs_err::read(path).map_err(|error| Chain(&error).to_string())?;
    TimeZone::tzif("Local", &bytes).map_err(|error| format!("{}: {}", path.display(), Chain(&error)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// A zone file with a single offset, eight hours east of Greenwich.
    fn eight_hours_east() -> Vec<u8> {
        let block = |version: u8| {
            let mut block = b"TZif".to_vec();
            block.push(version);
            block.extend([0; 15]);
            for count in [0_u32, 0, 0, 0, 1, 4] {
                block.extend(count.to_be_bytes());
            }
            block.extend((8 * 3600_i32).to_be_bytes());
            block.extend([0, 0]);
            block.extend(b"CST\0");
            block
        };
        [block(b'2'), block(b'2'), b"\nCST-8\n".to_vec()].concat()
    }

    #[test]
    fn a_zone_is_found_as_go_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("east");
        fs_err::write(&file, eight_hours_east()).unwrap();
        let broken = folder.path().join("broken");
        fs_err::write(&broken, "no zone").unwrap();
        let missing = folder.path().join("missing");
        let path = file.to_str().unwrap();
        for (variable, of_machine, hours) in [
            (None, &file, 8),
            (None, &missing, 0),
            (None, &broken, 0),
            (Some("Asia/Tokyo"), &file, 9),
            (Some(":Asia/Tokyo"), &file, 9),
            (Some(""), &file, 0),
            (Some("UTC"), &file, 0),
            (Some(path), &missing, 8),
            (Some(&*format!(":{path}")), &missing, 8),
            (Some("Asia/Nowhere"), &file, 0),
            (Some(broken.to_str().unwrap()), &file, 0),
        ] {
            let zone = local(variable.map(OsStr::new), of_machine);
            let offset = zone.to_offset(Timestamp::UNIX_EPOCH).seconds();
            assert_eq!(offset, hours * 3600, "{variable:?} {}", of_machine.display());
        }
    }
}
