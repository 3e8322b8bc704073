//! The client of the debug socket: one request, one answer.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// The timeout of a request. An operator that has not answered in this time hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// The timeout for requests that make the operator work, such as rendering a chart.
const MUCH_PATIENCE: Duration = Duration::from_mins(5);
const FORM: &str = "application/x-www-form-urlencoded";

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum SocketError {
    #[error("debug socket '{}' does not exist", path.display())]
    Absent { path: PathBuf },
    #[error("cannot connect to debug socket '{}'", path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("the operator did not answer within {} s", patience.as_secs())]
    Late { patience: Duration },
    #[error("'{path}' is no path")]
    Path { path: String, source: hyper::http::Error },
    #[error("cannot talk to the operator")]
    Talk(#[from] hyper::Error),
    #[error("cannot understand the operator's answer")]
    Unexpected(#[from] serde_json::Error),
    #[error("{message}")]
    Refused { message: String, status: StatusCode },
    /// The operator cannot answer now; another replica may answer, or the operator may answer later.
    #[error("{message}")]
    Unable { message: String },
    #[error("cannot start the client")]
    Runtime(#[source] io::Error),
}

impl SocketError {
    pub fn hints(&self) -> Vec<&'static str> {
        match self {
            Self::Absent { .. } => {
                vec!["does the operator run here? its --debug-unix-socket or DEBUG_UNIX_SOCKET says where it listens"]
            }
            Self::Connect { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => vec!["only the user that the operator runs as may open it"],
                _ => vec!["the operator that made the socket may have ended"],
            },
            Self::Refused { message, .. } if message.contains("module") => {
                vec!["`addon-operator module list -o wide` names all modules"]
            }
            Self::Refused {
                status: StatusCode::NOT_FOUND,
                ..
            } => {
                vec!["not everything has every form, try `-o json`; `addon-operator raw /discovery` lists all paths"]
            }
            Self::Refused { .. }
            | Self::Unable { .. }
            | Self::Late { .. }
            | Self::Path { .. }
            | Self::Talk(_)
            | Self::Unexpected(_)
            | Self::Runtime(_) => Vec::new(),
        }
    }
}

/// The address of the socket.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    /// Whether answers contain secrets.
    show_secrets: bool,
}

impl Socket {
    pub fn new(path: PathBuf, show_secrets: bool) -> Self {
        Self { path, show_secrets }
    }

    /// The path with its query.
    fn asked(&self, path: &str) -> String {
        let mark = if path.contains('?') { '&' } else { '?' };
        if self.show_secrets {
            format!("{path}{mark}showSecrets=true")
        } else {
            path.to_owned()
        }
    }

    /// The answer to a path.
    pub fn get(&self, path: &str) -> Result<String, SocketError> {
        let path = self.asked(path);
        self.request(Request::get(&path), &path, String::new(), PATIENCE)
    }

    /// The answer to a path for which the operator has to work.
    pub fn get_patiently(&self, path: &str) -> Result<String, SocketError> {
        let path = self.asked(path);
        self.request(Request::get(&path), &path, String::new(), MUCH_PATIENCE)
    }

    /// The answer parsed as JSON.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, SocketError> {
        Ok(serde_json::from_str(&self.get(path)?)?)
    }

    /// The answer to a POST with a form, for which the operator has to work.
    pub fn post_patiently(&self, path: &str, fields: &[(&str, &str)]) -> Result<String, SocketError> {
        self.post_within(MUCH_PATIENCE, path, fields)
    }

    /// The answer to a POST with a form.
    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Result<String, SocketError> {
        self.post_within(PATIENCE, path, fields)
    }

    fn post_within(&self, patience: Duration, path: &str, fields: &[(&str, &str)]) -> Result<String, SocketError> {
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
        let request = Request::builder()
            .method(Method::POST)
            .header(header::CONTENT_TYPE, FORM)
            .uri(path);
        self.request(request, path, fields.join("&"), patience)
    }

    fn request(
        &self,
        request: hyper::http::request::Builder,
        path: &str,
        body: String,
        patience: Duration,
    ) -> Result<String, SocketError> {
        let request = request
            .header(header::HOST, "localhost")
            .body(Full::new(Bytes::from(body)))
            .map_err(|source| SocketError::Path {
                path: path.to_owned(),
                source,
            })?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SocketError::Runtime)?;
        runtime.block_on(async {
            timeout(patience, self.exchange(request))
                .await
                .map_err(|_| SocketError::Late { patience })?
        })
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<String, SocketError> {
        let stream = UnixStream::connect(&self.path)
            .await
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => SocketError::Absent {
                    path: self.path.clone(),
                },
                _ => SocketError::Connect {
                    path: self.path.clone(),
                    source,
                },
            })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>((status, String::from_utf8_lossy(&body).into_owned()))
        };
        let (status, body) = tokio::select! {
            answer = answer => answer?,
            // The connection's future ends first only if the connection broke.
            Err(broken) = connection => return Err(broken.into()),
        };
        if status.is_success() {
            return Ok(body);
        }
        let message = body.trim_end();
        let message = if message.is_empty() {
            status.to_string()
        } else {
            message.to_owned()
        };
        if status == StatusCode::SERVICE_UNAVAILABLE {
            return Err(SocketError::Unable { message });
        }
        Err(SocketError::Refused { message, status })
    }
}

/// Percent-encodes a text for a path or a form.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
