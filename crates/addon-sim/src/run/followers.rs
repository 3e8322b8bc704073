//! The shell's part in modules from registries: a follower for each source. It delivers kept copies after a start, takes new
//! versions, and gives bad ones back.
//!
//! Must never deliver files while the operator stands by.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::module::{Edition, Origin};
use addon_core::operator::effect::FilesVerdict;
use addon_core::operator::event::Event;

use super::{Due, Run};
use crate::checks::Violation;
use crate::sources::Named;
use crate::world::found;

/// The followers of one life.
#[derive(Debug, Default)]
pub(super) struct Followers {
    /// The sources as the followers know them, each with its order number.
    of: BTreeMap<String, Follower>,
    has_read_copies: bool,
    /// Whether a look at the sources is due.
    looks: bool,
}

/// The follower of one source.
#[derive(Debug, Default)]
struct Follower {
    order: Option<u32>,
    /// The number of the source's naming.
    naming: u64,
    /// The number of the reading that was handed over last.
    edition: Option<Edition>,
    /// Whether the kept copy was handed over, or found missing.
    loaded: bool,
}

/// A future deed of the followers.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    /// All followers look at the applied sources.
    Look,
    /// A follower hands over its kept copy, if there is one.
    Begin(String),
    /// A follower asks the registry.
    Fetch(String),
    /// A follower hands over the last good files.
    GiveBack(String),
    /// The operator is told that all kept copies were read, if they were.
    Announce,
}

impl Followers {
    fn named(&self) -> Named {
        let named = self.of.iter().map(|(name, follower)| (name.clone(), follower.order));
        named.collect()
    }

    /// Whether the followers have exactly these sources, each with this number of its naming.
    fn know(&self, namings: &BTreeMap<String, u64>) -> bool {
        let knows = |(name, follower): (&String, &Follower)| namings.get(name) == Some(&follower.naming);
        self.of.len() == namings.len() && self.of.iter().all(knows)
    }

    /// The names of all followers that have handed over their kept copies.
    fn loaded(&self) -> BTreeSet<String> {
        let loaded = self.of.iter().filter(|(_, follower)| follower.loaded);
        loaded.map(|(name, _)| name.clone()).collect()
    }
}

