//! The addresses of the listeners, the prefix of metrics, and the clients that may see secrets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::ShownSecrets;
use super::words::{Checked, Words};

impl Words<'_> {
    pub(super) fn listen(&self) -> Checked<SocketAddr> {
        let (flag, variables) = self.program.listen_address();
        let address = self.said(flag, self.args.prometheus_listen_address.as_ref(), variables)?;
        let address = address.parsed("an IP address such as 0.0.0.0 or ::", |text| text.parse().ok())?;
        let (flag, variables) = self.program.listen_port();
        let port = self.said(flag, self.args.prometheus_listen_port.as_ref(), variables)?;
        // Port 0 lets the system choose; the choice is logged.
        let port = port.parsed("a port from 0 to 65535", |text| text.parse().ok())?;
        Ok(SocketAddr::new(
            address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            port.unwrap_or(self.program.port()),
        ))
    }

    pub(super) fn shown_secrets(&self) -> Checked<ShownSecrets> {
        let value = self.args.shared.show_secrets.as_ref();
        let always = self
            .said("--show-secrets", value, &["ADDON_OPERATOR_SHOW_SECRETS"])?
            .flag()?;
        Ok(if always {
            ShownSecrets::Always
        } else {
            ShownSecrets::AskedFor
        })
    }

    /// The TCP address of the debug routes, if there is one.
    pub(super) fn debug_http(&self) -> Checked<Option<SocketAddr>> {
        let value = self.args.shared.debug_http_addr.as_ref();
        let said = self.said("--debug-http-addr", value, &["DEBUG_HTTP_SERVER_ADDR"])?;
        let read = |text: &str| match text.strip_prefix(':') {
            Some(port) => Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port.parse().ok()?)),
            None => text.parse().ok(),
        };
        said.parsed("an address such as 127.0.0.1:9652 or :9652", read)
    }

    pub(super) fn metrics_prefix(&self) -> Checked<String> {
        let said = self.said(
            "--prometheus-metrics-prefix",
            self.args.prometheus_metrics_prefix.as_ref(),
            self.program.metrics_prefix_variables(),
        )?;
        let read = |text: &str| {
            let begins = text.chars().next().is_some_and(|c| !c.is_ascii_digit());
            let fits = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
            (begins && fits).then(|| text.to_owned())
        };
        let prefix = said.parsed(
            "the beginning of a metric name: letters, digits, _ and :, no digit first",
            read,
        )?;
        Ok(prefix.unwrap_or_else(|| self.program.metrics_prefix().to_owned()))
    }
}
