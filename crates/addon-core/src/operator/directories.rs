//! The directories on disk: whether they were read completely, the outlines of their values files, and whether a second
//! reading gives the same result.
//!
//! The directories must never count as complete while nothing is known about them.

mod rereading;
mod sources;

pub(super) use self::rereading::Rereading;
pub(super) use self::sources::Sources;
use crate::module::outline::{Outline, ValuesFiles};

/// The directories of modules and of their values.
#[derive(Debug, Clone, Default)]
pub(super) struct Directories {
    known: bool,
    complete: bool,
    sources: Sources,
    rereading: Rereading,
}

impl Directories {
    /// Notes the first reading. `complete`: the directories were read to their end and are not empty.
    pub(super) fn found(&mut self, outline: Outline, files: ValuesFiles, complete: bool) {
        self.known = true;
        self.complete = complete;
        self.rereading.begin(outline);
        self.sources.found(files);
    }

    /// Whether the directories have been read.
    pub(super) fn are_known(&self) -> bool {
        self.known
    }

    /// Whether every directory was read to its end and none of its files is lost.
    pub(super) fn are_complete(&self) -> bool {
        self.complete
    }

    /// Notes that part of the directories cannot be used or is lost.
    pub(super) fn fall_short(&mut self) {
        self.complete = false;
    }

    pub(super) fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(super) fn sources_mut(&mut self) -> &mut Sources {
        &mut self.sources
    }

    pub(super) fn rereading(&self) -> &Rereading {
        &self.rereading
    }

    pub(super) fn rereading_mut(&mut self) -> &mut Rereading {
        &mut self.rereading
    }
}
