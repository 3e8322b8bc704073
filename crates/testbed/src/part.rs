//! The programs of a control plane, and the pinned Go modules they are built from.
//!
//! The `go.mod` files under `parts/` are the only place with versions; this file must never repeat one. To raise one,
//! go to the folder of the part, `go get -tool PACKAGE@VERSION`, then `go mod tidy`; for Kubernetes, also `go get`
//! every `k8s.io/...` module that its `go.mod` names at a version `v0.MINOR.PATCH`.

use std::fmt;

/// One program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Etcd,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    Kubelet,
    KubeProxy,
    Kubectl,
    Helm3,
    Helm4,
    Kwok,
    Registry,
    Cosign,
}

/// The programs with which a control plane begins. Helm is needed only by its users.
pub const FIRST: [Part; 4] = [
    Part::Etcd,
    Part::KubeApiserver,
    Part::KubeControllerManager,
    Part::Kubectl,
];

/// The programs that every control plane needs.
pub const BASIC: [Part; 5] = [
    Part::Etcd,
    Part::KubeApiserver,
    Part::KubeControllerManager,
    Part::Kubectl,
    Part::Helm3,
];

/// The additional programs with which pods get a node and become ready.
pub const ALIVE: [Part; 2] = [Part::KubeScheduler, Part::Kwok];

/// The additional programs of a real node. Containerd and its kin come from the distribution.
pub const RUNNING: [Part; 3] = [Part::KubeScheduler, Part::Kubelet, Part::KubeProxy];

impl Part {
    /// The program's name in messages, in the cache and on the `PATH` of the control plane's users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::Kubectl => "kubectl",
            Self::Helm3 => "helm",
            Self::Helm4 => "helm4",
            Self::Kwok => "kwok",
            Self::Registry => "registry",
            Self::Cosign => "cosign",
        }
    }

    /// The file names under which the program may be installed.
    pub(crate) fn installed_as(self) -> &'static [&'static str] {
        match self {
            Self::Helm3 => &["helm", "helm3"],
            Self::Helm4 => &["helm4", "helm"],
            Self::Etcd => &["etcd"],
            Self::KubeApiserver => &["kube-apiserver"],
            Self::KubeControllerManager => &["kube-controller-manager"],
            Self::KubeScheduler => &["kube-scheduler"],
            Self::Kubelet => &["kubelet"],
            Self::KubeProxy => &["kube-proxy"],
            Self::Kubectl => &["kubectl"],
            Self::Kwok => &["kwok"],
            Self::Cosign => &["cosign"],
            // Debian names the program `docker-registry`.
            Self::Registry => &["registry", "docker-registry"],
        }
    }

    /// The Go package of its `main`.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::KubeScheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubelet => "k8s.io/kubernetes/cmd/kubelet",
            Self::KubeProxy => "k8s.io/kubernetes/cmd/kube-proxy",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Helm3 => "helm.sh/helm/v3/cmd/helm",
            Self::Helm4 => "helm.sh/helm/v4/cmd/helm",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            // Its `main` is beside its module.
            Self::Registry => ".",
            Self::Cosign => "github.com/sigstore/cosign/v3/cmd/cosign",
        }
    }

    /// The pinned module from which the program is built.
    pub(crate) fn module(self) -> &'static Module {
        match self {
            Self::Etcd => &ETCD,
            Self::KubeApiserver
            | Self::KubeControllerManager
            | Self::KubeScheduler
            | Self::Kubelet
            | Self::KubeProxy
            | Self::Kubectl => &KUBERNETES,
            Self::Helm3 => &HELM3,
            Self::Helm4 => &HELM4,
            Self::Kwok => &KWOK,
            Self::Registry => &REGISTRY,
            Self::Cosign => &COSIGN,
        }
    }

    /// The pinned version, as in `v1.2.3`.
    pub fn version(self) -> &'static str {
        self.module().version()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format!("{} {}", self.name(), self.version().trim_start_matches('v')))
    }
}

/// A Go module of this repository that pins one or more programs.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
    /// The source of `main.go`; `None` if the `main` of a program comes from a pinned module.
    pub(crate) main: Option<&'static str>,
    /// The module path whose version counts as the programs' version.
    root: &'static str,
}

static ETCD: Module = Module {
    name: "etcd",
    go_mod: include_str!("../parts/etcd/go.mod"),
    go_sum: include_str!("../parts/etcd/go.sum"),
    main: None,
    root: "go.etcd.io/etcd/server/v3",
};

static KUBERNETES: Module = Module {
    name: "kubernetes",
    go_mod: include_str!("../parts/kubernetes/go.mod"),
    go_sum: include_str!("../parts/kubernetes/go.sum"),
    main: None,
    root: "k8s.io/kubernetes",
};

static HELM3: Module = Module {
    name: "helm3",
    go_mod: include_str!("../parts/helm3/go.mod"),
    go_sum: include_str!("../parts/helm3/go.sum"),
    main: None,
    root: "helm.sh/helm/v3",
};

static HELM4: Module = Module {
    name: "helm4",
    go_mod: include_str!("../parts/helm4/go.mod"),
    go_sum: include_str!("../parts/helm4/go.sum"),
    main: None,
    root: "helm.sh/helm/v4",
};

static KWOK: Module = Module {
    name: "kwok",
    go_mod: include_str!("../parts/kwok/go.mod"),
    go_sum: include_str!("../parts/kwok/go.sum"),
    main: None,
    root: "sigs.k8s.io/kwok",
};

static REGISTRY: Module = Module {
    name: "registry",
    go_mod: include_str!("../parts/registry/go.mod"),
    go_sum: include_str!("../parts/registry/go.sum"),
    main: Some(include_str!("../parts/registry/main.go")),
    root: "github.com/distribution/distribution/v3",
};

