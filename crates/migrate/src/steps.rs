//! The page with the commands that hand the releases over, each with its effect, and the way back.
//!
//! Must never contain a value, and never a command that deletes an object of a release.

use std::fmt::Write as _;

use releases::revisions::{CHECKSUM, INPUTS, MAINTENANCE};

use crate::outline::{Left, Origin, Place};
use crate::shown::plain;
use crate::taking::Taken;

/// The file with the ConfigMap.
pub const CONFIG_MAP: &str = "configmap.yaml";
/// The file with the commands.
pub const STEPS: &str = "STEPS.md";
/// The field manager whose changes Flux leaves alone.
const FLUX_MANAGER: &str = "flux-client-side-apply";

/// The facts for the page.
#[derive(Debug)]
pub struct Handover<'a> {
    pub origin: Origin,
    /// The operator's namespace.
    pub operator: &'a str,
    pub taken: &'a [Taken],
    pub left: &'a [Left],
}

impl Handover<'_> {
    /// The page as Markdown.
    pub fn page(&self) -> String {
        let owner = match self.origin {
            Origin::Helm => "helm",
            Origin::Flux => "Flux",
            Origin::Argocd => "Argo CD",
        };
        let mut page = format!(
            "# From {owner} to addon-operator\n\nNothing in the cluster has changed yet. Read the modules and {CONFIG_MAP}, then run the \
             commands in this order, for all modules or for one. Until the last step each has a way back.\n\n\
             At the hand-over helm runs once for each module. It changes labels and annotations of the objects \
             (`heritage: addon-operator`, `meta.helm.sh/*`), and no spec, except the differences named below. No object is deleted or made anew, and no pod \
             restarts. A field that was altered by hand gets the chart's value again.\n"
        );
        self.notes(&mut page);
        let mut number = 0;
        let mut step = |page: &mut String, title: &str| {
            number += 1;
            let _ = write!(page, "\n## {number}. {title}\n\n");
        };
        step(&mut page, "Let go");
        self.let_go(&mut page);
        let supplied: Vec<&Taken> = self.taken.iter().filter(|taken| !taken.secrets.is_empty()).collect();
        if !supplied.is_empty() {
            step(&mut page, "Supply secrets");
            secrets(&mut page, &supplied);
        }
        let marked: Vec<&Taken> = self.taken.iter().filter(|taken| taken.keeps_release).collect();
        if !marked.is_empty() {
            step(&mut page, "Mark releases");
            page.push_str("The operator works only on releases with this label. No object is touched.\n\n");
            for taken in &marked {
                if let Some((stored, record)) = &taken.record {
                    command(
                        &mut page,
                        &format!(
                            "kubectl label secret {} --namespace {} {MAINTENANCE}=false",
                            quoted(&record.secret),
                            quoted(&stored.namespace)
                        ),
                    );
                }
            }
        }
        step(&mut page, "Hand over");
        self.hand_over(&mut page);
        step(&mut page, "Remove the former owner");
        self.remove(&mut page);
        self.way_back(&mut page);
        self.not_taken(&mut page);
        page
    }

    fn notes(&self, page: &mut String) {
        page.push_str(
            "\n| module | from | release | chart | helm hooks that run | notes |\n|---|---|---|---|---|---|\n",
        );
        for taken in self.taken {
            let mut notes = taken.remarks.clone();
            notes.extend(
                taken
                    .differences
                    .iter()
                    .map(|difference| format!("**changes: {difference}**")),
            );
            let _ = writeln!(
                page,
                "| {} | {} | {}/{} | {} {} | {} | {} |",
                taken.directory,
                cell(&taken.from.to_string()),
                cell(&taken.namespace),
                cell(&taken.release),
                cell(&taken.chart),
                cell(&taken.version),
                cell(&taken.hooks.join(", ")),
                cell(&notes.join("; "))
            );
        }
    }

    fn let_go(&self, page: &mut String) {
        match self.origin {
            Origin::Helm => {
                page.push_str("Stop the pipelines and people that call `helm upgrade` for these releases.\n");
            }
            Origin::Flux => {
                page.push_str(
                    "A suspended HelmRelease leaves its release alone. Wait until none is in the middle of an upgrade. \
                     Way back: the same with `false`.\n\n",
                );
                for taken in self.taken {
                    command(page, &patch_flux(&taken.from, true));
                }
            }
            Origin::Argocd => {
                page.push_str(
                    "Argo CD stops to sync, and deleting the Application does not delete its objects any more. Way back: put \
                     `spec.syncPolicy.automated` and the finalizers back, from this copy.\n\n",
                );
                for taken in self.taken {
                    let (name, namespace) = (quoted(&taken.from.name), quoted(&taken.from.namespace));
                    let kept = quoted(&format!(
                        "application-{}-{}.yaml",
                        taken.from.namespace, taken.from.name
                    ));
                    command(
                        page,
                        &format!(
                            "kubectl get applications.argoproj.io {name} --namespace {namespace} --output yaml > {kept}"
                        ),
                    );
                    let patch = r#"{"metadata":{"finalizers":null},"spec":{"syncPolicy":{"automated":null}}}"#;
                    command(
                        page,
                        &format!(
                            "kubectl patch applications.argoproj.io {name} --namespace {namespace} --type merge --patch '{patch}'"
                        ),
                    );
                }
            }
        }
    }

    fn hand_over(&self, page: &mut String) {
        let operator = quoted(self.operator);
        let _ = write!(
            page,
            "Copy `modules` into the operator's modules directory, as an image or a package. The ConfigMap switches the modules on; its other keys stay.\n\n"
        );
        command(
            page,
            &format!(
                "kubectl apply --server-side --field-manager migrate --namespace {operator} --filename {CONFIG_MAP}"
            ),
        );
        for taken in self.taken {
            command(page, &format!("addon-operator module wait {}", taken.module));
        }
    }

    fn remove(&self, page: &mut String) {
        match self.origin {
            Origin::Helm => {}
            Origin::Flux => {
                page.push_str("Flux uninstalls no release of a HelmRelease that is suspended when it is deleted.\n\n");
                for taken in self.taken {
                    let (name, namespace) = (quoted(&taken.from.name), quoted(&taken.from.namespace));
                    command(
                        page,
                        &format!("kubectl delete helmreleases.helm.toolkit.fluxcd.io {name} --namespace {namespace}"),
                    );
                }
            }
            Origin::Argocd => {
                page.push_str("Without its finalizer an Application goes alone, and its objects stay.\n\n");
                for taken in self.taken {
                    let (name, namespace) = (quoted(&taken.from.name), quoted(&taken.from.namespace));
                    command(
                        page,
                        &format!(
                            "kubectl delete applications.argoproj.io {name} --namespace {namespace} --cascade=orphan"
                        ),
                    );
                }
            }
        }
        let replaced = self.taken.iter().filter(|taken| !taken.keeps_release);
        let replaced: Vec<_> = replaced.filter_map(|taken| taken.record.as_ref()).collect();
        if !replaced.is_empty() {
            page.push_str(
                "\nThe old records name the objects of the operator's releases. Delete the records alone: `helm uninstall` would \
                 delete the objects.\n\n",
            );
            for (stored, _) in replaced {
                command(page, &delete_records(&stored.namespace, &stored.name));
            }
        }
        if self.origin == Origin::Helm && self.taken.iter().all(|taken| taken.keeps_release) {
            page.push_str("Nothing is left to remove.\n");
        }
    }

    fn way_back(&self, page: &mut String) {
        let operator = quoted(self.operator);
        let _ = write!(
            page,
            "\n## The way back\n\nBefore the former owner is removed. An operator at work would remove the release of a module that is gone; so stop it first, \
             and take the modules out of its directory before it starts again.\n\n"
        );
        command(
            page,
            &format!("kubectl scale deployment addon-operator --namespace {operator} --replicas 0"),
        );
        for taken in self.taken {
            if let (true, Some((stored, record))) = (taken.keeps_release, &taken.record) {
                let (namespace, selector) = (
                    quoted(&stored.namespace),
                    quoted(&format!("owner=helm,name={}", stored.name)),
                );
                command(
                    page,
                    &format!(
                        "kubectl label secret --namespace {namespace} --selector {selector} {MAINTENANCE}- {CHECKSUM}-"
                    ),
                );
                command(
                    page,
                    &format!("kubectl annotate secret --namespace {namespace} --selector {selector} {INPUTS}-"),
                );
                let (name, revision) = (quoted(&stored.name), record.revision);
                command(
                    page,
                    &format!("helm rollback {name} {revision} --namespace {namespace}"),
                );
            } else {
                command(page, &delete_records(self.operator, taken.module.as_str()));
            }
            for key in [taken.module.enabled_key(), taken.module.values_key()] {
                let patch = format!(r#"{{"data":{{"{key}":null}}}}"#);
                command(
                    page,
                    &format!(
                        "kubectl patch configmap addon-operator --namespace {operator} --type merge --patch '{patch}'"
                    ),
                );
            }
        }
    }

    fn not_taken(&self, page: &mut String) {
        if self.left.is_empty() {
            return;
        }
        page.push_str("\n## Not taken over\n\n");
        for left in self.left {
            let place = Place::new(left.namespace.clone(), left.name.clone());
            let _ = writeln!(page, "- {}: {}", plain(&place.to_string()), plain(&left.reason));
        }
    }
}

