//! The use of an installation by an admin, from the first command to the last.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;
use testbed::kubectl::KubectlError;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::report::tell;
use testbed::wait::wait_until;

use super::aging::{certificates_rotate_without_a_failed_review, wait_until_served};
use super::stage::{Image, PATIENCE, Stage, chart, start};

pub(crate) const SAYS_NO: &str = "a hook in a pod does not want it";
/// The service account of a module.
const ACCOUNT: &str = "guest";

#[test]
fn an_installation_from_its_beginning_to_its_end() {
    if testbed::shared::has_no_node() {
        return;
    }
    let plane = start();
    let image = Image::push(&plane, "story");
    let stage = Stage::build(&plane, image.clone());
    stage.make_account(ACCOUNT);
    stage.install(Part::Helm3, &[]);
    two_pods_one_leader_and_modules_that_converged(&stage);
    a_module_acts_as_its_account(&stage);
    hooks_answer_through_the_service(&stage);
    bad_edits_are_refused_and_good_ones_rolled_out(&stage);
    what_a_person_asks_outside_is_answered(&stage);
    let certificates = certificates_rotate_without_a_failed_review(&stage);
    let revisions = stage.revisions();
    pods_are_replaced(&stage);
    a_killed_leader_is_replaced(&stage);
    // A leader that did not create the certificates serves them too.
    wait_until_served(&stage, &stage.leader(), &certificates);
    upgraded_and_uninstalled(&stage, Part::Helm3, &revisions);
    // A second installation takes over the releases of the first.
    stage.install(Part::Helm4, &[]);
    stage.wait_until_it_says("module list -o wide", &["greeter", "reviews", "Ready"]);
    upgraded_and_uninstalled(&stage, Part::Helm4, &revisions);
    shipped_modules_are_off_until_they_are_switched_on(&Stage::build(&plane, image));
}

/// The plain image, in a namespace without any earlier installation.
fn shipped_modules_are_off_until_they_are_switched_on(stage: &Stage<'_>) {
    let file = chart().with_file_name("shipped-modules.yaml");
    stage.install_modules_of_image(Part::Helm3, &file);
    let listed = || stage.ask("addon-operator module list -o wide");
    let rows = |said: &str| -> Vec<String> {
        let rows = said.lines().filter(|line| {
            ["sysctl", "copier", "copyrator", "aerospike", "bundles"]
                .iter()
                .any(|name| line.contains(name))
        });
        rows.map(str::to_owned).collect()
    };
    let said = listed();
    assert_eq!(rows(&said).len(), 6, "{said}");
    assert!(
        rows(&said)
            .iter()
            .all(|row| row.contains("Disabled") && !row.contains("Ready")),
        "{said}"
    );
    // The image's /modules is empty on purpose.
    assert!(
        !stage.logs().contains("nothing is removed for being absent"),
        "{}",
        stage.logs()
    );
    let patch = json!({"data": {"registrySecretCopierEnabled": "true"}});
    stage.kubectl(&format!("patch configmap addon-operator --type=merge --patch={patch}"));
    let look = || {
        let said = listed();
        let on: Vec<String> = rows(&said).into_iter().filter(|row| row.contains("Ready")).collect();
        if on.len() == 1 && on[0].contains("copier") {
            Ok(Some(()))
        } else {
            Err(said)
        }
    };
    wait_until(PATIENCE, "one of the shipped modules alone", look).unwrap();
}

fn upgraded_and_uninstalled(stage: &Stage<'_>, helm: Part, revisions: &str) {
    stage.install(helm, &["log.level=debug", "replicas=3"]);
    stage.leader();
    assert_eq!(stage.pods().len(), 3);
    assert_eq!(stage.revisions(), revisions, "nothing has changed for any module");
    what_an_uninstallation_leaves(stage, helm, revisions);
}

fn two_pods_one_leader_and_modules_that_converged(stage: &Stage<'_>) {
    assert_eq!(stage.pods().len(), 2);
    assert_eq!(stage.ask("id -u").trim(), "65532");
    stage.wait_until_it_says("module list -o wide", &["greeter", "reviews", "Ready"]);
    // People who have only the image find out in this way which rights its modules need.
    let shipped = include_str!("../../charts/shipped-modules.yaml");
    assert_eq!(stage.ask("addon-operator rbac generate /shipped-modules"), shipped);
    // The request goes through the API server to the pod's address. A port-forward would reach only the pod's loopback.
    let pod = format!("/api/v1/namespaces/{}/pods/{}", stage.namespace.name(), stage.leader());
    let said = stage.kubectl(&format!("get --raw {pod}:9650/proxy/readyz?verbose"));
    assert!(said.contains("Startup converge done."), "{said}");
    assert_eq!(
        stage.kubectl("get configmap greeting --output=jsonpath={.data.text}"),
        "hello"
    );
    // The status names the missing right, and the other modules do not wait.
    let missing = ["poor", "reach.sh", "cannot create resource \"secrets\"", "kube-system"];
    stage.wait_until_it_says("why poor", &missing);
}

