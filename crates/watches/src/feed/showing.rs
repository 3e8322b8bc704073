//! Brings objects from a watch to its monitors.
//!
//! Must never delay other work: filters run on blocking threads, and a slow loop delays only the watch.

use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::object::snapshot::Sighting;
use names::ModuleName;
use tracing::warn;

use super::super::heard::unusable;
use super::super::ledger::{News, Viewer};
use super::super::lens::{Item, Lens, Look, Text, Trace, look};
use super::super::observation::{Labels, Observation};
use super::super::reader::Answer;
use super::super::trouble::Trouble;
use super::Feed;

impl Feed {
    /// Shows objects to all viewers, in order, and sends the resulting changes.
    pub(super) async fn show(&mut self, items: Vec<Item>, gone: bool, viewers: &[Viewer]) {
        let lenses = viewers.iter().map(|viewer| Arc::clone(&viewer.lens)).collect();
        let (items, looks) = self.look(items, lenses).await;
        for (item, looks) in items.iter().zip(looks) {
            for (viewer, Look { seen, filtered }) in viewers.iter().zip(looks) {
                if let (Some(took), Some(labels)) = (filtered, viewer.measured()) {
                    self.shared.observe(&Observation::Filtered { labels, took });
                }
                let news = match seen {
                    Ok(sighting) if gone => News::Gone(Some(sighting.view)),
                    Ok(sighting) => News::Seen(sighting),
                    Err(error) => {
                        self.refuse(viewer, item, &error);
                        if gone { News::Gone(None) } else { News::Obscured }
                    }
                };
                self.tell(viewer, item, news).await;
            }
        }
    }

    /// Applies all filters, on a blocking thread because they may take long.
    async fn look(&mut self, items: Vec<Item>, lenses: Vec<Arc<Lens>>) -> (Vec<Item>, Vec<Vec<Look>>) {
        let resource = self.source.selection.resource.clone();
        let filters = lenses.iter().any(|lens| lens.has_filter());
        let work = move || {
            let looks = items.iter().map(|item| look(item, &resource, &lenses)).collect();
            (items, looks)
        };
        if !filters {
            return work();
        }
        blocking::run(work).await
    }

    /// Handles a failed filter: during the start of a monitor the start fails, later the object stays as it was last
    /// seen.
    fn refuse(&self, viewer: &Viewer, item: &Item, error: &str) {
        let Some(Labels { hook, binding, .. }) = viewer.labels.as_deref() else {
            return;
        };
        if viewer.first {
            let failure = self.refusal(binding, item, error);
            self.shared.ledger().fail(self.id, viewer.key, &failure);
            return;
        }
        let (object, error) = (item.name.to_string(), self.shown(error));
        let module = hook.owner.module().map(ModuleName::as_str);
        warn!(
            hook = hook.name.as_str(),
            module, binding, object, error, "jqFilter cannot be applied, the hook is not told of the change"
        );
    }

    fn refusal(&self, binding: &str, item: &Item, error: &str) -> Failure {
        let (object, error) = (&item.name, self.shown(error));
        let report = format!("cannot apply jqFilter of binding '{binding}' to {object}: {error}");
        Failure::new(Class::Invalid, report)
    }

    /// The text of a filter's error. The text quotes the object, so for a Secret it is replaced.
    fn shown<'a>(&self, error: &'a str) -> &'a str {
        let resource = &self.source.selection.resource;
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "secrets") => "the error is not shown, it might hold a part of the Secret",
            _ => error,
        }
    }

    /// Shows one object to one viewer. While the channel to the loop is full, the watch waits here.
    async fn tell(&mut self, viewer: &Viewer, item: &Item, news: News) {
        let room = self.shared.room(viewer).await;
        let mut ledger = self.shared.ledger();
        ledger.take(self.id, viewer, (&item.name, &item.trace), news, room);
        let held = ledger.target(viewer.key).map(|target| target.snapshot.len());
        drop(ledger);
        if let (false, Some(labels), Some(objects)) = (viewer.first, viewer.measured(), held) {
            self.shared.observe(&Observation::Holds { labels, objects });
        }
    }

    /// Shows all objects to the readers, and sends the events that follow.
    pub(super) async fn read(&mut self, answer: Answer<'_>) -> Result<(), Trouble> {
        if !self.source.selection.is_read {
            return Ok(());
        }
        let (readers, objects) = {
            let ledger = self.shared.ledger();
            (ledger.readers(self.id), ledger.objects(self.id))
        };
        let unusable = |problem: &str| unusable(&self.source.attempt("watch"), problem);
        let objects = objects.ok_or_else(|| unusable("an object is not valid JSON"))?;
        for reader in readers {
            let events = reader.read(answer, &objects).map_err(|problem| unusable(&problem))?;
            for event in events {
                // A loop that has ended needs no events.
                let _ = reader.door().send(event).await;
            }
        }
        Ok(())
    }

    /// Shows waiting viewers the objects that other viewers have stored. `false`: these objects do not suffice, and all
    /// objects must be listed.
    pub(super) async fn admit(&mut self) -> bool {
        let waiting = self.shared.ledger().waiting(self.id);
        for (key, lens, labels) in waiting {
            let Some((source, known)) = self.shared.ledger().known(self.id, &lens) else {
                return false;
            };
            let binding = labels.as_ref().map_or("", |labels| labels.binding.as_str());
            let seen = if lens.is_within(&source) {
                Ok(known.into_iter().map(|sighting| lens.narrow(sighting)).collect())
            } else {
                self.look_again(known, &lens, binding).await
            };
            let mut ledger = self.shared.ledger();
            match seen {
                Ok(sightings) => ledger.admit(self.id, key, sightings),
                Err(failure) => ledger.fail(self.id, key, &failure),
            }
        }
        true
    }

    async fn look_again(
        &mut self,
        known: Vec<Sighting>,
        lens: &Arc<Lens>,
        binding: &str,
    ) -> Result<Vec<Sighting>, Failure> {
        let items = known.into_iter().filter_map(|sighting| {
            let text = Text::Kept(sighting.view.object?);
            let name = sighting.name;
            let trace = Trace::default();
            Some(Item { name, text, trace })
        });
        let (items, looks) = self.look(items.collect(), vec![Arc::clone(lens)]).await;
        let pairs = items.iter().zip(looks.into_iter().flatten());
        pairs
            .map(|(item, look)| {
                let seen = look.seen;
                seen.map_err(|error| self.refusal(binding, item, &error))
            })
            .collect()
    }
}
