//! Pushes an image twice to a real registry, assembled anew each time: the second push sends nothing, and the pulled
//! image equals the pushed one.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use image::assembly::{self, Inputs};
use image::definition::{Definition, Program};
use image::layout::{Layout, MANIFEST};
use image::papers::{IN_TOTO, Origin, Parts, SPDX};
use image::push::{Pushed, Target, push};
use oci_client::Reference;
use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use testbed::plane::{ControlPlane, Options};

const DEFINITION: &str = "
debian: { suites: [bookworm] }
layers:
  - name: base
    folders: { /tmp: '1777' }
    files: { /etc/passwd: 'operator:x:7:8::/tmp:/bin/sh' }
  - name: top
    programs: { /operator: operator }
run: { user: '7:8', directory: /, entrypoint: [/operator], environment: {} }
labels: { org.opencontainers.image.title: small }
";

/// Larger than one request of an upload can carry.
const PROGRAM: usize = 9 << 20;

fn assemble(folder: &Path, name: &str) -> Layout {
    let definition = Definition::read(&folder.join("image.yaml")).unwrap();
    let inputs = Inputs {
        repository: folder,
        architecture: "amd64",
        packages: &BTreeMap::new(),
        programs: &BTreeMap::from([(Program::Operator, folder.join("program"))]),
        added: &[],
        origin: &Origin::default(),
        parts: &Parts::default(),
    };
    assembly::assemble(&definition, &inputs, &folder.join(name)).unwrap();
    Layout::open(&folder.join(name))
}

/// Bytes that hardly compress, the same in each run.
fn noise() -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(PROGRAM).collect()
}

/// Installs the TLS provider once in the process, from the test that runs first. A client needs one even for plain
/// HTTP.
fn provide_tls() {
    drop(rustls::crypto::ring::default_provider().install_default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_image_comes_back_from_a_registry_as_it_was_assembled() {
    provide_tls();
    // The shared control plane may have no registry.
    let shared = testbed::shared::plane();
    let own = shared.registry().is_none().then(|| {
        let options = Options {
            registry: true,
            ..Options::default()
        };
        ControlPlane::start(&options).unwrap()
    });
    let address = own.as_ref().unwrap_or(shared).registry().unwrap();

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("image.yaml"), DEFINITION).unwrap();
    fs::write(folder.path().join("program"), noise()).unwrap();
    let layout = assemble(folder.path(), "one");
    let again = assemble(folder.path(), "two");
    let digest = layout.image().unwrap().digest;
    assert_eq!(again.image().unwrap().digest, digest);

    // A repository of this test's own, because other tests of this run push too.
    let name = format!("{address}/image-{}/small", std::process::id());
    let target = Target::new(&format!("{name}:1"), None).unwrap();
    let first = push(&layout, &target, None).await.unwrap();
    assert_eq!(first.digest, digest);
    let manifest = layout.manifest().unwrap();
    let papers = layout.papers().unwrap();
    assert_eq!(again.papers().unwrap(), papers);
    let kinds: Vec<&str> = papers
        .iter()
        .filter_map(|paper| paper.artifact_type.as_deref())
        .collect();
    assert_eq!(kinds, [SPDX, IN_TOTO]);
    let of_papers = papers.iter().map(|paper| layout.manifest_of(paper).unwrap());
    let blobs: BTreeMap<String, u64> = of_papers
        .chain([manifest.clone()])
        .flat_map(|manifest| manifest.layers.into_iter().chain([manifest.config]))
        .map(|blob| (blob.digest, blob.size))
        .collect();
    assert_eq!(first.sent, blobs.values().sum::<u64>());
    assert!(first.sent > PROGRAM as u64 / 2, "{first:?}");
    // The second assembly gives the same image, so nothing has to be sent, under another tag either.
    let other = Target::new(&format!("{name}:2"), None).unwrap();
    assert_eq!(
        push(&again, &other, None).await.unwrap(),
        Pushed {
            digest: digest.clone(),
            sent: 0
        }
    );

    let client = Client::new(ClientConfig {
        protocol: ClientProtocol::Http,
        ..ClientConfig::default()
    });
    let by_digest: Reference = format!("{name}@{digest}").parse().unwrap();
    let referrers = client.pull_referrers(&by_digest, None).await.unwrap().manifests;
    let told: Vec<(&str, Option<&str>)> = referrers
        .iter()
        .map(|paper| (paper.digest.as_str(), paper.artifact_type.as_deref()))
        .collect();
    let wanted: Vec<(&str, Option<&str>)> = papers
        .iter()
        .map(|paper| (paper.digest.as_str(), paper.artifact_type.as_deref()))
        .collect();
    assert_eq!(told, wanted, "each once, however often they were pushed");
    for reference in [format!("{name}:1"), format!("{name}:2"), format!("{name}@{digest}")] {
        let reference: Reference = reference.parse().unwrap();
        let pulled = client
            .pull_manifest_raw(&reference, &RegistryAuth::Anonymous, &[MANIFEST])
            .await
            .unwrap();
        let (bytes, told) = pulled;
        assert_eq!(told, digest);
        assert_eq!(bytes, fs::read(layout.file(&layout.image().unwrap())).unwrap());
        for blob in manifest.layers.iter().chain([&manifest.config]) {
            let mut bytes = Vec::new();
            client
                .pull_blob(&reference, blob.digest.as_str(), &mut bytes)
                .await
                .unwrap();
            assert!(
                bytes == fs::read(layout.file(blob)).unwrap(),
                "{} is another",
                blob.digest
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_registry_that_is_away_is_named() {
    provide_tls();
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = Target::new(&format!("{gone}/a:1"), None).unwrap();
    let error = push(&Layout::open(folder.path()), &target, None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{gone} does not let us push"));
}
