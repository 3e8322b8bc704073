//! Traces reach a collector that is named, and say what took how long; a collector that is away is no reason to wait.
//! The receiver is what any collector begins with: the protocol's own service, with everything that arrives kept.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fs_err as fs;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
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

/// What has arrived: whole requests, each with its authorization.
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
    /// Serves until the runtime ends.
    fn serve(&self, runtime: &Runtime) -> SocketAddr {
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let service = TraceServiceServer::new(self.clone());
        runtime.spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpIncoming::from(listener)),
        );
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

    /// The spans of that name that are about that.
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

/// Hooks alone, in a namespace of their own.
struct Operator {
    bound: Bound,
    log: PathBuf,
    _namespace: Namespace<'static>,
    _folder: TempDir,
}

impl Operator {
    fn start(prefix: &str, collector: SocketAddr) -> Self {
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
        command.env("TRACING_OTLP_ENDPOINT", collector.to_string());
        command.env("TRACING_OTLP_AUTH_TOKEN", "letmein");
        // The collector's own name for how long a batch waits for company, in milliseconds.
        command.env("OTEL_BSP_SCHEDULE_DELAY", "100");
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

    /// How long it takes to end when it is asked to.
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
    let mut operator = Operator::start("traces", receiver.serve(&runtime));

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
    // The program that it ran is a step of it.
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
    // A port on which nobody listens any more.
    let gone = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let mut operator = Operator::start("traces-away", gone);
    operator.wait_for("the word is opensesame");
    let took = operator.stop();
    assert!(took < Duration::from_secs(15), "{took:?}");
}
