//! All objects of a world's namespace at one moment, read without the proxy.

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;
use testbed::namespace::Namespace;
use testbed::reader::Only;

use super::files::{CELLAR, VAULT};

/// The parts of a release that must be equal with and without faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    status: String,
    /// The label with the checksum of everything that the release was made of.
    checksum: String,
    manifest: String,
    /// The values that helm got. Left out where they depend on the order in which modules were switched.
    values: Value,
}

pub(super) struct Seen(BTreeMap<(String, String), Value>);

impl Seen {
    pub(super) fn now(namespace: &Namespace<'_>) -> anyhow::Result<Self> {
        const KINDS: [(&str, &str); 4] = [
            ("ConfigMap", "configmaps"),
            ("Secret", "secrets"),
            ("PersistentVolumeClaim", "persistentvolumeclaims"),
            ("Role", "roles"),
        ];
        let mut seen = BTreeMap::new();
        for (kind, many) in KINDS {
            for item in namespace.objects(many, Only::All)? {
                let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                seen.insert((kind.to_owned(), name), item);
            }
        }
        Ok(Self(seen))
    }

    pub(super) fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.0.get(&(kind.to_owned(), name.to_owned()))
    }

    /// The text under a key of a ConfigMap; none if the ConfigMap or the key is missing.
    pub(super) fn text(&self, name: &str, key: &str) -> Option<&str> {
        self.get("ConfigMap", name)?["data"][key].as_str()
    }

    /// The newest revision of each release.
    pub(super) fn releases(&self) -> anyhow::Result<BTreeMap<String, Told>> {
        let mut newest: BTreeMap<String, (u32, &Value)> = BTreeMap::new();
        for ((_, name), object) in &self.0 {
            let Some((release, number)) = revision(name) else {
                continue;
            };
            match newest.get(release) {
                Some((known, _)) if *known > number => {}
                _ => drop(newest.insert(release.to_owned(), (number, object))),
            }
        }
        let told = newest.into_iter().map(|(name, (_, object))| {
            let told = Told::of(&name, object)?;
            Ok((name, told))
        });
        told.collect()
    }

    /// The number of a release's newest revision.
    pub(super) fn newest(&self, release: &str) -> u32 {
        let revisions = self.0.keys().filter_map(|(_, name)| revision(name));
        let numbers = revisions.filter(|(name, _)| *name == release).map(|(_, number)| number);
        numbers.max().unwrap_or(0)
    }

    /// The UIDs of the objects that hold data.
    pub(super) fn kept(&self) -> BTreeMap<(String, String), String> {
        let holds = |kind: &str, name: &str| {
            kind == "PersistentVolumeClaim" && [CELLAR, VAULT].contains(&name) || kind == "Secret" && name == VAULT
        };
        let kept = self.0.iter().filter(|((kind, name), _)| holds(kind, name));
        kept.map(|(object, value)| (object.clone(), value["metadata"]["uid"].to_string()))
            .collect()
    }
}

/// The release and the revision that a Secret's name contains.
pub(super) fn revision(secret: &str) -> Option<(&str, u32)> {
    let (release, number) = secret.strip_prefix("sh.helm.release.v1.")?.rsplit_once(".v")?;
    Some((release, number.parse().ok()?))
}

impl Told {
    fn of(name: &str, secret: &Value) -> anyhow::Result<Self> {
        let packed = secret["data"]["release"]
            .as_str()
            .context("a release is in its Secret")?;
        let packed = STANDARD.decode(STANDARD.decode(packed)?)?;
        let mut text = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut text)?;
        let mut release: Value = serde_json::from_str(&text)?;
        let label = |label: &str| {
            let label = secret["metadata"]["labels"][label].as_str();
            label.unwrap_or_default().to_owned()
        };
        let values = release["config"].take();
        Ok(Self {
            status: label("status"),
            checksum: label("moduleChecksum"),
            manifest: release["manifest"].as_str().unwrap_or_default().to_owned(),
            values: if name == VAULT { values } else { Value::Null },
        })
    }

    pub(super) fn is_deployed(&self) -> bool {
        self.status == "deployed" && !self.checksum.is_empty()
    }
}
