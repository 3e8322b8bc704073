//! Fuzzes the answers of executables with several hooks.

#![no_main]

#[path = "../targets/batch.rs"]
mod batch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch::check(data));
