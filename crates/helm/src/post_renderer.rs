//! This binary as helm's post-renderer: it copies manifests and adds labels. It fails if an object belongs to another
//! release or occurs twice. Must never let helm continue with objects that it could not claim.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fs_err as fs;
use report::{Chain, Report};
use thiserror::Error;

use crate::claims::{Claims, Object, Refusal};
use crate::labels::{LabelError, Noted, add_labels_choosing, keep};

#[derive(Debug, Error)]
enum RenderError {
    #[error("'{text}' is no label, it should be NAME=VALUE")]
    Label { text: String },
    #[error("cannot read the manifests")]
    Read(#[source] io::Error),
    #[error("cannot add labels")]
    Add(#[from] LabelError),
    #[error("cannot claim the objects")]
    Claim(#[source] io::Error),
    #[error("{report}")]
    Refused { report: String },
    #[error("cannot write the manifests")]
    Write(#[source] io::Error),
}

/// The release for which objects are claimed, and the file with all claims.
#[derive(Debug)]
pub struct Claim {
    /// The claims of all releases.
    pub file: PathBuf,
    /// The release that the manifests belong to.
    pub release: String,
    /// The namespace of objects that name no namespace.
    pub namespace: String,
    /// The objects of the release that stay when it is removed.
    pub kept: BTreeSet<String>,
    /// The objects that are left out of the manifests.
    pub withheld: BTreeSet<String>,
}

impl Claim {
    fn make(&self, objects: Vec<Object>) -> io::Result<Result<(), Refusal>> {
        let claims = Claims::at(self.file.clone());
        let mut each = BTreeSet::new();
        for object in objects {
            if each.contains(&object) {
                return claims.refuse_twice(&self.release, object).map(Err);
            }
            each.insert(object);
        }
        claims.claim(&self.release, &each)
    }
}

/// Copies manifests from standard input to standard output, and adds labels, `NAME=VALUE`, to their objects. An error
/// is also written to the file `complaints`.
pub fn post_render(labels: &[String], claim: Option<&Claim>, complaints: Option<&Path>) -> ExitCode {
    match render(labels, claim, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Helm 3 passes standard error on, helm 4 does not; so the error also goes to a file. If both fail, only
            // the exit code is left.
            if let Some(file) = complaints {
                drop(fs::write(file, Chain(&error).to_string()));
            }
            drop(write!(io::stderr(), "{}", Report::new(&error)));
            ExitCode::FAILURE
        }
    }
}

fn render(
    labels: &[String],
    claim: Option<&Claim>,
    mut from: impl Read,
    mut to: impl Write,
) -> Result<(), RenderError> {
    let split = |text: &String| {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| RenderError::Label { text: text.clone() })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let labels: BTreeMap<String, String> = labels.iter().map(split).collect::<Result<_, RenderError>>()?;
    let mut manifests = String::new();
    from.read_to_string(&mut manifests).map_err(RenderError::Read)?;
    let mut objects = Vec::new();
    let labelled = add_labels_choosing(&manifests, &labels, &mut |manifest| {
        let Some(claim) = claim else { return Noted::Stays };
        let Some(object) = Object::of(manifest, &claim.namespace) else {
            return Noted::Stays;
        };
        if claim.withheld.contains(object.text()) {
            return Noted::Goes;
        }
        if claim.kept.contains(object.text()) {
            keep(manifest);
        }
        objects.push(object);
        Noted::Stays
    })?;
    if let Some(claim) = claim
        && let Err(refusal) = claim.make(objects).map_err(RenderError::Claim)?
    {
        let report = refusal.failure(&claim.release).report;
        return Err(RenderError::Refused { report });
    }
    to.write_all(labelled.as_bytes())
        .and_then(|()| to.flush())
        .map_err(RenderError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(labels: &[&str], manifests: &str) -> Result<String, String> {
        let labels: Vec<String> = labels.iter().copied().map(str::to_owned).collect();
        let mut out = Vec::new();
        render(&labels, None, manifests.as_bytes(), &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn labels_of_the_command_line_are_added() {
        let out = rendered(
            &["heritage=addon-operator", "a=b=c"],
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
        )
        .unwrap();
        assert!(
            out.contains("heritage: addon-operator") && out.contains("a: b=c"),
            "{out}"
        );
    }

    #[test]
    fn an_object_of_another_release_lets_nothing_pass() {
        let dir = tempfile::tempdir().unwrap();
        let rendered = |release: &str| {
            let claim = Claim {
                file: dir.path().join("claims"),
                release: release.to_owned(),
                namespace: "ns".to_owned(),
                kept: BTreeSet::new(),
                withheld: BTreeSet::new(),
            };
            let manifests = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
            let mut out = Vec::new();
            let rendered = render(&[], Some(&claim), manifests.as_bytes(), &mut out);
            rendered.map_err(|error| (error.to_string(), out.len()))
        };
        assert_eq!(rendered("a"), Ok(()));
        assert_eq!(rendered("a"), Ok(()));
        let report = "module 'b' renders ConfigMap 'x' of namespace 'ns', which belongs to module 'a'";
        assert_eq!(rendered("b"), Err((report.to_owned(), 0)));
    }

    #[test]
    fn an_object_that_comes_twice_lets_nothing_pass() {
        let dir = tempfile::tempdir().unwrap();
        let claim = Claim {
            file: dir.path().join("claims"),
            release: "a".to_owned(),
            namespace: "ns".to_owned(),
            kept: BTreeSet::new(),
            withheld: BTreeSet::new(),
        };
        let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: ns}\ndata: {a: b}\n";
        let mut out = Vec::new();
        let rendered = render(&[], Some(&claim), format!("{one}---\n{other}").as_bytes(), &mut out);
        let report = "module 'a' renders ConfigMap 'x' of namespace 'ns' twice";
        assert_eq!((rendered.unwrap_err().to_string().as_str(), out.len()), (report, 0));
    }

    #[test]
    fn what_is_no_label_is_named() {
        assert_eq!(
            rendered(&["heritage"], "").unwrap_err(),
            "'heritage' is no label, it should be NAME=VALUE"
        );
    }

    #[test]
    fn what_is_to_stay_says_so_whatever_its_chart_says_and_what_is_withheld_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let claim = Claim {
            file: dir.path().join("claims"),
            release: "a".to_owned(),
            namespace: "ns".to_owned(),
            kept: [Object::new("v1", "Namespace", "ns", "x").text().to_owned()].into(),
            withheld: ["w", "l"]
                .map(|name| Object::new("v1", "Namespace", "ns", name).text().to_owned())
                .into(),
        };
        let manifests = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x, annotations: {helm.sh/resource-policy: delete}}\n\
                         ---\napiVersion: v1\nkind: Namespace\nmetadata: {name: z}\n\
                         ---\n# Source: w\napiVersion: v1\nkind: Namespace\nmetadata: {name: w}\n\
                         ---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Namespace, metadata: {name: l}}]\n";
        let mut out = Vec::new();
        render(&[], Some(&claim), manifests.as_bytes(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.contains("name: z") && !out.contains("List") && !out.contains(": w\n"),
            "{out}"
        );
        let (x, z) = out.split_at(out.match_indices("---").nth(1).unwrap().0);
        assert!(
            x.contains("helm.sh/resource-policy: keep") && x.contains("addon-operator/adopted"),
            "{out}"
        );
        assert!(!z.contains("annotations"), "{out}");
    }
}
