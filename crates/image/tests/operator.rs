//! The program that assembles the image refuses an operator that could not start there.

use std::path::Path;

use fs_err as fs;
use image::glibc::Glibc;
use testbed::process;

#[test]
fn an_operator_that_needs_a_newer_c_library_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let operator = folder.path().join("operator");
    let mut program = fs::read(std::env::current_exe().unwrap()).unwrap();
    let (asked, later) = (format!("GLIBC_{}\0", Glibc::needed(&program).unwrap()), "GLIBC_2.99\0");
    let at = program.windows(asked.len()).position(|bytes| bytes == asked.as_bytes());
    program[at.unwrap()..][..later.len()].copy_from_slice(later.as_bytes());
    fs::write(&operator, program).unwrap();
    let mut build = process::command(env!("CARGO_BIN_EXE_image"));
    build
        .args(["build", "--definition", "image", "--operator"])
        .arg(&operator);
    build.arg("--to").arg(folder.path().join("image"));
    build.arg("--packages").arg(folder.path().join("packages"));
    build.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let output = process::run(build, None).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(operator.to_str().unwrap()), "{said}");
    assert!(said.contains("needs glibc 2.99, and the image has 2."), "{said}");
}
