//! Traces are sent to the configured collector, and show the duration of each step. A collector that does not answer
//! delays nothing. The receiver here implements the OTLP service and keeps everything that it gets.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fs::Permissions;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use tempfile::{NamedTempFile, TempDir};
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::port::KeptPort;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;
use tokio::runtime::Runtime;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

const PATIENCE: Duration = Duration::from_mins(1);

const GOOD: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then echo 'configVersion: v1
onStartup: 1'; exit; fi
echo "the word is opensesame"
"#;
const BAD: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then echo 'configVersion: v1
schedule: [{name: often, crontab: "* * * * * *", allowFailure: true}]'; exit; fi
echo "no, it is opensesame" >&2
exit 3
"#;

/// The received requests, each with its `authorization` header.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let who = request
            .metadata()
            .get("authorization")
            .map(|value| value.to_str().unwrap().to_owned());
        self.0
            .lock()
            .unwrap()
            .push((who.unwrap_or_default(), request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Receiver {
    /// Serves until the runtime ends; with TLS if a certificate is given.
    fn serve(&self, runtime: &Runtime, proof: Option<&Proof>) -> SocketAddr {
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let service = TraceServiceServer::new(self.clone());
        let mut server = Server::builder();
        if let Some(Proof { cert, key, .. }) = proof {
            let tls = ServerTlsConfig::new().identity(Identity::from_pem(cert, key));
            server = server.tls_config(tls).unwrap();
        }
        let server = server.add_service(service);
        runtime.spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        address
    }

    fn requests(&self) -> Vec<(String, ExportTraceServiceRequest)> {
        self.0.lock().unwrap().clone()
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self
            .requests()
            .into_iter()
            .flat_map(|(_, request)| request.resource_spans);
        requests
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect()
    }

    /// The spans with this name, and with this value of an attribute.
    fn spans_of(&self, name: &str, attribute: &str, value: &str) -> Vec<Span> {
        let about = |span: &Span| told(span, attribute).is_some_and(|found| found.ends_with(value));
        self.spans()
            .into_iter()
            .filter(|span| span.name == name && about(span))
            .collect()
    }
}

fn told(span: &Span, attribute: &str) -> Option<String> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let found = span.attributes.iter().find(|found| found.key == attribute)?;
    let Value::StringValue(text) = found.value.clone()?.value? else {
        return None;
    };
    Some(text)
}

/// A collector's certificate as PEM, its key, and the authority that signed it.
struct Proof {
    ca: String,
    cert: String,
    key: String,
}

impl Proof {
    fn new() -> Self {
        let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&ca_key).unwrap().pem();
        let issuer = Issuer::new(params, ca_key);
        let params = CertificateParams::new([Ipv4Addr::LOCALHOST.to_string()]).unwrap();
        let cert = params.signed_by(&key, &issuer).unwrap().pem();
        let key = key.serialize_pem();
        Self { ca, cert, key }
    }

    /// A file with the authority's certificate.
    fn authority(&self) -> NamedTempFile {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), &self.ca).unwrap();
        file
    }
}

/// An operator that serves hooks without modules, in a namespace of its own.
struct Operator {
    bound: Bound,
    log: PathBuf,
    _namespace: Namespace<'static>,
    _folder: TempDir,
}

