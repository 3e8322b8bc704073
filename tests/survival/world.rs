//! One operator's world: its wanted state, the edits, and the checks after each kill.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use fs_err as fs;
use serde_json::{Value, json};
use testbed::audit::{Mark, Record};
use testbed::part::Part;
use testbed::plane::{ControlPlane, User};
use testbed::reader::Only;
use testbed::wait::wait_until;
use testbed::watched_helm::WatchedHelm;
use testbed::{process, shared};

use crate::cluster::{self, Release, Releases};
use crate::life::{Life, Program};
use crate::modules;
use crate::moment::Watch;
use crate::plan::{Action, Kill};
use crate::stage::{File, Stage};

/// Longer than several retries of an operator whose first requests are refused.
const PATIENCE: Duration = Duration::from_secs(90);

/// The number of objects. Helm works on them for about a second, which is longer than an operator's start.
const MEMBERS: usize = 150;

/// A module that saves values to its own section of the ConfigMap, and writes a note in each run.
const SCRIBE: [File; 4] = [
    File {
        path: "050-scribe/Chart.yaml",
        text: "apiVersion: v2\nname: scribe\nversion: 0.1.0\n",
    },
    File {
        path: "050-scribe/values.yaml",
        text: "scribe: {word: none, seen: none}\n",
    },
    File {
        path: "050-scribe/templates/page.yaml",
        text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scribe}\ndata: {{ pick .Values.scribe \"word\" \"seen\" | toJson }}\n",
    },
    File {
        path: "050-scribe/hooks/note.sh",
        text: r#"#!/usr/bin/env bash
set -euo pipefail
if [[ ${1-} == --config ]]; then
  printf 'configVersion: v1\nbeforeHelm: 10\n'
  exit 0
fi
[[ $(<"$VALUES_PATH") =~ \"word\"[[:space:]]*:[[:space:]]*\"([^\"]*)\" ]]
printf '[{"op": "add", "path": "/scribe/seen", "value": "%s"}]' "${BASH_REMATCH[1]}" >"$CONFIG_VALUES_JSON_PATCH_PATH"
echo ran >>"$SURVIVAL_NOTES/hooks"
"#,
    },
];

const PROFILES: [(&str, &str); 3] = [
    ("web", "net.core.somaxconn = 4096"),
    ("database", "vm.dirty_ratio = 10"),
    ("search", "net.ipv4.tcp_retries2 = 5"),
];

/// The wanted state of the world.
#[derive(Debug)]
struct Wanted {
    profile: usize,
    audit: bool,
    /// The last greeting that the chart accepted.
    greeting: String,
    broken: bool,
    song: String,
    word: String,
}

pub(crate) struct World {
    /// Declared before the stage, so that the operator ends before its stage is deleted.
    life: Option<Life>,
    stage: Stage<'static>,
    wanted: Wanted,
    notes: PathBuf,
    helm: WatchedHelm,
    /// The release of another program and its object, in their first state.
    stranger: (Release, String),
    /// The position in the audit log up to which requests have been checked.
    checked: Mark,
    round: usize,
}

/// The temporary files and processes that a kill has left.
#[derive(Debug)]
struct Remains {
    /// The path and the time of the last change, because names and inode numbers are reused.
    files: BTreeSet<(PathBuf, (i64, i64))>,
}

impl World {
    pub(crate) fn build(helm: Part) -> Self {
        Self::try_build(shared::plane(), helm).unwrap()
    }

    fn try_build(plane: &'static ControlPlane, helm: Part) -> anyhow::Result<Self> {
        let files: Vec<File> = modules::FILES.into_iter().chain(SCRIBE).collect();
        let stage = Stage::build(plane, "survival", &files)?;
        let notes = stage.folder().join("notes");
        let real = shared::program(helm);
        let helm = WatchedHelm::new(&real, &notes)?;
        let script = stage.folder().join("watched-helm");
        helm.write(&script, "operator")?;
        let stage = stage.with("HELM_BIN", script).with("SURVIVAL_NOTES", &notes);
        let stranger = install_stranger(&stage, &real)?;
        let wanted = Wanted {
            profile: 0,
            audit: true,
            greeting: "Welcome.".to_owned(),
            broken: false,
            song: "hum".to_owned(),
            word: "first".to_owned(),
        };
        let mut sections = json!({
            "scribeEnabled": "true",
            "scribe": json!({ "word": wanted.word }).to_string(),
            "crowd": json!({ "size": MEMBERS, "song": wanted.song }).to_string(),
        });
        for flag in cluster::SHIPPED {
            sections[flag] = json!("true");
        }
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": cluster::CONFIG }, "data": sections,
        });
        let kubectl = stage.namespace().kubectl_as(User::Admin);
        kubectl.feed(["create", "-f", "-"], &config.to_string())?;
        Ok(Self {
            life: None,
            checked: plane.audit().mark()?,
            stage,
            wanted,
            notes,
            helm,
            stranger,
            round: 0,
        })
    }

    /// Does the planned action, kills the operator at the planned moment, and describes the state at that time.
    pub(crate) fn kill(&mut self, kill: &Kill) -> anyhow::Result<String> {
        self.round += 1;
        if kill.action == Action::Restart
            && let Some(life) = self.life.take()
        {
            life.stop(PATIENCE)?;
        }
        let mut watch = Watch::begin(self.stage.namespace(), &self.notes.join("hooks"))?;
        match kill.action {
            Action::Install | Action::Restart => self.start()?,
            Action::Tune | Action::Switch | Action::Sing | Action::Note | Action::Break => self.edit(kill.action)?,
        }
        watch.wait(kill.event, kill.requests)?;
        let life = self.life.take().context("there is a life in every round")?;
        life.kill()?;
        let releases = cluster::releases(self.stage.namespace())?;
        Ok(format!("it died with {}", cluster::shown(&releases)))
    }

    fn start(&mut self) -> anyhow::Result<()> {
        let program = Program::new(env!("CARGO_BIN_EXE_addon-operator"), ["start"]);
        self.life = Some(self.stage.start(&program)?);
        Ok(())
    }

    fn edit(&mut self, action: Action) -> anyhow::Result<()> {
        let (wanted, round) = (&mut self.wanted, self.round);
        let tuner = |profile: usize| json!(json!({ "profile": PROFILES[profile].0 }).to_string());
        let data = match action {
            Action::Install | Action::Restart => json!({}),
            Action::Tune => {
                wanted.profile = (wanted.profile + 1) % PROFILES.len();
                json!({ "sysctlTuner": tuner(wanted.profile) })
            }
            Action::Switch => {
                wanted.audit = !wanted.audit;
                json!({ "sysctlAuditEnabled": wanted.audit.to_string() })
            }
            Action::Sing => {
                wanted.song = format!("song {round}");
                json!({ "crowd": json!({ "size": MEMBERS, "song": wanted.song }).to_string() })
            }
            Action::Note => {
                wanted.word = format!("word {round}");
                json!({ "scribe": json!({ "word": wanted.word }).to_string() })
            }
            Action::Break if wanted.broken => {
                wanted.broken = false;
                wanted.greeting = format!("Greetings, {round}.");
                json!({ "greeter": json!({ "text": wanted.greeting }).to_string() })
            }
            Action::Break => {
                wanted.broken = true;
                wanted.profile = (wanted.profile + 1) % PROFILES.len();
                let text = "far too long ".repeat(5);
                json!({ "greeter": json!({ "text": text }).to_string(), "sysctlTuner": tuner(wanted.profile) })
            }
        };
        cluster::edit(self.stage.namespace(), &data)
    }

    /// Starts the next operator, which has to finish without help, and checks its requests.
    pub(crate) fn recover(&mut self, kill: &Kill) -> anyhow::Result<()> {
        let remains = self.remains()?;
        self.start()?;
        wait_until(PATIENCE, "all to be as it should be", || {
            let is_dead = self.life.as_ref().is_none_or(Life::has_ended);
            // Where the kill came after all work, the cluster is as it should be before the next life has begun.
            match self.look().and_then(|()| self.is_cleaned(&remains)) {
                Ok(()) => Ok(Some(Ok(()))),
                Err(error) if is_dead => Ok(Some(Err(error.context("the new life has ended too")))),
                Err(error) => Err(format!("{error:#}")),
            }
        })??;
        self.check_writes(kill)?;
        let overlaps = self.helm.overlaps()?;
        ensure!(overlaps.is_empty(), "a second helm on one release: {overlaps:?}");
        Ok(())
    }

    /// Whether the new life has taken away the temporary files of the dead one.
    fn is_cleaned(&self, remains: &Remains) -> anyhow::Result<()> {
        let left = self.remains()?;
        let kept: Vec<_> = left.files.intersection(&remains.files).collect();
        ensure!(
            kept.is_empty(),
            "temporary files of the dead life are still there: {kept:?}"
        );
        Ok(())
    }

    /// Checks that releases and objects are as they should be.
    fn look(&self) -> anyhow::Result<()> {
        let mut releases = cluster::releases(self.stage.namespace())?;
        let stranger = releases.remove(STRANGER);
        ensure!(
            stranger.as_ref() == Some(&self.stranger.0),
            "the foreign release is {stranger:?}"
        );
        self.check_releases(&releases)?;
        let configs = self.named("configmaps")?;
        let text = |name: &str, key: &str| {
            let value = configs.get(name).map_or(&Value::Null, |config| &config["data"][key]);
            value.as_str().unwrap_or("nothing").to_owned()
        };
        let equal = |what: &str, found: &str, wanted: &str| {
            ensure!(found == wanted, "{what} is '{found}' and should be '{wanted}'");
            Ok(())
        };
        equal("the greeting", &text("greeter", "text"), &self.wanted.greeting)?;
        equal("the scribe's word", &text("scribe", "word"), &self.wanted.word)?;
        equal("what the scribe has seen", &text("scribe", "seen"), &self.wanted.word)?;
        let section = text(cluster::CONFIG, "scribe");
        ensure!(section.contains("seen"), "nothing was noted in the section: {section}");
        for member in 0..MEMBERS {
            equal("the song", &text(&format!("crowd-{member}"), "song"), &self.wanted.song)?;
        }
        let setting = PROFILES[self.wanted.profile].1;
        let settings = text("sysctl-tuner", "sysctl.conf");
        ensure!(
            settings.contains(setting),
            "the settings are {settings} and should have {setting}"
        );
        let sets = self.named("daemonsets")?;
        ensure!(sets.contains_key("sysctl-tuner"), "the tuner has no DaemonSet");
        for (kind, objects) in [("DaemonSet", &sets), ("ConfigMap", &configs)] {
            let is_there = objects.contains_key("sysctl-audit");
            ensure!(
                is_there == self.wanted.audit,
                "the audit's {kind} exists: {is_there}, wanted: {}",
                self.wanted.audit
            );
        }
        let id = configs.get(STRANGER).map(id_of);
        ensure!(
            id.as_ref() == Some(&self.stranger.1),
            "the foreign object is another: {id:?}"
        );
        Ok(())
    }

    fn check_releases(&self, releases: &Releases) -> anyhow::Result<()> {
        let audit = self.wanted.audit.then_some("sysctl-audit");
        let names: BTreeSet<&str> = ["crowd", "greeter", "scribe", "sysctl-tuner"]
            .into_iter()
            .chain(audit)
            .collect();
        let is_good = |release: &Release| release.is_deployed() && release.ours;
        let found: BTreeSet<&str> = releases.keys().map(String::as_str).collect();
        ensure!(
            found == names && releases.values().all(is_good),
            "there should be {names:?}, and there is {}",
            cluster::shown(releases)
        );
        Ok(())
    }

    /// Checks that nothing was deleted by mistake since the last check.
    fn check_writes(&mut self, kill: &Kill) -> anyhow::Result<()> {
        let audit = self.stage.plane().audit();
        let mark = audit.mark()?;
        let records = audit
            .since(self.checked)?
            .of(User::Operator)
            .within(self.stage.namespace().name());
        self.checked = mark;
        let newest = cluster::releases(self.stage.namespace())?;
        let may_go = |record: &Record| {
            let is_note = record.resource == "secrets" && cluster::MEMORY.contains(&record.name.as_str());
            let of_audit = kill.action == Action::Switch && record.name.contains("sysctl-audit");
            of_audit || is_note || is_old_revision(record, &newest)
        };
        let deleted = records.clone().deleting().that(|record| !may_go(record));
        ensure!(deleted.is_empty(), "the operator deleted:\n{deleted}");
        let foreign = records.mutating().that(|record| record.name.contains(STRANGER));
        ensure!(
            foreign.is_empty(),
            "the operator wrote to what is not its own:\n{foreign}"
        );
        Ok(())
    }

    /// The temporary files that exist now.
    fn remains(&self) -> anyhow::Result<Remains> {
        let mut files = BTreeSet::new();
        gather(&self.stage.tmp(), &mut files)?;
        Ok(Remains { files })
    }

    fn named(&self, kind: &str) -> anyhow::Result<BTreeMap<String, Value>> {
        let items = self.stage.namespace().objects(kind, Only::All)?;
        let named = |item: Value| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item);
        Ok(items.into_iter().map(named).collect())
    }

    /// Stops the last operator, which has to end with success.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let life = self.life.take().context("a world ends alive")?;
        life.stop(PATIENCE)?;
        let left = self.stage.children();
        ensure!(left.is_empty(), "what it started runs still: {left:?}");
        Ok(())
    }
}

