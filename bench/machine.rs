//! The machine and the date of a measurement. Figures cannot be compared without them.

use fs_err as fs;
use serde_json::Value;
use testbed::part::Part;
use testbed::plane::ControlPlane;

/// A page with the table and the circumstances of its measurement.
pub(crate) fn report(table: &str, plane: &ControlPlane) -> anyhow::Result<String> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC");
    let version: Value = serde_json::from_str(&plane.kubectl(["version", "--output=json"])?)?;
    let kubernetes = version["serverVersion"]["gitVersion"].as_str().unwrap_or("unknown");
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Ok(format!(
        "# Results\n\n\
         Taken {now} by `cargo bench --profile dist --bench figures -- --save`; what is measured how is told in [README.md](README.md).\n\n\
         - addon-operator {}, Kubernetes {kubernetes}, {}\n\
         - {processors} × {}, {} MB of memory, Linux {}\n\n{table}",
        env!("CARGO_PKG_VERSION"),
        Part::Helm3,
        field("/proc/cpuinfo", "model name").unwrap_or_else(|| "processor of unknown kind".to_owned()),
        memory().unwrap_or(0),
        fs::read_to_string("/proc/sys/kernel/osrelease")?.trim(),
    ))
}

/// The page with a new head. The scripts write the sections below the head, so those are kept.
pub(crate) fn renewed(page: &str, head: &str) -> String {
    let below = page.find("\n## ").map_or("", |at| &page[at..]);
    format!("{head}{below}")
}

/// The value of a line `name : value` in a file under `/proc`.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory() -> Option<u64> {
    let kilobytes: u64 = field("/proc/meminfo", "MemTotal")?.split(' ').next()?.parse().ok()?;
    Some(kilobytes / 1024)
}
