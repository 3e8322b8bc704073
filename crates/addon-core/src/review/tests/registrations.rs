//! The webhook configurations that the API server gets.

use super::*;

fn address() -> Address {
    Address {
        namespace: "ns".to_owned(),
        service: "svc".to_owned(),
        ca: CaBundle::new("-----BEGIN CERTIFICATE-----\n").unwrap(),
    }
}

#[test]
fn a_webhook_says_everything_that_the_binding_says() {
    let mut full = binding("A.b.c");
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]});
    full["labelSelector"] = selector.clone();
    full["namespace"] = json!({"labelSelector": {"matchLabels": {"n": "m"}}});
    full["failurePolicy"] = json!("Ignore");
    full["sideEffects"] = json!("NoneOnDryRun");
    full["timeoutSeconds"] = json!(3);
    full["matchConditions"] = json!([{"name": "c", "expression": "true"}]);
    full["rules"][0]["scope"] = json!("Namespaced");
    let routes = routes(&[(
        "one",
        json!({"kubernetesMutating": [full], "kubernetesValidating": [binding("x.y.z")]}),
    )]);
    let client = |path: &str| {
        json!({"caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "service": {"namespace": "ns", "name": "svc", "port": 443, "path": path}})
    };
    let rule = |scope: &str| {
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"], "scope": scope}])
    };
    assert_eq!(
        Value::Array(webhooks(&routes, AdmissionKind::Mutating, &address())),
        json!([{
            "name": "A.b.c", "clientConfig": client("/hooks/-a-b-c"), "rules": rule("Namespaced"),
            "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "NoneOnDryRun",
            "namespaceSelector": {"matchLabels": {"n": "m"}}, "objectSelector": selector,
            "timeoutSeconds": 3, "admissionReviewVersions": ["v1", "v1beta1"], "reinvocationPolicy": "Never",
            "matchConditions": [{"name": "c", "expression": "true"}],
        }])
    );
    assert_eq!(
        Value::Array(webhooks(&routes, AdmissionKind::Validating, &address())),
        json!([{
            "name": "x.y.z", "clientConfig": client("/hooks/x-y-z"), "rules": rule("*"), "failurePolicy": "Fail",
            "matchPolicy": "Equivalent", "sideEffects": "None", "namespaceSelector": {}, "objectSelector": {},
            "timeoutSeconds": 10, "admissionReviewVersions": ["v1", "v1beta1"],
        }])
    );
}

#[test]
fn our_config_map_is_asked_about_by_its_name_and_nobody_waits_long() {
    assert!(edit_webhooks(&Routes::default(), &address()).is_empty());
    let routes = routes(&[]).with_edits_of("our-config");
    assert!(routes.admits() && !routes.is_empty());
    let client = json!({"caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
        "service": {"namespace": "ns", "name": "svc", "port": 443, "path": "/config-map"}});
    assert_eq!(
        Value::Array(edit_webhooks(&routes, &address())),
        json!([{
            "name": "config-map.addon-operator.internal", "clientConfig": client, "failurePolicy": "Ignore",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": ["configmaps"], "scope": "Namespaced"}],
            "matchConditions": [{"name": "our-config-map", "expression": "request.name == 'our-config'"}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ns"}}, "objectSelector": {},
            "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": 3,
            "admissionReviewVersions": ["v1", "v1beta1"],
        }])
    );
    assert!(
        webhooks(&routes, AdmissionKind::Validating, &address()).is_empty(),
        "hooks have nothing to do with it"
    );
}

#[test]
fn a_converted_resource_leads_to_us() {
    let routes = routes(&[("one", converter(&[("v1", "v2")]))]);
    let wanted = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {"caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "service": {"namespace": "ns", "name": "svc", "port": 443, "path": "/widgets.example.com"}}}});
    assert_eq!(
        conversions(&routes, &address()),
        BTreeMap::from([(CRD.to_owned(), wanted)])
    );
}

#[test]
fn a_bundle_without_a_certificate_is_none() {
    for pem in ["", "\n", "-----BEGIN PRIVATE KEY-----\n"] {
        assert!(CaBundle::new(pem).is_err(), "{pem}");
    }
}
