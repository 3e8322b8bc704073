//! Fuzzes the filters of hooks.

#![no_main]

#[path = "../targets/jq.rs"]
mod jq;

libfuzzer_sys::fuzz_target!(|data: &[u8]| jq::check(data));
