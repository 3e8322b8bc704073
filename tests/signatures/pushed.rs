//! An image that was pushed with a key to a real registry: both the operator's code and the real cosign accept its
//! signature.
#![expect(
    clippy::disallowed_methods,
    reason = "cosign is asked; process.rs belongs to the program"
)]

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use image::layout::{CONFIG, Draft, Layout, MANIFEST};
use image::push::{Target, push};
use oci_client::Reference;
use oci_client::client::Client;
use oci_client::secrets::RegistryAuth;
use registry::signatures::{Evidence, KeyId, Refusal, Simple, Verdict, bundle, simple};
use serde_json::json;
use signing::Signer;
use testbed::find::Finder;
use testbed::part::Part;
use testbed::plane::{ControlPlane, Options};

use crate::{folder, id, keys, parsed};

/// The address of a registry. The shared control plane may have none.
fn registry() -> &'static str {
    static OWN: OnceLock<ControlPlane> = OnceLock::new();
    let start = || {
        let options = Options {
            registry: true,
            ..Options::default()
        };
        ControlPlane::start(&options).unwrap()
    };
    let shared = testbed::shared::plane().registry();
    shared.unwrap_or_else(|| OWN.get_or_init(start).registry().unwrap())
}

/// A repository of the test's own with a small image, and a client for it.
struct Pushed {
    name: String,
    digest: String,
    layout: Layout,
    client: Client,
    folder: tempfile::TempDir,
}

impl Pushed {
    fn new(name: &str) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = tempfile::tempdir().unwrap();
        let draft = Draft::new(&folder.path().join("image")).unwrap();
        let config = draft.document(CONFIG, &json!({"name": name})).unwrap();
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": []});
        let manifest = draft.document(MANIFEST, &manifest).unwrap();
        let paper = draft.paper("text/x-paper", &json!("paper"), &manifest).unwrap();
        let layout = draft.finish(manifest.clone(), vec![paper]).unwrap();
        let name = format!("{}/signatures-{}/{name}", registry(), std::process::id());
        let client = Target::new(&format!("{name}:1"), None).unwrap().client();
        let digest = manifest.digest;
        Self {
            name,
            digest,
            layout,
            client,
            folder,
        }
    }

    async fn push(&self, tag: &str, key: Option<&str>) {
        let target = Target::new(&format!("{}:{tag}", self.name), None).unwrap();
        let signer = key.map(|key| Signer::read(&folder().join("keys").join(format!("{key}.key"))).unwrap());
        let pushed = push(&self.layout, &target, signer.as_ref()).await.unwrap();
        assert_eq!(pushed.digest, self.digest);
    }

    fn reference(&self, behind: &str) -> Reference {
        format!("{}{behind}", self.name).parse().unwrap()
    }

    async fn manifest(&self, behind: &str) -> Option<Vec<u8>> {
        let place = self.reference(behind);
        let found = self
            .client
            .pull_manifest_raw(&place, &RegistryAuth::Anonymous, &[MANIFEST])
            .await;
        found.ok().map(|(bytes, _)| bytes.to_vec())
    }

    async fn blob(&self, digest: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.client
            .pull_blob(&self.reference(":1"), digest, &mut bytes)
            .await
            .unwrap();
        bytes
    }

    /// All possible signatures, as an operator collects them.
    async fn evidence(&self) -> Evidence {
        let mut evidence = Evidence::default();
        let tag = simple::tag(&parsed(&self.digest));
        if let Some(manifest) = self.manifest(&format!(":{tag}")).await {
            for listed in simple::listed(&manifest).unwrap() {
                let payload = self.blob(&listed.payload.digest).await;
                let signature = listed.signature;
                evidence.simple.push(Simple { payload, signature });
            }
        }
        let image = self.reference(&format!("@{}", self.digest));
        let referring = self.client.pull_referrers(&image, None).await.unwrap();
        for found in referring.manifests {
            let manifest = self.manifest(&format!("@{}", found.digest)).await.unwrap();
            if let Some(blob) = bundle::listed(&manifest).unwrap() {
                assert_eq!(found.artifact_type.as_deref(), Some(bundle::ARTIFACT_TYPE));
                evidence.bundles.push(self.blob(&blob.digest).await);
            }
        }
        evidence
    }

    /// The result of `cosign verify`.
    fn cosign(&self, key: &str, form: &str) -> Output {
        static COSIGN: OnceLock<PathBuf> = OnceLock::new();
        let find = || {
            let mut found = Finder::from_environment().find(&[Part::Cosign]).unwrap();
            found.remove(&Part::Cosign).unwrap().file
        };
        let key = folder().join("keys").join(format!("{key}.pub"));
        let mut command = Command::new(COSIGN.get_or_init(find));
        command.args([
            "verify",
            "--insecure-ignore-tlog=true",
            "--allow-http-registry",
            form,
            "--key",
        ]);
        command.arg(key).arg(format!("{}@{}", self.name, self.digest));
        // Cosign must not read the settings or logins of the user who runs the tests.
        command.env("HOME", self.folder.path());
        command.output().unwrap()
    }
}

fn verified(key: KeyId) -> Verdict {
    Verdict::Verified { key }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_pushed_with_a_key_is_signed_in_both_forms() {
    for (key, other) in [("p256", "ed25519"), ("ed25519", "p256")] {
        let pushed = Pushed::new(&format!("by-{key}"));
        pushed.push("1", Some(key)).await;
        let evidence = pushed.evidence().await;
        assert_eq!((evidence.simple.len(), evidence.bundles.len()), (1, 1));
        let of_tag = Evidence {
            bundles: Vec::new(),
            ..evidence.clone()
        };
        let referring = Evidence {
            simple: Vec::new(),
            ..evidence
        };
        for evidence in [of_tag, referring] {
            assert_eq!(
                keys(&["rsa", key]).judge(&parsed(&pushed.digest), &evidence),
                verified(id(key))
            );
            let why = Refusal::NotByOurKeys;
            assert_eq!(
                keys(&[other]).judge(&parsed(&pushed.digest), &evidence),
                Verdict::Refused { why }
            );
        }
        for form in ["--new-bundle-format=true", "--new-bundle-format=false"] {
            let said = pushed.cosign(key, form);
            assert!(
                said.status.success(),
                "{key} {form}: {}",
                String::from_utf8_lossy(&said.stderr)
            );
            assert!(!pushed.cosign(other, form).status.success(), "{other} {form}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_image_is_signed_once_a_key_however_often_it_is_pushed() {
    let pushed = Pushed::new("often");
    pushed.push("1", None).await;
    assert_eq!(
        pushed.evidence().await,
        Evidence::default(),
        "without a key there is no signature"
    );
    let ours = keys(&["p256"]);
    assert_eq!(
        ours.judge(&parsed(&pushed.digest), &Evidence::default()),
        Verdict::NotSigned
    );
    for (tag, key) in [
        ("1", "p256"),
        ("2", "p256"),
        ("2", "ed25519"),
        ("3", "p256"),
        ("1", "ed25519"),
    ] {
        pushed.push(tag, Some(key)).await;
    }
    let evidence = pushed.evidence().await;
    assert_eq!((evidence.simple.len(), evidence.bundles.len()), (2, 2));
    for key in ["p256", "ed25519"] {
        assert_eq!(
            keys(&[key]).judge(&parsed(&pushed.digest), &evidence),
            verified(id(key))
        );
        let said = pushed.cosign(key, "--new-bundle-format=false");
        assert!(
            said.status.success(),
            "{key}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
    }
}
