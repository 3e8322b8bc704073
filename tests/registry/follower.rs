//! The follower asks a real registry through the guard, and reports the results.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::any::Any;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_core::operator::query::{ChannelQuery, ChannelReport};
use channel::bell::Bell;
use channel::follower::{Followed, Follower, Known, Recalled, Ways};
use channel_core::channel::Channel;
use channel_core::choice::{Activity, Choice, Idle, Memory, Reason, Running};
use channel_core::following::Installed;
use channel_core::platform::Platform;
use channel_core::reference::{ImageDigest, Repository as Named, Tag};
use channel_core::settings::Settings;
use channel_core::version::Version;
use inquiry::office::{Files, Office};
use leadership::standing::ActingRole;
use mailbox::questions::Asked;
use mailbox::{Mail, mailbox};
use registry::credentials::ReadCredentials;
use serde_json::json;
use settings::Environment;
use settings::channel::{ChannelSettings, Follow};
use telling::meters::Meters;
use telling::notices::announcements::channel::ChannelAnnouncer;
use testbed::registry::guard::{Aim, Guard, Lock, Trouble};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::stage::{guard, host, nobody, people, repository};

const PATIENCE: Duration = Duration::from_mins(2);
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A follower with an idle operator, and a guard in front of its registry.
struct World {
    guard: Guard,
    settings: Arc<Mutex<Settings>>,
    standing: watch::Sender<ActingRole>,
    installed: watch::Sender<Option<Installed>>,
    followed: watch::Receiver<Followed>,
    bell: Bell,
    meters: Arc<Meters>,
    /// The tasks, which end with the world.
    _tasks: JoinSet<()>,
    _authority: tempfile::NamedTempFile,
}

/// Pushes a version with the labels of an operator image.
async fn push(name: &str, tag: &str, version: &str) -> ImageDigest {
    let repository = repository(name);
    let config = json!({ "os": "linux", "architecture": "amd64", "config": {} }).to_string();
    let config = json!({ "mediaType": "x/y", "digest": repository.upload(config.as_bytes()).await, "size": 9 });
    let annotations = json!({ "org.opencontainers.image.version": version, "addon-operator/state-formats": "1" });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [], "annotations": annotations,
    });
    ImageDigest::parse(&repository.put(tag, MANIFEST, &manifest).await).unwrap()
}

fn installed(guard: &Guard, name: &str, runs: &ImageDigest) -> Installed {
    Installed {
        repository: Named::parse(&format!("{}/{name}", guard.address())).ok(),
        running: Running {
            digests: [runs.clone()].into(),
            tag: Tag::parse("stable").ok(),
            version: Version::parse("1.0.0").ok(),
            state_format: "1".to_owned(),
        },
        platforms: [Platform::parse("linux/amd64").unwrap()].into(),
        ..Installed::default()
    }
}

impl World {
    fn new(name: &'static str, runs: &ImageDigest) -> Self {
        Self::with(name, runs, None, |_| Box::new(nobody))
    }

