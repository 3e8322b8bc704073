//! stand-in
use crate::name::BindingName;
#[derive(Debug, Clone, PartialEq)]
pub enum BindingContext {
    OnStartup,
    Lifecycle(&'static str),
    Schedule(BindingName),
}
impl BindingContext {
    pub fn lifecycle(b: &'static str) -> Self {
        Self::Lifecycle(b)
    }
}
pub fn compact_groups(c: Vec<BindingContext>) -> Vec<BindingContext> {
    c
}
