//! The names and addresses of webhooks.

use super::*;

#[test]
fn webhooks_are_named_as_in_the_original() {
    let settings = check_hooks(&[], &[]).unwrap();
    assert_eq!(
        settings.webhooks,
        webhooks_of("shell-operator", "shell-operator-hooks-hooks")
    );
    let variables = [
        ("VALIDATING_WEBHOOK_CLIENT_CA", "/a,/b"),
        ("CONVERSION_WEBHOOK_CLIENT_CA", "/a, /b"),
        ("CONVERSION_WEBHOOK_CA", "/ca"),
    ];
    let flags = [
        "--validating-webhook-client-ca=/c",
        "--conversion-webhook-listen-port=1",
    ];
    let WebhookSettings {
        admission, conversion, ..
    } = check_hooks(&flags, &variables).unwrap().webhooks;
    assert_eq!((admission.client_ca, admission.is_named), (vec!["/c".into()], false));
    assert_eq!((admission.is_set_up, conversion.is_set_up), (false, true));
    assert_eq!(conversion.client_ca, [PathBuf::from("/a"), "/b".into()]);
    assert_eq!(
        (conversion.listen.port(), conversion.ca, conversion.is_named),
        (1, "/ca".into(), true)
    );
}

#[test]
fn whoever_says_how_webhooks_are_reached_has_set_them_up() {
    let set_up = |name, value| check(&[], &[(name, value)]).unwrap().webhooks.admission.is_set_up;
    assert!(set_up("VALIDATING_WEBHOOK_SERVICE_NAME", "svc"));
    assert!(set_up("VALIDATING_WEBHOOK_LISTEN_ADDRESS", "127.0.0.1"));
    assert!(set_up("VALIDATING_WEBHOOK_LISTEN_PORT", "443"));
    assert!(!set_up("VALIDATING_WEBHOOK_CA", "/ca"));
}
