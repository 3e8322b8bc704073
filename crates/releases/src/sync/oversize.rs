//! Explains why the record of a release does not fit into a Secret: helm tells neither its size nor what is in it.

use addon_core::failure::{Class, Failure};
use disk::record::{RecordSize, SECRET_LIMIT};

use super::Sync;
use super::brake::objects_of;
use objects::key;

/// The API server's words for a Secret that is too large, in helm's error.
const TOO_LONG: &str = "Too long: may not be more than 1048576 bytes";

impl Sync<'_> {
    /// The failure of an upgrade, with the size and the largest parts of the record if that is the reason.
    pub(super) async fn explain_size(&mut self, failure: Failure) -> Failure {
        if !failure.report.contains(TOO_LONG) {
            return failure;
        }
        if self.manifest.is_empty()
            && let Ok(manifest) = self.render().await
        {
            self.manifest = manifest;
        }
        let objects = objects_of(&self.facts.release, &self.manifest).unwrap_or_default();
        let (dir, kind) = (self.chart.dir.to_owned(), self.chart.kind);
        let measure = move || {
            let named = objects
                .into_iter()
                .filter_map(|object| Some((key::key_of(&object)?.to_string(), object.to_string())));
            RecordSize::of(&dir, kind, named)
        };
        match blocking::run(measure).await {
            Ok(size) => told(&self.facts.release, &size),
            Err(_) => failure,
        }
    }
}

fn told(release: &str, size: &RecordSize) -> Failure {
    let report = format!(
        "helm's record of release '{release}' takes about {} KiB, and a Secret holds {}: helm stores the chart with all its \
         files in it. The largest: {}",
        size.all.div_ceil(1 << 10),
        SECRET_LIMIT >> 10,
        size.largest()
    );
    Failure::new(Class::Invalid, report).hint("name files that no template reads in the chart's .helmignore")
}
