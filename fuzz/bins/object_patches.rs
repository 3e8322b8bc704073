//! Fuzzes the files of object patches.

#![no_main]

#[path = "../targets/object_patches.rs"]
mod object_patches;

libfuzzer_sys::fuzz_target!(|data: &[u8]| object_patches::check(data));
