//! Processes that helm starts are found and ended with helm, even if they have left its process group.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use addon_core::failure::Class;
use fs_err as fs;
use serde_json::json;
use testbed::wait::wait_until;

use super::world::{PATIENCE, World, with_each_helm};

/// A post-renderer that starts a process in a session of its own and without a parent, and then either works or hangs.
const SCRIPT: &str = "#!/bin/bash\nsetsid bash -c 'sleep 1000 >/dev/null 2>&1 & echo $!' >>FOLDER/left\n\
    if [ -e FOLDER/hang ]; then echo $$ >>FOLDER/left; exec sleep 1000; fi\nexec OPERATOR \"$@\"\n";

impl World {
    fn folder(&self) -> PathBuf {
        self.module_dir().join("../..").canonicalize().unwrap()
    }

    async fn with_leaving_post_renderer(&mut self) {
        let (folder, script) = (self.folder(), self.folder().join("post-renderer"));
        let text = SCRIPT.replace("FOLDER", folder.to_str().unwrap());
        let text = text.replace("OPERATOR", self.parts.post_renderer.to_str().unwrap());
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
        self.parts.post_renderer = script;
        self.restart().await;
    }
}

/// The ids of the processes that post-renderers have left so far, and of those that hang.
fn left_in(folder: &Path) -> Vec<String> {
    let left = fs::read_to_string(folder.join("left")).unwrap_or_default();
    left.lines().map(str::to_owned).collect()
}

fn lives(pid: &String) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_post_renderer_of_helm_leaves_ends_with_its_run() {
    with_each_helm(async |helm| {
        let mut world = World::with("post-renderer", helm).await;
        world.simple_module().await;
        world.with_leaving_post_renderer().await;
        world.sync(json!({"one": {"x": "a"}})).await.unwrap();
        let left = left_in(&world.folder());
        assert!(!left.is_empty() && !left.iter().any(lives), "{left:?}");

        // The post-renderer hangs, and is ended together with helm.
        fs::write(world.folder().join("hang"), "").unwrap();
        let (folder, cancel, before) = (world.folder(), world.cancel.clone(), left.len());
        let canceller = std::thread::spawn(move || {
            let more = || {
                let more = left_in(&folder).split_off(before);
                Ok::<_, String>((more.len() == 2).then_some(more))
            };
            let hanging = wait_until(PATIENCE, "a post-renderer that hangs", more);
            let all_live = hanging.as_ref().is_ok_and(|more| more.iter().all(lives));
            cancel.cancel();
            (hanging, all_live)
        });
        let outcome = world.sync(json!({"one": {"x": "b"}})).await;
        let (hanging, all_live) = canceller.join().unwrap();
        let hanging = hanging.unwrap();
        assert!(all_live, "{hanging:?}");
        assert_eq!(outcome.unwrap_err().class, Class::Cancelled);
        assert!(!hanging.iter().any(lives), "{hanging:?}");
    })
    .await;
}
