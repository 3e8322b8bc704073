//! Fuzzes patches of values.

#![no_main]

#[path = "../targets/values_patch.rs"]
mod values_patch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| values_patch::check(data));
