//! Objects of the cluster: their identity, and changes that hooks and charts ask for.
//!
//! The operations of a hook are carried out in their order; after a failed one the others are still tried. Must never touch
//! an object that no operation or manifest names, nor begin another operation during a stop.
//!
//! ```text
//!   patches of a hook --> Patcher --> apply, change, create, delete, event --+
//!                                                                           +--> address --> API server
//!   object of a chart ------------------------------------> ensure ---------+      |
//!                                                                                 race   again, if another writer was faster
//! ```
//!
//! Begin with `Patcher`.

mod address;
mod apply;
mod change;
mod create;
mod delete;
pub mod ensure;
mod event;
mod finalizer;
pub mod key;
mod race;
mod tally;

use addon_core::failure::{Class, Failure};
use addon_core::object::patch::{ApiVersion, Operation, OperationName, Segment, Target};
use addon_core::operator::event::ObjectWritten;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use address::Address;
use kube_access::Cluster;
use kube_access::kinds::{KindError, Kinds};
use tally::Tally;

/// Runs a jq program on an object; returns all its results in order.
pub type Jq = fn(program: &str, object: &Value) -> Result<Vec<Value>, Failure>;

/// Carries out object patches in one cluster.
#[derive(Debug, Clone)]
pub struct Patcher {
    cluster: Cluster,
    kinds: Kinds,
    jq: Jq,
    tally: Tally,
}

impl Patcher {
    /// A patcher that has made no request yet.
    pub fn new(cluster: Cluster, kinds: Kinds, jq: Jq) -> Self {
        let tally = Tally::default();
        Self {
            cluster,
            kinds,
            jq,
            tally,
        }
    }

    /// The same patcher with the rights of another account.
    #[must_use]
    pub fn acting_as(&self, account: &Cluster) -> Self {
        Self {
            cluster: account.as_patient_as(&self.cluster),
            ..self.clone()
        }
    }

    /// The same patcher with a count of its own for the objects that it writes.
    #[must_use]
    pub fn counting(&self) -> Self {
        Self {
            tally: Tally::default(),
            ..self.clone()
        }
    }

    /// Takes the objects that were written since the last call, also by operations of a list that failed as a whole.
    pub fn take_written(&self) -> Vec<ObjectWritten> {
        self.tally.take()
    }

    /// Carries out all operations, one by one. The failures are returned together, each with its object.
    pub async fn apply(&self, operations: &[Operation], cancel: &CancellationToken) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for (done, operation) in operations.iter().enumerate() {
            if cancel.is_cancelled() {
                let report = format!("stopped after {done} of {} object patches", operations.len());
                failures.push(Failure::new(Class::Cancelled, report));
                break;
            }
            if let Err(failure) = self.carry_out(operation, cancel).await {
                failures.push(told(operation, failure));
            }
        }
        if !failures.is_empty() {
            // The known kinds may be outdated; the next try reads them anew.
            self.kinds.forget();
        }
        joined(failures)
    }

    async fn carry_out(&self, operation: &Operation, cancel: &CancellationToken) -> Result<(), Failure> {
        match operation {
            Operation::Create { object, existing } => self.create(object, *existing).await,
            Operation::Apply {
                object,
                manager,
                force,
                terms,
            } => self.apply_fields(object, manager, *force, terms).await,
            Operation::Delete { target, dependents } => {
                let address = self.address_of(target).await?;
                if let Some(failure) = address.misplaced() {
                    warn!(operation = %operation.name(), object = %target, "there is nothing to delete: {failure}");
                    return Ok(());
                }
                delete::delete(&address, target.name.as_str(), *dependents, cancel).await
            }
            Operation::Patch { target, change, terms } => {
                let address = self.address_of(target).await?;
                match address.misplaced() {
                    Some(failure) if terms.ignore_missing => {
                        warn!(operation = %operation.name(), object = %target, "there is nothing to change: {failure}");
                        Ok(())
                    }
                    Some(failure) => Err(failure),
                    None => self.change(&address, target.name.as_str(), change, terms).await,
                }
            }
            Operation::Event { target, contents } => self.tell(target, contents).await,
        }
    }

    async fn address_of(&self, target: &Target) -> Result<Address, Failure> {
        self.address(target.api_version.as_ref(), &target.kind, target.namespace.as_ref())
            .await
    }

    async fn address(
        &self,
        api_version: Option<&ApiVersion>,
        kind: &Segment,
        namespace: Option<&Segment>,
    ) -> Result<Address, Failure> {
        let address = self.resolved(api_version, kind, namespace).await?;
        if address.misplaced().is_none() {
            return Ok(address);
        }
        // A kind may have moved out of its namespaces, or into them, since we asked.
        self.kinds.forget();
        self.resolved(api_version, kind, namespace).await
    }

    async fn resolved(
        &self,
        api_version: Option<&ApiVersion>,
        kind: &Segment,
        namespace: Option<&Segment>,
    ) -> Result<Address, Failure> {
        let version = api_version.map(ApiVersion::as_str);
        let kind = self.kinds.resolve(version, kind.as_str()).await;
        let kind = kind.map_err(|error| match error {
            KindError::Unknown { .. } => Failure::new(Class::Refused, error.to_string())
                .hint("create the CRD first, or correct apiVersion and kind of the operation"),
            KindError::Ask { .. } | KindError::Stale { .. } => Failure::from(error),
        })?;
        let namespace = namespace.map(Segment::as_str);
        Ok(Address::new(self.cluster.clone(), kind, namespace, self.tally.clone()))
    }
}

