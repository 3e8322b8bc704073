//! Authentication: which token or login a registry demands, where it comes from, and how long it is kept.
//!
//! A token is requested for one repository. Only a client that pushes requests a token for pushing. A login must never
//! be sent to another host than the one it is for, except to the token issuer that this host names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use serde::Deserialize;

use super::challenge::{Challenge, Issuer, challenges};
use super::credentials::{Credentials, Login, ReadCredentials};
use super::error::Problem;
use super::place::{Host, ImagePlace, Repository};
use super::said;
use super::url::{Origin, Url, escaped};
use super::way::{Nearness, Reach};
use super::wire::{Answer, Body, Question, Wire};

/// The size limit of a token issuer's answer.
const TOKEN: usize = 256 << 10;
/// The lifetime of a token for which the issuer states none.
const LIFE: Duration = Duration::from_mins(1);
/// The longest time for which a token is kept.
const LONGEST_LIFE: Duration = Duration::from_hours(24);
/// The client id in requests for tokens.
const CLIENT: &str = "addon-operator";

/// The server that is asked: the registry or a mirror of it.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) host: Host,
    pub(super) origin: Origin,
    /// The repository's name at this server.
    pub(super) repository: Repository,
    /// For a mirror: the registry that it mirrors.
    pub(super) of: Option<Host>,
}

/// Valid credentials for a server.
#[derive(Clone)]
struct Pass {
    header: HeaderValue,
    until: Option<Instant>,
    /// The login, if it is sent directly.
    login: Option<Login>,
}

/// The source of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Kept,
    Anew,
}

/// The rights that a client asks token issuers for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rights {
    /// To read a repository.
    #[default]
    Pull,
    /// To read a repository and to write to it.
    Push,
}

/// Sends requests with the credentials that the registry demands.
pub(super) struct Admission {
    wire: Wire,
    rights: Rights,
    read: ReadCredentials,
    credentials: Mutex<Option<Arc<Credentials>>>,
    passes: Mutex<BTreeMap<(Origin, Repository), Pass>>,
}

impl Admission {
    pub(super) fn new(wire: Wire, rights: Rights, read: ReadCredentials) -> Self {
        Self {
            wire,
            rights,
            read,
            credentials: Mutex::default(),
            passes: Mutex::default(),
        }
    }

    pub(super) fn origin(&self, host: &Host) -> Origin {
        self.wire.origin(host)
    }

    pub(super) fn patience(&self) -> Duration {
        self.wire.limits.call
    }

    /// Sends a request with the needed credentials. Every status except success is a problem.
    pub(super) async fn ask(&self, server: &Server, mut question: Question) -> Result<Answer, Problem> {
        let kept = self.kept(server);
        question.authorization = kept.as_ref().map(|pass| pass.header.clone());
        let mut answer = self.wire.ask(question.clone(), Reach::Any).await?;
        let mut shown = None;
        if is_refusal(&answer)
            && let Some(pass) = kept
        {
            self.forget(server);
            shown = pass.login.map(Some);
            if ways_in(server, &answer).is_empty() {
                // Some registries answer only "forbidden" for an expired login, so the request is repeated without it
                // to get the challenge.
                question.authorization = None;
                answer = self.wire.ask(question.clone(), Reach::Any).await?;
            }
        }
        let mut ways = ways_in(server, &answer);
        let mut denied = None;
        for source in [Source::Kept, Source::Anew] {
            if !is_refusal(&answer) || ways.is_empty() {
                break;
            }
            let login = self.login(server, source).await?;
            if shown.as_ref() == Some(&login) {
                continue;
            }
            let pass = self.pass(server, &ways, login.as_ref(), answer.nearness).await;
            shown = Some(login);
            match pass {
                Ok(None) => {}
                Err(problem @ Problem::Denied { .. }) => denied = Some(problem),
                Err(problem) => return Err(problem),
                Ok(Some(pass)) => {
                    denied = None;
                    question.authorization = Some(pass.header.clone());
                    answer = self.wire.ask(question.clone(), Reach::Any).await?;
                    let more = ways_in(server, &answer);
                    if !is_refusal(&answer) {
                        self.keep(server, pass);
                    } else if !more.is_empty() {
                        ways = more;
                    }
                }
            }
        }
        denied.map_or_else(|| judged(answer), Err)
    }

    fn kept(&self, server: &Server) -> Option<Pass> {
        let passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        let pass = passes.get(&server.key())?;
        let is_good = pass.until.is_none_or(|until| Instant::now() < until);
        is_good.then(|| pass.clone())
    }

    fn keep(&self, server: &Server, pass: Pass) {
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.insert(server.key(), pass);
    }

    fn forget(&self, server: &Server) {
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.remove(&server.key());
    }

    async fn login(&self, server: &Server, source: Source) -> Result<Option<Login>, Problem> {
        let kept = {
            let kept = self.credentials.lock().unwrap_or_else(PoisonError::into_inner);
            kept.clone().filter(|_| source == Source::Kept)
        };
        let credentials = if let Some(kept) = kept {
            kept
        } else {
            let read = Arc::new((self.read)().await.map_err(Problem::Credentials)?);
            let mut kept = self.credentials.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(Arc::clone(&read));
            read
        };
        let place = ImagePlace {
            host: server.host.clone(),
            repository: server.repository.clone(),
        };
        Ok(credentials.for_place(&place).cloned())
    }

