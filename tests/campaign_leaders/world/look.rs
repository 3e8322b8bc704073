//! Checks of a world's state. They read the API server and its audit log, and ask the operators only whether they lead.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use fs_err as fs;
use serde_json::Value;
use testbed::audit::{Record, Records};
use testbed::reader::Only;

use super::World;
use super::load::{COPY, FAIR, PAGES};
use crate::cluster;

pub(super) const LEASE_NAME: &str = "addon-operator-leader-election";
/// The number of revisions that helm keeps of each release.
const HISTORY: u32 = 10;

/// The revisions of all releases with their statuses.
pub(super) type Revisions = BTreeMap<String, BTreeMap<u32, String>>;

/// The last writer of the lease according to the audit log.
#[derive(Debug, Default)]
pub(super) struct Tenure(Option<String>);

impl Tenure {
    /// The writes of a replica after another one has written the lease, in the order in which the requests arrived.
    fn late(&mut self, records: Records) -> Records {
        let mut records = records
            .mutating()
            .that(|record| record.succeeded() && !is_question(record));
        records.0.sort_by(|one, other| one.time.cmp(&other.time));
        records.that(|record| {
            let is_lease = record.resource == "leases" && record.name == LEASE_NAME;
            if is_lease {
                self.0 = Some(record.user.clone());
            }
            !is_lease && self.0.as_ref() != Some(&record.user)
        })
    }
}

/// Whether the request is a review that is sent as a `create` and writes nothing.
fn is_question(record: &Record) -> bool {
    ["authorization.k8s.io", "authentication.k8s.io"].contains(&record.group.as_str())
}

impl World {
    /// Checks that everything that people want is applied.
    pub(super) fn in_force(&self) -> anyhow::Result<()> {
        let words = self.load.words();
        let releases = cluster::releases(&self.namespace)?;
        let is_good = |name: &str| {
            releases
                .get(name)
                .is_some_and(|release| release.is_deployed() && release.ours)
        };
        ensure!(
            releases.len() == words.len() && words.keys().all(|name| is_good(name)),
            "releases of {:?} should be deployed: {}",
            words.keys(),
            cluster::shown(&releases)
        );
        let pages = self.words_of("page")?;
        for (module, word) in words {
            for page in 0..PAGES {
                let found = pages.get(&format!("{module}-{page}"));
                ensure!(
                    found == Some(word),
                    "page {page} of {module} should say '{word}': {found:?}"
                );
            }
        }
        ensure!(pages.len() == words.len() * PAGES, "pages are left: {:?}", pages.keys());
        let copies = self.words_of("copy")?;
        for (original, word) in self.load.originals() {
            let found = copies.get(&format!("{COPY}{original}"));
            ensure!(
                found == Some(word),
                "the copy of {original} should say '{word}': {found:?}"
            );
        }
        Ok(())
    }

    /// Checks that exactly one replica leads, and that all replicas and the lease name it.
    pub(super) fn one_leads(&self) -> anyhow::Result<()> {
        let holder = self.lease()?.map(|lease| lease.holder).unwrap_or_default();
        for replica in &self.replicas {
            let leads = replica
                .leads()
                .with_context(|| format!("{} does not answer", replica.name))?;
            ensure!(
                leads == (replica.identity == holder),
                "{} says it leads: {leads}; the lease belongs to '{holder}'",
                replica.name
            );
        }
        ensure!(self.place_of(&holder).is_some(), "the lease belongs to '{holder}'");
        Ok(())
    }

