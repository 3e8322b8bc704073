//! The page with the commands that hand the releases over, each with its effect, and the way back.
//!
//! Must never contain a value, and never a command that deletes an object of a release.

use std::fmt::Write as _;

use releases::revisions::whose::HANDED_OVER;
use releases::revisions::{CHECKSUM, INPUTS, MAINTENANCE};

use crate::outline::{Left, Origin, Place, Record};
use crate::shown::plain;
use crate::taking::Taken;

/// The file with the ConfigMap.
pub const CONFIG_MAP: &str = "configmap.yaml";
/// The file with the commands.
pub const STEPS: &str = "STEPS.md";
/// The field manager whose changes Flux leaves alone.
const FLUX_MANAGER: &str = "flux-client-side-apply";

/// The label of the operator's Deployment and pods, as its chart sets it.
const OPERATOR: &str = "app.kubernetes.io/name=addon-operator";

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
             (`heritage: addon-operator`, `meta.helm.sh/*`), and no spec, except the differences named below. No object is deleted or made anew, except \
             those of helm hooks, and no pod restarts. A field that was altered by hand gets the chart's value again.\n"
        );
        if self.origin == Origin::Argocd {
            page.push_str(
                "\nArgo CD keeps no record, so the objects were compared with those in the cluster, by dry runs. A field that the chart does not name stays \
                 as it is.\n",
            );
        }
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
        step(&mut page, "Hand over");
        self.hand_over(&mut page);
        let marked: Vec<_> = self.taken.iter().filter(|taken| taken.keeps_release).collect();
        let marked: Vec<_> = marked.into_iter().filter_map(|taken| taken.record.as_ref()).collect();
        if !marked.is_empty() {
            step(&mut page, "Mark releases");
            mark(&mut page, &marked);
        }
        step(&mut page, "Wait");
        for taken in self.taken {
            command(&mut page, &format!("addon-operator module wait {}", taken.module));
        }
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
        page.push_str("The ConfigMap switches the modules on; its other keys stay.\n\n");
        command(
            page,
            &format!(
                "kubectl apply --server-side --field-manager migrate --namespace {operator} --filename {CONFIG_MAP}"
            ),
        );
        page.push_str(
            "\nCopy `modules` into the operator's modules directory, as an image or a package, and wait until each of its pods runs with them.\n",
        );
    }

    fn remove(&self, page: &mut String) {
        match self.origin {
            Origin::Helm => {}
            Origin::Flux => {
                page.push_str(
                    "Flux uninstalls no release of a HelmRelease that is suspended when it is deleted. One that is at work again stays: look who has done \
                     that, and suspend it anew.\n\n",
                );
                for taken in self.taken {
                    let (name, namespace) = (quoted(&taken.from.name), quoted(&taken.from.namespace));
                    let release = format!("helmreleases.helm.toolkit.fluxcd.io {name} --namespace {namespace}");
                    command(page, &delete_if(&release, "{.spec.suspend}", "true", ""));
                }
            }
            Origin::Argocd => {
                page.push_str(
                    "Without its finalizers an Application goes alone, and its objects stay. One that has them again is not deleted: look who has done \
                     that, and let it go anew.\n\n",
                );
                for taken in self.taken {
                    let (name, namespace) = (quoted(&taken.from.name), quoted(&taken.from.namespace));
                    let application = format!("applications.argoproj.io {name} --namespace {namespace}");
                    let finalizers = "finalizers:{.metadata.finalizers}";
                    command(
                        page,
                        &delete_if(&application, finalizers, "finalizers:", " --cascade=orphan"),
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
             and take the modules out of its directory before it starts again. `{OPERATOR}` finds the operator of its chart; write another selector if yours is \
             installed otherwise. Run all of it as one command: it ends where a part fails.\n\n"
        );
        let mut commands = vec![
            format!("kubectl scale deployment --namespace {operator} --selector {OPERATOR} --replicas 0"),
            format!("kubectl wait pod --for=delete --timeout 5m --namespace {operator} --selector {OPERATOR}"),
        ];
        for taken in self.taken {
            match &taken.record {
                Some((stored, record)) if taken.keeps_release => commands.extend(back_to_helm(stored, record)),
                _ => commands.push(delete_records(self.operator, taken.module.as_str())),
            }
            for key in [taken.module.enabled_key(), taken.module.values_key()] {
                let patch = format!(r#"{{"data":{{"{key}":null}}}}"#);
                commands.push(format!(
                    "kubectl patch configmap addon-operator --namespace {operator} --type merge --patch '{patch}'"
                ));
            }
        }
        command(page, &commands.join(" &&\n    "));
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

fn mark(page: &mut String, marked: &[&(Place, Record)]) {
    page.push_str(
        "The operator works only on releases that are its own or marked so: until now these modules fail with \"was not installed by addon-operator\", \
         which harms nothing, and from now they succeed. A marked release whose module is not there, or off, is left alone. No object is touched.\n\n",
    );
    for (stored, record) in marked {
        let (secret, namespace) = (quoted(&record.secret), quoted(&stored.namespace));
        command(
            page,
            &format!("kubectl annotate secret {secret} --namespace {namespace} {HANDED_OVER}=true"),
        );
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

/// Makes a release that was only marked one of helm's again.
fn back_to_helm(stored: &Place, record: &Record) -> [String; 3] {
    let (name, namespace) = (quoted(&stored.name), quoted(&stored.namespace));
    let selector = quoted(&format!("owner=helm,name={}", stored.name));
    [
        format!("kubectl label secret --namespace {namespace} --selector {selector} {MAINTENANCE}- {CHECKSUM}-"),
        format!("kubectl annotate secret --namespace {namespace} --selector {selector} {INPUTS}- {HANDED_OVER}-"),
        format!("helm rollback {name} {} --namespace {namespace}", record.revision),
    ]
}

/// Deletes an object if a field of it is as it was left; never if it cannot be read.
fn delete_if(object: &str, field: &str, expected: &str, more: &str) -> String {
    format!(
        "test \"$(kubectl get {object} --output 'jsonpath={field}')\" = {expected} && kubectl delete {object}{more}"
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
mod tests;
