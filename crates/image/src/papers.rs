//! The papers of an image: a list of its contents (SPDX) and a statement of how it was made (in-toto, SLSA provenance).
//!
//! The same image has the same papers: they contain nothing of the machine or the time. They are not signed. A reader
//! has to trust the registry, or to compare them with the papers of an image that he has built himself.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::debian::Package;
use crate::layer::sha256;

pub const SPDX: &str = "application/spdx+json";
pub const IN_TOTO: &str = "application/vnd.in-toto+json";
/// The SPDX value of an unknown licence.
const UNKNOWN: &str = "NOASSERTION";
/// The time in the papers of an image without a known revision. It is a constant, so that the papers do not depend on
/// the machine.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// The source of an image.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub version: String,
    pub revision: Option<String>,
    /// The time of the revision, not of the assembly, as in `2026-01-31T12:00:00Z`.
    pub created: Option<String>,
}

/// The contents of an image by origin, as its papers list them.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    pub debian: Vec<Package>,
    pub crates: Vec<Crate>,
    pub programs: Vec<Built>,
    /// The paths in the image of files and folders that the build was told to add.
    pub added: Vec<String>,
}

/// A crate that the operator is linked from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    /// The checksum of its archive in the registry; none for a crate of this repository.
    pub sha256: Option<String>,
}

/// A third-party program that was built from source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    pub name: String,
    pub version: String,
    pub sha256: String,
}

/// One document, and its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper {
    pub kind: &'static str,
    pub document: Value,
}

/// All papers of an image.
pub fn of(digest: &str, architecture: &str, origin: &Origin, parts: &Parts) -> Vec<Paper> {
    let digest = digest.trim_start_matches("sha256:");
    vec![
        Paper {
            kind: SPDX,
            document: contents(digest, architecture, origin, parts),
        },
        Paper {
            kind: IN_TOTO,
            document: provenance(digest, architecture, origin, parts),
        },
    ]
}

fn contents(digest: &str, architecture: &str, origin: &Origin, parts: &Parts) -> Value {
    let mut packages = vec![json!({
        "SPDXID": "SPDXRef-image",
        "name": "addon-operator",
        "versionInfo": origin.version,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": false,
        "primaryPackagePurpose": "CONTAINER",
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": "Apache-2.0",
        "copyrightText": UNKNOWN,
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
    })];
    packages.extend(entries(architecture, parts).map(|entry| entry.package()));
    let describes = json!({
        "spdxElementId": "SPDXRef-DOCUMENT",
        "relationshipType": "DESCRIBES",
        "relatedSpdxElement": "SPDXRef-image",
    });
    let contains = packages.iter().skip(1).map(|package| {
        json!({
            "spdxElementId": "SPDXRef-image",
            "relationshipType": "CONTAINS",
            "relatedSpdxElement": package["SPDXID"],
        })
    });
    let relationships: Vec<Value> = std::iter::once(describes).chain(contains).collect();
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("addon-operator-{}-{architecture}", origin.version),
        "documentNamespace": format!("https://spdx.org/spdxdocs/addon-operator-{digest}"),
        "creationInfo": {
            "created": origin.created.as_deref().unwrap_or(LONG_AGO),
            "creators": [format!("Tool: addon-operator-image-{}", env!("CARGO_PKG_VERSION"))],
        },
        "packages": packages,
        "relationships": relationships,
    })
}

/// Everything in the image, one kind after the other.
fn entries<'a>(architecture: &'a str, parts: &'a Parts) -> impl Iterator<Item = Entry<'a>> {
    let of_debian = parts.debian.iter().map(move |package| Entry {
        from: "deb",
        name: &package.name,
        version: &package.version,
        license: None,
        sha256: Some(&package.sha256),
        purl: Some(of_debian(package, architecture)),
    });
    let of_crates = parts.crates.iter().map(|one| Entry {
        from: "crate",
        name: &one.name,
        version: &one.version,
        license: one.license.as_deref(),
        sha256: one.sha256.as_deref(),
        purl: one
            .sha256
            .is_some()
            .then(|| format!("pkg:cargo/{}@{}", one.name, escaped(&one.version))),
    });
    let of_programs = parts.programs.iter().map(|program| Entry {
        from: "program",
        name: &program.name,
        version: &program.version,
        license: None,
        sha256: Some(&program.sha256),
        purl: None,
    });
    of_debian.chain(of_crates).chain(of_programs)
}

struct Entry<'a> {
    from: &'static str,
    name: &'a str,
    version: &'a str,
    license: Option<&'a str>,
    sha256: Option<&'a str>,
    purl: Option<String>,
}

impl Entry<'_> {
    fn package(&self) -> Value {
        // A name may have characters that an SPDX identifier may not. A hash keeps the identifiers of two packages
        // apart.
        let number = &sha256(format!("{} {} {}", self.from, self.name, self.version).as_bytes())[..16];
        let mut package = json!({
            "SPDXID": format!("SPDXRef-{}-{number}", self.from),
            "name": self.name,
            "versionInfo": self.version,
            "downloadLocation": UNKNOWN,
            "filesAnalyzed": false,
            "licenseConcluded": UNKNOWN,
            // Old crates separate alternative licences with a slash.
            "licenseDeclared": self.license.map_or_else(|| UNKNOWN.to_owned(), |text| text.replace('/', " OR ")),
            "copyrightText": UNKNOWN,
        });
        if let Some(sha256) = self.sha256 {
            package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": sha256}]);
        }
        if let Some(purl) = &self.purl {
            package["externalRefs"] = json!([{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": purl,
            }]);
        }
        package
    }
}

