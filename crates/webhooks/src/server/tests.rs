use std::future::pending;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;

use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::object::json::Json;
use addon_core::review::reply::NoAnswer;
use certificates::authority;
use certificates::authority::Stored;
use certificates::clients::Clients;
use certificates::material::{Material, Pem, Texts, bundle};
use certificates::probe::{ProbeError, probe};
use jiff::Timestamp;
use names::{HookId, HookName, Owner};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ALL_VERSIONS, SupportedProtocolVersion};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

const NAME: &str = "svc.ns.svc";

fn stored() -> Stored {
    authority::renewed(None, &[NAME.to_owned()], Timestamp::now())
        .unwrap()
        .unwrap()
}

fn pem(place: &str, text: &str) -> Pem {
    Pem {
        place: place.to_owned(),
        text: text.into(),
    }
}

fn material(stored: &Stored) -> Material {
    let texts = Texts {
        cert: pem("cert", &stored.cert),
        key: pem("key", &stored.key),
        ca: pem("ca", &stored.ca),
    };
    Material::read(&texts, Timestamp::now()).unwrap()
}

/// The routes in these tests.
fn routes() -> Arc<Routes> {
    let names = ["a.b.c", "late.b.c", "broken.b.c", "other.b.c", "old.b.c", "new.b.c"];
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]);
    let validating: Vec<_> = names.map(|name| json!({"name": name, "rules": rules})).into();
    let config = json!({
        "configVersion": "v1",
        "kubernetesValidating": validating,
        "kubernetesCustomResourceConversion": [{
            "name": "crd",
            "crdName": "crd",
            "conversions": [{"fromVersion": "g/v1", "toVersion": "g/v2"}],
        }],
    });
    let config = HookConfig::parse(&config.to_string(), HookKind::Global).unwrap();
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("hook.sh").unwrap(),
    };
    Arc::new(Routes::of([(&hook, &config)]).0)
}

/// An address of this machine that no other test here uses: a port that one test leaves is free until it takes it again.
fn own_address() -> SocketAddr {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let [high, low] = GIVEN.fetch_add(1, Relaxed).to_be_bytes();
    ([127, 1, high, low], 0).into()
}

struct Running {
    tls: Tls,
    address: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<io::Result<()>>,
    stored: Stored,
    meters: Arc<Meters>,
}

impl Running {
    async fn start<F: Future<Output = Reply> + Send + 'static>(
        reviews: Reviews,
        handler: impl Fn(Asked) -> F + Send + Sync + 'static,
    ) -> Self {
        let (tls, stop, stored) = (Tls::new().unwrap(), CancellationToken::new(), stored());
        let meters = Arc::new(Meters::new("own_"));
        let listener = Listener {
            reviews,
            address: own_address(),
            tls: tls.clone(),
            routes: watch::Sender::new(routes()).subscribe(),
            meters: Arc::clone(&meters),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, handler, stop.clone()));
        tls.serve(&material(&stored), None).unwrap();
        let address = tls.opened().await.unwrap();
        Self {
            tls,
            address,
            stop,
            tasks,
            stored,
            meters,
        }
    }

    /// Sends a request; returns the head and the body of the answer.
    async fn send(&self, request: &str) -> (String, String) {
        let mut stream = connect(self.address, &self.stored, None).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    async fn ended(mut self) {
        self.tasks.join_next().await.unwrap().unwrap().unwrap();
    }

    async fn post(&self, path: &str, body: &str) -> (String, String) {
        self.send(&post(path, "application/json", body)).await
    }
}

