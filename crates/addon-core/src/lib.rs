//! x

pub mod name;

pub mod digest;
pub mod number;
pub mod time;
pub mod yaml;

pub mod values;

pub mod hook;
