//! A world: eight modules, switched on by the common values file and the ConfigMap, one of them with an object that
//! holds data; and the harm to their sources.

use std::cell::Cell;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::{Value, json};
use testbed::audit::Mark;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::super::stage::{CONVERGED, Operator, PATIENCE, Stage};
use super::draw::{Case, Harm, Moment, Thing};

/// Templates that render objects only if the module's values are complete: most of the release's objects, and a
/// PersistentVolumeClaim.
const EXTRAS: &str = "\
{{- if .Values.NAME.extra }}
{{- range list 1 2 3 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-{{ . }}}
data: {extra: here}
{{- end }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
{{- end }}
";

const FLAGS: &str = "\
alpha: {size: large, extra: true}
goodEnabled: true
victimEnabled: true
alphaEnabled: true
betaEnabled: true
gammaEnabled: true
";

pub(super) struct World {
    stage: Stage,
    /// Numbers the changes that only cause a converge.
    pokes: Cell<u32>,
    /// The objects of all releases, with their UIDs.
    objects: String,
    checked: Mark,
}

/// A file or folder that was harmed, and its intact copy.
struct Taken {
    place: PathBuf,
    kept: PathBuf,
    harm: Harm,
}

impl World {
    pub(super) fn build(prefix: &str) -> Self {
        let stage = Stage::build(prefix);
        stage.write("modules/values.yaml", FLAGS);
        let more = [
            "030-alpha",
            "040-beta",
            "050-gamma",
            "060-delta",
            "070-epsilon",
            "080-zeta",
        ];
        for dir in more {
            stage.add_module(dir);
        }
        for dir in ["020-victim", "030-alpha", "080-zeta"] {
            let extras = EXTRAS.replace("NAME", &dir[4..]);
            stage.write(&format!("modules/{dir}/templates/b.yaml"), &extras);
        }
        stage.write("modules/020-victim/values.yaml", "victim: {size: small, extra: true}\n");
        let checked = stage.namespace().plane().audit().mark().unwrap();
        let mut world = Self {
            stage,
            pokes: Cell::new(0),
            objects: String::new(),
            checked,
        };
        world.configure();
        let operator = world.stage.start();
        operator.wait_for(&[CONVERGED]);
        rest(&operator).unwrap();
        operator.stop();
        world.objects = world.look();
        assert_eq!(world.objects.lines().count(), 8 + 3 * 4, "{}", world.objects);
        world
    }

    /// Plays one round. The error names what was lost.
    pub(super) fn play(&mut self, case: &Case) -> Result<(), String> {
        match case.moment {
            Moment::AtStart => {
                let taken = self.harm(case);
                self.live(case, taken);
            }
            Moment::Running => {
                let operator = self.stage.start();
                rest(&operator)?;
                let taken = self.harm(case);
                if case.harms.iter().all(|(thing, _)| *thing != Thing::ConfigMap) {
                    self.poke();
                    operator.wait_for_more(&[CONVERGED], 2);
                }
                rest(&operator)?;
                operator.stop();
                self.live(case, taken);
            }
        }
        self.live(case, Vec::new());
        self.judge()
    }

    /// Runs one operator while things are harmed. The late things are put back while it runs, the others afterwards.
    fn live(&self, case: &Case, taken: Vec<Taken>) {
        let operator = self.stage.start();
        // An operator that refuses to start deletes nothing either.
        let runs = rest(&operator).is_ok();
        // If a missing thing lies inside of another missing thing, both are put back at the same time.
        let inside = |one: &Taken| {
            taken
                .iter()
                .any(|other| one.place != other.place && one.place.starts_with(&other.place))
        };
        let together = taken.iter().any(inside) && taken.iter().any(|one| one.harm == Harm::Late);
        let is_late = |one: &Taken| together || one.harm == Harm::Late;
        let (late, others): (Vec<Taken>, Vec<Taken>) = taken.into_iter().partition(is_late);
        late.into_iter().rev().for_each(Taken::put_back);
        let config_is_late = case.harms.contains(&(Thing::ConfigMap, Harm::Late));
        if config_is_late {
            self.configure();
        }
        if runs {
            let _ = rest(&operator);
            operator.stop();
        }
        others.into_iter().rev().for_each(Taken::put_back);
        if case.harms.iter().any(|(thing, _)| *thing == Thing::ConfigMap) && !config_is_late {
            self.configure();
        }
    }

    /// Checks that no deletion was requested and that all objects are the same as before. The next round compares with
    /// the objects of now.
    fn judge(&mut self) -> Result<(), String> {
        let audit = self.stage.namespace().plane().audit();
        let deletes = audit.since(self.checked).unwrap().of(User::Operator);
        let deletes = deletes.within(self.stage.namespace().name()).deleting();
        // Helm deletes old revisions, and the operator deletes its own state Secrets; both are expected.
        let notes = ["addon-operator-intents", "addon-operator-state", "sh.helm.release."];
        let deletes = deletes.that(|record| !notes.iter().any(|note| record.name.starts_with(note)));
        self.checked = audit.mark().unwrap();
        let now = self.look();
        let before = std::mem::replace(&mut self.objects, now);
        if !deletes.is_empty() {
            return Err(deletes.to_string());
        }
        if before != self.objects {
            return Err(format!("objects were {before}and are {}", self.objects));
        }
        Ok(())
    }

    fn look(&self) -> String {
        let columns = "-o=custom-columns=K:.kind,N:.metadata.name,U:.metadata.uid --no-headers";
        let kinds = "get configmaps,persistentvolumeclaims -l app.kubernetes.io/managed-by=Helm";
        self.stage.kubectl(&format!("{kinds} {columns}"))
    }

    /// The keys of the ConfigMap that people have written.
    fn said(&self) -> Value {
        json!({
            "global": format!("{{poke: \"{}\"}}", self.pokes.get()),
            "deltaEnabled": "true",
            "epsilonEnabled": "true",
            "zetaEnabled": "true",
            "zeta": "{size: large, extra: true}",
        })
    }

    fn configure(&self) {
        self.stage.configure(&self.said());
    }

    /// Makes an edit that causes a converge and changes no object.
    fn poke(&self) {
        self.pokes.set(self.pokes.get() + 1);
        self.configure();
    }

    fn harm(&self, case: &Case) -> Vec<Taken> {
        let mut taken = Vec::new();
        for (number, (thing, harm)) in case.harms.iter().enumerate() {
            let places: &[&str] = match thing {
                Thing::ModulesDir => &["modules"],
                Thing::ValuesFile => &["modules/values.yaml"],
                // Several at once: the absence of a single module's directory is how a person removes that module.
                Thing::ModuleDirs => &["modules/020-victim", "modules/040-beta", "modules/080-zeta"],
                Thing::ChartFile => &["modules/020-victim/Chart.yaml"],
                Thing::Templates => &["modules/020-victim/templates"],
                Thing::Template => &["modules/020-victim/templates/b.yaml"],
                Thing::ModuleValues => &["modules/020-victim/values.yaml"],
                Thing::Hook => &["modules/020-victim/hooks/hook.sh"],
                Thing::ConfigMap => {
                    self.harm_config_map(*harm);
                    continue;
                }
                Thing::State => {
                    self.harm_state(*harm);
                    continue;
                }
            };
            for place in places {
                let kept = self.stage.path(&format!("kept-{number}-{}", place.replace('/', "-")));
                taken.push(Taken::take(self.stage.path(place), kept, *harm));
            }
        }
        taken
    }

    fn harm_config_map(&self, harm: Harm) {
        let Value::Object(said) = self.said() else {
            unreachable!("a map")
        };
        let each = |change: fn(&str) -> String| -> Value {
            let text = |(key, text): (&String, &Value)| (key.clone(), change(text.as_str().unwrap()).into());
            Value::Object(said.iter().map(text).collect())
        };
        match harm {
            Harm::Missing | Harm::Late => {
                self.stage.kubectl("delete configmap addon-operator");
            }
            Harm::Empty => self.stage.configure(&json!({})),
            Harm::Cut => self.stage.configure(&each(|text| text[..text.len() / 2].to_owned())),
            Harm::Unreadable => self.stage.configure(&each(|_| "\u{fffd}: \u{fffd}: [".to_owned())),
        }
    }

    /// Harms the state Secret, which the operator writes again by itself.
    fn harm_state(&self, harm: Harm) {
        let patch = match harm {
            Harm::Missing | Harm::Late => {
                self.stage
                    .kubectl("delete secret addon-operator-state --ignore-not-found");
                return;
            }
            Harm::Empty => r#"{"stringData":{"last-good":"","values-files":""}}"#,
            Harm::Cut => r#"{"stringData":{"last-good":"{\"zeta\":","values-files":"{\"mod"}}"#,
            Harm::Unreadable => r#"{"stringData":{"last-good":"[","values-files":"[","version":"many"}}"#,
        };
        let patched = format!("patch secret addon-operator-state --type=merge --patch={patch}");
        self.stage.kubectl(&patched);
    }
}

/// Waits until the operator has no work left, or has refused to start.
fn rest(operator: &Operator<'_>) -> Result<(), String> {
    let look = || {
        if !operator.records(&["Operator cannot start"]).is_empty() {
            return Ok(Some(Err("the start was refused".to_owned())));
        }
        let converge = operator
            .try_get("/status/converge")
            .map_err(|error| error.to_string())?;
        let ready = operator.try_get("/readyz?verbose").map_err(|error| error.to_string())?;
        let is_done = converge.1.contains("STARTUP_CONVERGE_DONE") && converge.1.contains("CONVERGE_WAIT_TASK");
        if is_done && ready.0 == 200 && !ready.1.contains("a second time") {
            Ok(Some(Ok(())))
        } else {
            Err(format!("{converge:?} {ready:?}"))
        }
    };
    wait_until(PATIENCE, "an operator at rest", look).unwrap()
}

impl Taken {
    fn take(place: PathBuf, kept: PathBuf, harm: Harm) -> Self {
        fs::rename(&place, &kept).unwrap();
        let is_dir = fs::metadata(&kept).unwrap().is_dir();
        match harm {
            Harm::Missing | Harm::Late => {}
            Harm::Empty if is_dir => fs::create_dir(&place).unwrap(),
            Harm::Empty => fs::write(&place, "").unwrap(),
            Harm::Cut if is_dir => {
                fs::create_dir(&place).unwrap();
                let entries = entries(&kept);
                for entry in &entries[..entries.len() / 2] {
                    copy(entry, &place.join(entry.file_name().unwrap()));
                }
            }
            Harm::Cut => {
                let text = fs::read_to_string(&kept).unwrap();
                // Cut at the end of a line the file is still valid, which is the more dangerous case.
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                fs::write(&place, lines[..lines.len() / 2].concat()).unwrap();
            }
            Harm::Unreadable => symlink(&place, &place).unwrap(),
        }
        Self { place, kept, harm }
    }

    fn put_back(self) {
        let Self { place, kept, .. } = self;
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&place).unwrap(),
            Ok(_) => fs::remove_file(&place).unwrap(),
            Err(_) => {}
        }
        fs::rename(&kept, &place).unwrap();
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// Copies a directory with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    if fs::symlink_metadata(from).unwrap().is_dir() {
        fs::create_dir(to).unwrap();
        for entry in entries(from) {
            copy(&entry, &to.join(entry.file_name().unwrap()));
        }
    } else if fs::symlink_metadata(from).unwrap().is_symlink() {
        symlink(fs::read_link(from).unwrap(), to).unwrap();
    } else {
        fs::copy(from, to).unwrap();
    }
}
