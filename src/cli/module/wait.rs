//! `module wait`: waits until modules are healthy, ready or gone, for scripts.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use command::socket::Socket;
use command::{CommandError, print};
use settings::duration;
use tokio::runtime::Builder;

use super::super::failure::Refusal;
use super::status::{self, Status};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(super) struct Wait {
    /// Names of the modules
    #[arg(required = true, value_name = "MODULE")]
    modules: Vec<String>,
    /// State that all of them have to reach
    #[arg(long = "for", value_enum, value_name = "STATE", default_value = "healthy")]
    until: Until,
    /// Longest time to wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = time)]
    timeout: Duration,
}

/// The state to wait for. The variants need no help text of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Until {
    Healthy,
    Ready,
    Gone,
}

fn time(text: &str) -> Result<Duration, &'static str> {
    duration::parse(text).ok_or("should be a duration such as 90s or 5m")
}

impl Until {
    fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Ready => "ready",
            Self::Gone => "gone",
        }
    }

    fn is_reached(self, status: &Status) -> bool {
        match self {
            Self::Healthy => status.is_healthy(),
            Self::Ready => status.is_ready(),
            Self::Gone => status.is_gone(),
        }
    }
}

impl Wait {
    pub(super) fn run(self, socket: &Socket) -> Result<(), CommandError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(CommandError::Watch)?;
        let begun = Instant::now();
        let mut left = self.modules;
        loop {
            let all = status::read(socket)?;
            let mut lacking = Vec::new();
            for name in left {
                let found = all.iter().find(|status| status.name == name);
                match found {
                    None if self.until != Until::Gone => return Err(Refusal::NoSuchModule { name }.into()),
                    Some(status) if !self.until.is_reached(status) => lacking.push(status),
                    Some(_) | None => print(&format!("module {name} is {}\n", self.until.word()))?,
                }
            }
            if lacking.is_empty() {
                return Ok(());
            }
            if begun.elapsed() >= self.timeout {
                let told = lacking.iter().map(|status| status.told());
                let (state, modules) = (self.until.word(), told.collect::<Vec<_>>().join("; "));
                return Err(Refusal::NotReached { state, modules }.into());
            }
            left = lacking.iter().map(|status| status.name.clone()).collect();
            runtime.block_on(async { tokio::time::sleep(PAUSE).await });
        }
    }
}

impl Status {
    /// Whether the last run succeeded.
    fn is_ready(&self) -> bool {
        self.enabled && self.state == "Ready"
    }

    /// Whether the module is ready and its objects are healthy, or it has no release.
    fn is_healthy(&self) -> bool {
        self.is_ready() && (self.health.is_healthy() || self.release.is_none())
    }

    /// Whether the module is off and has no release.
    fn is_gone(&self) -> bool {
        !self.enabled && self.state == "Disabled" && self.release.is_none()
    }

    /// The state in one line, for an error.
    fn told(&self) -> String {
        let (name, state, health) = (&self.name, self.standing(), self.health.cell().1);
        match self.trouble() {
            trouble if trouble.is_empty() => format!("module {name} is {state}, health {health}"),
            trouble => format!("module {name} is {state}, health {health}: {trouble}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::status::tests::status;
    use super::*;

    #[test]
    fn a_module_is_healthy_once_it_is_ready_and_its_objects_are_or_it_has_none() {
        let release = json!({"revision": 1, "deployed": 0});
        for (more, expected) in [
            (json!({"state": "Ready", "health": "Healthy", "release": release}), true),
            (
                json!({"state": "Ready", "health": "RollingOut", "release": release}),
                false,
            ),
            (
                json!({"state": "Ready", "health": "Unhealthy", "release": release}),
                false,
            ),
            (
                json!({"state": "Ready", "health": "Unknown", "release": release}),
                false,
            ),
            (json!({"state": "Ready", "health": "Unknown"}), true),
            (
                json!({"state": "Releasing", "health": "Healthy", "release": release}),
                false,
            ),
        ] {
            assert_eq!(Until::Healthy.is_reached(&status(&more)), expected, "{more}");
        }
    }

    #[test]
    fn a_module_is_gone_once_it_is_off_and_has_no_release() {
        let release = json!({"revision": 1, "deployed": 0});
        for (more, expected) in [
            (json!({"state": "Disabled", "enabled": false}), true),
            (json!({"state": "Disabled", "enabled": true}), false),
            (json!({"state": "Deleting", "enabled": false}), false),
            (
                json!({"state": "Disabled", "enabled": false, "release": release}),
                false,
            ),
        ] {
            assert_eq!(Until::Gone.is_reached(&status(&more)), expected, "{more}");
        }
    }
}
