//! The operator's objects in its cluster, and those of others. The RBAC verbs that are needed are listed in the files that use them.
//!
//! It never retries, with two exceptions: the watch of the `ConfigMap` recovers by itself, and a hook's change of an
//! object is repeated when another writer was faster. It never deletes an object, unless a hook asks for it.

pub mod copies;
pub mod deployment;
