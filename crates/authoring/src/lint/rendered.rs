//! Renders a module's chart with the values of its files, and reports helm's errors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use addon_core::failure::Failure;
use addon_core::release::interception;
use disk::record::{RecordSize, SECRET_LIMIT};
use disk::{Chart, FoundModule};
use helm::claims::Object;
use helm::labels::add_labels_noting;
use helm::{HelmError, Verbosity};
use helm_yaml::yaml;
use objects::key;
use report::Chain;
use serde_json::Value;

use crate::findings::Finding;
use crate::offline::{Offline, Rendering, is_about_values};

/// The size in bytes above which lint reports a record.
const SIZE_TO_TELL: usize = 700 << 10;

/// Renders the chart. A valid chart may fail because hooks would set some values, so the failure is only a warning.
pub async fn chart(offline: &Offline<'_>, module: &FoundModule) -> Vec<Finding> {
    let Some(chart) = module.chart else {
        return Vec::new();
    };
    let rendering = Rendering {
        namespace: "default",
        enabled: None,
        values: &Value::Null,
        verbosity: Verbosity::Plain,
    };
    match offline.render(module, chart, rendering).await {
        Ok(Ok(manifest)) => {
            let mut findings = judged(&module.path, &manifest);
            findings.extend(sized(&module.path, chart, &manifest));
            findings.extend(intercepting(&module.path, &manifest));
            findings
        }
        Ok(Err(HelmError::Failed { message, .. })) => vec![said(&module.path, &message)],
        Ok(Err(error)) => {
            let failure = Failure::from(error);
            vec![Finding::warning(
                &module.path,
                format!("the chart was not rendered: {failure}"),
            )]
        }
        Err(error) => vec![Finding::error(
            &module.path,
            format!("the chart cannot be prepared: {error}"),
        )],
    }
}

