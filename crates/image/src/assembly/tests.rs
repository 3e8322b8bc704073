use std::io::Read;
use std::os::unix::fs::symlink;

use flate2::read::GzDecoder;

use super::*;
use crate::layout::Layout;

const DEFINITION: &str = "
debian: { suites: [bookworm] }
layers:
  - name: base
    folders: { /tmp: '1777' }
    links: { /bin: usr/bin }
    files: { /certificates/b: 'B', /certificates/a: \"A\\n\" }
    bundles: { /bundle: /certificates }
  - name: top
    programs: { /bin/operator: operator }
    copies: { /modules: modules }
run: { user: '7:8', directory: /, entrypoint: [/bin/operator, start], environment: { HOME: /tmp } }
labels: { org.opencontainers.image.title: small }
";

/// A small repository. Its file names are created in an order that differs from the sorted one.
struct World {
    folder: tempfile::TempDir,
    definition: Definition,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("image.yaml"), DEFINITION).unwrap();
        for (file, text) in [
            ("modules/z/b", "b"),
            ("modules/a/z", "z"),
            ("modules/.git/x", "x"),
            ("operator", "program"),
            ("ours/a/z", "mine"),
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        fs::set_permissions(root.join("modules/z/b"), std::fs::Permissions::from_mode(0o700)).unwrap();
        symlink("z/b", root.join("modules/link")).unwrap();
        let definition = Definition::read(&root.join("image.yaml")).unwrap();
        Self { folder, definition }
    }

    fn assemble(&self, to: &str, added: &[Added]) -> Result<Assembled, AssemblyError> {
        let root = self.folder.path();
        let inputs = Inputs {
            repository: root,
            architecture: "amd64",
            packages: &BTreeMap::new(),
            programs: &BTreeMap::from([(Program::Operator, root.join("operator"))]),
            added,
            origin: &Origin {
                version: "1.2.3".to_owned(),
                revision: Some("abc".to_owned()),
                created: None,
            },
            parts: &Parts::default(),
        };
        assemble(&self.definition, &inputs, &root.join(to))
    }

    fn layout(&self, name: &str) -> Layout {
        Layout::open(&self.folder.path().join(name))
    }

    /// The paths in a layer, each with its mode and its text.
    fn layer(&self, name: &str, number: usize) -> Vec<(String, u32, String)> {
        let layout = self.layout(name);
        let layer = layout.file(&layout.manifest().unwrap().layers[number]);
        let mut archive = tar::Archive::new(GzDecoder::new(fs::File::open(layer).unwrap()));
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (
                entry.path().unwrap().display().to_string(),
                entry.header().mode().unwrap(),
                text,
            )
        });
        entries.collect()
    }
}

