//! The registry of the operator's image: whether it is followed, which other registries may be asked, and whose
//! signatures count.

use super::super::channel::{Follow, MirrorAt};
use super::*;

fn channel(variables: &[(&str, &str)]) -> ChannelSettings {
    *modules(check(&[], variables)).channel
}

fn refused(variables: &[(&str, &str)]) -> String {
    check(&[], variables).unwrap_err()
}

#[test]
fn the_registry_is_followed_where_our_pod_is_known() {
    let pod = ("ADDON_OPERATOR_POD", "operator-0");
    let follow = |variables: &[(&str, &str)]| channel(variables).follow;
    assert_eq!(follow(&[]), Follow::NoPod);
    assert_eq!(follow(&[("HOSTNAME", "laptop")]), Follow::NoPod, "a host is not a pod");
    assert_eq!(follow(&[pod]), Follow::As("operator-0".to_owned()));
    assert_eq!(
        follow(&[pod, ("ADDON_OPERATOR_CHANNEL", "true")]),
        Follow::As("operator-0".to_owned())
    );
    assert_eq!(follow(&[pod, ("ADDON_OPERATOR_CHANNEL", "false")]), Follow::Refused);
    assert_eq!(follow(&[("ADDON_OPERATOR_CHANNEL", "false")]), Follow::Refused);
    assert_eq!(
        refused(&[("ADDON_OPERATOR_CHANNEL", "true")]),
        "configuration error: ADDON_OPERATOR_CHANNEL needs ADDON_OPERATOR_POD, which is not set"
    );
    assert_eq!(
        refused(&[pod, ("ADDON_OPERATOR_CHANNEL", "stable")]),
        "configuration error: ADDON_OPERATOR_CHANNEL is 'stable', but it should be true or false"
    );
}

#[test]
fn registries_and_mirrors_are_lists_of_addresses() {
    let read = channel(&[
        ("ADDON_OPERATOR_CHANNEL_REGISTRIES", "b.example, a.example:5000,"),
        (
            "ADDON_OPERATOR_CHANNEL_MIRRORS",
            "docker.io=m.example/hub, docker.io=n.example, a.example:5000=m.example:81",
        ),
        ("ADDON_OPERATOR_CHANNEL_PLAIN_HTTP", "m.example:81"),
        ("ADDON_OPERATOR_CHANNEL_CA", "/ca/ca.crt"),
        ("ADDON_OPERATOR_VERIFICATION_KEYS", "/keys"),
        ("ADDON_OPERATOR_NOTIFY_TOKEN", "/token/token"),
    ]);
    let at = |host: &str, below: Option<&str>| MirrorAt {
        host: host.to_owned(),
        below: below.map(str::to_owned),
    };
    let expected = ChannelSettings {
        follow: Follow::NoPod,
        registries: ["a.example:5000".to_owned(), "b.example".to_owned()].into(),
        mirrors: BTreeMap::from([
            ("a.example:5000".to_owned(), vec![at("m.example:81", None)]),
            (
                "docker.io".to_owned(),
                vec![at("m.example", Some("hub")), at("n.example", None)],
            ),
        ]),
        plain: ["m.example:81".to_owned()].into(),
        authority: Some("/ca/ca.crt".into()),
        keys: Some("/keys".into()),
        notify_token: Some("/token/token".into()),
    };
    assert_eq!(read, expected);
}

#[test]
fn what_is_no_address_is_refused_by_the_name_of_its_variable() {
    for (name, value) in [
        ("ADDON_OPERATOR_CHANNEL_REGISTRIES", "https://a.example"),
        ("ADDON_OPERATOR_CHANNEL_PLAIN_HTTP", "a.example/team"),
        ("ADDON_OPERATOR_CHANNEL_MIRRORS", "a.example"),
        ("ADDON_OPERATOR_CHANNEL_MIRRORS", "a.example=b.example,a.example"),
    ] {
        let error = refused(&[(name, value)]);
        let told = format!("configuration error: {name} is '{value}', but it should be ");
        assert!(error.starts_with(&told), "{error}");
    }
}
