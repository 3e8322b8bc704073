//! Runs a command in a container, with its input and output in a WebSocket.
//!
//! The protocol is `v5.channel.k8s.io`: the first byte of a message names its stream. There are no terminals: a command
//! that asks for one gets pipes.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use futures::{SinkExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{Asked, Body, ServeError, runs};
use crate::node::child::Inside;

const PROTOCOL: &str = "v5.channel.k8s.io";

const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ERRORS: u8 = 2;
const OUTCOME: u8 = 3;
/// The first byte of a message that ends a stream; the next byte names that stream.
const CLOSE: u8 = 255;

/// Accepts the WebSocket. The command runs while the connection exists.
pub(super) fn answer(
    folder: &Path,
    container: &str,
    asked: &Asked,
    request: Request<Incoming>,
) -> Result<(Response<Body>, impl Future<Output = ()> + Send + use<>), ServeError> {
    let key = request.headers().get(SEC_WEBSOCKET_KEY).ok_or(ServeError::Upgrade)?;
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| ServeError::Upgrade)?;
    let offered = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    if !offered.any(|protocol| protocol.trim() == PROTOCOL) {
        return Err(ServeError::Upgrade);
    }
    let (_, run) = runs(&folder.join("containers").join(container))
        .pop()
        .ok_or_else(|| ServeError::Still(container.to_owned()))?;
    let inside = Inside::of(&run).ok_or_else(|| ServeError::Still(container.to_owned()))?;
    let words: Vec<String> = asked.all("command").map(str::to_owned).collect();
    let with_input = asked.is_set("input");
    let work = async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            // A client that has disconnected gets no error.
            let _ = run_in(socket, &inside, &words, with_input).await;
        }
    };
    let mut answer = Response::new(Empty::<Bytes>::new().boxed_unsync());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    Ok((answer, work))
}

type Socket = WebSocketStream<TokioIo<Upgraded>>;

async fn run_in(socket: Socket, inside: &Inside, words: &[String], with_input: bool) -> anyhow::Result<()> {
    let (mut out, mut into) = socket.split();
    let input = if with_input { Stdio::piped() } else { Stdio::null() };
    let mut running = match inside.start(words, [input, Stdio::piped(), Stdio::piped()]) {
        Ok(running) => running,
        Err(error) => {
            out.send(channel(
                OUTCOME,
                failure(&error.to_string(), None).to_string().as_bytes(),
            ))
            .await?;
            return Ok(out.send(end()).await?);
        }
    };
    let (tell, mut said) = mpsc::channel::<Message>(16);
    let (output, errors) = (running.output.take(), running.errors.take());
    let (output, errors) = (
        pass_on(OUTPUT, output, tell.clone()),
        pass_on(ERRORS, errors, tell.clone()),
    );
    let mut input = running.input.take().map(pipe::Sender::from_owned_fd).transpose()?;
    let work = async {
        futures::join!(output, errors);
        let outcome = match running.end.come().await {
            0 => json!({ "metadata": {}, "status": "Success" }),
            code => failure(
                &format!("command terminated with non-zero exit code: {code}"),
                Some(code),
            ),
        };
        // This drops the last sender, so that the channel ends.
        drop(tell.send(channel(OUTCOME, outcome.to_string().as_bytes())).await);
        drop(tell);
    };
    let send = async {
        while let Some(message) = said.recv().await {
            out.send(message).await?;
        }
        out.send(end()).await
    };
    let feed = async {
        while let Some(Ok(message)) = into.next().await {
            match message {
                Message::Binary(bytes) => take_in(&mut input, &bytes).await,
                Message::Close(_) => return,
                _ => {}
            }
        }
    };
    tokio::select! {
        ((), sent) = futures::future::join(work, send) => Ok(sent?),
        () = feed => Ok(()),
    }
}

/// Handles a message of the client: input, or the end of input.
async fn take_in(input: &mut Option<pipe::Sender>, message: &[u8]) {
    match message {
        [INPUT, bytes @ ..] => {
            if let Some(pipe) = input
                && pipe.write_all(bytes).await.is_err()
            {
                *input = None;
            }
        }
        [CLOSE, INPUT] => *input = None,
        _ => {}
    }
}

async fn pass_on(number: u8, pipe: Option<OwnedFd>, tell: mpsc::Sender<Message>) {
    let Some(Ok(mut pipe)) = pipe.map(pipe::Receiver::from_owned_fd) else {
        return;
    };
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count) = pipe.read(&mut bytes).await {
        if count == 0 || tell.send(channel(number, &bytes[..count])).await.is_err() {
            return;
        }
    }
}

/// A close message with a status, because clients take a close without one for a broken connection.
fn end() -> Message {
    Message::Close(Some(CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    }))
}

fn channel(number: u8, bytes: &[u8]) -> Message {
    Message::Binary([&[number], bytes].concat().into())
}

fn failure(message: &str, code: Option<i32>) -> Value {
    match code {
        Some(code) => json!({
            "metadata": {}, "status": "Failure", "message": message, "reason": "NonZeroExitCode",
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
        }),
        None => json!({ "metadata": {}, "status": "Failure", "message": message, "reason": "InternalError" }),
    }
}
