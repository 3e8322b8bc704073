//! Fuzzes crontabs.

#![no_main]

#[path = "../targets/crontab.rs"]
mod crontab;

libfuzzer_sys::fuzz_target!(|data: &[u8]| crontab::check(data));