/// The module's release, the requests of its hook, and the requests of its script all use the account.
fn a_module_acts_as_its_account(stage: &Stage<'_>) {
    let namespace = &stage.namespace;
    let account = format!("system:serviceaccount:{}:{ACCOUNT}", namespace.name());
    let look = || {
        let audit = namespace.plane().audit();
        let records = audit.since(audit.beginning()).map_err(|error| error.to_string())?;
        let made = records.that(|record| record.user == account && record.verb == "create" && record.succeeded());
        let made = made.that(|record| record.uri.contains("/configmaps"));
        if made.len() == 3 {
            Ok(Some(()))
        } else {
            Err(made.to_string())
        }
    };
    wait_until(PATIENCE, "three objects of an account", look).unwrap();
    stage.kubectl("get configmap guest-chart guest-patch guest-script");
}

fn hooks_answer_through_the_service(stage: &Stage<'_>) {
    stage.kubectl(&format!("label namespace {} trial=yes", stage.namespace.name()));
    wait_until_a_hook_refuses(stage);
    stage.kubectl("create configmap reviewed");
    assert_eq!(
        stage.kubectl("get configmap reviewed --output=jsonpath={.metadata.labels.reviewed}"),
        "yes"
    );
    let ticket = json!({"apiVersion": "trial.example.com/v1alpha1", "kind": "Ticket", "metadata": {"name": "one"}});
    let admin = stage.namespace.kubectl_as(User::Admin);
    admin.feed(["create", "-f", "-"], &ticket.to_string()).unwrap();
    let converted = stage.kubectl("get tickets.v1.trial.example.com one --output=jsonpath={.apiVersion}:{.cameFrom}");
    assert_eq!(converted, "trial.example.com/v1:trial.example.com/v1alpha1");
}

/// The node's proxy follows the endpoints of the Service by and by.
fn wait_until_a_hook_refuses(stage: &Stage<'_>) {
    let refused = || {
        let said = stage
            .namespace
            .kubectl(["create", "configmap", "bad", "--dry-run=server"]);
        let said = said.unwrap_or_else(|error| error.to_string());
        if said.contains(SAYS_NO) {
            Ok(Some(()))
        } else {
            Err(said)
        }
    };
    wait_until(PATIENCE, "a refusal by a hook", refused).unwrap();
}

fn edit(stage: &Stage<'_>, greeter: &str) -> Result<String, KubectlError> {
    let patch = format!("--patch={}", json!({"data": {"greeter": greeter}}));
    let edit = ["patch", "configmap", "addon-operator", "--type=merge", &patch];
    stage.namespace.kubectl(edit)
}

fn bad_edits_are_refused_and_good_ones_rolled_out(stage: &Stage<'_>) {
    let said = edit(stage, "text: far too long for a greeting")
        .unwrap_err()
        .to_string();
    for word in ["denied the request", "greeter.text"] {
        assert!(said.contains(word), "{said}");
    }
    edit(stage, "text: welcome").unwrap();
    let look = || {
        let said = stage.kubectl("get configmap greeting --output=jsonpath={.data.text}");
        if said == "welcome" { Ok(Some(())) } else { Err(said) }
    };
    wait_until(PATIENCE, "the new greeting", look).unwrap();
}

/// Commands on the machine of a person: about a module, and its suspension.
fn what_a_person_asks_outside_is_answered(stage: &Stage<'_>) {
    let typed = |arguments: &str| {
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command.args(arguments.split(' '));
        command.args(["--namespace", stage.namespace.name()]).env_clear();
        command.env("KUBECONFIG", stage.namespace.kubeconfig(User::Admin));
        let output = process::run(command, None).unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{arguments}: {said}");
        said
    };
    let answers = [
        ("module tree greeter", "greeting"),
        ("module history greeter", "deployed"),
        ("module diff greeter 1 2", "welcome"),
        ("module events greeter", "ModuleReady"),
    ];
    for (arguments, word) in answers {
        let said = typed(arguments);
        assert!(said.contains(word), "{arguments}: {said}");
    }
    let kept = "get configmap addon-operator --output=jsonpath={.data.greeterMaintenance}";
    typed("module suspend greeter");
    assert_eq!(stage.kubectl(kept), "NoResourceReconciliation");
    stage.wait_until_it_says("why greeter", &["maintenance"]);
    typed("module resume greeter");
    assert_eq!(stage.kubectl(kept), "");
}

