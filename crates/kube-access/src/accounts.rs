//! Service accounts that modules act as: a short-lived token for each, and a kubeconfig that uses it.
//!
//! A new token is requested when a job would outlive the present one. A program that runs longer finds the next token
//! in the same file. Must never fall back to the operator's own rights.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use addon_core::failure::{Class, Failure};
use addon_core::module::description::AccountName;
use fs_err as fs;
use futures::FutureExt as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use kube::config::KubeconfigError;
use report::Chain;
use telling::meters::Meters;
use thiserror::Error;

use crate::Cluster;
use crate::error::{Attempt, RequestError};
use crate::kubeconfig::{ConnectError, Private};
use crate::private;
use crate::under_way::UnderWay;

/// The lifetime of the tokens that the operator asks for.
const LIFETIME: Duration = Duration::from_hours(1);
/// The time beyond its deadline that a child process may need to end.
const MARGIN: Duration = Duration::from_mins(2);

/// The way to the cluster for any account, and the accounts that are known.
pub(super) struct Accounts {
    private: Private,
    ca_file: Option<PathBuf>,
    /// The folder with the tokens.
    dir: PathBuf,
    meters: Arc<Meters>,
    /// The lock is never held across a request: a request that gets no answer delays no other account.
    known: Mutex<BTreeMap<AccountName, Known>>,
    requests: UnderWay<AccountName, Granted>,
}

/// The time for which a token was requested to last, and an actor with the token.
type Granted = (Duration, Result<Actor, Failure>);

struct Known {
    actor: Actor,
    granted: Duration,
    until: Instant,
}

/// A service account under which the operator can act.
#[derive(Debug, Clone)]
pub struct Actor {
    /// A kubeconfig for child processes that act under the account.
    pub kubeconfig: PathBuf,
    /// A client that acts under the account.
    pub cluster: Cluster,
}

