//! Fuzzes the schemas of values.

#![no_main]

#[path = "../targets/schema.rs"]
mod schema;

libfuzzer_sys::fuzz_target!(|data: &[u8]| schema::check(data));
