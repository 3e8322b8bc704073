//! The shell of addon-operator: everything that touches the world. Decisions are made in `addon-core`.

pub mod meters;
pub mod notices;
