use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use addon_core::failure::{Class, Failure};

use super::*;

/// The version of a helm that is a shell script; the test is about reading its output.
async fn version_of(script: &str) -> Result<Version, Failure> {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("helm");
    fs_err::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs_err::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    helm(binary, dir.path()).version().await.map_err(Failure::from)
}

fn helm(binary: PathBuf, dir: &Path) -> Helm {
    let options = Options {
        binary,
        dir: dir.to_owned(),
        kubeconfig: dir.join("kubeconfig"),
        namespace: "ns".to_owned(),
        search_path: "/usr/bin:/bin".into(),
        home: None,
        post_renderer: "/addon-operator".into(),
        labels: BTreeMap::new(),
        history_max: 10,
        timeout: Duration::from_mins(1),
    };
    Helm::new(options, Spawner::new().unwrap())
}

#[tokio::test]
async fn a_suitable_helm_is_accepted() {
    assert_eq!(
        version_of("echo v3.22.0+g1234567").await,
        Ok(Version {
            major: 3,
            minor: 22,
            patch: 0
        })
    );
    assert_eq!(version_of("echo v3.17.0").await, Ok(OLDEST));
    assert!(version_of("echo v4.0.0").await.unwrap().is_4());
    assert!(version_of("echo v4.3.1+gabcdef0").await.unwrap().is_4());
}

#[tokio::test]
async fn an_ancient_or_foreign_helm_is_refused_by_name_and_version() {
    for (script, said) in [
        (
            "echo 'Client: v2.17.0+ga690bad'; echo 'Error: could not find tiller' >&2; exit 1",
            "is helm 2.17.0",
        ),
        ("echo v3.16.4+g7877b45", "is helm 3.16.4"),
        ("echo v5.0.0", "is helm 5.0.0"),
        ("echo 'what is it?'", "its answer is 'what is it?'"),
        ("echo broken >&2; exit 3", "its answer is 'broken'"),
    ] {
        let failure = version_of(script).await.unwrap_err();
        assert_eq!(failure.class, Class::Invalid);
        assert!(
            failure.report.contains("/helm is") && failure.report.contains(said),
            "{failure}"
        );
        assert!(
            failure.hints[0].contains("3.17.0") && failure.hints[0].contains("HELM_BIN"),
            "{:?}",
            failure.hints
        );
    }
}

#[tokio::test]
async fn a_missing_helm_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let failure = Failure::from(
        helm(dir.path().join("no-helm"), dir.path())
            .version()
            .await
            .unwrap_err(),
    );
    assert_eq!(failure.class, Class::Invalid);
    assert!(failure.report.contains("no-helm"), "{failure}");
    assert!(
        failure.hints.iter().any(|hint| hint.contains("HELM_BIN")),
        "{:?}",
        failure.hints
    );
}

#[tokio::test]
async fn a_child_knows_only_what_we_tell_it() {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("helm");
    let seen = dir.path().join("seen");
    fs_err::write(&binary, format!("#!/bin/sh\nenv >{}\necho v3.22.0\n", seen.display())).unwrap();
    fs_err::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    helm(binary, dir.path()).version().await.unwrap();
    let seen = fs_err::read_to_string(seen).unwrap();
    let mut names: Vec<_> = seen.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // The shell adds these variables itself.
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "ADDON_OPERATOR_RUN",
            "GOGC",
            "GOMEMLIMIT",
            "HELM_BURST_LIMIT",
            "HELM_CACHE_HOME",
            "HELM_CONFIG_HOME",
            "HELM_DATA_HOME",
            "HELM_DRIVER",
            "HELM_PLUGINS",
            "HOME",
            "KUBECONFIG",
            "LC_MESSAGES",
            "PATH",
            "TMPDIR",
        ]
    );
}

#[test]
fn a_credential_plugin_gets_no_language() {
    let dir = tempfile::tempdir().unwrap();
    let mut helm = helm(dir.path().join("helm"), dir.path());
    let speaks = |helm: &Helm| {
        helm.environment(None, &[])
            .iter()
            .any(|(name, _)| name == "LC_MESSAGES")
    };
    assert!(speaks(&helm));
    helm.options.home = Some(dir.path().to_owned());
    assert!(!speaks(&helm));
}

#[test]
fn long_lists_are_cut_between_items() {
    let items = vec!["x".repeat(1000); 250];
    let parts = joined(items.iter().map(String::as_str));
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(|part| part.len() <= ARGUMENT_LIMIT));
    assert_eq!(parts.iter().map(|part| part.split(',').count()).sum::<usize>(), 250);
}
