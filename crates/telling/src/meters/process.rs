//! The kernel's figures about this process, under the names that every Prometheus client uses.
//!
//! They are read at each scrape. If a file cannot be read, its metric is left out.

use addon_core::metric::family::{Family, SeriesChange, Shape, Values};

use super::kept::Shown;

/// Clock ticks per second in `/proc`; the same on all supported architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU, memory, start time and open files of this process.
pub(super) fn shown() -> Vec<Shown> {
    let stat = read("/proc/self/stat").and_then(|text| Stat::parse(&text));
    let mut shown = Vec::new();
    if let Some(stat) = &stat {
        shown.push(one(
            Shape::Counter,
            "process_cpu_seconds_total",
            "Total user and system CPU time spent in seconds.",
            stat.cpu_ticks / TICKS_PER_SECOND,
        ));
        shown.push(one(
            Shape::Gauge,
            "process_virtual_memory_bytes",
            "Virtual memory size in bytes.",
            stat.virtual_bytes,
        ));
    }
    let booted = read("/proc/stat").and_then(|text| number_after(&text, "btime "));
    if let (Some(stat), Some(booted)) = (&stat, booted) {
        shown.push(one(
            Shape::Gauge,
            "process_start_time_seconds",
            "Start time of the process since unix epoch.",
            booted + stat.start_ticks / TICKS_PER_SECOND,
        ));
    }
    if let Some(bytes) = resident_bytes() {
        shown.push(one(
            Shape::Gauge,
            "process_resident_memory_bytes",
            "Resident memory size in bytes.",
            bytes,
        ));
    }
    if let Ok(open) = fs_err::read_dir("/proc/self/fd") {
        shown.push(one(
            Shape::Gauge,
            "process_open_fds",
            "Number of open file descriptors.",
            super::count(open.count()),
        ));
    }
    shown
}

/// The resident memory of this process; none if the kernel does not tell it.
pub fn resident_bytes() -> Option<f64> {
    let kilobytes = read("/proc/self/status").and_then(|text| number_after(&text, "VmRSS:"))?;
    Some(kilobytes * 1024.0)
}

/// A metric with one series and no labels.
fn one(shape: Shape, name: &str, help: &'static str, value: f64) -> Shown {
    let mut family = Family::new(shape, []);
    family.take(Values::of([].into_iter()), SeriesChange::By(value));
    Shown {
        name: name.to_owned(),
        help,
        family,
    }
}

fn read(path: &str) -> Option<String> {
    fs_err::read_to_string(path).ok()
}

/// The number that follows `key` at the start of a line.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

struct Stat {
    cpu_ticks: f64,
    start_ticks: f64,
    virtual_bytes: f64,
}

impl Stat {
    /// Parses `/proc/<pid>/stat`. The second field is the command in parentheses and may contain anything, so fields
    /// are counted after the last parenthesis.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_does_not_shift_the_fields() {
        let stat = Stat::parse("7 (a) b (c)) S 1 1 1 0 -1 0 0 0 0 0 30 12 0 0 20 0 4 0 500 4096 9").unwrap();
        assert!((stat.cpu_ticks - 42.0).abs() < f64::EPSILON);
        assert!((stat.start_ticks - 500.0).abs() < f64::EPSILON);
        assert!((stat.virtual_bytes - 4096.0).abs() < f64::EPSILON);
    }

    #[test]
    fn this_process_is_described() {
        let names: Vec<String> = shown().into_iter().map(|one| one.name).collect();
        assert_eq!(
            names,
            [
                "process_cpu_seconds_total",
                "process_virtual_memory_bytes",
                "process_start_time_seconds",
                "process_resident_memory_bytes",
                "process_open_fds"
            ]
        );
    }
}