impl Operator {
    fn start(prefix: &str, endpoint: &str, more: &[(&str, &Path)]) -> Self {
        let plane = testbed::shared::plane();
        let namespace = plane.namespace(prefix).unwrap();
        let folder = tempfile::Builder::new()
            .prefix("traces-")
            .tempdir_in(plane.folder())
            .unwrap();
        let path = |inside: &str| folder.path().join(inside);
        fs::create_dir(path("hooks")).unwrap();
        for (name, text) in [("good.sh", GOOD), ("bad.sh", BAD)] {
            fs::write(path("hooks").join(name), text).unwrap();
            fs::set_permissions(path("hooks").join(name), Permissions::from_mode(0o755)).unwrap();
        }
        let log = path("log");
        namespace.show_on_panic("operator", &log);
        let output = fs::File::create(&log).unwrap().into_parts().0;
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command.args(["hooks", "start"]).current_dir(folder.path()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", path("home"));
        command.env("KUBECONFIG", namespace.kubeconfig(User::Operator));
        command.env("SHELL_OPERATOR_NAMESPACE", namespace.name());
        command
            .env("SHELL_OPERATOR_HOOKS_DIR", path("hooks"))
            .env("SHELL_OPERATOR_TMP_DIR", path("tmp"));
        command
            .env("SHELL_OPERATOR_LISTEN_ADDRESS", "127.0.0.1")
            .env("SHELL_OPERATOR_LISTEN_PORT", "0");
        command.env("DEBUG_UNIX_SOCKET", path("debug.socket"));
        command.env("TRACING_OTLP_ENDPOINT", endpoint);
        command.env("TRACING_OTLP_AUTH_TOKEN", "letmein");
        // The standard OpenTelemetry variable for the delay of a batch, in milliseconds.
        command.env("OTEL_BSP_SCHEDULE_DELAY", "100");
        command.envs(more.iter().copied());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        let bound = Bound::start(command, Bond::Group).unwrap();
        Self {
            bound,
            log,
            _namespace: namespace,
            _folder: folder,
        }
    }

    fn wait_for(&self, words: &str) {
        let look = || Ok::<_, String>(self.said().contains(words).then_some(()));
        wait_until(PATIENCE, &format!("'{words}' in the log"), look).unwrap();
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Stops the operator, and returns how long that took.
    fn stop(&mut self) -> Duration {
        let begin = Instant::now();
        process::signal(self.bound.id(), libc::SIGTERM);
        let status = wait_until(PATIENCE, "the end of the operator", || self.bound.ended()).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.said());
        begin.elapsed()
    }
}

#[test]
fn a_collector_is_told_what_runs_and_how_it_ends() {
    let runtime = Runtime::new().unwrap();
    let receiver = Receiver::default();
    let collector = receiver.serve(&runtime, None).to_string();
    let mut operator = Operator::start("traces", &collector, &[]);

    let first_of = |hook: &str| {
        let look = || Ok::<_, String>(receiver.spans_of("run hook", "hook", hook).into_iter().next());
        wait_until(PATIENCE, &format!("a trace of {hook}"), look).unwrap()
    };
    let good = first_of("good.sh");
    assert_eq!(told(&good, "binding").as_deref(), Some("onStartup"));
    assert_eq!(good.status.clone().unwrap_or_default().code(), StatusCode::Unset);
    assert!(good.parent_span_id.is_empty() && good.end_time_unix_nano > good.start_time_unix_nano);

    let bad = first_of("bad.sh");
    assert_eq!(told(&bad, "binding.name").as_deref(), Some("often"));
    assert_eq!(told(&bad, "queue").as_deref(), Some("main"));
    let status = bad.status.clone().unwrap();
    assert_eq!(
        (status.code(), status.message.as_str()),
        (StatusCode::Error, "hook_failed")
    );
    // The process of the hook has a span of its own below the span of the run.
    let steps = receiver.spans_of("process", "program", "bad.sh");
    let step = steps.iter().find(|step| step.trace_id == bad.trace_id).unwrap();
    assert_eq!(step.parent_span_id, bad.span_id);
    assert_eq!(step.status.clone().unwrap().message, "exit status 3");

    operator.stop();
    for (who, request) in receiver.requests() {
        assert_eq!(who, "Bearer letmein");
        let resource = request.resource_spans[0].resource.clone().unwrap();
        let service = resource
            .attributes
            .iter()
            .find(|told| told.key == "service.name")
            .unwrap();
        assert!(format!("{service:?}").contains("shell-operator"), "{service:?}");
    }
    let everything = format!("{:?}", receiver.requests());
    assert!(
        !everything.contains("opensesame"),
        "what hooks print is no part of a trace"
    );
    assert!(!operator.said().contains("letmein"), "{}", operator.said());
}

#[test]
fn a_collector_that_is_away_holds_up_nothing() {
    let port = KeptPort::keep().unwrap();
    let collector = format!("127.0.0.1:{}", port.number());
    let mut operator = Operator::start("traces-away", &collector, &[]);
    operator.wait_for("the word is opensesame");
    let took = operator.stop();
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[test]
fn a_collector_proves_who_it_is_by_whom_we_trust() {
    let runtime = Runtime::new().unwrap();
    let proof = Proof::new();
    let authority = proof.authority();
    // Two sources of authorities: the variable for traces, and the one for the whole machine.
    for variable in ["OTEL_EXPORTER_OTLP_CERTIFICATE", "SSL_CERT_FILE"] {
        let receiver = Receiver::default();
        let endpoint = format!("https://{}", receiver.serve(&runtime, Some(&proof)));
        let mut operator = Operator::start("traces-tls", &endpoint, &[(variable, authority.path())]);
        let look = || {
            let told = receiver.spans_of("run hook", "hook", "good.sh");
            Ok::<_, String>((!told.is_empty()).then_some(()))
        };
        wait_until(PATIENCE, &format!("a trace, with {variable}"), look).unwrap();
        operator.stop();
    }
}

/// Makes one TLS handshake, and returns its result.
fn greet(listener: &TcpListener, proof: &Proof) -> io::Result<()> {
    let certificate = CertificateDer::from_pem_slice(proof.cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(proof.key.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key);
    let mut connection = ServerConnection::new(Arc::new(config.unwrap())).unwrap();
    let (mut stream, _) = listener.accept()?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(())
}

#[test]
fn a_collector_for_whom_a_stranger_vouches_is_told_nothing() {
    let proof = Proof::new();
    let authority = Proof::new().authority();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    let (ended, how) = mpsc::channel();
    thread::spawn(move || ended.send(greet(&listener, &proof)));
    let trust = [("OTEL_EXPORTER_OTLP_CERTIFICATE", authority.path())];
    let mut operator = Operator::start("traces-stranger", &endpoint, &trust);
    let refusal = how.recv_timeout(PATIENCE).unwrap().unwrap_err();
    let inner = refusal
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    assert!(matches!(inner, Some(rustls::Error::AlertReceived(_))), "{refusal}");
    operator.wait_for("the word is opensesame");
    operator.stop();
}

#[test]
fn a_file_that_vouches_for_nobody_is_refused_at_the_start() {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), "collector.example").unwrap();
    let missing = file.path().with_extension("missing");
    let place = file.path().display();
    for (path, told) in [
        (
            file.path(),
            format!(
                "cannot use {place} as certificate authorities for the collector of traces: it holds no certificate"
            ),
        ),
        (&missing, format!("failed to open file `{}`", missing.display())),
    ] {
        let trust = [("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", path)];
        let mut operator = Operator::start("traces-refused", "https://127.0.0.1:4317", &trust);
        let status = wait_until(PATIENCE, "a refused start", || operator.bound.ended()).unwrap();
        let said = operator.said();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains(&told), "{said}");
    }
}
