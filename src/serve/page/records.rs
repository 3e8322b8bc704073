//! The facts of the page that are read from the API server when a person looks: Events, and the difference of two revisions.
//!
//! Must never be asked for by a view that follows the news: each answer costs several requests.

use std::time::Duration;

use page::facts::{Change, Comparison, Event, FieldChange};
use page::server::Unavailable;
use plan::document::{ObjectAct, ObjectPlan};
use plan::revisions;
use releases::events::{self, Told};
use report::Report;
use serde_json::Value;
use tokio::time::timeout;

use super::Facts;

/// The longest wait for the API server.
const PATIENCE: Duration = Duration::from_secs(10);

impl Facts {
    /// The Events about a module, the newest first.
    pub(super) async fn events(self, module: String) -> Result<Vec<Event>, Unavailable> {
        let cluster = &self.charts()?.cluster;
        let about = events::about(cluster, &module, &self.known.config_map);
        let told = self.in_time(about).await?;
        Ok(self.masked(told.into_iter().rev().map(event).collect()))
    }

    /// The difference of two revisions of a module's release.
    pub(super) async fn comparison(self, module: String, from: u32, to: u32) -> Result<Comparison, Unavailable> {
        let cluster = &self.charts()?.cluster;
        let between = revisions::between(cluster, &module, from, Some(to));
        let compared = self.in_time(between).await?;
        Ok(self.masked(Comparison {
            from: compared.from,
            to: compared.to,
            changes: compared.objects.into_iter().map(change).collect(),
        }))
    }

    async fn in_time<T, E: std::error::Error>(
        &self,
        asked: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Unavailable> {
        match timeout(PATIENCE, asked).await {
            Ok(Ok(told)) => Ok(told),
            Ok(Err(error)) => {
                let text = Report::new(&error).chain().to_owned();
                Err(Unavailable::Unread(self.secrets.masked(&text).into_owned()))
            }
            Err(_) => Err(Unavailable::Unread(format!(
                "the API server did not answer within {PATIENCE:?}"
            ))),
        }
    }
}

fn event(told: Told) -> Event {
    Event {
        last: told.last.as_second(),
        is_warning: told.weight == "Warning",
        reason: told.reason,
        object: told.object,
        message: told.message,
        count: u32::try_from(told.count).unwrap_or(1),
    }
}

fn change(object: ObjectPlan) -> Change {
    let ObjectPlan {
        kind, namespace, name, ..
    } = object;
    let place = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let json = |value: Option<Value>| value.map(|value| value.to_string()).unwrap_or_default();
    let fields = object.fields.into_iter().map(|field| FieldChange {
        path: field.path,
        before: json(field.before),
        after: json(field.after),
    });
    let act = match object.act {
        ObjectAct::Create => "new",
        ObjectAct::Delete => "gone",
        _ => "changed",
    };
    Change {
        act: act.to_owned(),
        object: format!("{kind} {place}{name}"),
        fields: fields.collect(),
    }
}
