//! Listeners of ours behind Services that the real API server calls, and hooks that are closures.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io;
use std::sync::Arc;

use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::hook::context::BindingContext;
use addon_core::review::reply::Reply;
use addon_core::review::response::HookResponse;
use addon_core::review::routes::{Opened, Routes};
use addon_core::review::{Ended, Progress, Run};
use certificates::tls::Tls;
use jiff::Timestamp;
use names::{HookId, HookName, Owner};
use serde_json::Value;
use telling::meters::Meters;
use testbed::plane::User;
use testbed::wait::wait_until;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use webhooks::configurations::ensure::{Side, Source, Webhooks};
use webhooks::server::{self, Asked, Listener, Reviews};

use crate::cluster::world::{PATIENCE, World};

pub(crate) const SECRET: &str = "webhook-certs";

/// Returns the result of one run of a hook.
pub(crate) type Hook = Arc<dyn Fn(&Run) -> Ended + Send + Sync>;

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) webhooks: Webhooks,
    pub(crate) routes: Routes,
    /// The listeners, which end with the stage.
    _listeners: JoinSet<io::Result<()>>,
}

impl Stage {
    /// A stage with a hook of this configuration, in which `@NS@` stands for the namespace.
    pub(crate) async fn new(prefix: &str, source: Source, config: &str, hook: Hook) -> Self {
        let world = World::new(prefix).await;
        let routes = routes(&config.replace("@NS@", world.namespace.name()));
        let mut listeners = JoinSet::new();
        let answered = watch::Sender::default();
        let mut side = |service: &str, reviews| {
            let tls = Tls::new().unwrap();
            let listener = Listener {
                reviews,
                address: world.namespace.service_to_us(service).unwrap(),
                tls: tls.clone(),
                routes: answered.subscribe(),
                meters: Arc::new(Meters::new("own_")),
            };
            let (routes, hook) = (routes.clone(), Arc::clone(&hook));
            let answer = move |asked| {
                let reply = review(&routes, asked, &*hook);
                async move { reply }
            };
            listeners.spawn(server::serve(listener, answer, CancellationToken::new()));
            Side::new(service, source.clone(), Vec::new(), tls)
        };
        let webhooks = Webhooks {
            cluster: world.tools.ground.cluster.clone(),
            configuration: world.namespace.name().to_owned(),
            edits: None,
            owner: None,
            secret: SECRET.to_owned(),
            published: watch::Sender::default(),
            routes: answered.clone(),
            admission: side("admission", Reviews::Admission),
            conversion: side("conversion", Reviews::Conversion),
        };
        Self {
            world,
            webhooks,
            routes,
            _listeners: listeners,
        }
    }

    /// Publishes the webhooks, and returns the changes.
    pub(crate) async fn ensure(&self) -> Vec<String> {
        self.ensure_at(Timestamp::now()).await
    }

    pub(crate) async fn ensure_at(&self, now: Timestamp) -> Vec<String> {
        let changes = self.webhooks.ensure(&self.routes, now).await.unwrap();
        changes.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn name(&self) -> &str {
        self.world.namespace.name()
    }

    /// The output of kubectl, whether it fails or not.
    pub(crate) fn say(&self, arguments: &str) -> String {
        let said = self.world.namespace.kubectl(arguments.split(' '));
        said.unwrap_or_else(|error| error.to_string())
    }

    pub(crate) fn apply(&self, manifest: &Value) -> String {
        let said = self
            .world
            .namespace
            .kubectl_as(User::Admin)
            .feed(["apply", "-f", "-"], &manifest.to_string());
        said.unwrap_or_else(|error| error.to_string())
    }

    /// Waits until kubectl's output contains a text.
    pub(crate) fn wait_for(&self, arguments: &str, wanted: &str) {
        let what = format!("'{wanted}' from kubectl {arguments}");
        let said = || {
            let said = self.say(arguments);
            if said.contains(wanted) { Ok(Some(())) } else { Err(said) }
        };
        wait_until(PATIENCE, &what, said).unwrap();
    }
}

pub(crate) fn routes(config: &str) -> Routes {
    let config = HookConfig::parse(config, HookKind::Global).unwrap();
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("hook.sh").unwrap(),
    };
    Routes::of([(&hook, &config)]).0
}

/// The reply to a review whose hooks run at once.
fn review(routes: &Routes, asked: Asked, hook: &dyn Fn(&Run) -> Ended) -> Reply {
    let (mut review, mut run) = match routes.open(&asked.path, asked.request) {
        Opened::Running(review, run) => (review, run),
        Opened::Answered(reply) => return reply,
        Opened::Edit(_) => unreachable!("nobody asks about edits"),
    };
    loop {
        match review.resume(hook(&run)) {
            Progress::Run(next) => run = next,
            Progress::Answered(reply) => return reply,
        }
    }
}

/// The request in the hook's binding context.
pub(crate) fn request(run: &Run) -> Value {
    match &run.context {
        BindingContext::Review { review, .. } => review.to_value()["request"].take(),
        other => unreachable!("no review: {other:?}"),
    }
}

/// The end of a run that has written this response.
pub(crate) fn wrote(response: &Value) -> Ended {
    let text = response.to_string();
    let conversion = ["convertedObjects", "failedMessage"]
        .iter()
        .any(|key| response.get(key).is_some());
    let (admission, conversion) = if conversion {
        ("", text.as_str())
    } else {
        (text.as_str(), "")
    };
    Ended::Well(HookResponse::parse(admission, conversion).unwrap())
}
