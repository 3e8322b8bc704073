//! The program resolves host names in an otherwise empty root: by `/etc/hosts`, by DNS with the search list of a pod,
//! by IPv6, regardless of `/etc/nsswitch.conf`.
//!
//! The program is the one that the variable OPERATOR names, which must be static, or else the one of this build with
//! its libraries. Needs root, for chroot and for the port of DNS. Each host has its own loopback address, so the
//! connection shows which host was found.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::env;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use fs_err as fs;
use tempfile::TempDir;
use testbed::process;

/// The address of the name server; no other test listens on it.
const SERVER: Ipv4Addr = Ipv4Addr::new(127, 84, 53, 53);
const HOSTS: &str = "127.0.0.1 localhost\n127.84.0.1 in-hosts short.example.com\n";
/// The `resolv.conf` that a kubelet writes for a pod in the namespace `default`.
const RESOLV: &str = "search default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n";
/// A setting that names an unknown source and forbids all others.
const NSSWITCH: &str = "hosts: nowhere [UNAVAIL=return] files\n";

/// The names in DNS, with their addresses.
const KNOWN: [(&str, &str); 5] = [
    ("kubernetes.default.svc.cluster.local", "127.84.0.2"),
    ("collector.default.svc.cluster.local", "127.84.0.3"),
    ("registry.example.com", "127.84.0.4"),
    ("six.example.com", "::1"),
    ("in-hosts", "127.84.0.5"),
];

/// Answers DNS queries, and keeps their names.
fn answer_questions(asked: Arc<Mutex<Vec<String>>>) {
    let socket = UdpSocket::bind((SERVER, 53)).expect("only root may listen on port 53");
    let known: BTreeMap<&str, IpAddr> = KNOWN.map(|(name, address)| (name, address.parse().unwrap())).into();
    thread::spawn(move || {
        let mut question = [0; 512];
        loop {
            let (length, from) = socket.recv_from(&mut question).unwrap();
            let (name, reply) = reply(&question[..length], &known);
            asked.lock().unwrap().push(name);
            socket.send_to(&reply, from).unwrap();
        }
    });
}

/// The name in a query, and the answer to it (RFC 1035).
fn reply(question: &[u8], known: &BTreeMap<&str, IpAddr>) -> (String, Vec<u8>) {
    let mut labels = Vec::new();
    let mut at = 12;
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..end]).to_lowercase());
        at = end;
    }
    let name = labels.join(".");
    // The root label, the type and the class end the question. Extensions follow.
    let end = at + 5;
    let kind = question[at + 2];
    let found = known.get(name.as_str());
    let data = match (kind, found) {
        (1, Some(IpAddr::V4(address))) => address.octets().to_vec(),
        (28, Some(IpAddr::V6(address))) => address.octets().to_vec(),
        _ => Vec::new(),
    };
    let code = if found.is_some() { 0 } else { 3 };
    let answers = u8::from(!data.is_empty());
    let mut reply = question[..2].to_vec();
    reply.extend([0x85, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0]);
    reply.extend(&question[12..end]);
    if !data.is_empty() {
        let length = u8::try_from(data.len()).unwrap();
        reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, length]);
        reply.extend(data);
    }
    (name, reply)
}

/// An API server without any object, on all addresses of this machine. It keeps the addresses at which it was asked.
fn answer_requests(met: Arc<Mutex<Vec<IpAddr>>>) -> u16 {
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            met.lock()
                .unwrap()
                .push(stream.local_addr().unwrap().ip().to_canonical());
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).unwrap();
            let head = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let body = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    port
}

/// The libraries that a program needs, as `ldd` lists them.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let mut command = process::command("ldd");
    command.arg(program);
    let said = process::run(command, None).unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let words = said.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

/// The folder that is the program's root.
struct Root(TempDir);

