//! Where traces go, if anywhere.
//! Never shows the token.

use std::fmt;

use super::said::Setting;
use super::words::{Checked, Words};

/// A collector that takes traces.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// As in `http://collector.example:4317`: OTLP over gRPC, without TLS.
    pub endpoint: String,
    /// Who we are to it.
    pub token: Option<String>,
}

impl fmt::Debug for TraceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, token } = self;
        let token = token.as_ref().map(|_| "<masked>");
        f.debug_struct("TraceSettings")
            .field("endpoint", endpoint)
            .field("token", &token)
            .finish()
    }
}

impl Words<'_> {
    /// Nobody has flags for them.
    pub(super) fn traces(&self) -> Checked<Option<TraceSettings>> {
        let said = Setting::look_up(self.environment, "", None, &["TRACING_OTLP_ENDPOINT"])?;
        let endpoint = said.parsed(
            "host:port of a collector that takes OTLP over gRPC without TLS",
            endpoint,
        )?;
        let token = Setting::look_up(self.environment, "", None, &["TRACING_OTLP_AUTH_TOKEN"])?.text();
        let token = token
            .map(|token| token.trim().to_owned())
            .filter(|token| !token.is_empty());
        Ok(endpoint.map(|endpoint| TraceSettings { endpoint, token }))
    }
}

fn endpoint(text: &str) -> Option<String> {
    let address = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let (host, port) = address.rsplit_once(':')?;
    let named = !host.is_empty() && !host.contains(['/', '@', ' ']);
    let port = port.parse::<u16>().is_ok_and(|port| port > 0);
    (named && port).then(|| format!("http://{address}"))
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
        for text in [
            "collector",
            "https://collector:4317",
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
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("masked") && !shown.contains("sesame"), "{shown}");
    }
}
