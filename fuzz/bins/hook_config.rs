//! Fuzzes the configurations of hooks.

#![no_main]

#[path = "../targets/hook_config.rs"]
mod hook_config;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hook_config::check(data));
