//! A program for images of tests: it serves the files that it sees in its container.
//!
//! `inhabitant PORT [FOLDER]` answers every GET with the file of that path, or with 404. If the folder has `tls.crt`
//! and `tls.key`, it uses TLS and answers every POST like a webhook that refuses.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use fs_err as fs;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let port: u16 = words.next().unwrap_or_default().parse()?;
    let tls = words.next().map(|folder| acceptor(&folder)).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let tls = tls.clone();
        connections.spawn(async move {
            match tls {
                None => serve(stream).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream).await;
                    }
                }
            }
        });
    }
}

fn acceptor(folder: &str) -> anyhow::Result<TlsAcceptor> {
    let certificate = CertificateDer::from_pem_file(format!("{folder}/tls.crt"))?;
    let key = PrivateKeyDer::from_pem_file(format!("{folder}/tls.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send) {
    // A client that disconnects has its answer already.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

async fn answer(request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    if request.method() == Method::POST {
        let body = request
            .into_body()
            .collect()
            .await
            .map_err(io::Error::other)?
            .to_bytes();
        let review: Value = serde_json::from_slice(&body)?;
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {
                "uid": review["request"]["uid"], "allowed": false, "status": { "message": "refused in the pod" },
            },
        });
        return Ok(Response::new(Full::from(answer.to_string())));
    }
    if let Ok(content) = fs::read(request.uri().path()) {
        return Ok(Response::new(Full::from(content)));
    }
    let mut answer = Response::new(Full::from("there is none\n"));
    *answer.status_mut() = StatusCode::NOT_FOUND;
    Ok(answer)
}
