//! Replays the seeds of fuzzing and the inputs that it found: see fuzz/README.md.
#![expect(clippy::panic, reason = "that is how a target says that something is wrong")]

use std::path::Path;

#[path = "../fuzz/targets/batch.rs"]
mod batch;
#[path = "../fuzz/targets/config_map.rs"]
mod config_map;
#[path = "../fuzz/targets/crontab.rs"]
mod crontab;
#[path = "../fuzz/targets/hook_config.rs"]
mod hook_config;
#[path = "../fuzz/targets/jq.rs"]
mod jq;
#[path = "../fuzz/targets/metrics.rs"]
mod metrics;
#[path = "../fuzz/targets/module_yaml.rs"]
mod module_yaml;
#[path = "../fuzz/targets/object_patches.rs"]
mod object_patches;
#[path = "../fuzz/targets/review.rs"]
mod review;
#[path = "../fuzz/targets/schema.rs"]
mod schema;
#[path = "../fuzz/targets/values_merge.rs"]
mod values_merge;
#[path = "../fuzz/targets/values_patch.rs"]
mod values_patch;

/// Runs one target over its corpus, on a stack as large as that of a worker thread of the async runtime.
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs_err::read_dir(folder)
        .expect("the corpus is in the repository")
        .map(|entry| entry.expect("a folder that can be listed").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has a corpus");
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, || {
            for path in &paths {
                let data = fs_err::read(path).expect("a file that can be read");
                let ended = std::panic::catch_unwind(|| check(&data));
                assert!(ended.is_ok(), "{}", path.display());
            }
        });
        let ended = worker.expect("a thread can be had").join();
        assert!(ended.is_ok(), "a text of the corpus");
    });
}

#[test]
fn filters() {
    replay("jq", jq::check);
}

#[test]
fn configurations() {
    replay("hook_config", hook_config::check);
}

#[test]
fn answers_of_several_hooks() {
    replay("batch", batch::check);
}

#[test]
fn crontabs() {
    replay("crontab", crontab::check);
}

#[test]
fn object_patches() {
    replay("object_patches", object_patches::check);
}

#[test]
fn metrics() {
    replay("metrics", metrics::check);
}

#[test]
fn reviews() {
    replay("review", review::check);
}

#[test]
fn schemas() {
    replay("schema", schema::check);
}

#[test]
fn config_maps() {
    replay("config_map", config_map::check);
}

#[test]
fn descriptions_of_modules() {
    replay("module_yaml", module_yaml::check);
}

#[test]
fn merging_of_values() {
    replay("values_merge", values_merge::check);
}

#[test]
fn patches_of_values() {
    replay("values_patch", values_patch::check);
}