/// Why no job can act as an account.
#[derive(Debug, Error)]
enum AccountError {
    #[error(transparent)]
    Token(RequestError),
    #[error("cannot keep its token")]
    Keep(#[source] io::Error),
    #[error("cannot use its token")]
    Use(#[source] KubeconfigError),
    #[error("cannot use its token")]
    Connect(#[source] ConnectError),
}

impl Accounts {
    pub(super) fn new(private: Private, ca_file: Option<PathBuf>, dir: &Path, meters: Arc<Meters>) -> Self {
        Self {
            private,
            ca_file,
            dir: dir.join("accounts"),
            meters,
            known: Mutex::default(),
            requests: UnderWay::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<AccountName, Known>> {
        // Nothing that is done under the lock leaves it half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn actor(&self, account: &AccountName, needed: Duration) -> Option<Actor> {
        let known = self.known();
        let lasting = known.get(account).filter(|known| known.lasts(needed));
        lasting.map(|known| known.actor.clone())
    }
}

impl Known {
    fn lasts(&self, needed: Duration) -> bool {
        lasts(
            self.granted,
            self.until.saturating_duration_since(Instant::now()),
            needed,
        )
    }
}

/// Whether the rest of a token's lifetime is long enough. An API server may grant less than was asked for; then half of
/// the granted time must be enough.
fn lasts(granted: Duration, left: Duration, needed: Duration) -> bool {
    left >= needed + MARGIN || left >= granted / 2
}

impl Cluster {
    /// An actor for a service account of the operator's namespace, with a token that lasts for `needed`.
    pub async fn acting_as(&self, account: &AccountName, needed: Duration) -> Result<Actor, Failure> {
        let Some(accounts) = &self.accounts else {
            return Err(Failure::defect(
                "a service account was named where there are no modules",
            ));
        };
        loop {
            if let Some(actor) = accounts.actor(account, needed) {
                return Ok(actor);
            }
            let request = || {
                let (cluster, accounts, account) = (self.clone(), Arc::clone(accounts), account.clone());
                async move { (needed, cluster.renew(&accounts, &account, needed).await) }.boxed()
            };
            let (granted_for, actor) = accounts.requests.join(account.clone(), request).await;
            let actor = actor?;
            // A job with a shorter deadline may have begun the request.
            if granted_for >= needed {
                return Ok(actor);
            }
        }
    }

    /// Requests a token for the account and keeps it. If that fails, the account is no longer known.
    async fn renew(&self, accounts: &Accounts, account: &AccountName, needed: Duration) -> Result<Actor, Failure> {
        let before = accounts.known().get(account).map(|known| known.actor.clone());
        let fresh = match self.ask_for_token(account, needed).await {
            Ok((token, granted, until)) => {
                let kept = self.keep(accounts, account, &token, before.as_ref()).await;
                kept.map(|actor| Known { actor, granted, until })
            }
            Err(error) => Err(AccountError::Token(error)),
        };
        let mut known = accounts.known();
        match fresh {
            Ok(fresh) => {
                let actor = fresh.actor.clone();
                known.insert(account.clone(), fresh);
                Ok(actor)
            }
            Err(error) => {
                known.remove(account);
                Err(told(error, account, &self.namespace))
            }
        }
    }

    /// Forgets the token of an account, so that the next job requests a new one.
    pub fn forget_account(&self, account: &AccountName) {
        let Some(accounts) = &self.accounts else { return };
        accounts.requests.forget(account);
        if let Some(known) = accounts.known().get_mut(account) {
            (known.granted, known.until) = (Duration::MAX, Instant::now());
        }
    }

    /// Requests a token. Returns it with its lifetime and its end on the operator's own clock, counted from the
    /// request.
    async fn ask_for_token(
        &self,
        account: &AccountName,
        needed: Duration,
    ) -> Result<(String, Duration, Instant), RequestError> {
        let attempt = Attempt {
            namespace: Some(self.namespace.clone()),
            ..self.attempt("create", "serviceaccounts/token", account.as_str())
        };
        let lifetime = LIFETIME.max(needed + 2 * MARGIN);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: i64::try_from(lifetime.as_secs()).ok(),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        let (params, asked) = (PostParams::default(), Instant::now());
        let asking = api.create_token_request(account.as_str(), &params, &request);
        let answer = self.ask(attempt.clone(), asking).await?;
        let unusable = |problem: &str| RequestError::Unusable {
            attempt: attempt.clone(),
            problem: problem.to_owned(),
        };
        let status = answer.status.filter(|status| !status.token.is_empty());
        let token = status.ok_or_else(|| unusable("it holds no token"))?.token;
        let granted = answer.spec.expiration_seconds;
        let granted = granted
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0);
        let granted = Duration::from_secs(granted.ok_or_else(|| unusable("it does not say how long the token lasts"))?);
        Ok((token, granted, asked + granted))
    }

    /// Writes the token to the file that all jobs of the account read.
    async fn keep(
        &self,
        accounts: &Accounts,
        account: &AccountName,
        token: &str,
        before: Option<&Actor>,
    ) -> Result<Actor, AccountError> {
        let dir = accounts.dir.join(account.as_str());
        fs::create_dir_all(&dir).map_err(AccountError::Keep)?;
        let file = dir.join("token");
        private::write(&file, token.as_bytes()).map_err(AccountError::Keep)?;
        if let Some(before) = before {
            return Ok(before.clone());
        }
        let reached = accounts.private.with_token(&file);
        let kubeconfig = reached.write(&dir).map_err(AccountError::Connect)?;
        let config = reached
            .config(accounts.ca_file.clone())
            .await
            .map_err(AccountError::Use)?;
        let client = crate::client(config, &self.namespace, &self.server, Arc::clone(&accounts.meters));
        let client = client.map_err(AccountError::Connect)?;
        let cluster = Self {
            open: client.clone(),
            client,
            account: Some(account.as_str().into()),
            kubeconfig: Some(kubeconfig.clone()),
            uses_plugin: false,
            ..self.clone()
        };
        let cluster = cluster.paced();
        Ok(Actor { kubeconfig, cluster })
    }
}

/// The failure of a job: it names the missing account or right.
fn told(error: AccountError, account: &AccountName, namespace: &str) -> Failure {
    let attempt = format!("cannot act as service account '{account}'");
    match error {
        AccountError::Token(error) => {
            let is_missing = error.is_not_found();
            let failure = Failure::from(error).within(attempt);
            if is_missing {
                failure.hint(format!(
                    "create the service account '{account}' in namespace '{namespace}', or correct 'serviceAccount' in \
                     module.yaml"
                ))
            } else {
                failure
            }
        }
        AccountError::Keep(_) | AccountError::Use(_) | AccountError::Connect(_) => {
            Failure::new(Class::Unavailable, format!("{attempt}: {}", Chain(&error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_token_is_used_while_it_lasts_for_what_is_needed() {
        assert!(lasts(60 * MINUTE, 15 * MINUTE, 10 * MINUTE));
        assert!(
            !lasts(60 * MINUTE, 11 * MINUTE, 10 * MINUTE),
            "a child may take longer to end"
        );
        assert!(!lasts(60 * MINUTE, Duration::ZERO, Duration::ZERO));
        assert!(
            lasts(10 * MINUTE, 6 * MINUTE, 20 * MINUTE),
            "an API server that grants less is not asked each time"
        );
        assert!(!lasts(10 * MINUTE, 4 * MINUTE, 20 * MINUTE));
        assert!(
            !lasts(Duration::MAX, Duration::ZERO, Duration::ZERO),
            "what was forgotten"
        );
    }
}
