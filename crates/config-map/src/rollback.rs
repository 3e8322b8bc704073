//! Puts the sections that hooks saved during a trial back to their earlier texts in the `ConfigMap`, in one write.
//!
//! Must never change a key that people have edited since, nor create a missing `ConfigMap`.

use addon_core::operator::event::Settled;
use addon_core::values::trial_sections::{Return, TrialSections};
use kube::api::PostParams;
use kube_access::Cluster;
use kube_access::error::RequestError;

use super::{note_as_made, present, provenance};

/// The number of attempts if other writers are faster.
const ROUNDS: usize = 5;

/// Puts sections back to their earlier texts. A section that already has its earlier text is not written.
pub(crate) async fn put_back(cluster: &Cluster, name: &str, sections: &TrialSections) -> Result<Settled, RequestError> {
    let api = cluster.config_maps();
    let mut round = 0;
    loop {
        round += 1;
        let found = cluster
            .ask(cluster.attempt("get", "configmaps", name), api.get_opt(name))
            .await?;
        let Some(mut config_map) = found else {
            // The whole ConfigMap was deleted, which counts as an edit of all sections.
            return Ok(Settled {
                edited: sections.keys().map(str::to_owned).collect(),
                ..Settled::default()
            });
        };
        let as_made = provenance(&config_map).is_as_made(config_map.data.get_or_insert_default());
        let data = config_map.data.get_or_insert_default();
        let Return { put_back, left } = sections.give_back(data);
        let settled = Settled {
            put_back: put_back.keys().cloned().collect(),
            edited: left.into_iter().collect(),
            read: None,
        };
        if put_back.is_empty() {
            return Ok(settled);
        }
        for (key, text) in put_back {
            match text {
                Some(text) => data.insert(key, text),
                None => data.remove(&key),
            };
        }
        if as_made {
            note_as_made(&mut config_map);
        }
        let params = PostParams::default();
        let written = cluster.ask(
            cluster.attempt("update", "configmaps", name),
            api.replace(name, &params, &config_map),
        );
        match written.await {
            Ok(config_map) => {
                return Ok(Settled {
                    read: Some(present(&config_map)),
                    ..settled
                });
            }
            // Another writer has changed or deleted the ConfigMap since it was read.
            Err(error) if round < ROUNDS && (error.is_conflict() || error.is_not_found()) => {}
            Err(error) => return Err(error),
        }
    }
}
