//! The routes with sample facts. A path begins with the number of modules, as in `/200/operator`; `/hostile/` has texts that try to break the
//! page, and `/standby/` is a replica that does not lead.

use axum::Router;
use page::server::{Access, Role, Source, router};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::facts::Fleet;
use super::sample;

/// All of them. Dropping the sender ends the news.
pub(crate) fn routes() -> (Router, watch::Sender<()>) {
    let (changes, changed) = watch::channel(());
    let stop = CancellationToken::new();
    let mut routes = Router::new();
    let mut add = |name: &str, fleet: Fleet, role: Role| {
        let source = source(fleet, role, changed.clone());
        let router = router(source, Access::Loopback, stop.clone());
        routes = std::mem::take(&mut routes).nest_service(&format!("/{name}"), router);
    };
    for size in [0, 6, 200, 1000] {
        add(&size.to_string(), sample::fleet(size), Role::Leads);
    }
    add("hostile", sample::hostile(), Role::Leads);
    add(
        "standby",
        sample::fleet(0),
        Role::Standby("addon-operator-0".to_owned()),
    );
    (routes, changes)
}

fn source(fleet: Fleet, role: Role, changed: watch::Receiver<()>) -> Source {
    let known = fleet.operator.clone();
    let machinery = sample::machinery(&fleet);
    Source {
        fleet: Box::new(move || {
            let fleet = fleet.clone();
            Box::pin(async move { Ok(fleet) })
        }),
        module: Box::new(|_| Box::pin(async { Ok(Some(sample::detail())) })),
        events: Box::new(|_| Box::pin(async { Ok(sample::events()) })),
        comparison: Box::new(|_, from, to| Box::pin(async move { Ok(sample::comparison(from, to)) })),
        machinery: Box::new(move || {
            let machinery = machinery.clone();
            Box::pin(async move { Ok(machinery) })
        }),
        role: Box::new(move || role.clone()),
        known,
        changed,
    }
}
