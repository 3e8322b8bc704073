//! Readers: parts of ours that read all objects of a selection, after each list and after each event of its watch.
//!
//! A hook is told of changes; a reader is told of states. Its watch lists anew after each break, so that a reader never
//! takes an old state for the present one. Must never wait: the watch sends what a reader answers.

use addon_core::object::json::Json;
use addon_core::operator::event::Event;
use tokio::sync::mpsc;

use super::trouble::Trouble;

/// A reader of watched objects, which the head of this file describes.
pub trait Reader: Send + Sync {
    /// The objects as they are after an answer of the API server, as events for the loop. The error says why the answer
    /// cannot be used; then the objects are listed again.
    fn read(&self, answer: Answer<'_>, objects: &[Json]) -> Result<Vec<Event>, String>;

    /// The channel on which the events go to the loop.
    fn door(&self) -> &mpsc::Sender<Event>;

    /// The watch fails, or works again.
    fn hear(&self, condition: Condition<'_>);
}

/// An answer of the API server, with its version.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// A complete list.
    List(&'a str),
    /// The change of one object, at the given version.
    Change(&'a str),
    /// No object has changed up to the given version.
    Mark(&'a str),
}

/// The condition of a watch.
#[derive(Debug, Clone, Copy)]
pub enum Condition<'a> {
    /// A list is not answered for unusually long.
    Overdue,
    /// An attempt to watch failed; it is repeated.
    Fails {
        trouble: &'a Trouble,
        /// Whether this is the first failure in a row.
        first: bool,
    },
    /// The watch has shown that it works.
    Works,
}