/// The failure in the form that hook authors know: the operation and its object.
fn told(operation: &Operation, failure: Failure) -> Failure {
    let failure = match operation.name() {
        OperationName::Create | OperationName::Apply | OperationName::Delete | OperationName::Event => failure,
        name => failure.within(name),
    };
    failure.within(operation)
}

/// All failures as one. If one of the failures needs a person, the joined failure needs a person.
fn joined(failures: Vec<Failure>) -> Result<(), Failure> {
    let classes = || failures.iter().map(|failure| failure.class);
    let cancelled = classes().find(|class| *class == Class::Cancelled);
    let Some(class) = cancelled.or_else(|| classes().min()) else {
        return Ok(());
    };
    let reports: Vec<_> = failures.iter().map(|failure| failure.report.as_str()).collect();
    let mut whole = Failure::new(class, reports.join("; "));
    for hint in failures.into_iter().flat_map(|failure| failure.hints) {
        if !whole.hints.contains(&hint) {
            whole = whole.hint(hint);
        }
    }
    Err(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_together_and_the_class_is_of_the_one_that_time_does_not_heal() {
        let failed = |class, report: &str| Failure::new(class, report).hint("try");
        assert_eq!(joined(Vec::new()), Ok(()));
        let down = failed(Class::Unavailable, "a");
        assert_eq!(joined(vec![down.clone()]), Err(down.clone()));
        let both = joined(vec![down.clone(), failed(Class::Refused, "b")]).unwrap_err();
        assert_eq!(both, failed(Class::Refused, "a; b"));
        let stopped = joined(vec![failed(Class::Refused, "b"), failed(Class::Cancelled, "c"), down]).unwrap_err();
        assert_eq!((stopped.class, &*stopped.report), (Class::Cancelled, "b; c; a"));
    }

    #[test]
    fn the_operation_is_named_where_the_first_words_do_not_name_it() {
        let told = |text: &str| {
            let operations = addon_core::object::patch::parse(text).unwrap();
            told(&operations[0], Failure::new(Class::Refused, "no")).report
        };
        let object = "object: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}}";
        assert_eq!(
            told(&format!("operation: Create\n{object}")),
            "Create object v1/Pod/ns/a: no"
        );
        assert_eq!(
            told(&format!("operation: CreateOrUpdate\n{object}")),
            "Create object v1/Pod/ns/a: CreateOrUpdate: no"
        );
    }
}
