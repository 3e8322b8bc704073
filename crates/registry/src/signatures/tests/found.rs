//! The forms of a bundle, the choice among several, and the places where they are found.

use super::*;

#[test]
fn a_bundle_needs_one_signature_by_a_key() {
    let ours = keys(&["p256"]);
    let changed = |change: fn(&mut Value)| {
        let mut bundle = good_bundle("p256");
        change(&mut bundle);
        check_bundle(&ours, &bundle)
    };
    let twice = changed(|bundle| {
        let signatures = bundle["dsseEnvelope"]["signatures"].as_array_mut().unwrap();
        signatures.push(signatures[0].clone());
    });
    assert_eq!(twice, Err(Refusal::NotOne(2)));
    assert_eq!(
        changed(|bundle| bundle["dsseEnvelope"]["signatures"] = json!([])),
        Err(Refusal::NotOne(0))
    );
    for material in ["certificate", "x509CertificateChain"] {
        let mut bundle = good_bundle("p256");
        bundle["verificationMaterial"][material] = json!({"rawBytes": "AAAA"});
        assert_eq!(check_bundle(&ours, &bundle), Err(Refusal::Certificate));
        bundle["verificationMaterial"]
            .as_object_mut()
            .unwrap()
            .remove("publicKey");
        assert_eq!(check_bundle(&ours, &bundle), Err(Refusal::Certificate));
    }
    let message = changed(|bundle| bundle["messageSignature"] = json!({"signature": "AAAA"}));
    assert_eq!(message, Err(Refusal::OfFile));
    let old = changed(|bundle| bundle["mediaType"] = json!("application/vnd.dev.sigstore.bundle+json;version=0.3"));
    assert!(old.is_ok());
    for other in [
        "",
        "application/vnd.dev.sigstore.bundle.v0.2+json",
        "application/vnd.dev.sigstore.bundle.v0.4+json",
    ] {
        let mut bundle = good_bundle("p256");
        bundle["mediaType"] = json!(other);
        assert!(
            matches!(check_bundle(&ours, &bundle), Err(Refusal::OtherBundle { .. })),
            "{other}"
        );
    }
    for field in ["mediaType", "verificationMaterial", "dsseEnvelope"] {
        let mut bundle = good_bundle("p256");
        bundle.as_object_mut().unwrap().remove(field);
        let refused = check_bundle(&ours, &bundle);
        assert!(
            matches!(
                refused,
                Err(Refusal::Unreadable {
                    document: Document::Bundle,
                    ..
                })
            ),
            "{field}"
        );
    }
    let nobody = changed(|bundle| bundle["verificationMaterial"] = json!({}));
    assert!(matches!(nobody, Err(Refusal::Unreadable { .. })));
}

#[test]
fn one_good_signature_is_enough_whatever_lies_beside_it() {
    let ours = keys(&["p256", "rsa"]);
    let key = keys(&["rsa"]).ids().next().unwrap().clone();
    let bad = || {
        vec![
            simple("ed25519", payload(KIND, IMAGE)),
            simple("p256", payload(KIND, OTHER)),
        ]
    };
    let mut evidence = Evidence {
        simple: bad(),
        bundles: vec![b"{}".to_vec(), good_bundle("ed25519").to_string().into_bytes()],
        unread: vec![Refusal::TooMany {
            found: 200,
            most: MOST_SIGNATURES,
        }],
    };
    let why = Refusal::OtherImage {
        found: format!("'{OTHER}'"),
    };
    assert_eq!(ours.judge(&image(), &evidence), Verdict::Refused { why });
    evidence.bundles.push(good_bundle("rsa").to_string().into_bytes());
    assert_eq!(ours.judge(&image(), &evidence), Verdict::Verified { key: key.clone() });
    let simple = [bad(), vec![simple("rsa", payload(KIND, IMAGE))], bad()].concat();
    let evidence = Evidence {
        simple,
        ..Evidence::default()
    };
    assert_eq!(ours.judge(&image(), &evidence), Verdict::Verified { key });
    assert_eq!(ours.judge(&image(), &Evidence::default()), Verdict::NotSigned);
}

#[test]
fn manifests_lead_to_what_can_be_checked_and_to_nothing_else() {
    let layer =
        |kind: &str, signature: Value| json!({"mediaType": kind, "digest": OTHER, "size": 7, "annotations": signature});
    let signed = layer(simple::MEDIA_TYPE, json!({simple::SIGNATURE: "AAAA", "other": "x"}));
    let manifest = json!({"layers": [signed, layer("text/plain", json!({})), layer(simple::MEDIA_TYPE, json!({}))]});
    let listed = simple::listed(manifest.to_string().as_bytes()).unwrap();
    let signatures: Vec<&str> = listed.iter().map(|listed| listed.signature.as_str()).collect();
    assert_eq!(signatures, ["AAAA", ""]);
    let blob = Blob {
        digest: OTHER.to_owned(),
        size: 7,
    };
    assert_eq!(listed[0].payload, blob);
    let many = json!({"layers": vec![&manifest["layers"][0]; MOST_SIGNATURES + 1]}).to_string();
    assert!(matches!(
        simple::listed(many.as_bytes()),
        Err(Refusal::TooMany { found: 101, most: 100 })
    ));

    let of = |layers: Value| bundle::listed(json!({"layers": layers}).to_string().as_bytes());
    let bundle = layer(bundle::ARTIFACT_TYPE, json!({}));
    assert_eq!(of(json!([bundle])), Ok(Some(blob)));
    for other in [
        json!([]),
        json!([layer("text/plain", json!({}))]),
        json!([bundle, bundle]),
    ] {
        assert_eq!(of(other), Ok(None));
    }
    assert!(bundle::listed(b"{").is_err());
}
