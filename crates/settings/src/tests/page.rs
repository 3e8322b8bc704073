//! The place of the page: loopback without a review, any address with one.

use super::*;

#[test]
fn the_page_leaves_loopback_only_with_a_review() {
    let page = |flags: &[&str], variables: &[(&str, &str)]| modules(check(flags, variables)).page;
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    let chosen = |text| Page::Loopback {
        address: at(text),
        is_chosen: true,
    };
    assert_eq!(page(&["--page-listen=off"], &[]), Page::Off);
    assert_eq!(page(&[], &[("ADDON_OPERATOR_PAGE_LISTEN", "off")]), Page::Off);
    assert_eq!(page(&["--page-listen=[::1]:80"], &[]), chosen("[::1]:80"));
    let reviewed = page(&["--page-listen=:80", "--page-review"], &[]);
    assert_eq!(reviewed, Page::Reviewed(at("0.0.0.0:80")));
    let reviewed = page(&[], &[("ADDON_OPERATOR_PAGE_REVIEW", "true")]);
    assert_eq!(reviewed, Page::Reviewed(at("127.0.0.1:9655")));
    for address in [":80", "0.0.0.0:80", "10.0.0.1:80", "nonsense"] {
        let refused = check(&[], &[("ADDON_OPERATOR_PAGE_LISTEN", address)]).unwrap_err();
        let expected = format!("ADDON_OPERATOR_PAGE_LISTEN is '{address}', but it should be an address");
        assert!(refused.contains(&expected), "{refused}");
    }
}