    fn with(
        name: &'static str,
        runs: &ImageDigest,
        keys: Option<&Path>,
        read: impl FnOnce(&Guard) -> Box<dyn Fn() -> ReadCredentials + Send + Sync>,
    ) -> Self {
        let guard = guard();
        let authority = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(authority.path(), guard.authority()).unwrap();
        let settings = ChannelSettings {
            follow: Follow::As("operator-0".to_owned()),
            registries: [].into(),
            mirrors: [].into(),
            plain: [].into(),
            authority: Some(authority.path().to_owned()),
            keys: keys.map(Path::to_owned),
            notify_token: None,
        };
        let files = Files::read(&settings).unwrap();
        let office = Office::new(&settings, files, &Environment::default(), read(&guard)).unwrap();
        let (doors, mut mail) = mailbox(CancellationToken::new());
        let settings = Arc::new(Mutex::new(Settings::default()));
        let (standing, told) = watch::channel(ActingRole::Leads);
        let (found, known) = watch::channel(Some(installed(&guard, name, runs)));
        let (followed, heard) = watch::channel(Followed::Unknown);
        let (bell, meters) = (Bell::default(), Arc::new(Meters::new("own_")));
        let ways = Ways {
            doors,
            standing: told,
            installed: known,
            bell: bell.clone(),
            followed,
            meters: Arc::clone(&meters),
            recalled: watch::channel(Recalled::default()).1,
            announcer: ChannelAnnouncer::silent(Arc::clone(&meters)),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(Follower::new(Memory::default(), 1, office, ways).run());
        let people = Arc::clone(&settings);
        tasks.spawn(async move {
            while let Mail::Question(question) = mail.next(std::future::pending()).await {
                let question: Box<dyn Any> = question;
                let asked = question.downcast::<Asked<ChannelQuery>>().unwrap();
                asked.answer_with(|_| ChannelReport {
                    settings: Some(people.lock().unwrap().clone()),
                    activity: Activity::Quiet,
                });
            }
        });
        Self {
            guard,
            settings,
            standing,
            installed: found,
            followed: heard,
            bell,
            meters,
            _tasks: tasks,
            _authority: authority,
        }
    }

    /// Waits until the follower's knowledge meets a condition.
    async fn until(&mut self, what: &str, is_so: impl Fn(&Known) -> bool) -> Known {
        let known = |followed: &Followed| match followed {
            Followed::On(known) => Some(known.clone()),
            Followed::Unknown | Followed::Off { .. } => None,
        };
        let seen = self
            .followed
            .wait_for(|followed| known(followed).is_some_and(|known| is_so(&known)));
        let seen = tokio::time::timeout(PATIENCE, seen)
            .await
            .map(|seen| seen.unwrap().clone());
        assert!(seen.is_ok(), "never {what}: {:?}", *self.followed.borrow());
        *known(&seen.unwrap()).unwrap()
    }

    /// Makes the follower ask now, and returns the results.
    async fn round(&mut self) -> Known {
        let rounds = self.until("a first round", |known| known.rounds > 0).await.rounds;
        self.bell.ring();
        self.until("another round", |known| known.rounds > rounds).await
    }
}

fn begins(known: &Known, digest: &ImageDigest) -> bool {
    match &known.status.choice {
        Some(Choice::Begin(target)) => target.digest == *digest,
        Some(Choice::Waits { .. } | Choice::Nothing(_)) | None => false,
    }
}

#[tokio::test]
async fn a_tag_that_moves_is_seen_and_told() {
    let name = "follower/moved";
    let one = push(name, "stable", "1.0.0").await;
    let mut world = World::new(name, &one);
    let up_to_date = |known: &Known| known.status.choice == Some(Choice::Nothing(Idle::UpToDate));
    world.until("up to date", up_to_date).await;
    let page = world.meters.render(None);
    for line in ["own_channel_running_missing 0", "own_channel_verified 0"] {
        assert!(page.lines().any(|found| found == line), "{line}:\n{page}");
    }
    let two = push(name, "stable", "1.0.1").await;
    world.bell.ring();
    world.until("a choice", |known| begins(known, &two)).await;
    // Another replica leads and asks the registry.
    world.standing.send_replace(ActingRole::Seeks { trouble: None });
    world.guard.seen();
    let page = async || {
        while world.meters.render(None).contains("own_channel_verified 0") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, page()).await.unwrap();
    world.bell.ring();
    assert_eq!(world.guard.seen().len(), 0);
}

#[tokio::test]
async fn people_switch_the_channel_and_an_absent_tag_is_named() {
    let name = "follower/switched";
    let one = push(name, "stable", "1.0.0").await;
    let beta = push(name, "beta", "1.1.0-beta.1").await;
    let mut world = World::new(name, &one);
    world
        .until("a first round", |known| known.status.checked.is_some())
        .await;
    let switch = |world: &World, channel: &str| {
        world.settings.lock().unwrap().channel = Channel::parse(channel).ok();
    };
    switch(&world, "beta");
    world.until("the other channel", |known| begins(known, &beta)).await;
    switch(&world, "nightly");
    let no_tag = Choice::Nothing(Idle::NoTag(Tag::parse("nightly").unwrap()));
    world
        .until("no tag", |known| known.status.choice.as_ref() == Some(&no_tag))
        .await;
    let three = push(name, "1.0.3", "1.0.3").await;
    push(name, "2.0.0", "2.0.0").await;
    switch(&world, "1.x");
    world
        .until("the highest of a range", |known| begins(known, &three))
        .await;
}

#[tokio::test]
async fn a_registry_that_is_down_is_told_and_so_is_that_it_answers_again() {
    let name = "follower/down";
    let one = push(name, "stable", "1.0.0").await;
    let two = push(name, "stable", "1.0.1").await;
    let mut world = World::new(name, &one);
    world.until("a choice", |known| begins(known, &two)).await;
    world
        .guard
        .impose(vec![Aim::at("/manifests/", Trouble::Status(502, None))]);
    for _ in 0..3 {
        let known = world.round().await;
        assert!(known.status.trouble.is_some_and(|text| text.contains("tag 'stable'")));
        assert_eq!(known.status.choice.map(|_| ()), Some(()), "what was known stays");
    }
    world.guard.impose(Vec::new());
    let known = world.round().await;
    assert_eq!(known.status.trouble, None);
    let page = world.meters.render(None);
    assert!(
        page.contains(r#"own_channel_checks_total{result="failed"} 3"#),
        "{page}"
    );
}

#[tokio::test]
async fn a_registry_that_has_had_enough_is_left_alone() {
    let name = "follower/enough";
    let one = push(name, "stable", "1.0.0").await;
    let mut world = World::new(name, &one);
    world.until("a first round", |known| known.rounds > 0).await;
    world
        .guard
        .impose(vec![Aim::at("/manifests/", Trouble::Status(429, Some("600")))]);
    let known = world.round().await;
    let in_minutes = known
        .status
        .next
        .unwrap()
        .duration_since(jiff::Timestamp::now())
        .as_mins();
    assert!((8..=10).contains(&in_minutes), "{in_minutes}");
    world.guard.impose(Vec::new());
    world.guard.seen();
    world.bell.ring();
    // The notification came while the registry demands a pause, so nothing is asked before the pause is over.
    world
        .installed
        .send_modify(|installed| installed.as_mut().unwrap().chart = Version::parse("0.9.0").ok());
    let heard = |known: &Known| {
        known
            .installed
            .as_ref()
            .is_some_and(|installed| installed.chart.is_some())
    };
    let later = world.until("something that came later", heard).await;
    assert_eq!(later.status.next, known.status.next);
    assert_eq!(world.guard.seen().len(), 0);
}

#[tokio::test]
async fn a_login_that_was_refused_is_read_again() {
    let name = "follower/login";
    let one = push(name, "stable", "1.0.0").await;
    let reads: Arc<Mutex<Option<Arc<AtomicUsize>>>> = Arc::default();
    let counted = Arc::clone(&reads);
    let mut world = World::with(name, &one, None, |guard| {
        guard.lock(Lock::Login("Basic dXNlcjpuZXc="));
        let host = host(guard.address());
        Box::new(move || {
            let (read, reads) = people(&host, &["old", "new"]);
            *counted.lock().unwrap() = Some(reads);
            read
        })
    });
    let known = world.until("a first round", |known| known.rounds > 0).await;
    assert_eq!(known.status.trouble, None);
    let reads = reads.lock().unwrap().clone().unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_version_that_is_not_signed_waits_for_that() {
    let name = "follower/unsigned";
    let one = push(name, "stable", "1.0.0").await;
    let two = push(name, "stable", "1.0.1").await;
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signatures/keys/p256.pub");
    let mut world = World::with(name, &one, Some(&keys), |_| Box::new(nobody));
    let not_verified = |known: &Known| match &known.status.choice {
        Some(Choice::Waits { target, reasons, .. }) => {
            let is_that = |reason: &Reason| reason.label() == "not_verified";
            target.digest == two && reasons.iter().any(is_that)
        }
        Some(Choice::Begin(_) | Choice::Nothing(_)) | None => false,
    };
    world.until("a wait", not_verified).await;
}
