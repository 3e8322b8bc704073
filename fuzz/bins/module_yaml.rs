//! Fuzzes descriptions of modules.

#![no_main]

#[path = "../targets/module_yaml.rs"]
mod module_yaml;

libfuzzer_sys::fuzz_target!(|data: &[u8]| module_yaml::check(data));
