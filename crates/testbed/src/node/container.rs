//! One container of a pod: its image is pulled, it is started, probed, restarted with growing pauses, and ended.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fs_err as fs;
use k8s_openapi::api::core::v1::Container;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::board::{Ended, State};
use super::child::{Child, End, Inside};
use super::environment::{self, EnvironmentError};
use super::identity::{self, IdentityError};
use super::images::{Image, Policy, PullError};
use super::life::{Sandbox, hostname};
use super::probe::{self, Target};
use super::reference::Reference;
use super::spec::{Mount, Spec};
use super::status::{Restart, now};
use super::volumes::VolumeError;
use crate::plane::component::tail;
use crate::report;

#[derive(Debug, Error)]
enum ContainerError {
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Volume(#[from] VolumeError),
    #[error("cannot start the container")]
    Start(#[source] std::io::Error),
}

impl ContainerError {
    /// The reasons for the status: at the first failure, and while it is tried again.
    fn reasons(&self) -> (&'static str, &'static str) {
        match self {
            Self::Pull(error) => match error.reason() {
                "ErrImagePull" => ("ErrImagePull", "ImagePullBackOff"),
                reason => (reason, reason),
            },
            Self::Start(_) => ("CreateContainerError", "CreateContainerError"),
            Self::Environment(_) | Self::Identity(_) | Self::Volume(_) => {
                ("CreateContainerConfigError", "CreateContainerConfigError")
            }
        }
    }
}

/// Pauses between restarts, each twice as long as the one before. The first restart after a long run has no pause.
struct Pauses {
    next: Option<Duration>,
    first: Duration,
    most: Duration,
}

impl Pauses {
    fn new(first: Duration, most: Duration) -> Self {
        Self {
            next: None,
            first,
            most,
        }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next.unwrap_or_default();
        let double = self.next.map_or(self.first, |next| next * 2);
        self.next = Some(double.min(self.most));
        pause
    }

    fn reset(&mut self) {
        self.next = None;
    }
}

/// A container that ran for this long starts again with short pauses.
const STEADY: Duration = Duration::from_mins(10);

/// Runs the container as often as the restart policy demands, until the pod ends. Returns the exit code of the last
/// run, or nothing if the end of the pod ended it.
pub(super) async fn keep(pod: Arc<Sandbox>, index: usize, container: Container, restart: Restart) -> Option<i32> {
    let first = pod.board.read().borrow().get(index).is_some_and(|view| view.first);
    let mut pauses = Pauses::new(Duration::from_secs(10), Duration::from_mins(5));
    let mut run = 0;
    loop {
        let started = Instant::now();
        let running = tokio::select! {
            started = start(&pod, index, &container, run) => started,
            _ = pod.asked_to_end() => return None,
        };
        let code = attend(&pod, index, &container, running).await;
        if pod.end.borrow().is_some() {
            return None;
        }
        if !restart.again(first, code) {
            return Some(code);
        }
        if started.elapsed() > STEADY {
            pauses.reset();
        }
        run += 1;
        let pause = pauses.next();
        if !pause.is_zero() {
            let message = format!(
                "back-off {} restarting failed container={}",
                shown(pause),
                container.name
            );
            pod.board
                .change(index, |view| view.turn(State::waiting("CrashLoopBackOff", message)));
        }
        if timeout(pause, pod.asked_to_end()).await.is_ok() {
            return None;
        }
    }
}

fn shown(pause: Duration) -> String {
    let seconds = pause.as_secs();
    if seconds < 60 {
        return format!("{seconds}s");
    }
    format!("{}m{}s", seconds / 60, seconds % 60)
}

/// A container that was started.
struct Running {
    child: Child,
    end: End,
    folder: PathBuf,
    log: PathBuf,
}

/// Tries to start the container until it runs.
async fn start(pod: &Sandbox, index: usize, container: &Container, run: i32) -> Running {
    let mut pauses = Pauses::new(Duration::from_secs(2), Duration::from_mins(5));
    pauses.next();
    loop {
        let error = match attempt(pod, index, container, run).await {
            Ok(started) => return started,
            Err(error) => error,
        };
        let (reason, later) = error.reasons();
        let message = report::chain(&error);
        pod.board
            .change(index, |view| view.turn(State::waiting(reason, message.clone())));
        let pause = pauses.next();
        if reason != later {
            // The first reason stays in the status for a moment before the later one, as with a kubelet.
            sleep(Duration::from_secs(1)).await;
            pod.board
                .change(index, |view| view.turn(State::waiting(later, message)));
        }
        sleep(pause).await;
    }
}

async fn attempt(pod: &Sandbox, index: usize, container: &Container, run: i32) -> Result<Running, ContainerError> {
    let asked = container.image.as_deref().unwrap_or_default();
    let image = pod.agent.images.obtain(asked, policy(container)).await?;
    let spec = spec(pod, container, &image, run).await?;
    let log = log(pod, container, run);
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).map_err(ContainerError::Start)?;
    }
    let (child, end) = Child::start(&spec, &pod.place.network, &log).map_err(ContainerError::Start)?;
    let id = format!(
        "testbed://{}/{}/{run}",
        pod.pod.metadata.uid.clone().unwrap_or_default(),
        container.name
    );
    let image_id = Reference::parse(asked)
        .map(|reference| reference.by_digest(&image.digest))
        .unwrap_or_default();
    pod.board.change(index, |view| {
        view.restarts = run;
        view.id = id;
        view.image_id = image_id;
        view.turn(State::Running { since: now() });
    });
    Ok(Running {
        child,
        end,
        folder: spec.folder,
        log,
    })
}