/// Renders the chart with the values that the module has in a cluster, laid over the values of its files. They include
/// the values that hooks have set, so a failure is a mistake.
pub async fn today(offline: &Offline<'_>, module: &FoundModule, values: &Value) -> Vec<Finding> {
    let Some(chart) = module.chart else {
        return Vec::new();
    };
    let rendering = Rendering {
        namespace: "default",
        enabled: None,
        values,
        verbosity: Verbosity::Plain,
    };
    match offline.render(module, chart, rendering).await {
        Ok(Err(HelmError::Failed { message, .. })) if is_about_values(&message) => {
            let message = format!("does not render with the values that the module has now: {message}");
            vec![Finding::error(&module.path, message)]
        }
        // Other failures were found without these values.
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// A warning about a record that is about to outgrow a Secret.
fn sized(module: &Path, chart: Chart, manifest: &str) -> Option<Finding> {
    let objects = yaml::documents_v2(manifest).ok()?.into_iter().flat_map(key::flat);
    let named = objects.filter_map(|object| Some((key::key_of(&object)?.to_string(), object.to_string())));
    // Files that cannot be read are findings already.
    let size = RecordSize::of(module, chart, named).ok()?;
    (size.all > SIZE_TO_TELL).then(|| {
        let message = format!(
            "helm stores the chart with all its files, which takes {} of the {} KiB of a Secret; the largest: {}. Name files \
             that no template reads in .helmignore",
            size.all.div_ceil(1 << 10),
            SECRET_LIMIT >> 10,
            size.largest()
        );
        Finding::warning(module, message)
    })
}

/// Warnings about webhooks that would intercept the operator's own writes. The operator's namespace is unknown here.
fn intercepting(module: &Path, manifest: &str) -> Vec<Finding> {
    let objects: Vec<_> = yaml::documents_v2(manifest).unwrap_or_default();
    let objects: Vec<_> = objects.into_iter().flat_map(key::flat).collect();
    let warnings = interception::warnings(&objects, None).into_iter();
    warnings
        .map(|warning| Finding::warning(module.join("templates"), warning))
        .collect()
}

/// Mistakes in the rendered objects that helm accepts.
fn judged(module: &Path, manifest: &str) -> Vec<Finding> {
    let (mut each, mut twice) = (BTreeSet::new(), BTreeSet::new());
    // The namespace of releases is unknown here, so objects without a namespace are compared with an empty one.
    let read = add_labels_noting(manifest, &BTreeMap::new(), &mut |object| {
        if let Some(known) = Object::of(object, "")
            && !each.insert(known)
        {
            let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            twice.insert(format!("{} '{}'", text("/kind"), text("/metadata/name")));
        }
    });
    let place = module.join("templates");
    let twice = twice.iter().map(|object| format!("the chart renders {object} twice"));
    let misshapen = read.err().map(|error| Chain(&error).to_string());
    let told = twice.chain(misshapen);
    told.map(|message| Finding::error(&place, message)).collect()
}

/// The finding for an error of helm, at the place that the error names.
pub(crate) fn said(module: &Path, message: &str) -> Finding {
    let (path, line) = match place(message) {
        Some((file, line)) => (module.join(file), line),
        None => (module.join("Chart.yaml"), None),
    };
    let path = if path.exists() { path } else { module.to_owned() };
    let finding = if is_about_values(message) {
        let message = format!("renders only with values that its files do not give, maybe hooks do: {message}");
        Finding::warning(path, message)
    } else {
        Finding::error(path, message)
    };
    match line {
        Some(line) => finding.at(line),
        None => finding,
    }
}

/// The first template in the message, relative to the chart, and its line.
fn place(message: &str) -> Option<(&str, Option<usize>)> {
    let at = message.find("templates/")?;
    let end = message[at..]
        .find(|c: char| c.is_whitespace() || ":)\"".contains(c))
        .map_or(message.len(), |length| at + length);
    let line = message[end..].strip_prefix(':').and_then(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    });
    Some((&message[at..end], line))
}

#[cfg(test)]
mod tests {
    use addon_core::digest::Digest;

    use super::*;

    #[test]
    fn what_is_rendered_twice_is_told_once() {
        let one = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let other = one.replace("{name: a}", "{name: a, namespace: elsewhere}");
        let told = |manifest: &str| judged(Path::new("m"), manifest);
        assert_eq!(told(&format!("{one}{other}")), []);
        let twice = Finding::error("m/templates", "the chart renders ConfigMap 'a' twice");
        assert_eq!(told(&[one, &other, one, one].concat()), [twice]);
    }

    #[test]
    fn a_record_is_told_before_it_outgrows_its_secret() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let told_of = |length: usize| {
            // Digests hardly compress, and are the same in every run.
            let mut digest = Digest::of_bytes(b"seed");
            let mut noise = String::new();
            while noise.len() < length {
                digest = Digest::of_bytes(digest.to_string().as_bytes());
                noise.push_str(&digest.to_string());
            }
            fs_err::write(dir.path().join("dump.bin"), noise).unwrap();
            let size = RecordSize::of(dir.path(), Chart::Whole, []).unwrap().all;
            (size, sized(dir.path(), Chart::Whole, manifest))
        };
        let (size, told) = told_of(600_000);
        assert!(
            (200 << 10..700 << 10).contains(&size) && told.is_none(),
            "{size}: {told:?}"
        );
        let (size, told) = told_of(1_000_000);
        assert!((700 << 10..1 << 20).contains(&size), "{size}");
        let told = told.unwrap().to_string();
        let expected = [
            " warning: helm stores the chart",
            "of the 1024 KiB of a Secret; the largest: dump.bin 8",
        ];
        assert!(expected.iter().all(|text| told.contains(text)), "{told}");
    }

    #[test]
    fn a_webhook_in_the_way_of_the_operator_is_told() {
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n\
                        apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
                        metadata: {name: w}\nwebhooks:\n- name: w.example.com\n  rules:\n  \
                        - {apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [secrets]}\n";
        let told = intercepting(Path::new("m"), manifest);
        assert!(
            told.len() == 1 && told[0].to_string().starts_with("m/templates: warning: Validating"),
            "{told:?}"
        );
        assert_eq!(intercepting(Path::new("m"), &manifest.replace("secrets", "pods")), []);
    }

    #[test]
    fn helm_names_the_place_in_several_ways() {
        for (message, expected) in [
            (
                "parse error at (one/templates/cm.yaml:3): unclosed action",
                Some(("templates/cm.yaml", Some(3))),
            ),
            (
                "template: one/templates/sub/cm.yaml:6:20: executing \"one/templates/sub/cm.yaml\" at <.x>: nil",
                Some(("templates/sub/cm.yaml", Some(6))),
            ),
            (
                "YAML parse error on one/templates/cm.yaml: error converting YAML to JSON: yaml: line 4: x",
                Some(("templates/cm.yaml", None)),
            ),
            ("validation: chart.metadata.version is required", None),
        ] {
            assert_eq!(place(message), expected, "{message}");
        }
    }
}
