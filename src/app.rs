//! x
use crate::settings::{Environment, StartArgs};
use std::process::ExitCode;
pub fn main(_args: &StartArgs, _environment: &Environment) -> ExitCode {
    ExitCode::SUCCESS
}