fn post(path: &str, kind: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

async fn connect(address: SocketAddr, trusted: &Stored, client: Option<&Stored>) -> io::Result<TlsStream<TcpStream>> {
    connect_with(address, trusted, client, ALL_VERSIONS).await
}

async fn connect_with(
    address: SocketAddr,
    trusted: &Stored,
    client: Option<&Stored>,
    versions: &[&'static SupportedProtocolVersion],
) -> io::Result<TlsStream<TcpStream>> {
    let tcp = TcpStream::connect(address).await.unwrap();
    shaken(tcp, trusted, client, versions).await
}

async fn shaken(
    tcp: TcpStream,
    trusted: &Stored,
    client: Option<&Stored>,
    versions: &[&'static SupportedProtocolVersion],
) -> io::Result<TlsStream<TcpStream>> {
    let roots = pem("ca", &trusted.ca).roots().unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(client) => {
            let cert = CertificateDer::from_pem_slice(client.cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).unwrap();
            let key = ring::default_provider().key_provider.load_private_key(key).unwrap();
            // This way the library does not check the certificate before it is sent.
            let shown = SingleCertAndKey::from(CertifiedKey::new(vec![cert], key));
            config.with_client_cert_resolver(Arc::new(shown))
        }
    };
    let name = ServerName::try_from(NAME).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await
}

/// Answers with the request's path.
async fn echo(asked: Asked) -> Reply {
    Reply::Review(Json::from(&json!({"path": asked.path})))
}

const REQUEST: &str = r#"{"request": {"uid": "1"}}"#;

#[tokio::test]
async fn requests_are_judged_before_anybody_is_asked() {
    let running = Running::start(Reviews::Admission, echo).await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
    for (request, status, body) in [
        (get("/healthz"), "200 OK", ""),
        (get("/hooks/a-b-c"), "405 Method Not Allowed", ""),
        (
            post("/hooks/a-b-c", "text/plain", REQUEST),
            "415 Unsupported Media Type",
            "",
        ),
        (
            post("/hooks/a-b-c", "application/json", "no json"),
            "400 Bad Request",
            "Invalid JSON payload",
        ),
        (
            post("/hooks/a-b-c", "text/plain", ""),
            "400 Bad Request",
            "Invalid JSON payload",
        ),
        (
            post("/hooks/a-b-c", "application/json", "{}"),
            "400 Bad Request",
            "Missing parameters: request",
        ),
        (
            post("/hooks/a-b-c?timeout=10s", "application/json; charset=utf-8", REQUEST),
            "200 OK",
            r#"{"path":"/hooks/a-b-c"}"#,
        ),
    ] {
        let (head, said) = running.send(&request).await;
        assert_eq!(
            (head.lines().next().unwrap(), said.as_str()),
            (format!("HTTP/1.1 {status}").as_str(), body),
            "{request}"
        );
    }
    let (head, _) = running.post("/hooks/a-b-c", REQUEST).await;
    assert!(head.contains("content-type: application/json"), "{head}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let running = Running::start(Reviews::Admission, echo).await;
    let length = (8 << 20) + 1;
    // Refused because of its announced length.
    let request = format!(
        "POST /hooks/a-b-c HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    let (head, said) = running.send(&request).await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    assert_eq!(said, "more than 8388608 bytes");
}

#[tokio::test]
async fn without_a_reply_the_policy_is_left_to_the_api_server() {
    let running = Running::start(Reviews::Admission, async |asked: Asked| match asked.path.as_str() {
        "/hooks/late-b-c" => pending().await,
        "/hooks/broken-b-c" => unreachable!("a mistake of ours"),
        _ => Reply::NoAnswer(NoAnswer::NotReady),
    })
    .await;
    for (path, said) in [
        ("/hooks/late-b-c?timeout=1s", "no hook has answered in time"),
        ("/hooks/broken-b-c", ""),
        ("/hooks/other-b-c", "hooks are still being configured"),
    ] {
        let (head, body) = running.post(path, REQUEST).await;
        assert!(head.starts_with("HTTP/1.1 500"), "{path}: {head}");
        assert_eq!(body, said, "{path}");
    }
}

#[tokio::test]
async fn conversions_are_read_as_conversions() {
    let running = Running::start(Reviews::Conversion, async |asked: Asked| match asked.request {
        ReviewRequest::Conversion(request) => Reply::Review(Json::from(&json!(request.desired))),
        ReviewRequest::Admission(_) => Reply::NoAnswer(NoAnswer::NotReady),
    })
    .await;
    let (_, body) = running
        .post("/crd", r#"{"request": {"desiredAPIVersion": "g/v1"}}"#)
        .await;
    assert_eq!(body, r#""g/v1""#);
}

#[tokio::test]
async fn requests_under_way_are_answered_before_the_end() {
    let gate = Arc::new(Semaphore::new(0));
    let (begun, held) = (Arc::new(Semaphore::new(0)), Arc::clone(&gate));
    let seen = Arc::clone(&begun);
    let running = Running::start(Reviews::Admission, move |asked| {
        let (held, seen) = (Arc::clone(&held), Arc::clone(&seen));
        async move {
            seen.add_permits(1);
            drop(held.acquire().await);
            echo(asked).await
        }
    })
    .await;
    let ended = async {
        begun.acquire().await.unwrap().forget();
        running.stop.cancel();
        // The listener has ended when no client can connect.
        while TcpStream::connect(running.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        gate.add_permits(1);
    };
    let (answer, ()) = tokio::join!(running.post("/hooks/a-b-c", REQUEST), ended);
    assert_eq!(answer.1, r#"{"path":"/hooks/a-b-c"}"#);
    running.ended().await;
}

#[tokio::test]
async fn certificates_are_swapped_while_requests_go_on() {
    let mut running = Running::start(Reviews::Admission, echo).await;
    let mut open = connect(running.address, &running.stored, None).await.unwrap();
    let old = std::mem::replace(&mut running.stored, stored());
    assert!(
        connect(running.address, &running.stored, None).await.is_err(),
        "not served yet"
    );
    running.tls.serve(&material(&running.stored), None).unwrap();
    assert_eq!(
        running.post("/hooks/new-b-c", REQUEST).await.1,
        r#"{"path":"/hooks/new-b-c"}"#
    );
    assert!(
        connect(running.address, &old, None).await.is_err(),
        "not served any more"
    );
    open.write_all(post("/hooks/old-b-c", "application/json", REQUEST).as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    open.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with(r#"{"path":"/hooks/old-b-c"}"#), "{answer}");
}

/// Client certificates with the same key, and whether they are accepted: one signed by the authority, one that has
/// expired, and one by another authority with the same name.
const OLD: [(&str, bool); 3] = [
    (include_str!("../../../certificates/src/clients/old/client.crt"), true),
    (include_str!("../../../certificates/src/clients/old/expired.crt"), false),
    (include_str!("../../../certificates/src/clients/old/forged.crt"), false),
];

/// A client certificate of version 1, which openssl makes if it is told of no extension.
fn of_the_first_version(cert: &str) -> Stored {
    Stored {
        ca: String::new(),
        ca_key: None,
        cert: cert.to_owned(),
        key: include_str!("../../../certificates/src/clients/old/client.key").to_owned(),
    }
}

#[tokio::test]
async fn clients_show_a_certificate_where_they_have_to() {
    let running = Running::start(Reviews::Admission, echo).await;
    let client = stored();
    let dir = tempfile::tempdir().unwrap();
    let [path, old_path] = ["ca", "old-ca"].map(|name| dir.path().join(name));
    fs_err::write(&path, &client.ca).unwrap();
    fs_err::write(&old_path, include_str!("../../../certificates/src/clients/old/ca.crt")).unwrap();
    let clients = Clients::read(&[path, old_path]).unwrap();
    running.tls.serve(&material(&running.stored), clients).unwrap();
    let request = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let ask = async |who: Option<&Stored>| -> io::Result<String> {
        let mut stream = connect(running.address, &running.stored, who).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    assert!(ask(None).await.is_err());
    assert!(ask(Some(&stored())).await.is_err(), "of another authority");
    for (cert, good) in OLD {
        let client = of_the_first_version(cert);
        for versions in [&[&TLS12], &[&TLS13]] {
            let mut stream = connect_with(running.address, &running.stored, Some(&client), versions).await;
            let answer = async {
                let stream = stream.as_mut().ok()?;
                stream.write_all(request.as_bytes()).await.ok()?;
                let mut head = [0; 12];
                stream.read_exact(&mut head).await.ok()?;
                Some(head)
            };
            assert_eq!(
                answer.await.is_some_and(|head| &head == b"HTTP/1.1 200"),
                good,
                "{versions:?} {cert}"
            );
        }
    }
    assert!(running.tls.asks_clients());
    let own = bundle(material(&running.stored).authorities()).unwrap();
    probe(running.address, NAME, &own, true).await.unwrap();
}

#[tokio::test]
async fn a_probe_sees_what_the_api_server_would_see() {
    let running = Running::start(Reviews::Admission, echo).await;
    let own = bundle(material(&running.stored).authorities()).unwrap();
    let other = bundle(material(&stored()).authorities()).unwrap();
    probe(running.address, NAME, &own, false).await.unwrap();
    let verify = |error: ProbeError| matches!(error, ProbeError::Verify { .. });
    assert!(verify(probe(running.address, NAME, &other, false).await.unwrap_err()));
    assert!(verify(
        probe(running.address, "other.ns.svc", &own, false).await.unwrap_err()
    ));
    let address = running.address;
    running.stop.cancel();
    running.ended().await;
    let gone = probe(address, NAME, &own, false).await.unwrap_err();
    assert!(matches!(gone, ProbeError::Connect { .. }), "{gone}");
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_and_tried_again() {
    let taken = TcpListener::bind(own_address()).unwrap();
    let address = taken.local_addr().unwrap();
    let (tls, stop, stored) = (Tls::new().unwrap(), CancellationToken::new(), stored());
    let listener = Listener {
        reviews: Reviews::Admission,
        address,
        tls: tls.clone(),
        routes: watch::Sender::new(routes()).subscribe(),
        meters: Arc::new(Meters::new("own_")),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, echo, stop.clone()));
    tls.serve(&material(&stored), None).unwrap();
    let why = tls.opened().await.unwrap_err();
    assert!(why.starts_with(&format!("cannot listen on {address}: ")), "{why}");
    drop(taken);
    tls.serve(&material(&stored), None).unwrap();
    assert_eq!(tls.opened().await, Ok(address));
    stop.cancel();
    tasks.join_next().await.unwrap().unwrap().unwrap();
}

#[test]
fn we_wait_a_little_less_than_the_api_server() {
    for (uri, millis) in [
        ("/a?timeout=10s", 9500),
        ("/a?x=y&timeout=1s", 900),
        ("/a?timeout=30s", 29500),
        ("/a", 29500),
        ("/a?timeout=900s", 29500),
        ("/a?timeout=0s", 29500),
        ("/a?timeout=soon", 29500),
    ] {
        assert_eq!(patience(&uri.parse().unwrap()).as_millis(), millis, "{uri}");
    }
}

mod crowd;