static COSIGN: Module = Module {
    name: "cosign",
    go_mod: include_str!("../parts/cosign/go.mod"),
    go_sum: include_str!("../parts/cosign/go.sum"),
    main: None,
    root: "github.com/sigstore/cosign/v3",
};

impl Module {
    pub(crate) fn version(&self) -> &'static str {
        self.required(self.root)
            .expect("each go.mod under parts/ requires the root it is named for; a test reads all")
    }

    /// The lowest version of Go that builds it.
    pub(crate) fn go_version(&self) -> &'static str {
        let line = self.go_mod.lines().find_map(|line| line.strip_prefix("go "));
        line.expect("each go.mod under parts/ states a Go version; a test reads all")
            .trim()
    }

    fn required(&self, module: &str) -> Option<&'static str> {
        self.go_mod.lines().find_map(|line| {
            let mut words = line.trim().trim_start_matches("require ").split_whitespace();
            (words.next() == Some(module))
                .then(|| words.next())
                .flatten()
                .filter(|word| word.starts_with('v'))
        })
    }

    /// The linker flags that write the version into the programs. Without them the API server takes itself for an
    /// unreleased version, and helm renders for a cluster of years ago.
    pub(crate) fn linker_flags(&self) -> String {
        let version = self.version();
        let mut flags = "-s -w".to_owned();
        let mut set = |name: &str, value: &str| {
            flags.push_str(" -X ");
            flags.push_str(name);
            flags.push('=');
            flags.push_str(value);
        };
        match self.name {
            "kubernetes" => {
                let (major, minor) = major_minor(version);
                for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
                    set(&format!("{package}.gitVersion"), version);
                    set(&format!("{package}.gitMajor"), major);
                    set(&format!("{package}.gitMinor"), minor);
                    set(&format!("{package}.gitCommit"), "pinned-by-go.sum");
                    set(&format!("{package}.gitTreeState"), "clean");
                }
            }
            "helm3" => {
                set("helm.sh/helm/v3/internal/version.version", version);
                set("helm.sh/helm/v3/internal/version.gitTreeState", "clean");
                let client = self
                    .required("k8s.io/client-go")
                    .expect("helm 3 talks to clusters through client-go");
                let (_, minor) = major_minor(client);
                for package in ["helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules"] {
                    set(&format!("{package}.k8sVersionMajor"), "1");
                    set(&format!("{package}.k8sVersionMinor"), minor);
                }
            }
            "helm4" => {
                set("helm.sh/helm/v4/internal/version.version", version);
                set("helm.sh/helm/v4/internal/version.gitTreeState", "clean");
            }
            "registry" => set("github.com/distribution/distribution/v3/version.version", version),
            "cosign" => set("sigs.k8s.io/release-utils/version.gitVersion", version),
            _ => {}
        }
        flags
    }
}

/// `v1.37.2` → (`1`, `37`).
pub(crate) fn major_minor(version: &str) -> (&str, &str) {
    let mut numbers = version.trim_start_matches('v').split('.');
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Part; 12] = [
        Part::Etcd,
        Part::KubeApiserver,
        Part::KubeControllerManager,
        Part::KubeScheduler,
        Part::Kubelet,
        Part::KubeProxy,
        Part::Kubectl,
        Part::Helm3,
        Part::Helm4,
        Part::Kwok,
        Part::Registry,
        Part::Cosign,
    ];

    #[test]
    fn every_part_is_a_tool_of_its_module_with_a_version() {
        for part in ALL {
            let module = part.module();
            let (major, minor) = major_minor(part.version());
            assert!(major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok(), "{part}");
            assert!(module.go_version().starts_with("1."), "{part}");
            let tool = module.go_mod.lines().any(|line| {
                let line = line.trim();
                line == part.package() || line.strip_prefix("tool ") == Some(part.package())
            });
            let is_beside = module.main.is_some() && part.package() == ".";
            assert!(tool || is_beside, "{part} is no tool of parts/{}", module.name);
        }
    }

    /// Then Go compiles each package only once for all programs, which halves the work of a build.
    #[test]
    fn all_programs_share_one_version_of_each_module() {
        let mut seen = std::collections::BTreeMap::new();
        for module in ALL.map(Part::module) {
            for line in module.go_mod.lines().filter(|line| line.ends_with("// indirect")) {
                let mut words = line.split_whitespace();
                let (path, version) = (words.next().unwrap(), words.next().unwrap());
                let (name, other) = *seen.entry(path).or_insert((module.name, version));
                assert_eq!(
                    version, other,
                    "{path} of {} and {name}: run crates/testbed/parts/align",
                    module.name
                );
            }
        }
        assert!(seen.len() > 100, "{seen:?}");
    }

    #[test]
    fn the_readme_names_the_versions_that_the_tests_run_with() {
        let readme = include_str!("../../../README.md");
        let named = [
            ("Kubernetes", Part::KubeApiserver),
            ("helm", Part::Helm3),
            ("helm", Part::Helm4),
        ];
        for (name, part) in named {
            let (major, minor) = major_minor(part.version());
            assert!(readme.contains(&format!("{name} {major}.{minor}")), "{part}");
        }
    }

    #[test]
    fn helm_3_renders_for_the_kubernetes_of_its_client() {
        let (_, minor) = major_minor(HELM3.required("k8s.io/client-go").unwrap());
        assert!(
            HELM3
                .linker_flags()
                .contains(&format!("chartutil.k8sVersionMinor={minor}"))
        );
    }
}
