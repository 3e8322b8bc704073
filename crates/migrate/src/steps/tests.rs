//! The order of the commands, their guards, and words for the shell.

use serde_json::json;

use super::*;

fn taken(keeps_release: bool, record: bool) -> Taken {
    let record = record.then(|| {
        let record = Record {
            revision: 3,
            status: "deployed".to_owned(),
            secret: "sh.helm.release.v1.web.v3".to_owned(),
            is_ours: false,
        };
        (Place::new("op", "web"), record)
    });
    Taken {
        module: names::ModuleName::parse("web").unwrap(),
        order: 100,
        directory: "100-web".to_owned(),
        from: Place::new("shop", "front"),
        release: "web".to_owned(),
        namespace: "op".to_owned(),
        keeps_release,
        chart: "web".to_owned(),
        version: "1.0.0".to_owned(),
        values: 0,
        hooks: Vec::new(),
        differences: Vec::new(),
        secrets: Vec::new(),
        remarks: Vec::new(),
        record,
        section: json!({}),
    }
}

fn page(origin: Origin, taken: &Taken) -> String {
    let handover = Handover {
        origin,
        operator: "op",
        taken: std::slice::from_ref(taken),
        left: &[],
    };
    handover.page()
}

#[test]
fn a_release_is_marked_after_its_module_is_there_and_switched_on() {
    let page = page(Origin::Helm, &taken(true, true));
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no '{text}' in {page}"));
    let order = [
        "kubectl apply",
        "Copy `modules`",
        "kubectl annotate secret sh.helm",
        "module wait web",
        "kubectl scale",
    ];
    assert!(order.map(at).is_sorted(), "{page}");
}

#[test]
fn no_object_of_the_former_owner_is_deleted_unless_it_was_let_go() {
    for (origin, expected) in [
        (
            Origin::Flux,
            "    test \"$(kubectl get helmreleases.helm.toolkit.fluxcd.io front --namespace shop --output 'jsonpath={.spec.suspend}')\" = true && \
             kubectl delete helmreleases.helm.toolkit.fluxcd.io front --namespace shop\n",
        ),
        (
            Origin::Argocd,
            "    test \"$(kubectl get applications.argoproj.io front --namespace shop --output 'jsonpath=finalizers:{.metadata.finalizers}')\" = \
             finalizers: && kubectl delete applications.argoproj.io front --namespace shop --cascade=orphan\n",
        ),
    ] {
        let page = page(origin, &taken(false, origin == Origin::Flux));
        assert!(page.contains(expected), "{page}");
    }
}

#[test]
fn the_way_back_is_one_command_that_begins_with_the_end_of_the_operator() {
    for (keeps_release, last) in [(true, "helm rollback web 3"), (false, "kubectl delete secret")] {
        let page = page(Origin::Helm, &taken(keeps_release, true));
        let (_, back) = page.split_once("## The way back").unwrap();
        let commands: Vec<&str> = back.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        assert!(commands[0].starts_with("kubectl scale deployment --namespace op --selector app.kubernetes.io/name="));
        assert!(commands[1].starts_with("kubectl wait pod --for=delete"), "{commands:?}");
        assert!(commands.iter().any(|command| command.starts_with(last)), "{commands:?}");
        let (end, rest) = commands.split_last().unwrap();
        assert!(
            rest.iter().all(|command| command.ends_with(" &&")) && !end.contains("&&"),
            "{commands:?}"
        );
    }
}

#[test]
fn a_word_for_the_shell_is_one_word() {
    for (text, expected) in [
        ("web-1.2", "web-1.2"),
        ("", "''"),
        ("a b", "'a b'"),
        ("$(rm x)", "'$(rm x)'"),
        ("a'b", r"'a'\''b'"),
    ] {
        assert_eq!(quoted(text), expected);
    }
}
