//! Fuzzes the ConfigMap.

#![no_main]

#[path = "../targets/config_map.rs"]
mod config_map;

libfuzzer_sys::fuzz_target!(|data: &[u8]| config_map::check(data));
