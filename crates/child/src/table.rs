//! The process table that the kernel shows in `/proc`. Never decides anything about a process. A process that cannot be
//! read must never count as ended.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;

use super::sys::Pid;

/// The flag of a process that was forked and has run no program since (`PF_FORKNOEXEC` in the kernel).
const FORKED: u32 = 0x40;
/// The flag of a thread of the kernel (`PF_KTHREAD`).
const KERNEL: u32 = 0x0020_0000;
/// More bytes than the kernel's line about a process takes: 52 numbers and a short name.
const STAT: usize = 2048;
/// The size limit for an environment: the kernel's default maximum.
const ENVIRONMENT: u64 = 8 << 20;

/// A process. Its id may be reused; id and start time together are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) pid: Pid,
    pub(super) parent: u32,
    /// The id of the process's group.
    pub(super) group: u32,
    /// The start time in ticks since the boot of the machine.
    pub(super) started: u64,
    /// Whether the process has ended and is not reaped.
    pub(super) ended: bool,
    /// Whether the process has run a program since it was forked. Before that it may share the memory of its parent.
    pub(super) has_run: bool,
    /// Whether the process has no environment for good: it is a thread of the kernel, or was given no variables.
    pub(super) is_bare: bool,
}

/// All processes.
pub(super) fn rows() -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in fs_err::read_dir("/proc")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = number.and_then(Pid::new) {
            rows.extend(row(pid)?);
        }
    }
    Ok(rows)
}

/// The process with this id, if there is one.
pub(super) fn row(pid: Pid) -> io::Result<Option<Row>> {
    let mut line = [0; STAT];
    // One read: the kernel gives the whole line if there is room for it.
    let read = open(pid, "stat").and_then(|mut file| file.read(&mut line));
    match unless_gone(read) {
        Ok(length) => Ok(length.and_then(|length| parse(pid, &String::from_utf8_lossy(line.get(..length)?)))),
        // Some systems hide the processes of other users.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}

/// The initial environment of a process.
#[derive(Debug)]
pub(super) enum Environment {
    /// The variables; none if the process has ended.
    Known(Vec<u8>),
    /// The program is just being started, so that its environment is not there yet.
    Starting,
    /// This process may not read it: the process belongs to another user, or is being started by this process.
    Hidden,
}

impl Environment {
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let read = open(pid, "environ").and_then(|file| file.take(ENVIRONMENT).read_to_end(&mut bytes));
        match unless_gone(read) {
            Ok(Some(0)) => Ok(match row(pid)? {
                Some(now) if !now.is_bare => Self::Starting,
                _ => Self::Known(bytes),
            }),
            Ok(_) => Ok(Self::Known(bytes)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Self::Hidden),
            Err(error) => Err(error),
        }
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let Self::Known(bytes) = self else { return None };
        let mut variables = bytes.split(|byte| *byte == 0);
        let value = variables.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(OsStr::from_bytes(value).to_string_lossy().into_owned())
    }
}

fn open(pid: Pid, what: &str) -> io::Result<File> {
    // The error code is needed here, which `fs_err` would hide.
    File::open(format!("/proc/{}/{what}", pid.number()))
}

/// None for a process that has gone.
fn unless_gone<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses `id (name) state parent …`; the name may contain anything, including blanks and brackets.
fn parse(pid: Pid, stat: &str) -> Option<Row> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let flags = fields.get(6)?.parse::<u32>().ok()?;
    // Where the environment begins and ends. Kernels before 3.5 do not tell it.
    let [begin, end] = [47, 48].map(|field| fields.get(field).copied());
    Some(Row {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
        has_run: flags & FORKED == 0,
        // While a program is being started, both are 0.
        is_bare: flags & KERNEL != 0 || begin == end && end != Some("0"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_table_is_read_past_strange_names() {
        let after = "1 17 17 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let forked = after.replace("4194560", "4194624");
        let rows = [
            (format!("17 (sleep) Z {after}"), Some((1, 4711, true, true))),
            (format!("17 (sleep) S {after}"), Some((1, 4711, false, true))),
            (format!("17 (sleep) S {forked}"), Some((1, 4711, false, false))),
            (format!("17 (a) Z 9) S {after}"), Some((1, 4711, false, true))),
            ("17 (sleep) S 1".to_owned(), None),
            (String::new(), None),
        ];
        for (stat, expected) in rows {
            let row = parse(Pid::new(17).unwrap(), &stat);
            let seen = row.map(|row| (row.parent, row.started, row.ended, row.has_run));
            assert_eq!(seen, expected, "{stat}");
        }
    }

    #[test]
    fn a_program_that_is_being_started_is_told_from_one_without_variables() {
        let line = |flags: u32, begin: &str, end: &str| {
            format!("17 (a) S 1 17 17 0 -1 {flags} {} {begin} {end} 0", ["0"; 40].join(" "))
        };
        for (flags, begin, end, is_bare) in [
            (0, "0", "0", false),
            (0, "140721", "140722", false),
            (0, "140721", "140721", true),
            (KERNEL, "0", "0", true),
        ] {
            let row = parse(Pid::new(17).unwrap(), &line(flags, begin, end)).unwrap();
            assert_eq!(row.is_bare, is_bare, "{flags} {begin} {end}");
        }
    }

    #[test]
    fn we_are_in_the_table_ourselves() {
        let me = Pid::new(std::process::id()).unwrap();
        let row = row(me).unwrap().unwrap();
        assert_eq!(row.parent, std::os::unix::process::parent_id());
        assert!(rows().unwrap().contains(&row));
        let environment = Environment::of(me).unwrap();
        assert_eq!(environment.get("NO_SUCH_VARIABLE"), None);
        assert_eq!(
            environment.get("PATH"),
            std::env::var_os("PATH").and_then(|path| path.into_string().ok())
        );
    }
}