impl Root {
    fn new() -> Self {
        let root = Self(TempDir::new().unwrap());
        let named = env::var_os("OPERATOR");
        let program = named
            .as_ref()
            .map_or(Path::new(env!("CARGO_BIN_EXE_addon-operator")), Path::new);
        let libraries = libraries(program);
        assert!(named.is_none() || libraries.is_empty(), "not static: {libraries:?}");
        root.put(Path::new("/addon-operator"), program);
        for library in libraries {
            root.put(&library, &library);
        }
        // Without an authority in the kubeconfig the client would look for those of the machine.
        let authority = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/certificates/good-ca.crt");
        root.put(Path::new("/ca.crt"), &authority);
        root.write("/etc/hosts", HOSTS);
        root.write("/etc/resolv.conf", &format!("nameserver {SERVER}\n{RESOLV}"));
        root.write("/etc/nsswitch.conf", NSSWITCH);
        root
    }

    fn path(&self, inside: &Path) -> PathBuf {
        self.0.path().join(inside.strip_prefix("/").unwrap())
    }

    fn put(&self, inside: &Path, file: &Path) {
        let to = self.path(inside);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }

    fn write(&self, inside: &str, text: &str) {
        let to = self.path(Path::new(inside));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, text).unwrap();
    }

    /// Runs the program with an API server at this host, and returns the end of its output.
    fn ask(&self, host: &str, port: u16) -> String {
        let cluster =
            format!("{{name: it, cluster: {{server: 'http://{host}:{port}', certificate-authority: /ca.crt}}}}");
        let context = "{name: it, context: {cluster: it, user: it}}";
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\nclusters: [{cluster}]\ncontexts: [{context}]\nusers: [{{name: it, user: {{}}}}]\n"
        );
        self.write("/kubeconfig", &text);
        let mut command = process::command("chroot");
        command
            .arg(self.0.path())
            .args(["/addon-operator", "module", "enable", "some", "--yes"]);
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default());
        command
            .env("KUBECONFIG", "/kubeconfig")
            .env("ADDON_OPERATOR_NAMESPACE", "default");
        let output = process::run(command, None).unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

#[test]
fn hosts_are_found_in_an_empty_root() {
    let (asked, met) = <(Arc<Mutex<Vec<String>>>, Arc<Mutex<Vec<IpAddr>>>)>::default();
    answer_questions(Arc::clone(&asked));
    let port = answer_requests(Arc::clone(&met));
    let root = Root::new();
    // Each row: the host, its address, and the names that DNS is asked for.
    let cluster = |name: &str, domains: usize| -> Vec<String> {
        let domains = ["default.svc.cluster.local", "svc.cluster.local", "cluster.local"]
            .iter()
            .take(domains);
        domains.map(|domain| format!("{name}.{domain}")).collect()
    };
    let outside = |name: &str| [cluster(name, 3), vec![name.to_owned()]].concat();
    for (host, address, names) in [
        ("localhost", "127.0.0.1", vec![]),
        ("in-hosts", "127.84.0.1", vec![]),
        ("short.example.com", "127.84.0.1", vec![]),
        ("collector", "127.84.0.3", cluster("collector", 1)),
        ("kubernetes.default", "127.84.0.2", cluster("kubernetes.default", 2)),
        (
            "kubernetes.default.svc",
            "127.84.0.2",
            cluster("kubernetes.default.svc", 3),
        ),
        (
            "kubernetes.default.svc.cluster.local",
            "127.84.0.2",
            outside("kubernetes.default.svc.cluster.local"),
        ),
        ("registry.example.com", "127.84.0.4", outside("registry.example.com")),
        (
            "registry.example.com.",
            "127.84.0.4",
            vec!["registry.example.com".to_owned()],
        ),
        ("six.example.com", "::1", outside("six.example.com")),
        ("[::1]", "::1", vec![]),
    ] {
        asked.lock().unwrap().clear();
        met.lock().unwrap().clear();
        let said = root.ask(host, port);
        assert!(said.contains("there is no ConfigMap"), "{host}: {said}");
        let met: Vec<String> = met.lock().unwrap().iter().map(ToString::to_string).collect();
        assert!(met.iter().all(|found| found == address), "{host} is at {met:?}");
        let mut asked = asked.lock().unwrap().clone();
        // Each name is asked for twice: for IPv4 and for IPv6.
        asked.dedup();
        assert_eq!(asked, names, "{host}");
    }
    let said = root.ask("absent.example.com", port);
    assert!(said.contains("lookup"), "{said}");
}
