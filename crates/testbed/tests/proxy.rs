//! The proxy passes requests on unchanged, except those that a fault or a trap is for.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use fs_err as fs;
use testbed::part::Part;
use testbed::plane::User;
use testbed::proxy::{Aimed, Fault, Of, On, Proxy, What};

#[test]
#[expect(clippy::disallowed_methods, reason = "kubectl is a process")]
fn what_is_imposed_happens_and_is_healed() {
    let plane = testbed::shared::plane();
    let namespace = plane.namespace("proxy").unwrap();
    let proxy = Proxy::start(plane, User::Operator).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    fs::write(&kubeconfig, proxy.kubeconfig(plane, User::Operator, namespace.name())).unwrap();
    let kubectl = |args: &str| -> Output {
        let mut command = Command::new(plane.program(Part::Kubectl));
        command
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .arg("--cache-dir")
            .arg(dir.path());
        command.args(args.split(' ')).stdin(Stdio::null()).output().unwrap()
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let impose = |on, what| proxy.impose(vec![Fault { on, what }]);

    let through = kubectl("create configmap one --from-literal=a=1");
    assert!(through.status.success(), "{}", said(&through));
    assert!(proxy.seen().0 > 0 && proxy.seen().1 == 0);

    let get = "get --raw /api/v1/namespaces/default --request-timeout=2s";
    impose(On::Others, What::Status(503, Some(1)));
    assert!(
        said(&kubectl(get)).contains("said by the proxy"),
        "{}",
        said(&kubectl(get))
    );
    impose(On::Watches, What::Status(503, None));
    assert!(kubectl(get).status.success(), "it is no watch");
    for what in [What::Refuse, What::BlackHole, What::Stall, What::Cut(10)] {
        impose(On::Everything, what.clone());
        assert!(!kubectl(get).status.success(), "{what:?}");
    }
    proxy.heal();
    assert!(kubectl(get).status.success());

    impose(On::Watches, What::Gone);
    let watch = kubectl("get --raw /api/v1/namespaces/default/configmaps?watch=true");
    let told = String::from_utf8(watch.stdout).unwrap();
    assert!(told.contains("\"ERROR\"") && told.contains("\"code\":410"), "{told}");
    impose(On::Watches, What::Delay(Duration::from_millis(10)));
    assert!(kubectl(get).status.success());
    assert!(proxy.seen().1 >= 6);

    let lease = r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"one"}}"#;
    namespace
        .kubectl_as(User::Admin)
        .feed(["create", "--filename=-"], lease)
        .unwrap();
    proxy.heal();
    assert!(kubectl("annotate lease one page=1").status.success());
    assert_eq!(proxy.leases_in_vain(), 0, "it was heard");
    impose(On::Writes, What::Status(503, None));
    assert!(!kubectl("annotate lease one sheet=2").status.success());
    let in_vain = proxy.leases_in_vain();
    assert!(in_vain > 0);
    assert!(!kubectl("annotate configmap one page=2").status.success());
    assert_eq!(proxy.leases_in_vain(), in_vain, "that was for no lease");

    impose(On::Writes, What::LoseAnswer);
    assert!(
        !kubectl("create configmap lost").status.success(),
        "the answer should be lost"
    );
    assert!(
        kubectl("get configmap lost").status.success(),
        "the write should have happened"
    );
    impose(On::Writes, What::Status(409, None));
    assert!(!kubectl("delete configmap lost").status.success());

    let (on, what) = (On::Discovery, What::LostGroup("batch"));
    impose(on, what.clone());
    let groups = "get --raw /apis";
    let told = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let (lost, there) = (told(&kubectl(groups)), told(&kubectl("get --raw /apis/batch")));
    assert!(lost.contains("\"apps\"") && !lost.contains("\"batch\""), "{lost}");
    assert!(there.contains("\"batch\""), "{there}");
    let fault = Fault { on, what };
    for (of, is_hit) in [(Of::Agent("kubectl/"), true), (Of::Others("kubectl/"), false)] {
        let (every, fault) = (1, fault.clone());
        proxy.aim(vec![Aimed { of, every, fault }]);
        assert_eq!(!told(&kubectl(groups)).contains("\"batch\""), is_hit, "{of:?}");
    }
}
