//! Objects of the cluster as hooks see them: what a filter makes of them.

pub mod filter;
