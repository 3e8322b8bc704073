//! The queues with their tasks: which of them, and in which form.

use addon_core::operator::query::QueuesQuery;
use listeners::reply::{Format, Reply, shown};

use super::{Debug, Unanswered};
use crate::serve::queue_text;

impl Debug {
    /// The queue `main` alone.
    pub(super) async fn queue_main(&self, format: Format) -> Result<Reply, Unanswered> {
        let queues = listeners::ask(&self.doors, QueuesQuery).await?;
        Ok(shown(format, &queue_text::main_queue(&queues), || {
            queue_text::main_text(&queues)
        }))
    }

    pub(super) async fn queue_list(&self, format: Format, show_empty: bool) -> Result<Reply, Unanswered> {
        let queues = listeners::ask(&self.doors, QueuesQuery).await?;
        Ok(shown(format, &queue_text::queues(&queues, show_empty), || {
            queue_text::queues_text(&queues, show_empty)
        }))
    }
}
