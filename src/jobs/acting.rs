//! The rights that a job for a module uses: the operator's, or those of the service account that the module names.
//!
//! The Secrets of releases and its own notes about them the operator reads and writes with its own rights. Must never
//! use the operator's rights where a module has named an account.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::module::description::AccountName;
use addon_core::name::Owner;

use super::Tools;
use crate::cluster::Cluster;
use crate::cluster::accounts::Actor;
use crate::cluster::patch::Patcher;

const KUBECONFIG: &str = "KUBECONFIG";

/// The account that acts for a module.
#[derive(Debug)]
pub(super) struct Acting<'a> {
    tools: &'a Tools,
    /// Only the operator itself.
    actor: Option<(AccountName, Actor)>,
}

impl Tools {
    /// The account of an owner, with a token for this time.
    pub(super) async fn acting(&self, owner: &Owner, needed: Duration) -> Result<Acting<'_>, Failure> {
        let account = match owner {
            Owner::Global => None,
            Owner::Module(module) => self.catalogue.borrow().account(module.as_str()),
        };
        self.acting_as(account, needed).await
    }

    /// Who acts for a release, for as long as a helm may run: of one whose module is gone it is only known that it is
    /// ours.
    pub(super) async fn acting_for(&self, release: &str) -> Result<Acting<'_>, Failure> {
        let (account, needed) = (self.catalogue.borrow().account(release), self.helm()?.deadline());
        self.acting_as(account, needed).await
    }

    async fn acting_as(&self, account: Option<AccountName>, needed: Duration) -> Result<Acting<'_>, Failure> {
        let actor = match account {
            None => None,
            Some(account) => {
                let actor = self.cluster.acting_as(&account, needed).await?;
                Some((account, actor))
            }
        };
        Ok(Acting { tools: self, actor })
    }
}

impl Acting<'_> {
    /// The environment of children.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.tools.environment.clone();
        if let Some((_, actor)) = &self.actor {
            environment.retain(|(name, _)| name != KUBECONFIG);
            environment.push((KUBECONFIG.into(), actor.kubeconfig.clone().into()));
        }
        environment
    }

    /// Where a helm is led to, if not where all are.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.actor.as_ref().map(|(_, actor)| actor.kubeconfig.as_path())
    }

    /// The cluster, for writes.
    pub(super) fn cluster(&self) -> &Cluster {
        match &self.actor {
            Some((_, actor)) => &actor.cluster,
            None => &self.tools.cluster,
        }
    }

    /// Carries out object patches.
    pub(super) fn patcher(&self) -> Patcher {
        match &self.actor {
            Some((_, actor)) => self.tools.patcher.acting_as(&actor.cluster),
            None => self.tools.patcher.clone(),
        }
    }

    /// Something failed. The account may have been made again meanwhile, and then its old tokens are worth nothing: the
    /// next one to act as it asks for another.
    pub(super) async fn forget(&self) {
        if let Some((account, _)) = &self.actor {
            self.tools.cluster.forget_account(account).await;
        }
    }
}
