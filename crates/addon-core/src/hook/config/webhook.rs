//! Bindings that answer the API server.

use super::binding::{
    AdmissionBinding, ConversionBinding, ConversionRule, FailurePolicy, MatchCondition, ReviewRule, SideEffects,
};
use super::fields::Fields;
use super::reader::{Reader, selector};
use super::v1::{group, snapshots};

pub(super) fn admission(mut fields: Fields<'_>, reader: &mut Reader) -> Option<AdmissionBinding> {
    let name = fields.required_text("name").to_owned();
    let timeout_seconds = fields.integer("timeoutSeconds", i64::MIN..=i64::MAX).unwrap_or(10);
    if !(1..=30).contains(&timeout_seconds) {
        reader.note("timeoutSeconds is invalid: should be between 1 and 30");
    }
    if name.split('.').count() < 3 || name.split('.').any(str::is_empty) {
        reader.note(&format!(
            "name is invalid: '{name}' should be a domain of at least three parts, such as pods.example.com"
        ));
    }
    let policies = [("Ignore", FailurePolicy::Ignore), ("Fail", FailurePolicy::Fail)];
    let effects = [("None", SideEffects::None), ("NoneOnDryRun", SideEffects::NoneOnDryRun)];
    let namespaces = fields.object("namespace").and_then(|mut namespace| {
        let labels = selector(&mut namespace, "labelSelector", reader);
        namespace.finish();
        labels
    });
    let name = reader.name(&name);
    let binding = AdmissionBinding {
        group: group(&mut fields),
        include_snapshots_from: snapshots(&mut fields, reader),
        failure_policy: fields.word("failurePolicy", &policies).unwrap_or(FailurePolicy::Fail),
        side_effects: fields.word("sideEffects", &effects).unwrap_or(SideEffects::None),
        timeout_seconds,
        timeout: reader.timeout(&mut fields),
        match_conditions: match_conditions(&mut fields),
        labels: selector(&mut fields, "labelSelector", reader),
        namespaces,
        rules: review_rules(&mut fields, reader),
        name: name?,
    };
    fields.finish();
    Some(binding)
}

/// Unknown keys of a condition are accepted, because the API server checks them.
fn match_conditions(fields: &mut Fields<'_>) -> Vec<MatchCondition> {
    let conditions = fields.objects("matchConditions", 0).into_iter();
    conditions
        .map(|mut condition| MatchCondition {
            name: condition.required_text("name").to_owned(),
            expression: condition.required_text("expression").to_owned(),
        })
        .collect()
}

fn review_rules(fields: &mut Fields<'_>, reader: &mut Reader) -> Vec<ReviewRule> {
    const OPERATIONS: [(&str, &str); 5] = [
        ("CREATE", "CREATE"),
        ("UPDATE", "UPDATE"),
        ("DELETE", "DELETE"),
        ("CONNECT", "CONNECT"),
        ("*", "*"),
    ];
    const SCOPES: [(&str, &str); 3] = [("Cluster", "Cluster"), ("Namespaced", "Namespaced"), ("*", "*")];
    fields.require("rules");
    let mut rules = Vec::new();
    for mut rule in fields.objects("rules", 1) {
        for key in ["apiGroups", "apiVersions", "resources", "operations"] {
            rule.require(key);
        }
        let operations = rule.words("operations", 1, &OPERATIONS).unwrap_or_default();
        let found = ReviewRule {
            api_groups: rule.texts("apiGroups", 1).unwrap_or_default(),
            api_versions: rule.texts("apiVersions", 1).unwrap_or_default(),
            resources: rule.texts("resources", 1).unwrap_or_default(),
            operations: operations.into_iter().map(str::to_owned).collect(),
            scope: rule.word("scope", &SCOPES).map(str::to_owned),
        };
        rule.finish();
        let lists = [
            ("apiGroups", &found.api_groups),
            ("apiVersions", &found.api_versions),
            ("operations", &found.operations),
        ];
        for (list, items) in lists {
            if items.len() > 1 && items.iter().any(|item| item == "*") {
                reader.note(&format!("rules are invalid: '*' should stand alone in {list}"));
            }
        }
        rules.push(found);
    }
    rules
}

pub(super) fn conversion(mut fields: Fields<'_>, reader: &mut Reader) -> Option<ConversionBinding> {
    fields.require("conversions");
    let name = reader.name(fields.required_text("name"));
    let crd_name = fields.required_text("crdName").to_owned();
    let mut conversions = Vec::new();
    for mut rule in fields.objects("conversions", 1) {
        conversions.push(ConversionRule {
            from_version: rule.required_text("fromVersion").to_owned(),
            to_version: rule.required_text("toVersion").to_owned(),
        });
        rule.finish();
    }
    let group = group(&mut fields);
    let include_snapshots_from = snapshots(&mut fields, reader);
    let timeout = reader.timeout(&mut fields);
    fields.finish();
    Some(ConversionBinding {
        name: name?,
        crd_name,
        conversions,
        group,
        include_snapshots_from,
        timeout,
    })
}
