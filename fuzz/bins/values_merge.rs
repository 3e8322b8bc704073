//! Fuzzes the merging of values.

#![no_main]

#[path = "../targets/values_merge.rs"]
mod values_merge;

libfuzzer_sys::fuzz_target!(|data: &[u8]| values_merge::check(data));