impl Run<'_> {
    /// Plans a look at the sources if they have changed.
    pub(super) fn watch_sources(&mut self) {
        let followers = &self.followers;
        if self.world.shelves.is_empty() || !self.life.leads || followers.looks || self.life.stopping.is_some() {
            return;
        }
        let Some(named) = self.life.sources() else { return };
        let is_first = followers.of.is_empty() && !followers.has_read_copies;
        if is_first || named != followers.named() || !followers.know(&self.life.namings()) {
            self.followers.looks = true;
            let delay = self.world.dice("look").between(0, 1_000);
            self.plan(delay, Due::Follower(Deed::Look));
        }
    }

    pub(super) fn follow(&mut self, deed: &Deed) -> Result<(), Violation> {
        if !self.life.leads || self.life.stopping.is_some() {
            return Ok(());
        }
        match deed {
            Deed::Look => self.look_at_sources(),
            Deed::Begin(name) => self.begin_follower(name),
            Deed::Fetch(name) => self.fetch(name),
            Deed::GiveBack(name) => self.use_kept(name),
            Deed::Announce => self.announce_copies(),
        }
    }

    fn look_at_sources(&mut self) -> Result<(), Violation> {
        self.followers.looks = false;
        let Some(named) = self.life.sources() else {
            return Ok(());
        };
        let gone: Vec<String> = self
            .followers
            .of
            .keys()
            .filter(|name| !named.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            self.followers.of.remove(&name);
            if let Some(shelf) = self.world.shelves.get_mut(&name) {
                shelf.clean();
            }
            // A module of this name in a directory counts again.
            let delay = self.world.dice("reload").between(0, 3_000);
            self.plan(delay, Due::ModuleRead(name));
        }
        let namings = self.life.namings();
        let naming = |name: &String| namings.get(name).copied().unwrap_or_default();
        // A source that was taken out and named again needs its files again.
        self.followers
            .of
            .retain(|name, follower| follower.naming == naming(name));
        for (name, order) in named {
            let naming = naming(&name);
            if let Some(follower) = self.followers.of.get_mut(&name) {
                if std::mem::replace(&mut follower.order, order) != order {
                    self.plan(500, Due::Follower(Deed::GiveBack(name)));
                }
                continue;
            }
            let follower = Follower {
                order,
                naming,
                ..Follower::default()
            };
            self.followers.of.insert(name.clone(), follower);
            let mut dice = self.world.dice("kept");
            let most = *dice.pick(&[300, 300, 5_000, 60_000]);
            self.plan(dice.between(0, most), Due::Follower(Deed::Begin(name)));
        }
        self.announce_copies()
    }

    fn begin_follower(&mut self, name: &str) -> Result<(), Violation> {
        let Some(follower) = self.followers.of.get_mut(name) else {
            return Ok(());
        };
        follower.loaded = true;
        if let Some(shelf) = self.world.shelves.get_mut(name) {
            let is_kept = |version: &Option<usize>| version.is_some_and(|version| shelf.copies.contains(&version));
            if !is_kept(&shelf.record.running) && is_kept(&shelf.record.good) {
                shelf.record.running = shelf.record.good;
            }
        }
        // The life is checked after each step, and must see that more is to come.
        self.plan_fetch(name);
        self.plan(0, Due::Follower(Deed::Announce));
        self.use_kept(name)
    }

    /// Tells the operator once that all kept copies were read.
    fn announce_copies(&mut self) -> Result<(), Violation> {
        let followers = &mut self.followers;
        if followers.has_read_copies || followers.loaded().len() < followers.of.len() {
            return Ok(());
        }
        followers.has_read_copies = true;
        self.tell(&Event::CopiesRead, None)
    }

    /// Has the followers that have read their copies ask the registry.
    pub(super) fn plan_fetches(&mut self) {
        for name in self.followers.loaded() {
            self.plan_fetch(&name);
        }
    }

    fn plan_fetch(&mut self, name: &str) {
        let mut dice = self.world.dice("fetch");
        let most = *dice.pick(&[1_000, 10_000, 60_000]);
        self.plan(dice.between(0, most), Due::Follower(Deed::Fetch(name.to_owned())));
    }

    /// Takes the version that the registry offers, unless it is in use.
    fn fetch(&mut self, name: &str) -> Result<(), Violation> {
        let (Some(follower), Some(shelf)) = (self.followers.of.get(name), self.world.shelves.get_mut(name)) else {
            return Ok(());
        };
        let offered = shelf.offered().filter(|_| self.world.registry_answers);
        let in_use = shelf.record.running.filter(|_| follower.edition.is_some());
        match offered.filter(|offered| in_use != Some(*offered)) {
            Some(version) => {
                shelf.take(version);
                self.use_kept(name)
            }
            None => Ok(()),
        }
    }

    /// Hands the version of the record over, if there is a copy of it.
    fn use_kept(&mut self, name: &str) -> Result<(), Violation> {
        let (Some(follower), Some(shelf)) = (self.followers.of.get_mut(name), self.world.shelves.get(name)) else {
            return Ok(());
        };
        let Some(version) = shelf.record.running.filter(|version| shelf.copies.contains(version)) else {
            return Ok(());
        };
        let (spec, has_former) = (shelf.files(version, follower.order), shelf.has_former());
        let (module, origin) = (Box::new(found(&spec)), Origin::Source { has_former });
        let edition = self.life.told.module_read(spec, origin);
        follower.edition = Some(edition);
        self.tell(&Event::ModuleRead(edition, origin, module), None)
    }

    /// Takes the judgement on files.
    pub(super) fn judged(&mut self, name: &str, edition: Edition, verdict: &FilesVerdict) {
        let (Some(follower), Some(shelf)) = (self.followers.of.get_mut(name), self.world.shelves.get_mut(name)) else {
            return;
        };
        if follower.edition != Some(edition) {
            return;
        }
        match verdict {
            FilesVerdict::Good => shelf.did_well(),
            FilesVerdict::Bad(_) => {
                shelf.did_badly();
                follower.edition = None;
                let delay = self.world.dice("return").between(0, 3_000);
                self.plan(delay, Due::Follower(Deed::GiveBack(name.to_owned())));
            }
        }
    }
}
