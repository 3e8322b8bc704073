//! Configurations of hooks: any text is a valid configuration or an error with a position, and means the same in JSON
//! and in YAML.

use std::fmt::Write as _;

use addon_core::hook::config::{ConfigError, HookConfig, HookKind};
use addon_core::review::registration::{Address, CaBundle, conversions, webhooks};
use addon_core::review::routes::{AdmissionKind, Routes};
use gojq::filter::Filter;
use helm_yaml::yaml;
use names::{BindingName, HookId, HookName, Owner};

const KINDS: [HookKind; 3] = [HookKind::Standalone, HookKind::Global, HookKind::Module];

/// Longer keys are left out: in YAML a key written as in JSON has at most 1024 characters.
const LONGEST: usize = 1000;

/// The text is the output of a hook.
pub(crate) fn check(data: &[u8]) {
    let read = KINDS.map(|kind| HookConfig::parse_output(data, kind));
    let Ok(text) = std::str::from_utf8(data) else {
        assert!(read.iter().all(|read| matches!(read, Err(ConfigError::NoText(_)))));
        return;
    };
    for result in &read {
        match result {
            Ok(config) => sound(config),
            Err(error) => told(error, text),
        }
    }
    // A configuration that is valid for a hook alone is valid for global and module hooks too.
    if let [Ok(alone), global, module] = &read {
        assert_eq!(Ok(alone), global.as_ref());
        assert_eq!(Ok(alone), module.as_ref());
    }
    let Ok(value) = yaml::from_str_v2(text) else { return };
    if text.len() > LONGEST {
        return;
    }
    for again in [ascii(&value.to_string()), yaml::to_string(&value)] {
        for (kind, read) in KINDS.into_iter().zip(&read) {
            assert_eq!(*read, HookConfig::parse(&again, kind), "{again}");
        }
    }
}

/// JSON in which the characters that YAML wants escaped are escaped.
fn ascii(json: &str) -> String {
    let mut text = String::new();
    for c in json.chars() {
        if matches!(c, ' '..='~') {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

fn sound(config: &HookConfig) {
    let kept = serde_json::to_string(config).expect("a configuration can be kept");
    let read: HookConfig = serde_json::from_str(&kept).expect("what was kept can be read");
    assert_eq!(*config, read);
    for binding in &config.kubernetes {
        if let Some(filter) = &binding.jq_filter {
            Filter::compile(filter).expect("a filter of a sound configuration can be applied");
        }
    }
    let snapshots = config.schedules.iter().map(|binding| &binding.include_snapshots_from);
    let snapshots = snapshots.chain(config.kubernetes.iter().map(|binding| &binding.include_snapshots_from));
    let snapshots = snapshots.chain(config.validating.iter().map(|binding| &binding.include_snapshots_from));
    let snapshots = snapshots.chain(config.mutating.iter().map(|binding| &binding.include_snapshots_from));
    let mut snapshots = snapshots.chain(config.conversions.iter().map(|binding| &binding.include_snapshots_from));
    let watched = |name: &BindingName| config.kubernetes.iter().any(|binding| binding.name == *name);
    assert!(
        snapshots.all(|names| names.iter().all(watched)),
        "a snapshot of nothing"
    );
    registered(config);
}

/// Every admission and conversion binding is registered with the API server, each at a unique path.
fn registered(config: &HookConfig) {
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("hook.sh").expect("a name"),
    };
    let (routes, clashes) = Routes::of([(&hook, config)]);
    assert!(clashes.is_empty(), "within a hook names are unique");
    let address = Address {
        namespace: "default".to_owned(),
        service: "hooks".to_owned(),
        ca: CaBundle::new("-----BEGIN CERTIFICATE-----").expect("looks like one"),
    };
    let told = |kind| webhooks(&routes, kind, &address).len();
    assert_eq!(told(AdmissionKind::Validating), config.validating.len());
    assert_eq!(told(AdmissionKind::Mutating), config.mutating.len());
    assert_eq!(conversions(&routes, &address).is_empty(), config.conversions.is_empty());
}

fn told(error: &ConfigError, text: &str) {
    match error {
        ConfigError::Yaml(at) => {
            // YAML knows more than one kind of line break.
            assert!((1..=text.split(['\n', '\r']).count() + 1).contains(&at.line), "{at}");
            assert!(at.column > 0 && !at.message.is_empty(), "{at}");
        }
        ConfigError::Schema(problems) => {
            assert!(!problems.is_empty(), "an error without a mistake");
            assert!(problems.iter().all(|problem| problem.contains(" in body ")), "{error}");
        }
        ConfigError::Meaning(problems) => {
            assert!(!problems.is_empty(), "an error without a mistake");
            assert!(
                problems.iter().all(|problem| problem.starts_with("invalid ")),
                "{error}"
            );
        }
        ConfigError::UnknownVersion(_)
        | ConfigError::VersionType
        | ConfigError::MissingVersion
        | ConfigError::NoVersion(_) => assert!(error.to_string().contains("configVersion"), "{error}"),
        ConfigError::NoMap(found) => assert!(error.to_string().contains(found), "{error}"),
        ConfigError::NoText(line) => panic!("line {line} is text"),
    }
}
