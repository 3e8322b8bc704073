//! Remarks about a release for the person who hands it over.
//!
//! Must never tell a value.

use std::collections::BTreeMap;

use names::ModuleName;

use crate::chart::Chart;
use crate::outline::{Outline, Place};

/// The place of global values in templates.
const GLOBAL: &[u8] = b".Values.global";

/// The modules that the release needs, and remarks about those that are no modules.
pub fn needs(outline: &Outline, done: &BTreeMap<Place, ModuleName>) -> (Vec<ModuleName>, Vec<String>) {
    let (mut needs, mut remarks) = (Vec::new(), Vec::new());
    for place in &outline.needs {
        match done.get(place) {
            Some(module) => needs.push(module.clone()),
            None => remarks.push(format!("it depends on '{place}', which is not taken over")),
        }
    }
    (needs, remarks)
}

/// About the CRDs in a chart, and about global values: helm lets those of the module's own chart, which are the operator's,
/// override those of the chart inside.
pub fn of_chart(chart: &Chart) -> Vec<String> {
    let (mut remarks, name) = (Vec::new(), &chart.name);
    if chart.crd_files().count() > 0 {
        remarks.push(format!(
            "the CRDs stay as they are; the operator updates them once you copy the files of `crds` from charts/{name} into `crds` of the module"
        ));
    }
    let asks = |bytes: &[u8]| bytes.windows(GLOBAL.len()).any(|part| part == GLOBAL);
    if chart.files.values().any(|bytes| asks(bytes)) {
        remarks.push(
            "its chart reads `.Values.global`, which the operator's global values override; those of its ConfigMap were compared"
                .to_owned(),
        );
    }
    remarks
}
