//! Makes `module reload` available to the debug socket. Must never do so without modules.

use std::sync::Arc;

use intake::Desk;
use intake::answers::Reloader;
use jobs::editions::Editions;
use settings::{Environment, Settings, Work};

use super::inventory;
use super::shared::Outside;
use crate::dispatch::Tools;

/// Makes reloading available on the debug socket, if there are modules. Returns the desk for other readers of modules.
pub(super) fn offer(
    settings: &Settings,
    environment: &Environment,
    tools: &Arc<Tools>,
    editions: &Editions,
    outside: &Outside,
) -> Option<Arc<Desk>> {
    let Work::Modules(modules) = &settings.work else {
        return None;
    };
    let desk = Arc::new(Desk {
        layout: inventory::layout(modules.as_ref().clone()),
        environment: environment.clone(),
        ground: Arc::clone(&tools.ground),
        editions: editions.clone(),
        doors: outside.doors.clone(),
    });
    outside.reloader.get_or_init(|| Reloader::new(Arc::clone(&desk)));
    Some(desk)
}
