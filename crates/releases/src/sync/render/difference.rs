//! The difference between an object and its future form, in the format of `diff -u`.

use helm_yaml::yaml;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::difference::Tried;

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;
const HIDDEN: &str = "***";

/// The difference; empty if there is none.
pub(super) fn text(tried: Tried) -> String {
    let Tried {
        name,
        mut live,
        mut applied,
    } = tried;
    if applied["kind"] == "Secret" && applied["apiVersion"] == "v1" {
        hide(live.as_mut().unwrap_or(&mut Value::Null), &mut applied);
    }
    let live = live.as_ref().map(yaml::to_string).unwrap_or_default();
    let applied = yaml::to_string(&applied);
    if live == applied {
        return String::new();
    }
    let (before, after) = (format!("LIVE/{name}"), format!("MERGED/{name}"));
    let lines = TextDiff::from_lines(&live, &applied);
    let unified = lines
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&before, &after)
        .to_string();
    format!("diff -u -N {before} {after}\n{unified}")
}

/// Replaces the data of a Secret by stars. A changed value gets other stars, so that the change is visible.
fn hide(live: &mut Value, applied: &mut Value) {
    for key in ["data", "stringData"] {
        let was = live.get(key).cloned().unwrap_or_default();
        let is = applied.get(key).cloned().unwrap_or_default();
        for (own, other, mark) in [(&mut *live, &is, "before"), (&mut *applied, &was, "after")] {
            for (name, value) in own.get_mut(key).and_then(Value::as_object_mut).into_iter().flatten() {
                *value = match other.get(name) {
                    Some(other) if other != value => json!(format!("{HIDDEN} ({mark})")),
                    Some(_) | None => json!(HIDDEN),
                };
            }
        }
    }
    for object in [live, applied] {
        // kubectl keeps a copy of the applied object here.
        let annotations = object.pointer_mut("/metadata/annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(live: Option<Value>, applied: Value) -> String {
        text(Tried {
            name: "v1.X.ns.a".to_owned(),
            live,
            applied,
        })
    }

    #[test]
    fn what_differs_is_shown_with_what_is_around_it() {
        let live = json!({"data": {"a": "1", "size": "changed"}, "kind": "ConfigMap"});
        let applied = json!({"data": {"a": "1", "size": "1"}, "kind": "ConfigMap"});
        assert_eq!(
            tried(Some(live.clone()), applied),
            "diff -u -N LIVE/v1.X.ns.a MERGED/v1.X.ns.a\n--- LIVE/v1.X.ns.a\n+++ MERGED/v1.X.ns.a\n@@ -1,4 +1,4 @@\n \
             data:\n   a: \"1\"\n-  size: changed\n+  size: \"1\"\n kind: ConfigMap\n"
        );
        assert_eq!(tried(Some(live.clone()), live), "");
    }

    #[test]
    fn what_is_new_is_all_difference() {
        let shown = tried(None, json!({"kind": "ConfigMap"}));
        assert!(shown.ends_with("@@ -0,0 +1 @@\n+kind: ConfigMap\n"), "{shown}");
    }

    #[test]
    fn the_data_of_a_secret_stays_hidden() {
        let secret = |password: &str, more: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": password, "same": "c2FtZQ=="},
                   "stringData": more,
                   "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": password}}})
        };
        let shown = tried(
            Some(secret("b2xk", json!(null))),
            secret("bmV3", json!({"plain": "text"})),
        );
        let expected = "-  password: \"*** (before)\"\n+  password: \"*** (after)\"\n   same: \"***\"\n";
        assert!(shown.contains(expected), "{shown}");
        for secret in ["b2xk", "bmV3", "c2FtZQ", "text"] {
            assert!(!shown.contains(secret), "{secret} is in {shown}");
        }
    }
}
