//! The rights of a module's job: the operator's own, or those of the service account that the module names.
//!
//! The operator always uses its own rights for the Secrets of releases and its notes on them. Must never use the
//! operator's rights for other work of a module that names an account.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::module::description::AccountName;
use kube_access::Cluster;
use kube_access::accounts::Actor;
use names::Owner;

use crate::Ground;

const KUBECONFIG: &str = "KUBECONFIG";

/// The account for a module's job.
#[derive(Debug)]
pub struct Acting<'a> {
    ground: &'a Ground,
    /// The named account; none for the operator itself.
    actor: Option<(AccountName, Actor)>,
    /// The variables of the module's source.
    env: Vec<(OsString, OsString)>,
}

impl Ground {
    /// The account of an owner, with a token that lasts for this time.
    pub async fn acting(&self, owner: &Owner, needed: Duration) -> Result<Acting<'_>, Failure> {
        match owner {
            Owner::Global => self.acting_as(None, Vec::new(), needed).await,
            Owner::Module(module) => {
                let catalogue = self.catalogue.borrow().clone();
                let (account, env) = (catalogue.account(module.as_str()), catalogue.env(module.as_str()));
                self.acting_as(account, env, needed).await
            }
        }
    }

    /// The account for a release, with a token that lasts for this time. If the release's module is gone its account is
    /// unknown, and the operator itself acts.
    pub async fn acting_for(&self, release: &str, needed: Duration) -> Result<Acting<'_>, Failure> {
        let catalogue = self.catalogue.borrow().clone();
        let (account, env) = (catalogue.account(release), catalogue.env(release));
        self.acting_as(account, env, needed).await
    }

    async fn acting_as(
        &self,
        account: Option<AccountName>,
        env: Vec<(OsString, OsString)>,
        needed: Duration,
    ) -> Result<Acting<'_>, Failure> {
        let actor = match account {
            None => None,
            Some(account) => {
                let actor = self.cluster.acting_as(&account, needed).await?;
                Some((account, actor))
            }
        };
        Ok(Acting {
            ground: self,
            actor,
            env,
        })
    }
}

impl Acting<'_> {
    /// The environment of child processes.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        // The last of two variables with one name counts.
        let mut environment = self.env.clone();
        environment.extend(self.ground.environment.iter().cloned());
        if let Some((_, actor)) = &self.actor {
            environment.retain(|(name, _)| name != KUBECONFIG);
            environment.push((KUBECONFIG.into(), actor.kubeconfig.clone().into()));
        }
        environment
    }

    /// The variables of the module's source.
    pub fn env(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// The kubeconfig for helm, if it is not the operator's.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.actor.as_ref().map(|(_, actor)| actor.kubeconfig.as_path())
    }

    /// The client for writes.
    pub fn cluster(&self) -> &Cluster {
        match &self.actor {
            Some((_, actor)) => &actor.cluster,
            None => &self.ground.cluster,
        }
    }

    /// The cluster with the rights of the named account; none if the operator itself acts.
    pub fn account(&self) -> Option<&Cluster> {
        self.actor.as_ref().map(|(_, actor)| &actor.cluster)
    }

    /// Forgets the account's token after a failure. The account may have been created anew, which makes old tokens
    /// invalid; the next job requests a new one.
    pub fn forget(&self) {
        if let Some((account, _)) = &self.actor {
            self.ground.cluster.forget_account(account);
        }
    }
}
