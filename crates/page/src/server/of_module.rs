//! The routes of one module: its view, its Events, and the difference of two revisions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::HeaderMap;
use axum::response::Response;

use super::{Inner, Page, Unavailable};
use crate::facts::Fleet;
use crate::render::Template;
use crate::view::module::ModuleView;
use crate::view::records::{ComparisonView, EventsView};

pub(super) async fn module(State(page): State<Page>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let making = async {
        let fleet = page.fleet().await?;
        let detail = (page.source.module)(name.clone()).await?;
        let found = fleet.modules.iter().find(|module| module.name == name);
        let (Some(module), Some(detail)) = (found, detail) else {
            return Err(Unavailable::NoSuchModule(name.clone()));
        };
        let view = ModuleView::of(&fleet, module, &detail);
        page.written(Template::Module, move || view).await
    };
    page.answer(&format!("modules/{name}"), &headers, making).await
}

pub(super) async fn events(State(page): State<Page>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let making = async {
        let fleet = page.fleet_with(&name).await?;
        let _turn = page.reading.acquire().await;
        let events = (page.source.events)(name.clone()).await?;
        let view = EventsView::of(&fleet.operator, &name, &events);
        page.written(Template::Events, move || view).await
    };
    let path = format!("modules/{name}/events");
    page.answer_from(&page.records, &path, &headers, making).await
}

pub(super) async fn comparison(
    State(page): State<Page>,
    Path((name, from, to)): Path<(String, u32, u32)>,
    headers: HeaderMap,
) -> Response {
    let making = async {
        let fleet = page.fleet_with(&name).await?;
        let _turn = page.reading.acquire().await;
        let comparison = (page.source.comparison)(name.clone(), from, to).await?;
        let view = ComparisonView::of(&fleet.operator, &name, &comparison);
        page.written(Template::Comparison, move || view).await
    };
    let path = format!("modules/{name}/revisions/{from}/{to}");
    page.answer_from(&page.records, &path, &headers, making).await
}

impl Inner {
    /// The facts of the overview, if the module is one of them.
    async fn fleet_with(&self, name: &str) -> Result<Arc<Fleet>, Unavailable> {
        let fleet = self.fleet().await?;
        let is_known = fleet.modules.iter().any(|module| module.name == name);
        is_known
            .then_some(fleet)
            .ok_or_else(|| Unavailable::NoSuchModule(name.to_owned()))
    }
}
