//! Certificates of the webhooks: read from files or created, checked before use, and replaced while requests go on.
//!
//! Must never serve an unchecked certificate, and never show a private key.
//!
//! ```text
//!   files (a mounted Secret) --+
//!                              +--> material: parsed and checked --> tls: the listener's present certificate
//!   authority (our own CA) ----+                                      |
//!                                          probe: asks the listener as the API server will
//!                                          clients: certificates that a listener demands
//! ```
//!
//! Begin with `material`.

pub mod authority;
pub mod clients;
pub mod files;
pub mod material;
pub mod probe;
pub mod tls;

#[cfg(test)]
mod tests;