fn secrets(page: &mut String, supplied: &[&Taken]) {
    let _ = write!(
        page,
        "These values are secret, so they are not in {CONFIG_MAP}, and their modules do not run without them. Write them into the sections before you \
         apply the file. `addon-operator migrate` with --with-secrets writes them.\n\n"
    );
    for taken in supplied {
        let keys: Vec<String> = taken.secrets.iter().map(|key| format!("`{}`", plain(key))).collect();
        let _ = writeln!(page, "- section `{}`: {}", taken.module.values_key(), keys.join(", "));
        if let Some((stored, _)) = &taken.record {
            let (name, namespace) = (quoted(&stored.name), quoted(&stored.namespace));
            command(page, &format!("helm get values {name} --namespace {namespace}"));
        }
    }
}

fn patch_flux(place: &Place, suspend: bool) -> String {
    let (name, namespace) = (quoted(&place.name), quoted(&place.namespace));
    format!(
        "kubectl patch helmreleases.helm.toolkit.fluxcd.io {name} --namespace {namespace} --type merge --field-manager {FLUX_MANAGER} --patch \
         '{{\"spec\":{{\"suspend\":{suspend}}}}}'"
    )
}

fn delete_records(namespace: &str, release: &str) -> String {
    format!(
        "kubectl delete secret --namespace {} --selector {}",
        quoted(namespace),
        quoted(&format!("owner=helm,name={release}"))
    )
}

/// A command on lines of its own, as Markdown.
fn command(page: &mut String, command: &str) {
    let _ = writeln!(page, "    {command}");
}

/// The text as one word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''").replace('\n', " "))
    }
}

/// The text for a cell of a table.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_for_the_shell_is_one_word() {
        for (text, expected) in [
            ("web-1.2", "web-1.2"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(rm x)", "'$(rm x)'"),
            ("a'b", r"'a'\''b'"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
