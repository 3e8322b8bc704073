use std::net::SocketAddr;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use report::Chain;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::authority::{Stored, renewed};
use super::clients::Clients;
use super::files::Files;
use super::material::{Material, Pem, Texts, Validity, bundle, dns_names};
use super::tls::{Phase, Tls};

fn names() -> Vec<String> {
    ["a.ns.svc", "b.ns.svc"].map(str::to_owned).to_vec()
}

fn start() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn after(days: i32) -> Timestamp {
    start() + SignedDuration::from_hours(24) * days
}

fn made() -> Stored {
    renewed(None, &names(), start()).unwrap().unwrap()
}

fn texts(stored: &Stored) -> Texts {
    let pem = |place: &str, text: &str| Pem {
        place: place.to_owned(),
        text: text.into(),
    };
    Texts {
        cert: pem("tls.crt", &stored.cert),
        key: pem("tls.key", &stored.key),
        ca: pem("ca.crt", &stored.ca),
    }
}

fn refusal(stored: &Stored, now: Timestamp) -> String {
    let error = Material::read(&texts(stored), now).unwrap_err();
    Chain(&error).to_string()
}

fn der(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .map(Result::unwrap)
        .collect()
}

#[test]
fn what_we_make_fits_together() {
    let stored = made();
    let material = Material::read(&texts(&stored), start()).unwrap();
    assert_eq!(dns_names(&der(&stored.cert)[0]), names());
    assert_eq!(material.authorities().len(), 1);
    assert!(after(90) < material.expires() && material.expires() <= after(91));
    assert_eq!(
        bundle(material.authorities()).unwrap().as_str(),
        stored.ca.replace("\r\n", "\n")
    );
    assert_eq!(bundle(&[]), None);
}

#[test]
fn a_certificate_is_renewed_before_its_end_by_the_same_authority() {
    let stored = made();
    assert_eq!(renewed(Some(&stored), &names(), after(59)).unwrap(), None);
    let new = renewed(Some(&stored), &names(), after(62)).unwrap().unwrap();
    assert_eq!((&new.ca, &new.ca_key), (&stored.ca, &stored.ca_key));
    assert!(new.cert != stored.cert && new.key != stored.key);
    Material::read(&texts(&new), after(62)).unwrap();
    assert_eq!(renewed(Some(&new), &names(), after(62)).unwrap(), None);
}

#[test]
fn a_new_name_needs_a_new_certificate() {
    let stored = made();
    let more = [names(), vec!["c.ns.svc".to_owned()]].concat();
    let new = renewed(Some(&stored), &more, start()).unwrap().unwrap();
    assert_eq!((&new.ca, dns_names(&der(&new.cert)[0])), (&stored.ca, more));
}

#[test]
fn an_old_authority_stays_in_the_bundle_until_its_end() {
    let stored = made();
    let rotated = renewed(Some(&stored), &names(), after(620)).unwrap().unwrap();
    let [new, old] = &der(&rotated.ca)[..] else {
        unreachable!()
    };
    assert_eq!(*old, der(&stored.ca)[0]);
    assert_ne!(new, old);
    assert_eq!(
        Material::read(&texts(&rotated), after(620))
            .unwrap()
            .authorities()
            .len(),
        2
    );
    // While the old authority is valid, new certificates are signed by the new one and the bundle has both.
    let later = renewed(Some(&rotated), &names(), after(700)).unwrap().unwrap();
    assert_eq!(later.ca, rotated.ca);
    // After the old authority has expired, the next renewal leaves it out.
    let after_it = renewed(Some(&later), &names(), after(770)).unwrap().unwrap();
    assert_eq!(der(&after_it.ca), std::slice::from_ref(new));
    assert_eq!(
        Material::read(&texts(&later), after(735)).unwrap().authorities().len(),
        1
    );
}

#[test]
fn what_cannot_be_used_is_made_anew() {
    let (stored, other) = (made(), made());
    for broken in [
        Stored {
            ca: "garbage".to_owned(),
            ..stored.clone()
        },
        Stored {
            ca_key: Some("garbage".to_owned()),
            ..stored.clone()
        },
        Stored {
            ca_key: other.ca_key.clone(),
            ..stored.clone()
        },
        Stored {
            key: other.key.clone(),
            ..stored.clone()
        },
        Stored {
            cert: other.cert.clone(),
            key: other.key.clone(),
            ..stored.clone()
        },
        Stored {
            cert: "garbage".to_owned(),
            ..stored.clone()
        },
    ] {
        let new = renewed(Some(&broken), &names(), start()).unwrap().unwrap();
        Material::read(&texts(&new), start()).unwrap();
    }
    let foreign = Stored {
        ca_key: None,
        cert: "theirs".to_owned(),
        ..stored
    };
    assert_eq!(
        renewed(Some(&foreign), &names(), start()).unwrap(),
        None,
        "others renew theirs"
    );
}

