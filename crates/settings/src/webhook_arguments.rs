//! The flags about webhooks of a program without modules, as text.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use clap::Args;

use super::webhooks::SideArgs;

/// The flags about webhooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Webhooks")]
pub struct WebhookArgs {
    /// Prefix of the names of the webhook configurations, before -hooks [env: VALIDATING_WEBHOOK_CONFIGURATION_NAME] [default: shell-operator-hooks]
    #[arg(long, value_name = "NAME")]
    pub validating_webhook_configuration_name: Option<String>,

    /// Service by which the API server reaches the admission webhooks [env: VALIDATING_WEBHOOK_SERVICE_NAME] [default: shell-operator-validating-svc]
    #[arg(long, value_name = "NAME")]
    pub validating_webhook_service_name: Option<String>,

    /// Address on which the admission webhooks listen [env: VALIDATING_WEBHOOK_LISTEN_ADDRESS] [default: 0.0.0.0]
    #[arg(long, value_name = "IP")]
    pub validating_webhook_listen_address: Option<String>,

    /// Port on which the admission webhooks listen [env: VALIDATING_WEBHOOK_LISTEN_PORT] [default: 9680]
    #[arg(long, value_name = "PORT")]
    pub validating_webhook_listen_port: Option<String>,

    /// Certificate of the admission webhooks [env: VALIDATING_WEBHOOK_SERVER_CERT] [default: /validating-certs/tls.crt]
    #[arg(long, value_name = "FILE")]
    pub validating_webhook_server_cert: Option<String>,

    /// Key of the certificate of the admission webhooks [env: VALIDATING_WEBHOOK_SERVER_KEY] [default: /validating-certs/tls.key]
    #[arg(long, value_name = "FILE")]
    pub validating_webhook_server_key: Option<String>,

    /// Certificate authority by which the API server trusts the admission webhooks [env: VALIDATING_WEBHOOK_CA] [default: /validating-certs/ca.crt]
    #[arg(long, value_name = "FILE")]
    pub validating_webhook_ca: Option<String>,

    /// Certificate authority of clients, may be repeated; without it every client is answered [env: VALIDATING_WEBHOOK_CLIENT_CA]
    #[arg(long, value_name = "FILE")]
    pub validating_webhook_client_ca: Vec<String>,

    /// Ignored: each binding has its own failure policy [env: VALIDATING_WEBHOOK_FAILURE_POLICY]
    #[arg(long, value_name = "POLICY")]
    pub validating_webhook_failure_policy: Option<String>,

    /// Service by which the API server reaches the conversion webhooks [env: CONVERSION_WEBHOOK_SERVICE_NAME] [default: shell-operator-conversion-svc]
    #[arg(long, value_name = "NAME")]
    pub conversion_webhook_service_name: Option<String>,

    /// Address on which the conversion webhooks listen [env: CONVERSION_WEBHOOK_LISTEN_ADDRESS] [default: 0.0.0.0]
    #[arg(long, value_name = "IP")]
    pub conversion_webhook_listen_address: Option<String>,

    /// Port on which the conversion webhooks listen [env: CONVERSION_WEBHOOK_LISTEN_PORT] [default: 9681]
    #[arg(long, value_name = "PORT")]
    pub conversion_webhook_listen_port: Option<String>,

    /// Certificate of the conversion webhooks [env: CONVERSION_WEBHOOK_SERVER_CERT] [default: /conversion-certs/tls.crt]
    #[arg(long, value_name = "FILE")]
    pub conversion_webhook_server_cert: Option<String>,

    /// Key of the certificate of the conversion webhooks [env: CONVERSION_WEBHOOK_SERVER_KEY] [default: /conversion-certs/tls.key]
    #[arg(long, value_name = "FILE")]
    pub conversion_webhook_server_key: Option<String>,

    /// Certificate authority by which the API server trusts the conversion webhooks [env: CONVERSION_WEBHOOK_CA] [default: /conversion-certs/ca.crt]
    #[arg(long, value_name = "FILE")]
    pub conversion_webhook_ca: Option<String>,

    /// Certificate authority of clients, may be repeated; without it every client is answered [env: CONVERSION_WEBHOOK_CLIENT_CA]
    #[arg(long, value_name = "FILE")]
    pub conversion_webhook_client_ca: Vec<String>,
}

impl WebhookArgs {
    pub(super) fn admission(&self) -> SideArgs<'_> {
        SideArgs {
            service: self.validating_webhook_service_name.as_ref(),
            address: self.validating_webhook_listen_address.as_ref(),
            port: self.validating_webhook_listen_port.as_ref(),
            cert: self.validating_webhook_server_cert.as_ref(),
            key: self.validating_webhook_server_key.as_ref(),
            ca: self.validating_webhook_ca.as_ref(),
            client_ca: &self.validating_webhook_client_ca,
        }
    }

    pub(super) fn conversion(&self) -> SideArgs<'_> {
        SideArgs {
            service: self.conversion_webhook_service_name.as_ref(),
            address: self.conversion_webhook_listen_address.as_ref(),
            port: self.conversion_webhook_listen_port.as_ref(),
            cert: self.conversion_webhook_server_cert.as_ref(),
            key: self.conversion_webhook_server_key.as_ref(),
            ca: self.conversion_webhook_ca.as_ref(),
            client_ca: &self.conversion_webhook_client_ca,
        }
    }
}