fn pods_are_replaced(stage: &Stage<'_>) {
    let before = stage.pods();
    stage.kubectl("rollout restart deployment/ao-addon-operator");
    stage.roll_out();
    let look = || {
        let now = stage.pods();
        let others = now.len() == 2 && now.iter().all(|pod| !before.contains(pod));
        if others { Ok(Some(())) } else { Err(format!("{now:?}")) }
    };
    wait_until(PATIENCE, "two other pods", look).unwrap();
    stage.wait_until_it_says("module list -o wide", &["greeter", "Ready"]);
}

fn a_killed_leader_is_replaced(stage: &Stage<'_>) {
    let before = stage.leader();
    let page = Page::open(stage);
    assert!(page.told().unwrap().contains(&before), "the page of the leader");
    let lost = Instant::now();
    stage.kubectl(&format!("delete pod {before} --force --grace-period=0"));
    let look = || {
        let now = stage.leader();
        Ok::<_, String>((now != before).then_some(()))
    };
    wait_until(PATIENCE, "another leader", look).unwrap();
    tell(&format!(
        "the leader's pod was lost: another leads after {:?}",
        lost.elapsed()
    ));
    stage.wait_until_it_says("module list -o wide", &["greeter", "Ready"]);
    wait_until_a_hook_refuses(stage);
    // The same command serves the page of the new leader.
    let after = stage.leader();
    let look = || {
        let told = page.told().map_err(|error| error.to_string())?;
        if told.contains(&after) { Ok(Some(())) } else { Err(told) }
    };
    wait_until(PATIENCE, "the page of the other leader", look).unwrap();
}

/// The command that forwards a port of this machine to the page of the leader.
struct Page {
    port: u16,
    _command: Bound,
}

impl Page {
    fn open(stage: &Stage<'_>) -> Self {
        let port = stage.namespace.port().unwrap();
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .args(["page", "--no-browser", "--port", &port.to_string()])
            .env_clear()
            .env("KUBECONFIG", stage.namespace.kubeconfig(User::Admin))
            .stdout(Stdio::piped());
        let mut command = Bound::start(command, Bond::Group).unwrap();
        let mut address = String::new();
        let mut said = BufReader::new(command.take_stdout().unwrap());
        said.read_line(&mut address).unwrap();
        assert_eq!(address, format!("http://127.0.0.1:{port}/\n"));
        let page = Self {
            port,
            _command: command,
        };
        wait_until(PATIENCE, "the page of the leader", || {
            page.told().map(Some).map_err(|error| error.to_string())
        })
        .unwrap();
        page
    }

    /// The view of the operator.
    fn told(&self) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /operator HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200") {
            Ok(answer)
        } else {
            Err(io::Error::other(answer))
        }
    }
}

fn what_an_uninstallation_leaves(stage: &Stage<'_>, helm: Part, revisions: &str) {
    stage.helm(helm, &["uninstall", "ao", "--wait"]);
    assert_eq!(
        stage.revisions(),
        revisions,
        "the uninstallation leaves the releases of modules unchanged"
    );
    assert_eq!(
        stage.kubectl("get configmap greeting --output=jsonpath={.data.text}"),
        "welcome"
    );
    stage.kubectl("get configmap addon-operator");
    let look = || {
        let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        let left = stage.kubectl(&format!("get {kinds} --output=name"));
        if left.is_empty() { Ok(Some(())) } else { Err(left) }
    };
    wait_until(PATIENCE, "the end of all webhook configurations", look).unwrap();
    // The webhooks are gone, so an invalid object is accepted.
    stage.kubectl("create configmap bad");
    stage.kubectl("delete configmap bad");
    a_crd_is_not_converted_any_more(stage);
}

/// The documented command makes the CRD readable again after the uninstallation.
fn a_crd_is_not_converted_any_more(stage: &Stage<'_>) {
    const READ: &str = "get tickets.v1alpha1.trial.example.com one --output=jsonpath={.apiVersion}";
    let said = stage.refused(READ);
    assert!(said.contains("conversion webhook"), "{said}");
    let page = include_str!("../../docs/start/install.md");
    let patch = page
        .lines()
        .find_map(|line| line.strip_prefix("kubectl patch crd NAME "));
    let words = patch.unwrap().replace('\'', "");
    let (flags, patch) = words.split_once(" --patch ").unwrap();
    let crd = ["patch", "crd", "tickets.trial.example.com"].into_iter();
    let admin = stage.namespace.kubectl_as(User::Admin);
    admin
        .run(crd.chain(flags.split(' ')).chain(["--patch", patch]))
        .unwrap();
    let look = || {
        let said = stage.namespace.kubectl(READ.split(' '))?;
        Ok::<_, KubectlError>((said == "trial.example.com/v1alpha1").then_some(()))
    };
    wait_until(PATIENCE, "an object that is not converted", look).unwrap();
}
