//! Fuzzes reviews: questions of the API server, and answers of hooks.

#![no_main]

#[path = "../targets/review.rs"]
mod review;

libfuzzer_sys::fuzz_target!(|data: &[u8]| review::check(data));