fn provenance(digest: &str, architecture: &str, origin: &Origin, parts: &Parts) -> Value {
    let source = origin.revision.iter().map(|revision| {
        let commit = revision.trim_end_matches("-dirty");
        json!({"name": "source", "digest": {"gitCommit": commit}})
    });
    let debian = parts
        .debian
        .iter()
        .map(|package| json!({"uri": of_debian(package, architecture), "digest": {"sha256": package.sha256}}));
    let programs = parts.programs.iter().map(|program| {
        let name = format!("{} {}", program.name, program.version);
        json!({"name": name, "digest": {"sha256": program.sha256}})
    });
    let dependencies: Vec<Value> = source.chain(debian).chain(programs).collect();
    let is_clean = origin
        .revision
        .as_ref()
        .is_some_and(|revision| !revision.ends_with("-dirty"));
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "addon-operator", "digest": {"sha256": digest}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:addon-operator:make-image:v1",
                "externalParameters": {
                    "version": origin.version,
                    "architecture": architecture,
                    "added": parts.added,
                    "sourceIsCommitted": is_clean,
                },
                "resolvedDependencies": dependencies,
            },
            "runDetails": {
                "builder": {
                    "id": "urn:addon-operator:image",
                    "version": BTreeMap::from([("image", env!("CARGO_PKG_VERSION"))]),
                },
            },
        },
    })
}

/// The package URL (purl) of a Debian package.
fn of_debian(package: &Package, architecture: &str) -> String {
    let (name, version) = (escaped(&package.name), escaped(&package.version));
    format!("pkg:deb/debian/{name}@{version}?arch={architecture}")
}

fn escaped(text: &str) -> String {
    text.replace('+', "%2B").replace(':', "%3A")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        Parts {
            debian: vec![Package {
                name: "libstdc++6".to_owned(),
                version: "1:12.2+b1".to_owned(),
                suite: "bookworm".to_owned(),
                path: "pool/a.deb".to_owned(),
                sha256: "ab".repeat(32),
            }],
            crates: vec![
                Crate {
                    name: "one".to_owned(),
                    version: "1.0.0".to_owned(),
                    license: Some("MIT/Apache-2.0".to_owned()),
                    sha256: Some("cd".repeat(32)),
                },
                Crate {
                    name: "addon-core".to_owned(),
                    version: "0.1.0".to_owned(),
                    license: None,
                    sha256: None,
                },
            ],
            programs: vec![Built {
                name: "helm".to_owned(),
                version: "v3.1.0".to_owned(),
                sha256: "ef".repeat(32),
            }],
            added: vec!["/modules".to_owned()],
        }
    }

    fn papers() -> [Value; 2] {
        let origin = Origin {
            version: "0.1.0".to_owned(),
            revision: Some(format!("{}-dirty", "0".repeat(40))),
            created: Some("2026-01-31T12:00:00Z".to_owned()),
        };
        let digest = format!("sha256:{}", "12".repeat(32));
        let papers = of(&digest, "amd64", &origin, &parts());
        assert_eq!(papers, of(&digest, "amd64", &origin, &parts()));
        let mut papers = papers.into_iter().map(|paper| paper.document);
        std::array::from_fn(|_| papers.next().unwrap())
    }

    #[test]
    fn the_list_names_everything_once_and_says_what_is_known_of_it() {
        let [list, _] = papers();
        let packages = list["packages"].as_array().unwrap();
        let ids: std::collections::BTreeSet<&str> = packages
            .iter()
            .map(|package| package["SPDXID"].as_str().unwrap())
            .collect();
        assert_eq!((ids.len(), packages.len()), (5, 5));
        let plain = |id: &str| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
        assert!(ids.iter().all(|id| plain(id)), "{ids:?}");
        assert_eq!(packages[0]["checksums"][0]["checksumValue"], "12".repeat(32));
        let purl = |at: usize| packages[at]["externalRefs"][0]["referenceLocator"].clone();
        assert_eq!(purl(1), "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2%2Bb1?arch=amd64");
        assert_eq!(purl(2), "pkg:cargo/one@1.0.0");
        assert_eq!(purl(3), Value::Null, "of this repository");
        let licenses: Vec<&str> = packages
            .iter()
            .map(|one| one["licenseDeclared"].as_str().unwrap())
            .collect();
        assert_eq!(licenses, ["Apache-2.0", UNKNOWN, "MIT OR Apache-2.0", UNKNOWN, UNKNOWN]);
        assert_eq!(list["relationships"].as_array().unwrap().len(), 5);
        assert_eq!(list["creationInfo"]["created"], "2026-01-31T12:00:00Z");
    }

    #[test]
    fn the_statement_is_about_the_image_and_names_what_it_was_made_from() {
        let [_, statement] = papers();
        assert_eq!(statement["subject"][0]["digest"]["sha256"], "12".repeat(32));
        let definition = &statement["predicate"]["buildDefinition"];
        assert_eq!(definition["externalParameters"]["sourceIsCommitted"], false);
        let from = definition["resolvedDependencies"].as_array().unwrap();
        assert_eq!(from.len(), 3);
        assert_eq!(from[0]["digest"]["gitCommit"], "0".repeat(40));
    }
}
