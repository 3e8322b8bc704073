//! Plans of an image: the modules of another version of the operator, beside those in use.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use serde_json::json;
use tar::{EntryType, Header};
use testbed::registry::guard::{Aim, Trouble};
use testbed::registry::push::{Repository, layer, layer_of};
use tokio::runtime::Runtime;

use crate::bad_input::absence::world::copy;
use crate::bad_input::sources::shop::Shop;
use crate::bad_input::stage::{CONVERGED, Stage, assert_says};

/// The entries of an operating system that no module may have, and one that describes the next one.
fn system() -> Vec<u8> {
    let mut system = tar::Builder::new(Vec::new());
    let entry = |kind: EntryType, mode: u32| {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(0);
        header
    };
    let program = &mut entry(EntryType::Regular, 0o4755);
    system.append_data(program, "bin/su", &b""[..]).unwrap();
    let device = &mut entry(EntryType::Char, 0o600);
    system.append_data(device, "dev/null", &b""[..]).unwrap();
    let link = &mut entry(EntryType::Symlink, 0o777);
    system.append_link(link, "etc/mtab", "/proc/mounts").unwrap();
    let long = format!("usr/{}/file", "long/".repeat(60));
    system
        .append_data(&mut entry(EntryType::Regular, 0o644), long, &b""[..])
        .unwrap();
    system.into_inner().unwrap()
}

/// The modules of the stage as the next version has them: one with more data, and none of the name `late`.
fn next(stage: &Stage) {
    copy(&stage.path("modules"), &stage.path("next"));
    let template = fs_err::read_to_string(stage.path("next/010-good/templates/a.yaml")).unwrap();
    let more = template.replace("\ndata: {", "\ndata: {more: thing, ");
    stage.write("next/010-good/templates/a.yaml", &more);
}

#[test]
fn a_plan_of_an_image_says_what_its_modules_would_change() {
    let shop = Shop::open("planned-image");
    let stage = &shop.stage;
    stage.add_module("030-late");
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    next(stage);
    let (here, name) = (shop.repository(), format!("{}/operator", stage.namespace().name()));
    let image = here.replace("/shop", "/operator");
    let place = Repository::at(&shop.guard.address().to_string(), &name);
    let config = json!({"Env": ["PATH=/bin", "MODULES_DIR=/m:/gone", "GLOBAL_HOOKS_DIR=hooks"], "WorkingDir": "/g"});
    let layers = [
        system(),
        layer_of(&stage.path("next"), "/m"),
        layer(&[("g/hooks/new.sh", b"#!/bin/sh\n")]),
        layer(&[("m/.wh.030-late", b"")]),
    ];
    let runtime = Runtime::new().unwrap();
    let digest = runtime.block_on(place.push("next", &config, &layers));

    let objects = stage.objects();
    let plan = format!("plan --image {image}:next --plain-http {}", shop.guard.address());
    let said = operator.ask_in_vain(&plan);
    assert_says(&said, &["the image has no directory /gone", "--in-image names"]);
    let plan = format!("{plan} --in-image ../m");
    assert_says(&operator.try_ask(&plan), &[&format!("The plan is for {digest}.")]);
    let said = operator.ask_for_code(2, &plan);
    let expected = [
        "1. good runs",
        "data.more: + thing",
        "late is removed (its directory is gone)",
        "the global hooks differ",
    ];
    assert_says(&said, &expected);
    assert_eq!(stage.objects(), objects);

    shop.guard.impose(vec![Aim::at("blobs", Trouble::Alter)]);
    assert_says(&operator.ask_in_vain(&plan), &["the content has the digest"]);
    shop.lose_registry();
    assert_says(
        &operator.ask_in_vain(&plan),
        &["cannot get tag 'next' of", "the answer is 500"],
    );
    let said = operator.ask_in_vain("plan -f edit.yaml --plain-http localhost");
    assert_says(&said, &["flags that tell how a registry is reached need --image"]);
    operator.stop();
}
