//! Lists all objects: as a stream if the server supports that, otherwise in pages.
//!
//! Objects are processed one by one as they arrive. Objects that are missing in the list are deleted; this is reported
//! only after the complete list. Must never hold more than a page in memory.

use std::pin::pin;
use std::sync::Arc;

use kube_access::error::RequestError;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::super::heard::{Heard, read_item, read_line, unusable};
use super::super::ledger::News;
use super::super::lens::{Item, Trace};
use super::super::observation::Observation;
use super::super::reader::{Answer, Condition};
use super::super::stream::Page;
use super::super::trouble::Trouble;
use super::{BATCH, Feed, OVERDUE, Progress, Watch};

impl Feed {
    /// Lists everything. The number of concurrent lists is limited, because each needs memory.
    pub(super) async fn list(&mut self) -> Result<(), Trouble> {
        if self.source.selection.is_read {
            return self.list_in_pages().await;
        }
        let shared = Arc::clone(&self.shared);
        let _turn = shared.turn().await;
        let resource = self.source.selection.resource.clone();
        let paged = std::mem::take(&mut self.paged);
        if !paged && shared.ledger().streams(&resource) {
            match self.list_as_stream().await {
                Err(trouble) if trouble.refuses_streaming() => shared.ledger().cannot_stream(&resource),
                outcome => return outcome,
            }
        }
        self.list_in_pages().await?;
        if paged {
            shared.ledger().cannot_stream(&resource);
        }
        Ok(())
    }

    async fn list_as_stream(&mut self) -> Result<(), Trouble> {
        self.shared.ledger().begin_listing(self.id);
        let attempt = self.source.attempt("list");
        let mut lines = self.source.watch(None).await?;
        let mut batch = Vec::new();
        loop {
            let Ok(line) = timeout(self.source.patience, lines.next()).await else {
                // The server ignored the parameter for streaming, or the connection is dead.
                self.paged = true;
                let waited = self.source.patience;
                return Err(Trouble::of(RequestError::Silent { attempt, waited }));
            };
            match read_line(line?, &self.source.selection.resource, &attempt)? {
                Heard::Present(item, _) => {
                    batch.push(item);
                    if batch.len() >= BATCH {
                        self.take(std::mem::take(&mut batch)).await;
                    }
                }
                Heard::Gone(item, _) => {
                    self.take(std::mem::take(&mut batch)).await;
                    let viewers = self.shared.ledger().viewers(self.id);
                    self.show(vec![item], true, &viewers).await;
                }
                Heard::Mark { complete: false, .. } => {}
                Heard::Mark { version, .. } => {
                    self.take(batch).await;
                    self.complete(&version).await?;
                    self.place = Progress::Following(Watch::begin(lines, version));
                    return Ok(());
                }
            }
        }
    }

    async fn list_in_pages(&mut self) -> Result<(), Trouble> {
        self.shared.ledger().begin_listing(self.id);
        let attempt = self.source.attempt("list");
        let mut next = String::new();
        loop {
            let body = self.page(&next).await?;
            let page: Page<'_> =
                serde_json::from_slice(&body).map_err(|error| unusable(&attempt, &error.to_string()))?;
            for objects in page.items.unwrap_or_default().chunks(BATCH) {
                let items = objects.iter().map(|object| {
                    let (item, _) = read_item(object, &self.source.selection.resource, &attempt)?;
                    Ok(item)
                });
                self.take(items.collect::<Result<_, Trouble>>()?).await;
            }
            if page.metadata.resource_version.is_empty() {
                return Err(unusable(&attempt, "a list without a version"));
            }
            next = page.metadata.next;
            if next.is_empty() {
                let version = page.metadata.resource_version;
                self.complete(&version).await?;
                self.place = Progress::At(version);
                return Ok(());
            }
        }
    }

    async fn take(&mut self, items: Vec<Item>) {
        let viewers = self.shared.ledger().viewers(self.id);
        self.show(items, false, &viewers).await;
        yield_now().await;
    }

    /// Reads one page. If the answer is late, a reader is told before the timeout.
    async fn page(&mut self, next: &str) -> Result<Vec<u8>, Trouble> {
        let is_read = self.source.selection.is_read;
        let mut page = pin!(self.source.page(next));
        if is_read {
            if let Ok(answer) = timeout(OVERDUE, page.as_mut()).await {
                return answer;
            }
            self.shared.tell_readers(self.id, Condition::Overdue);
        }
        page.await
    }

    /// Objects that were not in the listing are deleted.
    async fn complete(&mut self, version: &str) -> Result<(), Trouble> {
        let viewers = self.shared.ledger().viewers(self.id);
        for viewer in viewers.iter().filter(|viewer| !viewer.first) {
            let vanished = self.shared.ledger().vanished(self.id, viewer.key);
            for name in vanished {
                let room = self.shared.room(viewer).await;
                let mut ledger = self.shared.ledger();
                ledger.take(self.id, viewer, (&name, &Trace::default()), News::Gone(None), room);
            }
        }
        self.shared.ledger().end_listing(self.id);
        for viewer in &viewers {
            let Some(labels) = viewer.measured() else {
                continue;
            };
            let objects = self.shared.held(viewer.key);
            self.shared.observe(&Observation::Holds { labels, objects });
        }
        if self.source.selection.is_read {
            // Only the watch shows that a reader's connection works, because each break is followed by a list.
            return self.read(Answer::List(version)).await;
        }
        self.recovered();
        Ok(())
    }
}
