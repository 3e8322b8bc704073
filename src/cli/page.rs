//! `page`: forwards a port of this machine to the page of the pod that leads, and opens a browser.
//!
//! Must never listen on another address than loopback.

use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use command::outside::OutsideError;
use command::{Caller, CommandError, Hinted, Target, print, reach};
use kube_access::Cluster;
use kube_access::pods::PodError;
use settings::Environment;
use thiserror::Error;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::ctrl_c;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// The port of the page in a pod that declares none by its name.
const USUAL: u16 = 9655;
/// The name of the port in the pod of our chart.
const NAME: &str = "page";
/// The interval in which the command asks whether another pod leads by now.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct Page {
    /// Port of this machine; without it 9655, or any other one if that is taken
    #[arg(long, value_name = "NUMBER")]
    port: Option<u16>,
    /// Print the address and open no browser
    #[arg(long)]
    no_browser: bool,
    #[command(flatten)]
    target: Target,
}

/// Why the page cannot be opened.
#[derive(Debug, Error)]
enum Unopened {
    #[error("cannot listen on port {port} of this machine")]
    Listen { port: u16, source: io::Error },
}

impl Hinted for Unopened {
    fn hints(&self) -> Vec<String> {
        vec!["--port names another port".to_owned()]
    }
}

/// The pod that leads, and the port of its page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    pod: String,
    port: u16,
}

impl Page {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = self.target.start_args(None);
        let (_, runtime, cluster) = reach::with_runtime(&args, caller.environment)?;
        let ended = runtime.block_on(async {
            tokio::select! {
                ended = self.serve(&cluster, caller) => ended,
                _ = ctrl_c() => Ok(()),
            }
        });
        runtime.shutdown_background();
        ended
    }

    async fn serve(&self, cluster: &Cluster, caller: &Caller<'_>) -> Result<(), CommandError> {
        let find = || find(cluster, caller, self.target.pod.as_deref());
        let mut place = find().await.map_err(OutsideError::Pod)?;
        let listener = self.listen().await?;
        let address = listener
            .local_addr()
            .map_err(|source| Unopened::Listen { port: 0, source })?;
        print(&format!("http://{address}/\n"))?;
        tell(&format!("the page of pod '{}'; Ctrl-C ends the command", place.pod));
        if !self.no_browser {
            open(&format!("http://{address}/"), caller.environment);
        }
        let (mut connections, mut looks) = (JoinSet::new(), interval(LOOK));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    connections.spawn(forward(cluster.clone(), place.clone(), stream));
                },
                // The result of a connection is told by its task.
                Some(_) = connections.join_next() => {}
                _ = looks.tick() => match find().await {
                    Ok(now) if now != place => {
                        tell(&format!("pod '{}' leads now", now.pod));
                        place = now;
                        // Browsers connect again, and reach the new leader.
                        connections.abort_all();
                    }
                    // Without an answer, the pod of before is as good as any.
                    Ok(_) | Err(_) => {}
                },
            }
        }
    }

    async fn listen(&self) -> Result<TcpListener, Unopened> {
        let bind = async |port| {
            let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
            bound.map_err(|source| Unopened::Listen { port, source })
        };
        match self.port {
            Some(port) => bind(port).await,
            None => match bind(USUAL).await {
                Ok(listener) => Ok(listener),
                Err(_) => bind(0).await,
            },
        }
    }
}

/// The pod that leads: the only one, or the holder of the lease, or the one that a flag names.
async fn find(cluster: &Cluster, caller: &Caller<'_>, pod: Option<&str>) -> Result<Place, PodError> {
    let (name, lease) = (caller.program.name(), caller.program.lease());
    let pod = cluster.find_program(name, lease, pod).await?.pod;
    let port = cluster.port_named(&pod, NAME).await?.unwrap_or(USUAL);
    Ok(Place { pod, port })
}

async fn forward(cluster: Cluster, place: Place, mut here: TcpStream) {
    match cluster.forward(&place.pod, place.port).await {
        // A connection that breaks is opened again by the browser.
        Ok(mut there) => drop(copy_bidirectional(&mut here, &mut there).await),
        Err(error) => tell(&report::Chain(&error).to_string()),
    }
}

fn tell(text: &str) {
    // Without standard error nobody listens.
    drop(writeln!(io::stderr(), "{text}"));
}

/// Opens a browser, if this machine has a desktop.
fn open(address: &str, environment: &Environment) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| environment.get(name).is_some());
    let program = match (cfg!(target_os = "macos"), has_desktop) {
        (true, _) => "open",
        (false, true) => "xdg-open",
        (false, false) => return,
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the browser belongs to the person and outlives this command"
    )]
    let mut opener = Command::new(program);
    opener
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if opener.spawn().is_err() {
        tell(&format!("no browser is opened: {program} is not here"));
    }
}
