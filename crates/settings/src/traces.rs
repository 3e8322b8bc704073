//! Where traces are sent, if anywhere. Never shows the token.

use std::fmt;
use std::path::PathBuf;

use super::said::Setting;
use super::words::{Checked, Words};

/// The collector for traces.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// The URL, as in `http://collector.example:4317`: OTLP over gRPC.
    pub endpoint: String,
    /// The operator's token for the collector.
    pub token: Option<String>,
    /// How the collector's certificate is checked; none for a collector without TLS.
    pub trust: Option<Trust>,
}

/// The authorities for a collector's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The authorities that this machine trusts.
    System,
    /// Only the authorities in a file.
    File(PathBuf),
}

impl fmt::Debug for TraceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, token, trust } = self;
        let token = token.as_ref().map(|_| "<masked>");
        f.debug_struct("TraceSettings")
            .field("endpoint", endpoint)
            .field("token", &token)
            .field("trust", trust)
            .finish()
    }
}

impl Words<'_> {
    /// The settings of traces, which have no flags.
    pub(super) fn traces(&self) -> Checked<Option<TraceSettings>> {
        let said = |variables: &[&'static str]| Setting::look_up(self.environment, "", None, variables);
        let endpoint = said(&["TRACING_OTLP_ENDPOINT"])?.parsed(
            "host:port of a collector that takes OTLP over gRPC, after https:// if it wants TLS",
            endpoint,
        )?;
        let token = said(&["TRACING_OTLP_AUTH_TOKEN"])?.text();
        let token = token
            .map(|token| token.trim().to_owned())
            .filter(|token| !token.is_empty());
        // The standard variables of OpenTelemetry, the more specific one first.
        let file = said(&[
            "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        ])?
        .path();
        let file = file.filter(|file| !file.as_os_str().is_empty());
        Ok(endpoint.map(|endpoint| TraceSettings {
            trust: endpoint
                .starts_with(TLS)
                .then(|| file.map_or(Trust::System, Trust::File)),
            endpoint,
            token,
        }))
    }
}

const PLAIN: &str = "http://";
const TLS: &str = "https://";

/// The URL of a collector. Without a scheme it has no TLS.
fn endpoint(text: &str) -> Option<String> {
    let with = |scheme| Some((scheme, text.strip_prefix(scheme)?));
    let (scheme, address) = with(TLS).or_else(|| with(PLAIN)).unwrap_or((PLAIN, text));
    let address = address.trim_end_matches('/');
    let (host, port) = address.rsplit_once(':')?;
    let named = !host.is_empty() && !host.contains(['/', '@', ' ']);
    let port = port.parse::<u16>().is_ok_and(|port| port > 0);
    (named && port).then(|| format!("{scheme}{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_host_and_a_port() {
        for text in ["collector:4317", "http://collector:4317", "http://collector:4317/"] {
            assert_eq!(endpoint(text).as_deref(), Some("http://collector:4317"), "{text}");
        }
        assert_eq!(endpoint("[::1]:1").as_deref(), Some("http://[::1]:1"));
        let secure = Some("https://collector:4317");
        assert_eq!(endpoint("https://collector:4317/").as_deref(), secure);
        for text in [
            "collector",
            "https://collector",
            "grpc://collector:4317",
            ":4317",
            "collector:0",
            "a/b:1",
            "me@collector:1",
        ] {
            assert_eq!(endpoint(text), None, "{text}");
        }
    }

    #[test]
    fn the_token_is_not_shown() {
        let settings = TraceSettings {
            endpoint: "http://a:1".to_owned(),
            token: Some("opensesame".to_owned()),
            trust: None,
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("masked") && !shown.contains("sesame"), "{shown}");
    }
}