    /// Checks that no replica wrote after another one led, that nothing was deleted that no one asked to be deleted,
    /// and that no two helms worked on the same release.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        let audit = self.namespace.plane().audit();
        let mark = audit.mark()?;
        let users: Vec<&String> = self.replicas.iter().map(|replica| &replica.user).collect();
        let records = audit.since(self.checked)?.that(|record| users.contains(&&record.user));
        self.checked = mark;
        let late = self.tenure.late(records.clone());
        ensure!(late.is_empty(), "written by one after another had the lease:\n{late}");
        let newest: BTreeMap<String, u32> = self
            .revisions()?
            .into_iter()
            .filter_map(|(name, revisions)| Some((name, *revisions.last_key_value()?.0)))
            .collect();
        let fair_may_go = self.load.was_switched_off(FAIR);
        let may_go = |record: &Record| {
            let revision = record.name.strip_prefix("sh.helm.release.v1.");
            let revision = revision.and_then(|rest| rest.split_once(".v"));
            let is_old = revision.is_some_and(|(release, number)| {
                let number = number.parse().unwrap_or(u32::MAX);
                newest.get(release).is_some_and(|newest| number < *newest) || release == FAIR && fair_may_go
            });
            let is_fair = record.name == FAIR || record.name.starts_with("fair-");
            let is_note = record.resource == "secrets" && record.name.starts_with("addon-operator-");
            is_note || is_old || is_fair && fair_may_go
        };
        let deleted = records.deleting().that(|record| record.succeeded() && !may_go(record));
        ensure!(deleted.is_empty(), "deleted, and nobody asked for it:\n{deleted}");
        self.check_overlaps()?;
        for (name, id) in self.claims_now()? {
            let known = self.claims.get(&name).is_none_or(|known| *known == id);
            ensure!(known || name == FAIR, "the claim of {name} is another: {id}");
        }
        Ok(())
    }

    /// Checks the notes about second helms. A helm that was stopped in the middle of its work does not count as a
    /// second one.
    fn check_overlaps(&self) -> anyhow::Result<()> {
        let file = self.folder.path().join("notes/overlaps");
        let overlaps = fs::read_to_string(&file).unwrap_or_default();
        let stood_still = |line: &str| {
            let id = line.split(' ').next().and_then(|id| id.parse().ok());
            id.is_some_and(|id| self.replicas.iter().any(|replica| replica.frozen().contains(&id)))
        };
        let overlaps: Vec<&str> = overlaps.lines().filter(|line| !stood_still(line)).collect();
        ensure!(overlaps.is_empty(), "a second helm on one release: {overlaps:?}");
        // Process ids are reused, so the notes must not be read again later.
        if file.exists() {
            fs::remove_file(file)?;
        }
        Ok(())
    }

    /// Checks that the last good revisions of before still exist.
    pub(super) fn check_revisions(&self, before: &Revisions) -> anyhow::Result<()> {
        let now = self.revisions()?;
        for (name, revisions) in before.iter().filter(|(name, _)| !self.load.was_switched_off(name)) {
            let good = revisions.iter().rev().find(|(_, state)| *state == "deployed");
            let (good, _) = good.with_context(|| format!("{name} was deployed: {revisions:?}"))?;
            let Some(kept) = now.get(name) else {
                bail!("{name} is gone")
            };
            let newest = kept.last_key_value().map_or(0, |(number, _)| *number);
            ensure!(
                kept.contains_key(good) || newest >= good + HISTORY,
                "revision {good} of {name} was good and is gone: {kept:?}"
            );
        }
        Ok(())
    }

    pub(super) fn revisions(&self) -> anyhow::Result<Revisions> {
        let secrets = self.namespace.metadata("secrets", Only::Labels("owner=helm"))?;
        let mut revisions = Revisions::new();
        for secret in &secrets {
            let labels = &secret["metadata"]["labels"];
            let label = |label: &str| {
                let value = labels[label].as_str();
                value.with_context(|| format!("a revision has unexpected labels: {labels}"))
            };
            let (name, number, state) = (label("name")?, label("version")?, label("status")?);
            let of_this = revisions.entry(name.to_owned()).or_default();
            of_this.insert(number.parse()?, state.to_owned());
        }
        Ok(revisions)
    }

    pub(super) fn claims_now(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let claims = self.namespace.metadata("persistentvolumeclaims", Only::All)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let read = |claim: &Value| (text(&claim["metadata"]["name"]), text(&claim["metadata"]["uid"]));
        Ok(claims.iter().map(read).collect())
    }

    /// How many helms have started so far.
    pub(super) fn begun_helms(&self) -> anyhow::Result<usize> {
        let begun = fs::read_to_string(self.folder.path().join("notes/begun"))?;
        Ok(begun.lines().count())
    }

    /// Checks that the replicas really see wrong clocks; with right clocks the campaign would prove nothing.
    pub(super) fn ensure_clocks_are_wrong(&self) -> anyhow::Result<()> {
        use std::time::Duration;

        use testbed::wait::wait_until;
        const AHEAD: i64 = 3600;

        for replica in &self.replicas {
            replica.clock.set(AHEAD)?;
        }
        let look = || -> anyhow::Result<Option<()>> {
            let lease = self
                .namespace
                .object("lease", LEASE_NAME)?
                .context("there is a lease")?;
            let renewed: jiff::Timestamp = lease["spec"]["renewTime"].as_str().context("it is renewed")?.parse()?;
            let ahead = renewed.duration_since(jiff::Timestamp::now()).as_secs();
            ensure!(ahead > AHEAD / 2, "the lease was renewed {ahead} s from now");
            Ok(Some(()))
        };
        Ok(wait_until(Duration::from_mins(1), "a renewal by a wrong clock", look)?)
    }

    fn words_of(&self, kind: &str) -> anyhow::Result<BTreeMap<String, String>> {
        let objects = self
            .namespace
            .objects("configmaps", Only::Labels(&format!("campaign={kind}")))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named = objects
            .iter()
            .map(|object| (text(&object["metadata"]["name"]), text(&object["data"]["word"])));
        Ok(named.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(user: &str, resource: &str, time: u32) -> Record {
        let lease = resource == "leases";
        Record {
            verb: "update".to_owned(),
            credential: String::new(),
            user: user.to_owned(),
            acting_as: String::new(),
            user_agent: String::new(),
            resource: resource.to_owned(),
            subresource: String::new(),
            group: String::new(),
            namespace: "here".to_owned(),
            name: if lease { LEASE_NAME } else { "page" }.to_owned(),
            uri: String::new(),
            code: 200,
            time: format!("2027-01-31T12:00:{time:02}.000000Z"),
        }
    }

    #[test]
    fn a_write_after_another_one_had_the_lease_is_found_in_whatever_order_it_was_answered() {
        let mut tenure = Tenure::default();
        let peace = vec![write("a", "leases", 1), write("a", "secrets", 2)];
        assert!(tenure.late(Records(peace)).is_empty());
        let records = vec![
            write("a", "secrets", 5),
            write("b", "secrets", 6),
            write("a", "secrets", 3),
            write("b", "leases", 4),
        ];
        assert_eq!(tenure.late(Records(records)).0, [write("a", "secrets", 5)]);
    }
}