const STRANGER: &str = "stranger";

/// Installs a release with helm, without the operator.
fn install_stranger(stage: &Stage<'_>, helm: &Path) -> anyhow::Result<(Release, String)> {
    let chart = stage.folder().join(STRANGER);
    fs::create_dir_all(chart.join("templates"))?;
    fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: stranger\nversion: 0.1.0\n",
    )?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stranger}\n";
    fs::write(chart.join("templates/object.yaml"), template)?;
    let mut helm = process::command(helm);
    helm.args(["install", STRANGER]).arg(&chart);
    helm.env("KUBECONFIG", stage.namespace().kubeconfig(User::Admin))
        .env("HOME", stage.folder().join("home"));
    let output = process::run(helm, None)?;
    ensure!(
        output.status.success(),
        "helm install: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let release = cluster::releases(stage.namespace())?
        .remove(STRANGER)
        .context("helm installed it")?;
    let object = stage
        .namespace()
        .object("configmap", STRANGER)?
        .context("helm made it")?;
    Ok((release, id_of(&object)))
}

fn id_of(object: &Value) -> String {
    object["metadata"]["uid"].to_string()
}

/// Helm keeps ten revisions and deletes the oldest. A release is lost only with its newest revision.
fn is_old_revision(record: &Record, newest: &Releases) -> bool {
    let name = record.name.strip_prefix("sh.helm.release.v1.");
    let Some((release, Ok(revision))) = name
        .and_then(|name| name.rsplit_once(".v"))
        .map(|(release, revision)| (release, revision.parse::<u32>()))
    else {
        return false;
    };
    newest.get(release).is_some_and(|newest| revision < newest.revision)
}

fn gather(folder: &Path, files: &mut BTreeSet<(PathBuf, (i64, i64))>) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        // The file may have been deleted meanwhile.
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            gather(&path, files)?;
        } else {
            files.insert((path, (metadata.ctime(), metadata.ctime_nsec())));
        }
    }
    Ok(())
}
