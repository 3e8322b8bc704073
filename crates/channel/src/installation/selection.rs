//! The selector of a Deployment: as text for requests, and matched with labels.
//!
//! An unreadable selector must never count as one that selects nothing.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};

/// The selector in the API server's text form; a sentence if it is invalid.
pub(super) fn read(selector: &LabelSelector) -> Result<String, String> {
    parse(selector).map(|selector| selector.to_string())
}

/// Whether the selector matches these labels; a sentence if it is invalid.
pub(super) fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> Result<bool, String> {
    parse(selector).map(|selector| selector.matches(labels))
}

fn parse(selector: &LabelSelector) -> Result<Selector, String> {
    Selector::try_from(selector.clone())
        .map_err(|error| format!("the selector of the Deployment cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_written_and_held_against_labels() {
        let selector = |value| serde_json::from_value::<LabelSelector>(value).unwrap();
        let both = selector(json!({
            "matchLabels": {"app": "a"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
        }));
        assert_eq!(read(&both).unwrap(), "app=a,tier notin (x)");
        let labels = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        for (own, selected) in [
            (labels(&[("app", "a")]), true),
            (labels(&[("app", "a"), ("tier", "x")]), false),
            (labels(&[("addon-operator/trial", "a")]), false),
        ] {
            assert_eq!(selects(&both, &own), Ok(selected), "{own:?}");
        }
        let unknown = selector(json!({"matchExpressions": [{"key": "tier", "operator": "Near"}]}));
        assert!(read(&unknown).unwrap_err().contains("selector of the Deployment"));
    }
}
