//! The kinds that releases use and that a version of Kubernetes calls deprecated or does not have. Reads the record of each
//! deployed release, and renders the charts of the modules concerned. Must never call a kind fine that was not looked at.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::query::{NoSuchModule, ReleaseValuesQuery};
use addon_core::release::kinds::{self, KindName, KubeVersion};
use axum::http::StatusCode;
use futures::stream::{self, StreamExt as _};
use helm_yaml::yaml;
use kube_access::apis::Apis;
use listeners::reply::{Format, Reply, document, still_starting, text};
use listeners::{Loop, Unanswered};
use names::ModuleName;
use objects::key::flat;
use report::apis::{ApisAnswer, ChartOfNow, OutdatedRow, UnreadRelease};

use super::charts::Charts;
use super::render::Look;
use crate::outdated::{Uses, kinds_in};
use crate::revisions::unserved;
use crate::revisions::{self, Revision};

/// The number of records that are in memory at the same time.
const AT_ONCE: usize = 4;

/// The outdated kinds for the given version of Kubernetes, or for the running version if none is given.
pub async fn outdated_kinds(
    doors: &Loop,
    charts: Option<&Charts>,
    format: Format,
    target: Option<&str>,
) -> Result<Reply, Unanswered> {
    let target: Option<KubeVersion> = match target.map(str::parse).transpose() {
        Ok(target) => target,
        Err(error) => return Ok(text(StatusCode::BAD_REQUEST, format!("{error}\n"))),
    };
    let Some(charts) = charts else {
        return Ok(still_starting());
    };
    let unable = |error: String| text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"));
    let apis = match charts.cluster.apis().await {
        Ok(apis) => apis,
        Err(failure) => return Ok(unable(failure.to_string())),
    };
    let running = match apis.version.parse() {
        Ok(running) => running,
        Err(error) => return Ok(unable(format!("the API server's version: {error}"))),
    };
    let deployed = match revisions::deployed_revisions(&charts.cluster).await {
        Ok(deployed) => deployed,
        Err(error) => return Ok(unable(error.to_string())),
    };
    let target = target.unwrap_or(running);
    let (read, unread) = records(charts, deployed).await;
    let mut report = judged(charts, &apis, (target, running), &read).await;
    report.unread = unread;
    look_at_charts(doors, charts, &mut report.outdated).await?;
    Ok(document(format, &report))
}

/// Notes in each row whether the present chart renders the kind of the row.
async fn look_at_charts(doors: &Loop, charts: &Charts, rows: &mut [OutdatedRow]) -> Result<(), Unanswered> {
    let mut rendered: BTreeMap<String, Result<Option<BTreeSet<KindName>>, String>> = BTreeMap::new();
    for row in rows {
        if !rendered.contains_key(&row.module) {
            let kinds = rendered_kinds(doors, charts, &row.module).await?;
            rendered.insert(row.module.clone(), kinds);
        }
        let kind = KindName::new(&row.api_version, &row.kind);
        (row.chart, row.chart_error) = match &rendered[&row.module] {
            Ok(Some(kinds)) if kinds.contains(&kind) => (ChartOfNow::Renders, None),
            Ok(Some(_)) => (ChartOfNow::Cured, None),
            Ok(None) => (ChartOfNow::Absent, None),
            Err(error) => (ChartOfNow::Unknown, Some(error.clone())),
        };
    }
    Ok(())
}

/// The kinds that a module's chart renders to, helm hooks included; `None` if there is no module of that name.
async fn rendered_kinds(
    doors: &Loop,
    charts: &Charts,
    name: &str,
) -> Result<Result<Option<BTreeSet<KindName>>, String>, Unanswered> {
    let Ok(module) = ModuleName::parse(name) else {
        return Ok(Ok(None));
    };
    let values = match listeners::ask(doors, ReleaseValuesQuery(module.clone())).await? {
        Ok(values) => values,
        Err(NoSuchModule) => return Ok(Ok(None)),
    };
    let rendered = charts.renderer.look(module, values, Look::Whole).await;
    Ok(match rendered.map_err(|failure| failure.to_string()) {
        Ok(manifest) => match yaml::documents_v2(&manifest) {
            Ok(documents) => Ok(Some(kinds_in(documents.into_iter().flat_map(flat)))),
            Err(error) => Err(format!("the rendered chart is not YAML: {error}")),
        },
        Err(error) => Err(error),
    })
}

/// The kinds in the records of the operator's releases, and the records that cannot be read.
async fn records(charts: &Charts, deployed: Vec<Revision>) -> (Vec<(Revision, Uses)>, Vec<UnreadRelease>) {
    let ours = deployed.into_iter().filter(|revision| revision.newest.ours);
    let answers = stream::iter(ours).map(|revision| async move {
        let uses = unserved::uses(&charts.cluster, &revision).await;
        (revision, uses)
    });
    let answers: Vec<_> = answers.buffer_unordered(AT_ONCE).collect().await;
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    for (revision, uses) in answers {
        match uses {
            Ok(uses) => read.push((revision, uses)),
            Err(error) => unread.push(UnreadRelease {
                release: revision.release,
                error: error.to_string(),
            }),
        }
    }
    read.sort_by(|(a, _), (b, _)| a.release.cmp(&b.release));
    unread.sort_by(|a, b| a.release.cmp(&b.release));
    (read, unread)
}

/// The outdated kinds, without a look at the charts. Kinds that are gone come first.
async fn judged(
    charts: &Charts,
    apis: &Apis,
    (target, running): (KubeVersion, KubeVersion),
    read: &[(Revision, Uses)],
) -> ApisAnswer {
    let mut all = Uses::new();
    for (kind, used) in read.iter().flat_map(|(_, uses)| uses) {
        all.entry(kind.clone()).or_insert_with(|| used.clone());
    }
    let is_running = target == running;
    let served = if is_running {
        let warnings = crate::outdated::warnings(&charts.cluster, &all, apis).await;
        crate::outdated::served(&charts.cluster, &all, &warnings, apis).await
    } else {
        BTreeMap::new()
    };
    let mut outdated = Vec::new();
    for (revision, uses) in read {
        for (kind, used) in uses {
            outdated.extend(
                kinds::judge(kind, target, served.get(kind)).map(|outdated| OutdatedRow {
                    module: revision.release.clone(),
                    release: revision.release.clone(),
                    revision: revision.newest.revision,
                    api_version: kind.api_version.clone(),
                    kind: kind.kind.clone(),
                    objects: used.objects,
                    outdated,
                    chart: ChartOfNow::Unknown,
                    chart_error: None,
                }),
            );
        }
    }
    outdated.sort_by_key(|row| row.outdated.state);
    ApisAnswer {
        server: apis.version.clone(),
        target,
        is_running,
        newest_known: kinds::NEWEST,
        releases: read.len(),
        kinds: all.len(),
        outdated,
        unread: Vec::new(),
    }
}
