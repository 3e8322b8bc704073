//! The registry hosts and the ways to them: trusted authorities, permitted hosts, proxies, mirrors.

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use registry::Mirror;
use registry::error::Problem;
use registry::place::Host;
use registry::proxies::Proxies;
use registry::way::WayError;
use testbed::registry::guard::{Guard, NAME};
use testbed::registry::tunnel::Tunnel;

use super::stage::{access, client, guard, host, place, push, real, tag, told};

#[tokio::test]
async fn who_is_vouched_for_by_nobody_we_know_is_not_believed() {
    let guard = guard();
    let place = place(&host(guard.address()), "ways/trust");
    let mut access = access(&guard);
    access.authorities = None;
    let error = client(access).head(&place, &tag("1")).await.unwrap_err();
    assert!(
        matches!(error.problem, Problem::Way(WayError::Verify { .. })),
        "{error:?}"
    );
    assert_eq!(guard.seen(), []);
    let failure = Failure::from(error);
    assert_eq!(failure.class, Class::Invalid);
    assert!(failure.hints[0].contains("authority of your own"), "{failure:?}");
}

#[tokio::test]
async fn only_hosts_that_are_allowed_are_asked() {
    let guard = guard();
    let place = place(&host(guard.address()), "ways/foreign");
    let mut access = access(&guard);
    access.allowed = ["registry.example".parse().unwrap()].into();
    let error = client(access).head(&place, &tag("1")).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Foreign), "{error:?}");
    assert_eq!(guard.seen(), []);
}

#[tokio::test]
async fn without_tls_only_hosts_are_asked_that_are_listed_so() {
    let guard = Guard::start_plain(real()).unwrap();
    let place = place(&host(guard.address()), "ways/plain");
    let digest = push("ways/plain", "1", "one").await;
    let mut access = access(&guard);
    let error = client(access.clone()).head(&place, &tag("1")).await.unwrap_err();
    assert!(
        matches!(error.problem, Problem::Way(WayError::Verify { .. })),
        "{error:?}"
    );
    assert_eq!(guard.seen(), []);
    access.plain = access.allowed.clone();
    let found = client(access).head(&place, &tag("1")).await.unwrap();
    assert_eq!(found.digest, digest);
}

#[tokio::test]
async fn nobody_at_home_is_a_matter_of_time() {
    let guard = guard();
    let (access, place) = (access(&guard), place(&host(guard.address()), "ways/away"));
    drop(guard);
    let error = client(access).head(&place, &tag("1")).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Way(_)), "{error:?}");
    assert_eq!(error.class(), Class::Unavailable);
}

#[tokio::test]
async fn a_proxy_carries_what_it_cannot_read() {
    let guard = guard();
    let name: Host = NAME.parse().unwrap();
    let place = place(&name, "ways/proxy");
    let digest = push("ways/proxy", "1", "one").await;
    let tunnel = Tunnel::start(guard.address(), Some("Basic dTpw")).unwrap();
    let mut access = access(&guard);
    access.allowed = [name].into();
    for (user, is_known) in [("u:p@", true), ("", false)] {
        let proxy = format!("http://{user}{}", tunnel.address());
        access.proxies = Proxies::new(Some(&proxy), None).unwrap();
        let found = client(access.clone()).head(&place, &tag("1")).await;
        if is_known {
            assert_eq!(found.unwrap().digest, digest);
        } else {
            let error = found.unwrap_err();
            let Problem::Way(WayError::Proxy { said, .. }) = error.problem else {
                unreachable!("{error:?}")
            };
            assert_eq!(said, "answers 'HTTP/1.1 407 Proxy Authentication Required'");
        }
    }
    let heads = tunnel.heads();
    assert!(
        heads[0].starts_with("CONNECT registry.test:443 HTTP/1.1\r\nHost: registry.test:443\r\n"),
        "{heads:?}"
    );
    assert_eq!(guard.seen()[0].host, NAME);
}

#[tokio::test]
async fn mirrors_are_asked_first_and_their_registry_where_they_do_not_help() {
    let (guard, mirror) = (guard(), Guard::start_plain(real()).unwrap());
    let (at, away) = (host(mirror.address()), "127.0.0.1:1".parse::<Host>().unwrap());
    let place = place(&host(guard.address()), "ways/app");
    let own = push("ways/app", "1", "own").await;
    let mut access = access(&guard);
    access.plain = [at.clone(), away.clone()].into();
    let below = Some("mirrored".parse().unwrap());
    let mirrors = vec![
        Mirror {
            host: away,
            below: None,
        },
        Mirror { host: at, below },
    ];
    access.mirrors = BTreeMap::from([(place.host.clone(), mirrors)]);
    let registry = client(access);
    // The mirror does not have the image yet.
    assert_eq!(registry.head(&place, &tag("1")).await.unwrap().digest, own);
    let asked = mirror.seen();
    assert_eq!(told(&asked), ["HEAD mirrored/ways/app/manifests/1"]);
    let of = place.host.to_string().replace(':', "%3A");
    assert!(asked[0].path.ends_with(&format!("?ns={of}")), "{asked:?}");
    let mirrored = push("mirrored/ways/app", "1", "mirrored").await;
    guard.seen();
    assert_eq!(registry.head(&place, &tag("1")).await.unwrap().digest, mirrored);
    assert_eq!(guard.seen(), [], "nobody asks the registry itself");
}