#[test]
fn two_assemblies_give_one_digest() {
    let world = World::new();
    let first = world.assemble("one", &[]).unwrap();
    let second = world.assemble("two", &[]).unwrap();
    assert_eq!(first.manifest, second.manifest);
    // Another location of the repository, other times and other modes lead to the same image.
    let moved = World::new();
    fs::set_permissions(
        moved.folder.path().join("operator"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    assert_eq!(moved.assemble("three", &[]).unwrap().manifest, first.manifest);
    fs::write(moved.folder.path().join("modules/z/b"), "other").unwrap();
    let other = moved.assemble("three", &[]).unwrap();
    assert_ne!(other.manifest, first.manifest);
    assert_eq!(other.layers[0], first.layers[0], "the layer below is still the same");
}

#[test]
fn layers_hold_what_the_definition_says() {
    let world = World::new();
    world.assemble("image", &[]).unwrap();
    let is = |path: &str, mode: u32, text: &str| (path.to_owned(), mode, text.to_owned());
    let base = [
        is("bin", 0o777, ""),
        is("bundle", 0o644, "A\nB\n"),
        is("certificates/", 0o755, ""),
        is("certificates/a", 0o644, "A\n"),
        is("certificates/b", 0o644, "B"),
        is("tmp/", 0o1777, ""),
    ];
    assert_eq!(world.layer("image", 0), base);
    let top = [
        is("modules/", 0o755, ""),
        is("modules/a/", 0o755, ""),
        is("modules/a/z", 0o644, "z"),
        is("modules/link", 0o777, ""),
        is("modules/z/", 0o755, ""),
        is("modules/z/b", 0o755, "b"),
        is("usr/", 0o755, ""),
        is("usr/bin/", 0o755, ""),
        is("usr/bin/operator", 0o755, "program"),
    ];
    assert_eq!(world.layer("image", 1), top);
}

#[test]
fn what_is_added_is_a_layer_on_top_and_wins() {
    let world = World::new();
    let plain = world.assemble("plain", &[]).unwrap();
    let added = Added {
        source: world.folder.path().join("ours"),
        place: ImagePath::absolute("/modules").unwrap(),
    };
    let image = world.assemble("image", std::slice::from_ref(&added)).unwrap();
    assert_eq!(
        image.layers[..2],
        plain.layers[..],
        "all other layers are those that everybody has"
    );
    let paths: Vec<(String, String)> = world
        .layer("image", 2)
        .into_iter()
        .map(|(path, _, text)| (path, text))
        .collect();
    let is = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    assert_eq!(
        paths,
        [is("modules/", ""), is("modules/a/", ""), is("modules/a/z", "mine")]
    );
}

#[test]
fn the_documents_say_how_it_is_run_and_where_it_comes_from() {
    let world = World::new();
    let image = world.assemble("image", &[]).unwrap();
    let layout = world.layout("image");
    assert_eq!(layout.image().unwrap(), image.manifest);
    let manifest = layout.manifest().unwrap();
    assert_eq!(manifest.annotations["org.opencontainers.image.title"], "small");
    assert_eq!(manifest.annotations["org.opencontainers.image.version"], "1.2.3");
    assert_eq!(manifest.annotations["org.opencontainers.image.revision"], "abc");
    assert_eq!(manifest.annotations["addon-operator/lowest-chart"], "0.1.0");
    assert_eq!(manifest.annotations["addon-operator/state-formats"], "1");
    assert!(!manifest.annotations.contains_key("org.opencontainers.image.created"));
    let config: Value = serde_json::from_slice(&fs::read(layout.file(&manifest.config)).unwrap()).unwrap();
    assert_eq!(config["config"]["User"], "7:8");
    assert_eq!(config["config"]["Entrypoint"], json!(["/bin/operator", "start"]));
    assert_eq!(config["config"]["Env"], json!(["HOME=/tmp"]));
    assert_eq!(config["config"]["Labels"], json!(manifest.annotations));
    let diffs: Vec<String> = image
        .layers
        .iter()
        .map(|(_, written)| format!("sha256:{}", written.diff_sha256))
        .collect();
    assert_eq!(config["rootfs"], json!({ "type": "layers", "diff_ids": diffs }));
    assert_eq!(config["architecture"], "amd64");
}

#[test]
fn what_is_missing_is_named_and_no_layout_is_left() {
    let world = World::new();
    fs::remove_dir_all(world.folder.path().join("modules")).unwrap();
    let error = world.assemble("image", &[]).unwrap_err();
    assert!(
        matches!(&error, AssemblyError::Walk(folder, _) if folder.ends_with("modules")),
        "{error}"
    );
    assert!(!world.folder.path().join("image").exists());
}

#[test]
fn folders_of_modules_say_what_must_be_in_them() {
    const FILE: &str = ".addon-operator-manifest.json";
    let mut world = World::new();
    let root = world.folder.path().to_owned();
    for (file, text) in [
        ("modules/010-one/Chart.yaml", "name: one"),
        ("modules/values.yaml", "oneEnabled: true"),
        ("ours/010-one/Chart.yaml", "name: other"),
        ("ours/010-one/hooks/__pycache__/x.pyc", "x"),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
    }
    let variable = ("MODULES_DIR".to_owned(), "/modules".to_owned());
    world.definition.run.environment.extend([variable]);
    let added = |place| Added {
        source: root.join("ours"),
        place: ImagePath::absolute(place).unwrap(),
    };
    world.assemble("image", &[added("/modules"), added("/more")]).unwrap();
    let said = |number, folder: &str| -> Value {
        let layer = world.layer("image", number);
        let text = layer.iter().find(|(path, ..)| *path == format!("{folder}/{FILE}"));
        serde_json::from_str(&text.unwrap().2).unwrap()
    };
    let sum = |text: &str| json!(format!("sha256:{}", crate::layer::sha256(text.as_bytes())));
    let files = said(1, "modules")["files"].clone();
    assert_eq!(files["010-one/Chart.yaml"], sum("name: one"));
    assert_eq!(files["values.yaml"], Value::Null);
    assert_eq!(files["z/b"], sum("b"));
    assert_eq!(files.as_object().unwrap().len(), 4, "{files}");
    // The manifest includes added files, also in a folder that is not the default one.
    assert_eq!(said(2, "modules")["files"]["010-one/Chart.yaml"], sum("name: other"));
    assert_eq!(
        said(2, "more"),
        json!({"version": 1, "files": {"010-one/Chart.yaml": sum("name: other"), "a/z": sum("mine")}})
    );
}

/// An operator takes an empty folder for a volume that is not mounted, unless a manifest in the folder says that it is
/// meant to be empty.
#[test]
fn an_empty_folder_of_modules_is_said_to_be_so() {
    let mut world = World::new();
    let modules = ImagePath::absolute("/own").unwrap();
    let top = world.definition.layers.last_mut().unwrap();
    top.folders.insert(modules.clone(), definition::Mode(0o755));
    let variable = ("MODULES_DIR".to_owned(), "/own:/nowhere".to_owned());
    world.definition.run.environment.extend([variable]);
    let ours = Added {
        source: world.folder.path().join("modules"),
        place: modules,
    };
    fs::create_dir_all(ours.source.join("010-one/templates")).unwrap();
    fs::write(ours.source.join("010-one/Chart.yaml"), "name: one").unwrap();
    world.assemble("image", &[ours]).unwrap();
    let manifests = |number| -> Vec<(String, Value)> {
        let layer = world.layer("image", number).into_iter();
        let manifests = layer.filter(|(path, ..)| path.ends_with("manifest.json"));
        manifests
            .map(|(path, _, text)| (path, serde_json::from_str(&text).unwrap()))
            .collect()
    };
    let path = "own/.addon-operator-manifest.json".to_owned();
    assert_eq!(manifests(1), [(path.clone(), json!({"version": 1, "files": {}}))]);
    let [(put, said)] = &manifests(2)[..] else {
        panic!("{:?}", manifests(2))
    };
    assert_eq!(*put, path);
    assert!(said["files"]["010-one/Chart.yaml"].is_string(), "{said}");
}

/// The operator's own tests read the same folder, so both sides agree on the manifest.
#[test]
fn the_operator_knows_what_must_be_in_a_folder_as_it_would_say_it_itself() {
    let world = World::new();
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/manifest");
    let modules = Added {
        source: shared.join("modules"),
        place: ImagePath::absolute("/shared").unwrap(),
    };
    world.assemble("image", &[modules]).unwrap();
    let layer = world.layer("image", 2);
    let said = layer
        .iter()
        .find(|(path, ..)| path == "shared/.addon-operator-manifest.json");
    let said: Value = serde_json::from_str(&said.unwrap().2).unwrap();
    let wanted: Value = serde_json::from_slice(&fs::read(shared.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(said, wanted);
}
