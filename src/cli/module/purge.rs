//! `module purge`: removals that are held, and their confirmation.

use clap::Args;
use command::socket::{Socket, SocketError};
use command::{CommandError, Output, print};
use serde::Deserialize;

use super::super::failure::Refusal;

#[derive(Debug, Args)]
pub(super) struct Purge {
    /// Confirm held removals: their number for all of them, or the names of some
    #[arg(long, value_name = "NUMBER|NAME,NAME", num_args = 0..=1, default_missing_value = "")]
    confirm: Option<String>,
}

/// A held removal, as the socket reports it.
#[derive(Debug, Deserialize)]
struct Held {
    release: String,
    sign: String,
    reason: String,
}

impl Purge {
    pub(super) fn run(self, socket: &Socket, output: Output) -> Result<(), CommandError> {
        let Some(said) = self.confirm else {
            return print(&socket.get(&format!("/module/purge.{}", output.extension()))?);
        };
        if said.is_empty() {
            print(&socket.get("/module/purge.text")?)?;
            return Err(Refusal::Unconfirmed.into());
        }
        match socket.post("/module/purge", &[("confirm", &said)]) {
            Ok(answer) => print(&answer),
            // Only a confirmation that is not carried out is a failure; an empty list is none.
            Err(SocketError::Refused { message, .. }) => Err(Refusal::NotPurged { message }.into()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Why the release of an absent module still exists: its removal is held.
pub(super) fn why(socket: &Socket, release: &str) -> Result<Option<String>, SocketError> {
    let held: Vec<Held> = socket.read("/module/purge.json")?;
    let told = |Held { release, sign, reason }: Held| {
        format!("release: {release}, {sign}\nwaits for: its module, or a person who confirms its removal: {reason}\n")
    };
    Ok(held.into_iter().find(|held| held.release == release).map(told))
}
