//! The place at which the operator serves its page, and the clients that it serves.
//!
//! Must never let the page be served outside of loopback without a review of each request.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::words::{Checked, Words};
use super::{ConfigurationError, boolean};

/// The address of the page if none is set.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9655);

/// How the page is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// It is not served.
    Off,
    /// It is served on loopback, to each client that can reach it.
    Loopback {
        address: SocketAddr,
        /// Whether a setting names the address. Then it is an error if the address is taken.
        is_chosen: bool,
    },
    /// It is served to clients whose bearer token the API server accepts, and that may read modules.
    Reviewed(SocketAddr),
}

impl Words<'_> {
    pub(super) fn page(&self) -> Checked<Page> {
        let said = self.said(
            "--page-listen",
            self.args.page_listen.as_ref(),
            &["ADDON_OPERATOR_PAGE_LISTEN"],
        )?;
        let (text, name) = match &said.0 {
            Some(said) => (said.text.clone(), said.name),
            None => (String::new(), "--page-listen"),
        };
        let chosen = said.parsed("an address such as 127.0.0.1:9655, or off", |text| {
            match text.strip_prefix(':') {
                _ if boolean::parse(text) == Some(false) || text == "off" => Some(None),
                Some(port) => Some(Some(SocketAddr::new(
                    IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                    port.parse().ok()?,
                ))),
                None => Some(Some(text.parse().ok()?)),
            }
        })?;
        let review = self.said(
            "--page-review",
            self.args.page_review.as_ref(),
            &["ADDON_OPERATOR_PAGE_REVIEW"],
        )?;
        let (is_chosen, is_reviewed) = (chosen.is_some(), review.flag()?);
        match chosen.unwrap_or(Some(ADDRESS)) {
            None => Ok(Page::Off),
            Some(address) if is_reviewed => Ok(Page::Reviewed(address)),
            Some(address) if address.ip().is_loopback() => Ok(Page::Loopback { address, is_chosen }),
            Some(_) => Err(ConfigurationError::NotAllowed {
                name,
                value: text,
                allowed: "an address on loopback such as 127.0.0.1:9655, unless --page-review is set",
            }),
        }
    }
}
