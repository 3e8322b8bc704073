//! The selection of a watch in the syntax of the API server.
//!
//! Selectors with the same meaning get the same text, so that they share one watch. Must never widen a selection:
//! values are escaped, so that none of them can add another requirement.

use addon_core::hook::config::{FieldRequirement, KubernetesBinding, LabelRequirement, LabelSelector, Operator};
use kube::Resource as _;
use kube::api::{DynamicObject, ListParams, WatchParams};
use kube::core::{ApiResource, Request};

/// A request, or the error of building it.
pub(super) type Built = Result<hyper::Request<Vec<u8>>, kube::core::request::Error>;

/// Objects of one resource that one request can select.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The kind.
    pub resource: ApiResource,
    /// The namespace; none for all namespaces, and for cluster-wide kinds.
    pub namespace: Option<String>,
    /// The label selector; none for all labels.
    pub labels: Option<String>,
    /// The field selector; none for all objects.
    pub fields: Option<String>,
    /// Whether only the metadata of objects is requested.
    pub metadata_only: bool,
    /// Whether a reader of the operator reads the objects. They are few: they are listed again after each break,
    /// without waiting for other lists.
    pub is_read: bool,
}

impl Selection {
    /// The parameters of a list that is read in pages.
    pub(super) fn list_params(&self) -> ListParams {
        ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            ..ListParams::default()
        }
    }

    /// The parameters of a watch.
    pub(super) fn watch_params(&self) -> WatchParams {
        WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            bookmarks: true,
            ..WatchParams::default()
        }
    }

    pub(super) fn list(&self, params: &ListParams) -> Built {
        if self.metadata_only {
            self.request().list_metadata(params)
        } else {
            self.request().list(params)
        }
    }

    pub(super) fn watch(&self, params: &WatchParams, version: &str) -> Built {
        if self.metadata_only {
            self.request().watch_metadata(params, version)
        } else {
            self.request().watch(params, version)
        }
    }

    fn request(&self) -> Request {
        Request::new(DynamicObject::url_path(&self.resource, self.namespace.as_deref()))
    }
}

/// The selections of a binding in one namespace, or without a namespace: one for each object name in the binding.
pub(crate) fn of_binding(
    binding: &KubernetesBinding,
    resource: &ApiResource,
    namespace: Option<&str>,
) -> Vec<Selection> {
    let selection = |name: Option<&str>| Selection {
        resource: resource.clone(),
        namespace: namespace.map(str::to_owned),
        labels: binding.labels.as_ref().and_then(labels),
        fields: fields(&binding.fields, name),
        metadata_only: false,
        is_read: false,
    };
    if binding.names.is_empty() {
        return vec![selection(None)];
    }
    let mut names: Vec<&str> = binding.names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| selection(Some(name))).collect()
}

/// A label selector as text; none if it selects everything.
pub(crate) fn labels(selector: &LabelSelector) -> Option<String> {
    let equal = selector
        .match_labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    let mut parts: Vec<String> = equal
        .chain(selector.match_expressions.iter().map(requirement))
        .collect();
    parts.sort_unstable();
    parts.dedup();
    (!parts.is_empty()).then(|| parts.join(","))
}

fn requirement(requirement: &LabelRequirement) -> String {
    let LabelRequirement { key, operator, values } = requirement;
    let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
    values.sort_unstable();
    values.dedup();
    let values = values.join(",");
    match operator {
        Operator::In => format!("{key} in ({values})"),
        Operator::NotIn => format!("{key} notin ({values})"),
        Operator::Exists => key.clone(),
        Operator::DoesNotExist => format!("!{key}"),
    }
}

fn fields(requirements: &[FieldRequirement], name: Option<&str>) -> Option<String> {
    let of_object = name.map(|name| format!("metadata.name={}", escaped(name)));
    let required = requirements.iter().map(|requirement| {
        let sign = if requirement.equals { "=" } else { "!=" };
        format!("{}{sign}{}", requirement.field, escaped(&requirement.value))
    });
    let mut parts: Vec<String> = required.chain(of_object).collect();
    parts.sort_unstable();
    parts.dedup();
    (!parts.is_empty()).then(|| parts.join(","))
}

/// A value with the selector's special characters escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(equal: &[(&str, &str)], expressions: &[(&str, Operator, &[&str])]) -> LabelSelector {
        LabelSelector {
            match_labels: equal
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            match_expressions: expressions
                .iter()
                .map(|(key, operator, values)| LabelRequirement {
                    key: (*key).to_owned(),
                    operator: *operator,
                    values: values.iter().map(|value| (*value).to_owned()).collect(),
                })
                .collect(),
        }
    }

    #[test]
    fn label_selectors_of_one_meaning_have_one_text() {
        let one = selector(
            &[("b", "2"), ("a", "1")],
            &[("d", Operator::In, &["y", "x"]), ("c", Operator::Exists, &[])],
        );
        let other = selector(
            &[("a", "1"), ("b", "2")],
            &[("c", Operator::Exists, &[]), ("d", Operator::In, &["x", "y", "x"])],
        );
        assert_eq!(labels(&one).as_deref(), Some("a=1,b=2,c,d in (x,y)"));
        assert_eq!(labels(&one), labels(&other));
        let negative = selector(
            &[],
            &[("a", Operator::NotIn, &["x"]), ("b", Operator::DoesNotExist, &[])],
        );
        assert_eq!(labels(&negative).as_deref(), Some("!b,a notin (x)"));
        assert_eq!(labels(&LabelSelector::default()), None);
    }

    #[test]
    fn a_value_cannot_become_a_requirement() {
        let requirement = |field: &str, equals, value: &str| FieldRequirement {
            field: field.to_owned(),
            equals,
            value: value.to_owned(),
        };
        let wanted = [
            requirement("status.phase", false, "Running"),
            requirement("spec.nodeName", true, "a,b=c\\d"),
        ];
        assert_eq!(
            fields(&wanted, Some("web")).as_deref(),
            Some("metadata.name=web,spec.nodeName=a\\,b\\=c\\\\d,status.phase!=Running")
        );
        assert_eq!(fields(&[], None), None);
    }
}
