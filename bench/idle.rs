//! Processor time and memory of an idle process, from `/proc`.

use std::time::{Duration, Instant};

use anyhow::Context;
use fs_err as fs;

/// Processor time that all live threads have used so far.
fn processor_time(process: u32) -> anyhow::Result<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// Resident memory in MB (2^20 bytes): now, and at its peak.
pub(crate) fn memory(process: u32) -> anyhow::Result<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':')
            .split_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    let (now, peak) = field("VmRSS").zip(field("VmHWM")).context("the process has ended")?;
    Ok((now / 1024.0, peak / 1024.0))
}

/// The share of one processor that the process uses over this duration, in thousandths.
pub(crate) fn millicores(process: u32, over: Duration) -> anyhow::Result<f64> {
    let (before, begin) = (processor_time(process)?, Instant::now());
    std::thread::sleep(over);
    let used = processor_time(process)?.saturating_sub(before);
    Ok(used.as_secs_f64() / begin.elapsed().as_secs_f64() * 1000.0)
}
