//! Questions to the core on their way through the mailbox: each holds the channel for its answer, so that no answer can
//! reach another asker. Must never decide: the operator answers.

use std::any::Any;
use std::fmt;

use addon_core::operator::Operator;
use addon_core::operator::explain::Query;

use super::{Closed, Doors, Reply};

/// A question that can be put to the operator once. Tests find out its type by `Any`.
pub trait Question: Any + Send {
    /// Asks the operator and sends the answer, unless the asker no longer waits.
    fn answer(self: Box<Self>, operator: &Operator);
}

/// A question of any type.
pub type BoxedQuestion = Box<dyn Question>;

/// A question with the channel for its answer.
#[derive(Debug)]
pub struct Asked<Q: Query> {
    query: Q,
    reply: Reply<Q::Answer>,
}

impl<Q: Query> Asked<Q> {
    /// Computes and sends the answer, unless the asker no longer waits.
    pub fn answer_with(self, answer: impl FnOnce(&Q) -> Q::Answer) {
        if !self.reply.is_unwanted() {
            self.reply.send(answer(&self.query));
        }
    }
}

impl<Q: Query> Question for Asked<Q> {
    fn answer(self: Box<Self>, operator: &Operator) {
        self.answer_with(|query| operator.answer(query));
    }
}

impl fmt::Debug for dyn Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").finish_non_exhaustive()
    }
}

impl<E> Doors<E, BoxedQuestion> {
    /// Asks the operator and waits for the answer, as `ask_with` does.
    pub async fn ask<Q: Query>(&self, query: Q) -> Result<Q::Answer, Closed> {
        self.ask_with(|reply| -> BoxedQuestion { Box::new(Asked { query, reply }) })
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use addon_core::operator::policy::Policy;
    use addon_core::operator::query::{QueuesQuery, StatusQuery};
    use futures::poll;
    use tokio_util::sync::CancellationToken;

    use super::super::{Mail, Mailbox, mailbox};
    use super::*;

    async fn next(mailbox: &mut Mailbox<(), BoxedQuestion>) -> BoxedQuestion {
        let Mail::Question(question) = mailbox.next(pending()).await else {
            unreachable!()
        };
        question
    }

    #[tokio::test]
    async fn questions_of_several_types_go_through_one_mailbox() {
        let (doors, mut mailbox) = mailbox(CancellationToken::new());
        let operator = Operator::new(1, Policy::default());
        let serve = async {
            for _ in 0..2 {
                next(&mut mailbox).await.answer(&operator);
            }
        };
        let (status, queues, ()) = tokio::join!(doors.ask(StatusQuery), doors.ask(QueuesQuery), serve);
        assert!(status.unwrap().not_started);
        assert_eq!(queues.unwrap()[0].name, "main");
    }

    #[tokio::test]
    async fn a_question_whose_asker_has_gone_is_not_answered() {
        let (doors, mut mailbox) = mailbox(CancellationToken::new());
        let mut gone = Box::pin(doors.ask(StatusQuery));
        assert!(poll!(&mut gone).is_pending());
        drop(gone);
        let question: Box<dyn Any> = next(&mut mailbox).await;
        let asked = question.downcast::<Asked<StatusQuery>>().unwrap();
        asked.answer_with(|_| unreachable!("nobody waits for it"));
    }
}