fn policy(container: &Container) -> Policy {
    let latest = || {
        let image = container.image.as_deref().unwrap_or_default();
        Reference::parse(image).is_ok_and(|reference| reference.is_latest())
    };
    match container.image_pull_policy.as_deref() {
        Some("Always") => Policy::Always,
        Some("Never") => Policy::Never,
        None if latest() => Policy::Always,
        _ => Policy::IfNotPresent,
    }
}

/// The log file of one run.
fn log(pod: &Sandbox, container: &Container, run: i32) -> PathBuf {
    pod.folder.join("logs").join(&container.name).join(format!("{run}.log"))
}

async fn spec(pod: &Sandbox, container: &Container, image: &Image, run: i32) -> Result<Spec, ContainerError> {
    let (client, address) = (pod.agent.client(), pod.place.address());
    let variables = environment::variables(&client, &pod.pod, container, address, &image.config).await?;
    let identity = identity::identity(&pod.spec, container, image)?;
    let folder = pod
        .folder
        .join("containers")
        .join(&container.name)
        .join(run.to_string());
    fs::create_dir_all(&folder).map_err(ContainerError::Start)?;
    let context = container.security_context.as_ref();
    let directory = container.working_dir.clone().filter(|path| !path.is_empty());
    let directory = directory.unwrap_or_else(|| image.config.working_dir.clone());
    Ok(Spec {
        image: image.root.clone(),
        mounts: mounts(pod, container, &folder).await?,
        read_only: context.and_then(|context| context.read_only_root_filesystem) == Some(true),
        hostname: hostname(&pod.pod),
        identity,
        command: environment::words(container, &image.config, &variables),
        environment: variables.into_iter().collect(),
        directory: if directory.is_empty() {
            "/".into()
        } else {
            directory.into()
        },
        folder,
    })
}

/// The file whose content becomes the termination message.
const LAST_WORDS: &str = "last-words";

