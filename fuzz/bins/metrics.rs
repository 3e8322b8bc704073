//! Fuzzes the files of metrics.

#![no_main]

#[path = "../targets/metrics.rs"]
mod metrics;

libfuzzer_sys::fuzz_target!(|data: &[u8]| metrics::check(data));
