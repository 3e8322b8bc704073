//! Webhooks: the API server asks, hooks answer, and the API server knows where to ask.
//!
//! Must never answer for a hook: without a reply in time the API server gets an error, and applies its failure policy.
//!
//! ```text
//!   Job::PublishWebhooks --> configurations --> webhook configurations, conversion settings of CRDs
//!                                                   | the API server asks
//!                                                   v
//!                            server --> a question for the loop --> the reply of a hook
//! ```
//!
//! Begin with `server.rs`.

pub mod configurations;
pub mod server;
