use serde_json::json;

use super::*;

fn objects(names: &[&str]) -> BTreeSet<Object> {
    let object = |name: &&str| Object::new("v1", "ConfigMap", "ns", name);
    names.iter().map(object).collect()
}

fn claims() -> (tempfile::TempDir, Claims) {
    let dir = tempfile::tempdir().unwrap();
    let claims = Claims::at(dir.path().join("claims.json"));
    (dir, claims)
}

#[test]
fn the_second_is_refused_by_name_and_gets_nothing() {
    let (_dir, claims) = claims();
    assert_eq!(claims.claim("a", &objects(&["x", "y"])).unwrap(), Ok(()));
    assert_eq!(claims.claim("a", &objects(&["x"])).unwrap(), Ok(()));
    let refusal = claims.claim("b", &objects(&["own", "y"])).unwrap().unwrap_err();
    assert_eq!(
        refusal.failure("b").report,
        "module 'b' renders ConfigMap 'y' of namespace 'ns', which belongs to module 'a'"
    );
    assert_eq!(claims.take_refusal("b").unwrap(), Some(refusal));
    assert_eq!(claims.take_refusal("b").unwrap(), None);
    assert_eq!(claims.claim("c", &objects(&["own"])).unwrap(), Ok(()));
}

#[test]
fn a_release_that_renders_an_object_twice_is_told_so() {
    let (_dir, claims) = claims();
    let object = Object::new("v1", "ConfigMap", "ns", "x");
    let refusal = claims.refuse_twice("a", object).unwrap();
    assert_eq!(
        refusal.failure("a").report,
        "module 'a' renders ConfigMap 'x' of namespace 'ns' twice"
    );
    assert_eq!(claims.take_refusal("a").unwrap(), Some(refusal));
    assert_eq!(claims.claim("b", &objects(&["x"])).unwrap(), Ok(()));
}

#[test]
fn what_a_release_gives_up_is_free() {
    let (_dir, claims) = claims();
    let releases = BTreeMap::from([("a".to_owned(), objects(&["x", "y"]))]);
    claims.begin(&releases).unwrap();
    claims.settle("a", &objects(&["x"])).unwrap();
    assert_eq!(claims.claim("b", &objects(&["y"])).unwrap(), Ok(()));
    assert!(claims.claim("b", &objects(&["x"])).unwrap().is_err());
    claims.settle("a", &BTreeSet::new()).unwrap();
    assert_eq!(claims.claim("b", &objects(&["x"])).unwrap(), Ok(()));
    claims.begin(&BTreeMap::new()).unwrap();
    assert_eq!(claims.claim("a", &objects(&["x", "y"])).unwrap(), Ok(()));
}

#[test]
fn a_disk_that_is_full_takes_nothing_of_what_was_there() {
    let (dir, claims) = claims();
    let disk = dir.path().join("disk");
    fs_err::create_dir(&disk).unwrap();
    let size = Some(c"size=64k");
    let mounted = rustix::mount::mount("disk", &disk, "tmpfs", rustix::mount::MountFlags::NODEV, size);
    mounted.expect("a test that fills a disk mounts one, which takes root");
    let unmounted = Unmounted(disk.clone());
    let claims = Claims::at(disk.join(claims.path().file_name().unwrap()));
    assert_eq!(claims.claim("a", &objects(&["x"])).unwrap(), Ok(()));
    let mut filler = File::create(disk.join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    drop(filler);
    let error = claims.claim("b", &objects(&["y"])).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    fs_err::remove_file(disk.join("filler")).unwrap();
    assert!(
        claims.claim("b", &objects(&["x"])).unwrap().is_err(),
        "x is no longer that of a"
    );
    assert_eq!(claims.claim("b", &objects(&["y"])).unwrap(), Ok(()));
    drop(unmounted);
}

struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn whoever_holds_the_lock_and_does_not_go_on_is_waited_for_with_a_bound() {
    let (_dir, claims) = claims();
    let hasty = Claims {
        patience: LOCK_PAUSE,
        ..claims.clone()
    };
    assert_eq!(claims.claim("a", &objects(&["x"])).unwrap(), Ok(()));
    let stopped = claims.turn().unwrap();
    let (said, told) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn({
        let hasty = hasty.clone();
        move || said.send(hasty.claim("b", &objects(&["y"])))
    });
    let told = told.recv_timeout(Duration::from_mins(1)).expect("it waits for ever");
    let error = told.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(
        error.to_string().contains("claims.json is held by another for "),
        "{error}"
    );
    waiting.join().unwrap().unwrap();
    drop(stopped);
    assert!(hasty.claim("b", &objects(&["x"])).unwrap().is_err());
    assert_eq!(hasty.claim("b", &objects(&["y"])).unwrap(), Ok(()));
}

#[test]
fn a_file_that_cannot_be_read_stops_nobody() {
    let (_dir, claims) = claims();
    fs_err::write(claims.path(), "{\"owners\": {\"x").unwrap();
    assert_eq!(claims.claim("a", &objects(&["x"])).unwrap(), Ok(()));
    assert!(claims.claim("b", &objects(&["x"])).unwrap().is_err());
}

#[test]
fn of_many_at_once_exactly_one_gets_an_object() {
    let (_dir, claims) = claims();
    let one = objects(&["x"]);
    let got: Vec<bool> = std::thread::scope(|scope| {
        let claim = |at: usize| {
            let (claims, one) = (&claims, &one);
            scope.spawn(move || claims.claim(&format!("r{at}"), one).unwrap().is_ok())
        };
        let threads: Vec<_> = (0..8).map(claim).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(got.iter().filter(|got| **got).count(), 1);
}

#[test]
fn an_object_is_the_same_in_every_version_and_with_its_namespace_said_or_not() {
    let of = |manifest: Value| Object::of(&manifest, "ns");
    let plain = of(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}));
    let other =
        of(json!({"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "ns"}}));
    assert!(plain.is_some());
    assert_eq!(plain, other);
    let core = of(json!({"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "x"}}));
    assert_ne!(plain, core);
    assert_eq!(of(json!({"kind": "Deployment"})), None);
}
