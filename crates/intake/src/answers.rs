//! `module reload`: a person asks that the directory of one module is read again.
//!
//! Must never answer that files are taken up before all checks of them have passed.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use listeners::Unanswered;
use listeners::reply::{bad_request, still_starting, text};
use names::ModuleName;
use tokio::sync::Mutex;

use crate::{Desk, Reloaded, Unfit};

/// Reads directories of modules again, one at a time.
#[derive(Debug)]
pub struct Reloader {
    desk: Arc<Desk>,
    turn: Mutex<()>,
}

impl Reloader {
    pub fn new(desk: Arc<Desk>) -> Self {
        let turn = Mutex::default();
        Self { desk, turn }
    }

    async fn reload(&self, module: &ModuleName) -> Result<Result<Reloaded, Unfit>, Unanswered> {
        let _turn = self.turn.lock().await;
        self.desk.reload(module).await
    }
}

/// Reads the directory of a module again.
pub async fn reload(reloader: Option<&Reloader>, module: &str) -> Response {
    let name = match ModuleName::parse(module) {
        Ok(name) => name,
        Err(error) => return bad_request(error),
    };
    let Some(reloader) = reloader else {
        return still_starting().into_response();
    };
    match reloader.reload(&name).await {
        Ok(Ok(reloaded)) => text(StatusCode::OK, told(&name, &reloaded)).into_response(),
        Ok(Err(unfit)) => bad_request(unfit),
        Err(unanswered) => unanswered.into_response(),
    }
}

fn told(name: &ModuleName, Reloaded { dir, warnings }: &Reloaded) -> String {
    let mut told = String::new();
    for warning in warnings {
        let _ = writeln!(told, "{warning}");
    }
    let dir = dir.display();
    let _ = writeln!(
        told,
        "module '{name}' begins a new life with the files in {dir}, as soon as no step of it is running"
    );
    told
}
