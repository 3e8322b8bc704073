//! Reads the modules directories again before a module is removed because no source names it any more. Never applies
//! the result: the core compares it with the first reading.

use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::module::outline::Outline;
use disk::Layout;
use tokio::time::Instant;

use super::Tools;

/// The least time between the two readings. A copy into the directories that is under way changes them in this time.
const APART: Duration = Duration::from_secs(3);

/// The modules directories.
#[derive(Debug, Clone)]
pub struct Directories {
    /// The rules for reading the directories.
    pub layout: Layout,
    /// The time at which the directories were read at the start.
    pub read: Instant,
}

pub(super) async fn read_again(tools: &Tools) -> Result<Outline, Failure> {
    let missing = || {
        Failure::new(
            Class::Defect,
            "the modules directories were to be read where there are hooks alone",
        )
    };
    let Directories { layout, read } = tools.directories.as_ref().ok_or_else(missing)?;
    tokio::time::sleep_until(*read + APART).await;
    let layout = layout.clone();
    Ok(blocking::run(move || disk::read(&layout).outline()).await)
}