    /// Obtains credentials by the first supported challenge. A token is preferred, because it exposes the least.
    async fn pass(
        &self,
        server: &Server,
        ways: &[Challenge],
        login: Option<&Login>,
        nearness: Nearness,
    ) -> Result<Option<Pass>, Problem> {
        let mut astray = None;
        for way in ways {
            let Challenge::Bearer(issuer) = way else { continue };
            match Url::parse(&issuer.realm).filter(|url| self.wire.admits(url)) {
                Some(url) => return self.token(server, issuer, url, login, nearness).await.map(Some),
                None => {
                    astray = Some(Problem::Astray {
                        to: said::line(&issuer.realm),
                        why: "tokens are not asked for there, for it is no address with TLS",
                    });
                }
            }
        }
        match login {
            Some(login @ Login::Password { user, password }) if ways.contains(&Challenge::Basic) => Ok(Some(Pass {
                header: basic(user, password),
                until: None,
                login: Some(login.clone()),
            })),
            _ => astray.map_or(Ok(None), Err),
        }
    }

    async fn token(
        &self,
        server: &Server,
        issuer: &Issuer,
        url: Url,
        login: Option<&Login>,
        nearness: Nearness,
    ) -> Result<Pass, Problem> {
        let asked_at = Instant::now();
        let shown = url.to_string();
        let answer = self
            .wire
            .ask(self.plea(server, issuer, url, login), Reach::As(nearness))
            .await?;
        let issued: Issued = match judged(answer) {
            Ok(answer) => serde_json::from_slice(&answer.body).map_err(Problem::Syntax)?,
            // According to the specification this status refuses a refresh token.
            Err(Problem::Status { status: 400, said }) => return Err(Problem::Denied { status: 400, said }),
            Err(Problem::Absent) => {
                let said = "nobody issues tokens there".to_owned();
                return Err(Problem::Status { status: 404, said });
            }
            Err(problem) => return Err(problem),
        };
        let token = [issued.token, issued.access_token]
            .into_iter()
            .flatten()
            .find(|token| !token.is_empty());
        let header = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
        let mut header = header.ok_or(Problem::Token { issuer: shown })?;
        header.set_sensitive(true);
        let life = issued.expires_in.map_or(LIFE, Duration::from_secs).min(LONGEST_LIFE);
        Ok(Pass {
            header,
            until: Some(asked_at + life),
            login: None,
        })
    }
}

impl Admission {
    /// The request for a token.
    fn plea(&self, server: &Server, issuer: &Issuer, url: Url, login: Option<&Login>) -> Question {
        let Issuer { service, scope, .. } = issuer;
        let service = service.as_deref().unwrap_or_default();
        let actions = match self.rights {
            Rights::Pull => "pull",
            Rights::Push => "pull,push",
        };
        let mut scopes = vec![format!("repository:{}:{actions}", server.repository)];
        // One cloud uses scopes without a colon, which are passed on. Other scopes are replaced by the scope above.
        let own = scope.iter().flat_map(|scope| scope.split_ascii_whitespace());
        scopes.extend(own.filter(|word| !word.contains(':')).map(str::to_owned));
        let mut question = Question {
            method: Method::GET,
            url,
            accept: "application/json",
            authorization: None,
            body: None,
            limit: TOKEN,
            into: None,
        };
        if let Some(Login::Refresh(token)) = login {
            let fields = [
                ("grant_type", "refresh_token"),
                ("service", service),
                ("client_id", CLIENT),
                ("scope", &scopes.join(" ")),
                ("refresh_token", token),
            ];
            let fields = fields.map(|(key, value)| format!("{key}={}", escaped(value)));
            question.method = Method::POST;
            question.body = Some(Body {
                kind: HeaderValue::from_static("application/x-www-form-urlencoded"),
                bytes: fields.join("&").into(),
            });
            return question;
        }
        if !service.is_empty() {
            question.url = question.url.with("service", service);
        }
        for scope in &scopes {
            question.url = question.url.with("scope", scope);
        }
        if let Some(Login::Password { user, password }) = login {
            question.authorization = Some(basic(user, password));
        }
        question
    }
}

impl Server {
    fn key(&self) -> (Origin, Repository) {
        (self.origin.clone(), self.repository.clone())
    }
}

/// The token that an issuer answers with.
#[derive(Deserialize)]
struct Issued {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

fn basic(user: &str, password: &str) -> HeaderValue {
    let pair = STANDARD.encode(format!("{user}:{password}"));
    let mut header = HeaderValue::try_from(format!("Basic {pair}")).expect("base64 is letters, digits and three signs");
    header.set_sensitive(true);
    header
}

fn is_refusal(answer: &Answer) -> bool {
    matches!(answer.status.as_u16(), 401 | 403)
}

/// The challenges of an answer. If the registry redirected to another host, the challenges of that host are ignored, so
/// that this host cannot choose where credentials go.
fn ways_in(server: &Server, answer: &Answer) -> Vec<Challenge> {
    if answer.url.origin == server.origin {
        challenges(&answer.headers)
    } else {
        Vec::new()
    }
}

fn judged(answer: Answer) -> Result<Answer, Problem> {
    let status = answer.status.as_u16();
    if answer.status.is_success() {
        return Ok(answer);
    }
    let now = Timestamp::now();
    let said = || said::reason(&answer.body);
    Err(match (status, said::retry_after(&answer.headers, now)) {
        (404, _) => Problem::Absent,
        (429, _) => Problem::Slow {
            until: said::pause(&answer.headers, now),
        },
        (503, Some(until)) => Problem::Slow { until },
        (401 | 403, _) => Problem::Denied { status, said: said() },
        _ => Problem::Status { status, said: said() },
    })
}
