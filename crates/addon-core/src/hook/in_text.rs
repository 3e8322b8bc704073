//! Hooks in texts for people. With modules, a hook without a module is called a global hook; without modules, just a hook.

use std::fmt;

use super::config::HookKind;
use crate::name::{HookId, Owner};

/// A hook in the form in which texts name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookInText<'a> {
    hook: &'a HookId,
    kind: HookKind,
}

impl HookId {
    /// The hook in the form in which texts name it, for hooks of this kind.
    pub fn told(&self, kind: HookKind) -> HookInText<'_> {
        HookInText { hook: self, kind }
    }
}

impl fmt::Display for HookInText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_global = self.hook.owner == Owner::Global && self.kind != HookKind::Standalone;
        let word = if is_global { "global " } else { "" };
        write!(f, "{word}{}", self.hook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{HookName, ModuleName};

    #[test]
    fn there_are_global_hooks_beside_modules_only() {
        let one = Owner::Module(ModuleName::parse("one").unwrap());
        for (owner, kind, text) in [
            (one, HookKind::Module, "hook 'a.sh' of module 'one'"),
            (Owner::Global, HookKind::Global, "global hook 'a.sh'"),
            (Owner::Global, HookKind::Standalone, "hook 'a.sh'"),
        ] {
            let name = HookName::parse("a.sh").unwrap();
            assert_eq!(HookId { owner, name }.told(kind).to_string(), text);
        }
    }
}
