//! The webhook listeners, and the channel for their questions to the loop.

use std::sync::Arc;

use addon_core::operator::event::{Asked as Question, Event, ReviewId};
use addon_core::operator::policy::Edits;
use addon_core::review::reply::{NoAnswer, Reply};
use addon_core::review::routes::Routes;
use certificates::files::Files;
use certificates::tls::Tls;
use kube_access::Cluster;
use listeners::Loop;
use mailbox::replies::Replies;
use parts::Parts;
use settings::webhooks::WebhookSide;
use settings::{Settings, Work};
use telling::meters::Meters;
use tokio::sync::watch;
use tracing::error;
use webhooks::configurations::ensure::{Side, Source, Webhooks};
use webhooks::configurations::touched;
use webhooks::server::{self, Asked, Listener, Reviews};

use super::Outside;
use super::start::StartError;

/// The margin for the reply: our own answer must arrive before the listener gives up.
const MARGIN: std::time::Duration = std::time::Duration::from_millis(100);

/// Starts the listeners, which open once there is a webhook, and the part that publishes webhooks.
pub(super) fn start(
    settings: &Settings,
    cluster: &Cluster,
    Outside { doors, meters, .. }: &Outside,
    replies: &Replies<Reply>,
    parts: &mut Parts,
) -> Result<Webhooks, StartError> {
    let has_config_map = matches!(settings.work, Work::Modules(_));
    let settings = &settings.webhooks;
    let desk = Arc::new(Desk {
        doors: doors.clone(),
        replies: replies.clone(),
        routes: watch::Sender::default(),
        meters: Arc::clone(meters),
    });
    let admission = listen(
        "the admission webhooks",
        Reviews::Admission,
        &settings.admission,
        &desk,
        parts,
    )?;
    let conversion = listen(
        "the conversion webhooks",
        Reviews::Conversion,
        &settings.conversion,
        &desk,
        parts,
    )?;
    let published = watch::Sender::default();
    // The name contains the namespace, because webhook configurations are cluster-wide and operators in other
    // namespaces have their own.
    let edits = has_config_map.then(|| format!("addon-operator-config.{}", cluster.namespace()));
    let watching = {
        let (cluster, doors, published) = (cluster.clone(), doors.clone(), published.subscribe());
        async move {
            let tell = || async {
                // The loop may have ended.
                let _ = doors.configure(Event::WebhooksTouched).await;
            };
            touched::follow(&cluster, published, tell).await;
        }
    };
    parts.spawn("the watch of the webhook configurations", watching);
    Ok(Webhooks {
        cluster: cluster.clone(),
        configuration: settings.configuration.clone(),
        edits,
        owner: settings.owner.clone(),
        secret: settings.secret.clone(),
        published,
        routes: desk.routes.clone(),
        admission,
        conversion,
    })
}

/// When the API server asks about edits of the ConfigMap: always if a setting names the listener's address, otherwise
/// only while it asks hooks, too, because only then the address is known to work.
pub(super) fn edits(settings: &Settings) -> Edits {
    let Work::Modules(modules) = &settings.work else {
        return Edits::Unasked;
    };
    let config_map = modules.config_map.clone();
    if settings.webhooks.admission.is_set_up {
        Edits::Always { config_map }
    } else {
        Edits::WithHooks { config_map }
    }
}

fn listen(
    name: &'static str,
    reviews: Reviews,
    side: &WebhookSide,
    desk: &Arc<Desk>,
    parts: &mut Parts,
) -> Result<Side, StartError> {
    let tls = Tls::new().map_err(StartError::Tls)?;
    let listener = Listener {
        reviews,
        address: side.listen,
        tls: tls.clone(),
        routes: desk.routes.subscribe(),
        meters: Arc::clone(&desk.meters),
    };
    let (desk, stop) = (Arc::clone(desk), parts.stopping().clone());
    parts.spawn_graceful(name, async move {
        let ask = move |asked| {
            let desk = Arc::clone(&desk);
            async move { desk.ask(asked).await }
        };
        if let Err(error) = server::serve(listener, ask, stop).await {
            error!(server = name, %error, "The server ended");
        }
    });
    let files = Files {
        cert: side.cert.clone(),
        key: side.key.clone(),
        ca: side.ca.clone(),
    };
    let source = if side.is_named {
        Source::Files(files)
    } else {
        Source::of(files)
    };
    Ok(Side::new(side.service.clone(), source, side.client_ca.clone(), tls))
}

/// The sender of questions to the loop.
struct Desk {
    doors: Loop,
    replies: Replies<Reply>,
    /// The webhooks for the listeners.
    routes: watch::Sender<Arc<Routes>>,
    meters: Arc<Meters>,
}

impl Desk {
    async fn ask(&self, asked: Asked) -> Reply {
        let awaited = self.replies.open();
        let within = asked.left().saturating_sub(MARGIN);
        let Asked { path, request, .. } = asked;
        let question = Question { path, request, within };
        let event = Event::ReviewRequested(ReviewId(awaited.number()), question);
        if self.doors.review(event).await.is_err() {
            return Reply::NoAnswer(NoAnswer::Stopping);
        }
        awaited.reply().await.unwrap_or(Reply::NoAnswer(NoAnswer::Stopping))
    }
}
