//! Spans, and the thread that sends them in batches.
//!
//! The tracer of a span comes from the context of its trace, so there is no global tracer. A job never waits: when the
//! collector does not answer, spans are dropped.

use std::time::Duration;

use opentelemetry::context::FutureExt;
use opentelemetry::trace::{SpanBuilder, Status, TraceContextExt, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::tonic_types::metadata::MetadataMap;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use settings::{TraceSettings, Trust};
use tracing::warn;

use super::{Attributes, Ending, TracesError};

/// The scope of the operator's spans in a collector.
const SCOPE: &str = "addon-operator";
/// The timeout of sending a batch.
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// The timeout of sending the last batch, when everything else has ended.
const LAST_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Sender {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Sender {
    pub(super) fn start(settings: &TraceSettings, service: &'static str) -> Result<Self, TracesError> {
        let TraceSettings { endpoint, token, trust } = settings;
        let mut metadata = MetadataMap::new();
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().map_err(|_| TracesError::Token)?;
            metadata.insert("authorization", value);
        }
        let mut exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_timeout(SEND_WITHIN)
            .with_metadata(metadata);
        if let Some(trust) = trust {
            exporter = exporter.with_tls_config(tls(trust)?);
        }
        let exporter = exporter.build().map_err(|source| TracesError::Exporter {
            endpoint: endpoint.clone(),
            source,
        })?;
        let resource = Resource::builder()
            .with_service_name(service)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        let tracer = provider.tracer(SCOPE);
        Ok(Self { provider, tracer })
    }

    pub(super) fn tracer(&self) -> SdkTracer {
        self.tracer.clone()
    }

    pub(super) async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(LAST_WITHIN)).await;
        if let Ok(Err(error)) = stopped {
            warn!(%error, "The last traces could not be sent");
        }
    }
}

/// The TLS settings. A file is checked here, because its mistakes would otherwise look like a collector that never
/// answers.
fn tls(trust: &Trust) -> Result<ClientTlsConfig, TracesError> {
    let file = match trust {
        Trust::System => return Ok(ClientTlsConfig::new().with_native_roots()),
        Trust::File(file) => file,
    };
    let authorities = |problem: &'static str| {
        let file = file.clone();
        TracesError::Authorities { file, problem }
    };
    let text = fs_err::read(file).map_err(TracesError::Unread)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|_| authorities("it is not PEM text"))?;
    if found.is_empty() {
        return Err(authorities("it holds no certificate in PEM form"));
    }
    let mut roots = RootCertStore::empty();
    for certificate in found {
        let added = roots.add(certificate);
        added.map_err(|_| authorities("it holds no certificate of an authority"))?;
    }
    Ok(ClientTlsConfig::new().trust_anchors(roots.roots))
}

/// The tracer of the current trace.
pub(super) fn tracer_of_whole() -> Option<SdkTracer> {
    Context::map_current(|context| context.get::<SdkTracer>().cloned())
}

pub(super) async fn span<T>(
    tracer: SdkTracer,
    name: &'static str,
    attributes: Attributes,
    work: impl Future<Output = T>,
    ending: impl FnOnce(&T) -> Ending,
) -> T {
    let attributes = attributes.into_iter().map(|(name, value)| KeyValue::new(name, value));
    let builder = SpanBuilder::from_name(name).with_attributes(attributes);
    let outer = Context::current();
    let span = builder.start_with_context(&tracer, &outer);
    let context = outer.with_span(span).with_value(tracer);
    // If the work is dropped, the context ends the span.
    let done = work.with_context(context.clone()).await;
    if let Ending::Badly(how) = ending(&done) {
        context.span().set_status(Status::error(how));
    }
    context.span().end();
    done
}
