//! How the API server reaches the webhooks, and their certificates.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::Program;
use super::said::{self, Said};
use super::webhook_arguments::WebhookArgs;
use super::words::{Checked, Words};

/// All settings about webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The name of both webhook configurations.
    pub configuration: String,
    /// The chart's cluster role, with which published objects are deleted.
    pub owner: Option<String>,
    /// The Secret with the operator's own certificates.
    pub secret: String,
    pub admission: WebhookSide,
    pub conversion: WebhookSide,
}

/// One of the two listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSide {
    /// The Service of the listener.
    pub service: String,
    pub listen: SocketAddr,
    /// Whether the address was set, so that the listener must work.
    pub is_set_up: bool,
    pub cert: PathBuf,
    pub key: PathBuf,
    pub ca: PathBuf,
    /// Whether the settings name the three files, so that the files must exist.
    pub is_named: bool,
    /// The authorities of allowed clients; empty if all clients are allowed.
    pub client_ca: Vec<PathBuf>,
}

/// The names of a listener's settings, each with the setting's default.
struct Names {
    service: (&'static str, &'static str),
    address: (&'static str, &'static str),
    port: (&'static str, &'static str, u16),
    cert: (&'static str, &'static str),
    key: (&'static str, &'static str),
    ca: (&'static str, &'static str),
    client_ca: (&'static str, &'static str),
    dir: &'static str,
    service_suffix: &'static str,
}

const ADMISSION: Names = Names {
    service: ("--validating-webhook-service-name", "VALIDATING_WEBHOOK_SERVICE_NAME"),
    address: (
        "--validating-webhook-listen-address",
        "VALIDATING_WEBHOOK_LISTEN_ADDRESS",
    ),
    port: (
        "--validating-webhook-listen-port",
        "VALIDATING_WEBHOOK_LISTEN_PORT",
        9680,
    ),
    cert: ("--validating-webhook-server-cert", "VALIDATING_WEBHOOK_SERVER_CERT"),
    key: ("--validating-webhook-server-key", "VALIDATING_WEBHOOK_SERVER_KEY"),
    ca: ("--validating-webhook-ca", "VALIDATING_WEBHOOK_CA"),
    client_ca: ("--validating-webhook-client-ca", "VALIDATING_WEBHOOK_CLIENT_CA"),
    dir: "/validating-certs",
    service_suffix: "-validating-svc",
};

const CONVERSION: Names = Names {
    service: ("--conversion-webhook-service-name", "CONVERSION_WEBHOOK_SERVICE_NAME"),
    address: (
        "--conversion-webhook-listen-address",
        "CONVERSION_WEBHOOK_LISTEN_ADDRESS",
    ),
    port: (
        "--conversion-webhook-listen-port",
        "CONVERSION_WEBHOOK_LISTEN_PORT",
        9681,
    ),
    cert: ("--conversion-webhook-server-cert", "CONVERSION_WEBHOOK_SERVER_CERT"),
    key: ("--conversion-webhook-server-key", "CONVERSION_WEBHOOK_SERVER_KEY"),
    ca: ("--conversion-webhook-ca", "CONVERSION_WEBHOOK_CA"),
    client_ca: ("--conversion-webhook-client-ca", "CONVERSION_WEBHOOK_CLIENT_CA"),
    dir: "/conversion-certs",
    service_suffix: "-conversion-svc",
};

impl Words<'_> {
    pub(super) fn webhooks(&self, args: &WebhookArgs) -> Checked<WebhookSettings> {
        let program = self.program.name();
        let flag = "--validating-webhook-configuration-name";
        let value = args.validating_webhook_configuration_name.as_ref();
        let said = self.said(flag, value, &["VALIDATING_WEBHOOK_CONFIGURATION_NAME"])?;
        let read = |text: &str| said::is_object_name(text).then(|| text.to_owned());
        let name = said.parsed("the name of an object: small letters, digits, dashes and dots", read)?;
        let configuration = match (self.program, name) {
            // The original appends this to the setting.
            (Program::ShellOperator, name) => format!("{}-hooks", name.as_deref().unwrap_or("shell-operator-hooks")),
            (Program::AddonOperator, name) => name.unwrap_or_else(|| "addon-operator-hooks".to_owned()),
        };
        let owner = self.said("", None, &["ADDON_OPERATOR_WEBHOOK_OWNER"])?.text();
        Ok(WebhookSettings {
            configuration,
            owner,
            secret: format!("{program}-webhook-certs"),
            admission: self.webhook_side(&ADMISSION, &args.admission())?,
            conversion: self.webhook_side(&CONVERSION, &args.conversion())?,
        })
    }

    fn webhook_side(&self, names: &Names, args: &SideArgs<'_>) -> Checked<WebhookSide> {
        let (flag, variable) = names.service;
        let service = self.said(flag, args.service, &[variable])?;
        let mut is_set_up = service.0.is_some();
        let read = |text: &str| said::is_dns_label(text).then(|| text.to_owned());
        let service = service.parsed("the name of a service: small letters, digits and dashes", read)?;
        let (flag, variable) = names.address;
        let address = self.said(flag, args.address, &[variable])?;
        is_set_up |= address.0.is_some();
        let address = address.parsed("an IP address such as 0.0.0.0 or ::", |text| text.parse().ok())?;
        let (flag, variable, port) = names.port;
        let said = self.said(flag, args.port, &[variable])?;
        is_set_up |= said.0.is_some();
        let port = said
            .parsed("a port from 0 to 65535", |text| text.parse().ok())?
            .unwrap_or(port);
        let mut is_named = false;
        let mut file = |(flag, variable): (&'static str, &'static str), value, usual: &str| {
            let said = self.said(flag, value, &[variable])?.path();
            is_named |= said.is_some();
            Ok(said.unwrap_or_else(|| PathBuf::from(names.dir).join(usual)))
        };
        Ok(WebhookSide {
            service: service.unwrap_or_else(|| format!("{}{}", self.program.name(), names.service_suffix)),
            listen: SocketAddr::new(address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port),
            is_set_up,
            cert: file(names.cert, args.cert, "tls.crt")?,
            key: file(names.key, args.key, "tls.key")?,
            ca: file(names.ca, args.ca, "ca.crt")?,
            is_named,
            client_ca: self.client_ca(names.client_ca.1, args.client_ca)?,
        })
    }

    /// The files of the flag, which may be given several times; without it, those of the variable, which are joined by
    /// commas.
    fn client_ca(&self, variable: &'static str, flags: &[String]) -> Checked<Vec<PathBuf>> {
        if !flags.is_empty() {
            return Ok(flags.iter().map(PathBuf::from).collect());
        }
        let Some(Said { text, .. }) = self.said("", None, &[variable])?.0 else {
            return Ok(Vec::new());
        };
        let paths = text.split(',').map(str::trim).filter(|path| !path.is_empty());
        Ok(paths.map(PathBuf::from).collect())
    }
}

/// The flags about one listener.
pub(super) struct SideArgs<'a> {
    pub(super) service: Option<&'a String>,
    pub(super) address: Option<&'a String>,
    pub(super) port: Option<&'a String>,
    pub(super) cert: Option<&'a String>,
    pub(super) key: Option<&'a String>,
    pub(super) ca: Option<&'a String>,
    pub(super) client_ca: &'a [String],
}
