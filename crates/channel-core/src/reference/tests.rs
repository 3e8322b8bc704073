use proptest::prelude::*;

use super::*;

const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn parts(text: &str) -> (String, String, Option<String>, bool) {
    let read = Reference::parse(text).unwrap();
    let tag = read.tag.as_ref().map(ToString::to_string);
    let repository = &read.repository;
    (
        repository.registry().to_owned(),
        repository.path().to_owned(),
        tag,
        read.digest.is_some(),
    )
}

#[test]
fn names_of_images_are_taken_apart() {
    for (text, registry, path, tag, digest) in [
        ("alpine", "docker.io", "library/alpine", None, false),
        ("alpine:3.22", "docker.io", "library/alpine", Some("3.22"), false),
        ("docker.io/alpine", "docker.io", "library/alpine", None, false),
        (
            "index.docker.io/library/alpine",
            "docker.io",
            "library/alpine",
            None,
            false,
        ),
        ("team/app:v1", "docker.io", "team/app", Some("v1"), false),
        ("localhost/app", "localhost", "app", None, false),
        ("localhost:5000/app", "localhost:5000", "app", None, false),
        ("127.0.0.1:5000/a/b/c:1", "127.0.0.1:5000", "a/b/c", Some("1"), false),
        ("[::1]:5000/app:1", "[::1]:5000", "app", Some("1"), false),
        (
            "ghcr.io/team/a__b.c---d:_x",
            "ghcr.io",
            "team/a__b.c---d",
            Some("_x"),
            false,
        ),
        ("Host/app", "Host", "app", None, false),
        (&format!("ghcr.io/team/app@{A}"), "ghcr.io", "team/app", None, true),
        (
            &format!("ghcr.io:443/app:stable@{A}"),
            "ghcr.io:443",
            "app",
            Some("stable"),
            true,
        ),
    ] {
        let expected = (registry.to_owned(), path.to_owned(), tag.map(str::to_owned), digest);
        assert_eq!(parts(text), expected, "{text}");
    }
}

#[test]
fn an_image_id_is_read_behind_any_prefix() {
    for prefix in ["", "docker-pullable://", "docker://", "containerd://", "cri-o://"] {
        let read = Reference::parse_image_id(&format!("{prefix}ghcr.io/team/app@{A}")).unwrap();
        assert_eq!(read.digest.unwrap().as_str(), A, "{prefix}");
        assert_eq!(read.repository.to_string(), "ghcr.io/team/app", "{prefix}");
        let only = Reference::parse_image_id(&format!("{prefix}{A}")).unwrap_err();
        assert_eq!(only.fault, Fault::OnlyId, "{prefix}");
    }
}

#[test]
fn a_name_without_tag_and_digest_follows_latest() {
    let followed = |text: &str| {
        Reference::parse(text)
            .unwrap()
            .followed_tag()
            .map(|tag| tag.to_string())
    };
    assert_eq!(followed("ghcr.io/app").as_deref(), Some("latest"));
    assert_eq!(followed("ghcr.io/app:1.4").as_deref(), Some("1.4"));
    assert_eq!(followed(&format!("ghcr.io/app:1.4@{A}")).as_deref(), Some("1.4"));
    assert_eq!(followed(&format!("ghcr.io/app@{A}")), None);
}

#[test]
fn a_bad_name_is_told_with_its_part() {
    let long = format!("ghcr.io/{}", "a".repeat(250));
    let long_tag = format!("app:{}", "a".repeat(129));
    for (text, told) in [
        ("", "'' is no name of an image: it is empty"),
        (":1", "it is empty"),
        ("ghcr.io/", "'' should be the path of a repository"),
        ("ghcr.io/App", "'App' should be the path of a repository"),
        ("ghcr.io/a//b", "'a//b' should be the path of a repository"),
        ("ghcr.io/a..b", "'a..b' should be"),
        ("ghcr.io/-a", "'-a' should be"),
        ("ghcr.io/a-", "'a-' should be"),
        ("ghcr.io/a___b", "'a___b' should be"),
        ("ghcr.io:port/a", "'ghcr.io:port' should be the address of a registry"),
        ("ghcr.io:70000/a", "'ghcr.io:70000' should be"),
        ("-a.io/b", "'-a.io' should be"),
        ("[::z]/b", "'[::z]' should be"),
        ("app:", "'' should be a tag"),
        ("app:.1", "'.1' should be a tag"),
        ("app:a b", "'a b' should be a tag"),
        (&long_tag, "should be a tag: at most 128"),
        ("app@sha256:12", "'sha256:12' should be a digest: sha256: and 64 digits"),
        ("app@md5:12", "'md5:12' should be a digest"),
        (&format!("app@{}", A.to_uppercase()), "should be a digest"),
        (&format!("app@{A}:1"), "should be a digest"),
        (&long, "longer than 255 characters"),
    ] {
        let error = Reference::parse(text).unwrap_err();
        assert!(error.to_string().contains(told), "{text}: {error}");
        assert_eq!(error.text, text);
    }
}

#[test]
fn checked_texts_are_kept_as_texts() {
    let digest = ImageDigest::parse(A).unwrap();
    let text = serde_json::to_string(&digest).unwrap();
    assert_eq!(text, format!("\"{A}\""));
    assert_eq!(serde_json::from_str::<ImageDigest>(&text).unwrap(), digest);
    assert!(serde_json::from_str::<ImageDigest>("\"sha256:1\"").is_err());
    assert_eq!(format!("{:?}", Tag::parse("v1").unwrap()), "Tag(v1)");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[a-zA-Z0-9:/@._\\[\\] é-]{0,40}") {
        let _ = Reference::parse(&text);
        let _ = Reference::parse_image_id(&text);
    }

    #[test]
    fn a_name_that_is_shown_is_read_back(
        name in "(ghcr.io/|localhost:5000/|[::1]:1/|)[a-z0-9]{1,5}([._-][a-z0-9]{1,3}){0,2}(/[a-z0-9]{1,5}){0,2}",
        tag in "(:[a-zA-Z0-9_][a-zA-Z0-9._-]{0,9}|)",
        digest in "(@sha256:[0-9a-f]{64}|)",
    ) {
        let read = Reference::parse(&format!("{name}{tag}{digest}"));
        if let Ok(read) = read {
            prop_assert_eq!(Reference::parse(&read.to_string()), Ok(read));
        }
    }
}
