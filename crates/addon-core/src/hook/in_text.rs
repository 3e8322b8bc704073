//! Hooks in texts for people. With modules, a hook without a module is called a global hook; without modules, just a hook.

use std::fmt;

use names::{HookId, Owner};

use super::config::HookKind;

/// A hook in the form in which texts name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookInText<'a> {
    hook: &'a HookId,
    kind: HookKind,
}

impl<'a> HookInText<'a> {
    /// A hook of this kind.
    pub fn of(hook: &'a HookId, kind: HookKind) -> Self {
        Self { hook, kind }
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
    use names::{HookName, ModuleName};

    use super::*;

    #[test]
    fn there_are_global_hooks_beside_modules_only() {
        let one = Owner::Module(ModuleName::parse("one").unwrap());
        for (owner, kind, text) in [
            (one, HookKind::Module, "hook 'a.sh' of module 'one'"),
            (Owner::Global, HookKind::Global, "global hook 'a.sh'"),
            (Owner::Global, HookKind::Standalone, "hook 'a.sh'"),
        ] {
            let name = HookName::parse("a.sh").unwrap();
            assert_eq!(HookInText::of(&HookId { owner, name }, kind).to_string(), text);
        }
    }
}
