//! The tools and the environment of hooks. Must never let a hook use another cluster than the operator.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hooks::relay::{LabelSet, Style};
use jobs::Ground;
use kube_access::Cluster;
use kube_access::kinds::Kinds;

use objects::Patcher;
use settings::{Environment, Settings, Work};
use watches::Monitors;

use super::StartError;
use crate::app::shared::Outside;

/// The tools of the jobs that run hooks.
pub(in crate::app) fn hook_tools(
    settings: &Settings,
    ground: &Arc<Ground>,
    monitors: Monitors,
    kinds: Kinds,
    outside: &Outside,
) -> Result<hooks::Tools, StartError> {
    Ok(hooks::Tools {
        monitors,
        patcher: Patcher::new(ground.cluster.patching(&settings.kube), kinds, hooks::filters::jq),
        meters: Arc::clone(&outside.meters),
        hooks_dir: hooks_dir(settings)?,
        script_deadline: settings.hooks.script_timeout,
        relay: relay(settings),
        recorder: outside.recorder.clone(),
        past: outside.past.clone(),
        ground: Arc::clone(ground),
    })
}

/// The directory of hooks without modules, with links resolved. Hooks use it, or a folder below it, as their working
/// directory.
fn hooks_dir(settings: &Settings) -> Result<Option<PathBuf>, StartError> {
    let Work::Hooks(dir) = &settings.work else {
        return Ok(None);
    };
    let resolved = fs_err::canonicalize(dir);
    resolved.map(Some).map_err(|source| StartError::HooksDir { source })
}

/// The settings for the output of hooks in the log.
fn relay(settings: &Settings) -> Style {
    Style {
        labels: match settings.work {
            Work::Modules(_) => LabelSet::Modules,
            Work::Hooks(_) => LabelSet::HooksAlone,
        },
        output: settings.hooks.output,
    }
}

/// The environment of hooks: that of the operator. If flags name another cluster than `KUBECONFIG` does, the variable
/// is replaced, so that hooks use the operator's cluster.
pub(in crate::app) fn hook_environment(
    settings: &Settings,
    environment: &Environment,
    cluster: &Cluster,
) -> Vec<(OsString, OsString)> {
    let mut variables = environment.inherited();
    if let Some(kubeconfig) = cluster.kubeconfig()
        && !leads_to_our_cluster(settings, environment)
    {
        variables.retain(|(name, _)| name != "KUBECONFIG");
        variables.push(("KUBECONFIG".into(), kubeconfig.into()));
    }
    variables
}

/// Whether a kubectl in this environment uses the operator's cluster.
pub(super) fn leads_to_our_cluster(settings: &Settings, environment: &Environment) -> bool {
    let kube = &settings.kube;
    let said = match (environment.get("KUBECONFIG"), environment.get("HOME")) {
        (Some(list), _) => std::env::split_paths(list).filter(|path| path.is_file()).collect(),
        (None, Some(home)) => vec![PathBuf::from(home).join(".kube/config")],
        (None, None) => Vec::new(),
    };
    kube.context.is_none() && kube.server.is_none() && (kube.config.is_empty() || kube.config == said)
}
