//! The certificates of the webhooks: read from files or created, checked before use, and replaced while requests go on.
//!
//! Must never serve an unchecked certificate, and never show a private key.

pub mod authority;
pub mod clients;
pub mod files;
pub mod material;
pub mod probe;
pub mod tls;

#[cfg(test)]
mod tests;