#[test]
fn a_refusal_names_the_place_and_what_is_wrong() {
    let (stored, other) = (made(), made());
    let with = |change: fn(&mut Stored, &Stored)| {
        let mut changed = stored.clone();
        change(&mut changed, &other);
        refusal(&changed, start())
    };
    assert_eq!(
        with(|s, _| s.cert.clear()),
        "cannot use tls.crt: it holds no certificate in PEM form"
    );
    assert_eq!(
        with(|s, _| s.cert.clone_from(&s.key)),
        "cannot use tls.crt: it holds no certificate in PEM form"
    );
    assert_eq!(
        with(|s, _| s.key.clone_from(&s.cert)),
        "cannot use tls.key: it holds no private key in PEM form"
    );
    assert_eq!(
        with(|s, o| s.key.clone_from(&o.key)),
        "cannot use tls.key: it is not the key of the certificate"
    );
    assert_eq!(
        with(|s, _| "?".clone_into(&mut s.ca)),
        "cannot use ca.crt: it holds no certificate in PEM form"
    );
    assert_eq!(
        refusal(&stored, after(-3)),
        "cannot use tls.crt: its certificate 1 is valid only from 2025-12-31T00:00:00Z on"
    );
    assert_eq!(
        refusal(&stored, after(92)),
        "cannot use tls.crt: its certificate 1 was valid until 2026-04-02T00:00:00Z"
    );
    let cut = with(|s, _| s.cert.truncate(200));
    assert!(cut.starts_with("cannot use tls.crt: it is not PEM text: "), "{cut}");
    let hollow = with(|s, _| {
        s.cert += "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    });
    assert!(
        hollow.starts_with("cannot use tls.crt: its certificate 2 cannot be read: "),
        "{hollow}"
    );
    let key = with(|s, _| "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n".clone_into(&mut s.key));
    assert!(key.starts_with("cannot use tls.key: its key cannot be used: "), "{key}");
}

#[test]
fn private_keys_are_not_shown() {
    let stored = made();
    let shown = format!(
        "{stored:?} {:?} {:?}",
        texts(&stored),
        Material::read(&texts(&stored), start()).unwrap()
    );
    let secret = stored.key.lines().nth(1).unwrap();
    let ca_secret = stored.ca_key.as_ref().unwrap().lines().nth(1).unwrap().to_owned();
    assert!(!shown.contains(secret) && !shown.contains(&ca_secret), "{shown}");
}

#[test]
fn files_are_read_anew_and_named_when_they_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    let files = Files {
        cert: path("tls.crt"),
        key: path("tls.key"),
        ca: path("ca.crt"),
    };
    assert!(files.are_absent());
    let (one, two) = (made(), made());
    for stored in [&one, &two] {
        fs_err::write(&files.cert, &stored.cert).unwrap();
        fs_err::write(&files.key, &stored.key).unwrap();
        fs_err::write(&files.ca, &stored.ca).unwrap();
        assert_eq!(
            Material::read(&files.read().unwrap(), start()).unwrap(),
            Material::read(&texts(stored), start()).unwrap()
        );
    }
    assert!(!files.are_absent());
    fs_err::remove_file(&files.key).unwrap();
    let error = files.read().unwrap_err();
    let place = files.key.display();
    assert_eq!(
        Chain(&error).to_string(),
        format!("cannot read the webhooks' private key {place}: entity not found")
    );
    assert_eq!(Clients::read(&[]).unwrap(), None);
    assert!(Clients::read(std::slice::from_ref(&files.ca)).unwrap().is_some());
    let error = Clients::read(&[files.ca.clone(), files.key.clone()]).unwrap_err();
    assert!(
        Chain(&error)
            .to_string()
            .starts_with("cannot read the webhooks' client CA ")
    );
}

#[tokio::test]
async fn a_listener_is_wanted_once_there_is_something_to_serve() {
    let tls = Tls::new().unwrap();
    let mut wanted = Box::pin(tls.wanted());
    assert!(futures::poll!(&mut wanted).is_pending());
    let material = Material::read(&texts(&made()), start()).unwrap();
    tls.serve(&material, None).unwrap();
    wanted.await;
    assert_eq!(tls.served(), Some(material.clone()));
    let address: SocketAddr = ([127, 0, 0, 1], 1).into();
    tls.tell(Phase::Listening(address));
    tls.serve(&material, None).unwrap();
    assert_eq!(tls.opened().await, Ok(address), "an open one stays open");
}

proptest! {
    #[test]
    fn no_text_panics(text in prop_oneof![
        "\\PC{0,80}",
        "-----BEGIN (CERTIFICATE|PRIVATE KEY|EC PRIVATE KEY)-----\n[A-Za-z0-9+/]{0,64}={0,2}\n-----END CERTIFICATE-----\n",
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| {
            let der = CertificateDer::from(bytes);
            assert!(Validity::of(&der).is_err());
            String::from_utf8_lossy(&der).into_owned()
        }),
    ], place in 0..4_usize) {
        let mut stored = made();
        match place {
            0 => stored.cert = text,
            1 => stored.key = text,
            2 => stored.ca = text,
            _ => stored.ca_key = Some(text),
        }
        if place < 3 {
            let refused = refusal(&stored, start());
            prop_assert!(refused.starts_with(["cannot use tls.crt", "cannot use tls.key", "cannot use ca.crt"][place]));
        }
        let new = renewed(Some(&stored), &names(), start()).unwrap().unwrap_or(stored);
        prop_assert!(Material::read(&texts(&new), start()).is_ok());
    }
}