/// The mounts of the container's volumes, and of the files that every container has.
async fn mounts(pod: &Sandbox, container: &Container, folder: &Path) -> Result<Vec<Mount>, ContainerError> {
    let own = |source: PathBuf, target: &str, read_only: bool| Mount {
        source,
        target: target.into(),
        read_only,
    };
    let last_words = folder.join(LAST_WORDS);
    let writable = std::fs::Permissions::from_mode(0o666);
    fs::write(&last_words, "").map_err(ContainerError::Start)?;
    fs::set_permissions(&last_words, writable).map_err(ContainerError::Start)?;
    let place = container
        .termination_message_path
        .as_deref()
        .unwrap_or("/dev/termination-log");
    let mut mounts = vec![own(last_words, place, false)];
    for name in ["hosts", "hostname", "resolv.conf"] {
        mounts.push(own(pod.folder.join(name), &format!("/etc/{name}"), false));
    }
    let volumes = pod.volumes.lock().await;
    for asked in container.volume_mounts.iter().flatten() {
        mounts.push(volumes.mount(asked)?);
    }
    // A mount inside of another one must be made later.
    mounts.sort_by(|one, other| one.target.cmp(&other.target));
    Ok(mounts)
}

/// Waits for the end of a running container, by itself or because it is stopped.
async fn attend(pod: &Sandbox, index: usize, container: &Container, running: Running) -> i32 {
    let Running {
        child,
        mut end,
        folder,
        log,
    } = running;
    let since = now();
    let probed = async {
        match child.inside().await {
            Some(inside) => probe::watch(container, target(pod, container, inside), &pod.board, index).await,
            None => std::future::pending().await,
        }
    };
    let (ended, cause) = tokio::select! {
        code = end.come() => (Some(code), String::new()),
        cause = probed => (None, cause),
        _ = pod.asked_to_end() => (None, String::new()),
    };
    let code = match ended {
        Some(code) => code,
        None => stop(pod, container, &child, &mut end).await,
    };
    let said = last_words(container, &folder, &log, code);
    let ended = Ended {
        code,
        reason: if code == 0 { "Completed" } else { "Error" }.to_owned(),
        message: if said.is_empty() { cause } else { said },
        started: since,
        finished: now(),
        id: String::new(),
    };
    pod.board.change(index, |view| {
        view.started = false;
        view.ready = false;
        let id = view.id.clone();
        view.state = State::Ended(Ended { id, ..ended });
    });
    // The next run gets a new writable layer.
    let _ = fs::remove_dir_all(&folder);
    code
}

/// The termination message: the text that the container wrote. If a failed container wrote none, the end of its log
/// takes the place, provided that the pod asks for it or the container could not be started.
fn last_words(container: &Container, folder: &Path, log: &Path, code: i32) -> String {
    const MOST: usize = 4096;
    let written = fs::read(folder.join(LAST_WORDS)).unwrap_or_default();
    let written = String::from_utf8_lossy(&written[..written.len().min(MOST)]).into_owned();
    if !written.is_empty() || code == 0 {
        return written;
    }
    let end = tail(log, 10);
    let asked = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if asked || end.starts_with("testbed: ") {
        end
    } else {
        String::new()
    }
}

/// Stops a container as the pod's settings demand.
async fn stop(pod: &Sandbox, container: &Container, child: &Child, end: &mut End) -> i32 {
    let usual = pod.spec.termination_grace_period_seconds.unwrap_or(30);
    let usual = Duration::from_secs(u64::try_from(usual).unwrap_or(0));
    let grace = pod.end.borrow().unwrap_or(usual);
    let begun = Instant::now();
    let before = container
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.pre_stop.as_ref());
    if let Some(words) = before.and_then(|before| before.exec.as_ref()?.command.clone())
        && let Some(inside) = child.inside().await
    {
        // The container is asked to stop even if its hook failed.
        let _ = inside.run(&words, grace).await;
    }
    if let Some(pause) = before.and_then(|before| before.sleep.as_ref()) {
        let pause = Duration::from_secs(u64::try_from(pause.seconds).unwrap_or(0));
        let _ = timeout(pause.min(grace), end.come()).await;
    }
    child.stop(end, grace.saturating_sub(begun.elapsed())).await
}

fn target(pod: &Sandbox, container: &Container, inside: Inside) -> Target {
    Target {
        address: pod.place.address(),
        ports: container.ports.clone().unwrap_or_default(),
        inside,
    }
}
