//! Batch executables with several hooks: any output is a set of hooks with unique names, or an error with a position.

use std::collections::BTreeSet;

use addon_core::hook::config::batch::{Batch, BatchError, Call, lists_hooks, message};
use addon_core::hook::config::{ConfigError, ConfigVersion, HookConfig, HookKind, Stage};
use names::HookName;

/// The text is the output of an executable. It is parsed as that of a module and as that of global hooks.
pub(crate) fn check(data: &[u8]) {
    let module = Batch::parse_output(data, HookKind::Module);
    let global = Batch::parse_output(data, HookKind::Global);
    for (read, kind) in [(&module, HookKind::Module), (&global, HookKind::Global)] {
        match read {
            Ok(batch) => sound(batch, kind),
            Err(error) => told(error),
        }
    }
    // Every output that is valid in a module is valid for global hooks. Its stages around helm become those around all
    // modules.
    if let Ok(module) = &module {
        let global = global.expect("an output that is valid in a module is valid for global hooks");
        assert_eq!(module.hooks.len(), global.hooks.len());
        for (module, global) in module.hooks.iter().zip(&global.hooks) {
            assert_eq!(module.config.schedules, global.config.schedules);
            assert_eq!(module.config.kubernetes, global.config.kubernetes);
            let around = [
                (Stage::BeforeHelm, Stage::BeforeAll),
                (Stage::AfterHelm, Stage::AfterAll),
            ];
            for (of_module, of_all) in around {
                assert_eq!(module.config.order(of_module), global.config.order(of_all));
            }
        }
    }
    let text = String::from_utf8_lossy(data);
    if let Some(message) = message(&text) {
        assert!(!message.trim().is_empty(), "a message that says nothing");
    }
    assert!(!lists_hooks(&text) || text.contains(" items"));
}

fn sound(batch: &Batch, kind: HookKind) {
    let file = HookName::parse("hooks/batch").expect("a name");
    for config in batch.hooks.iter().map(|hook| &hook.config).chain(&batch.readiness) {
        kept(config);
    }
    let named = match batch.clone().named(&file, kind) {
        Ok(named) => named,
        Err(BatchError::Name { .. }) => return,
        Err(other) => panic!("a name only: {other}"),
    };
    let names: BTreeSet<_> = named.hooks.iter().map(|hook| &hook.name).collect();
    assert_eq!(names.len(), named.hooks.len(), "two hooks of one name");
    assert_eq!(
        named.hooks.len(),
        batch.hooks.len() + usize::from(batch.readiness.is_some())
    );
    for (number, hook) in named.hooks.iter().enumerate().take(batch.hooks.len()) {
        assert_eq!(hook.call, Call::Run(number));
        assert!(hook.name.as_str().ends_with(&number.to_string()));
    }
}

fn kept(config: &HookConfig) {
    assert_eq!(config.version, ConfigVersion::V1);
    let kept = serde_json::to_string(config).expect("a configuration can be kept");
    assert_eq!(*config, serde_json::from_str(&kept).expect("what was kept can be read"));
    let groups = config.schedules.iter().map(|binding| &binding.group);
    let mut groups = groups.chain(config.kubernetes.iter().map(|binding| &binding.group));
    assert!(
        groups.all(|group| group.as_deref() == Some("main")),
        "every binding is in the group `main`"
    );
    let orders = &mut config.stages.values();
    assert!(orders.all(|order| *order >= 0), "the library counts from zero");
}

fn told(error: &BatchError) {
    let text = error.to_string();
    assert!(text.starts_with("batch config"), "{text}");
    assert!(text.len() < 40_000, "nobody reads that much");
    match error {
        BatchError::Schema(problems) => assert!(!problems.is_empty(), "an error without a mistake"),
        BatchError::Hooks(hooks) => {
            assert!(!hooks.is_empty(), "an error without a mistake");
            for (_, error) in hooks {
                if let ConfigError::Schema(problems) | ConfigError::Meaning(problems) = error {
                    assert!(!problems.is_empty(), "an error without a mistake");
                }
            }
        }
        BatchError::NoText(line) => assert!(*line > 0),
        BatchError::NoJson(_)
        | BatchError::NoMap(_)
        | BatchError::UnknownVersion(_)
        | BatchError::MissingVersion
        | BatchError::Name { .. } => {}
    }
}
