//! Certificates of the webhooks: read from files or made by us, checked before they are used, swapped while requests go on.
//!
//! Must never serve what it has not checked, and never show a private key.

pub mod authority;
pub mod clients;
pub mod files;
pub mod material;
pub mod probe;
pub mod tls;

#[cfg(test)]
mod tests;
