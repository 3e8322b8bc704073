//! Opens the debug routes: on the socket, and over TCP if a setting asks for it.
//!
//! Must never show a client of the TCP address data that only the user of the socket may see.

use std::sync::Arc;

use settings::{Program, Settings, ShownSecrets};
use telling::parameters::Parameters;
use telling::telemetry::LevelHandle;

use super::start::{self, StartError};
use super::{Outside, Parts, serve};
use crate::serve::debug::{self, Debug, Disclosure, Powers};

pub(super) async fn listen(
    settings: &Settings,
    levels: LevelHandle,
    parts: &mut Parts,
    outside: &Outside,
) -> Result<debug::unix::SocketFile, StartError> {
    let parameters = Arc::new(parameters(settings, levels, outside));
    let routes = |asked_for, powers| {
        debug::router(Debug {
            doors: outside.doors.clone(),
            parameters: Arc::clone(&parameters),
            monitors: Arc::clone(&outside.monitors),
            lookout: Arc::clone(&outside.lookout),
            charts: Arc::clone(&outside.charts),
            planner: Arc::clone(&outside.planner),
            reloader: Arc::clone(&outside.reloader),
            sources: Arc::clone(&outside.sources),
            recorder: outside.recorder.clone(),
            channel: outside.channel(),
            standing: outside.standing.subscribe(),
            secrets: outside.secrets.clone(),
            disclosure: match settings.secrets {
                ShownSecrets::Always => Disclosure::Always,
                ShownSecrets::AskedFor => asked_for,
            },
            powers,
        })
    };
    let (listener, socket) = debug::unix::bind(&settings.debug_socket).await?;
    let at_socket = routes(Disclosure::OnRequest, Powers::Confirming);
    if let Some(address) = settings.debug_http {
        let listener = start::bind(address, "the debug routes").await?;
        let routes = routes(Disclosure::Never, Powers::Looking);
        serve(parts, "the server of the debug routes", listener, routes);
    }
    serve(parts, "the server of the debug socket", listener, at_socket);
    parts.spawn("the expiry of parameters", async move { parameters.expire().await });
    Ok(socket)
}

fn parameters(settings: &Settings, levels: LevelHandle, outside: &Outside) -> Parameters {
    let parameters = Parameters::new(settings.log.level, move |level| levels.set(level));
    match settings.program() {
        Program::AddonOperator => {
            let events = outside.events.clone();
            parameters.with_config_events(move |told| events.set(told))
        }
        Program::ShellOperator => parameters,
    }
}
