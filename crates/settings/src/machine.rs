//! Facts about the machine, for defaults: the operator's identity in the cluster and the number of concurrent runs.
//! Never fails: a fact that cannot be read is unknown.

use std::num::NonZero;
use std::path::Path;

const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The files with the container's memory limit, for cgroup versions 2 and 1.
const MEMORY_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];
/// The peak memory of a helm run with a large chart, rounded up.
const HELM_MEMORY: u64 = 192 << 20;

/// Facts about the machine and the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The namespace of the operator's pod.
    pub pod_namespace: Option<String>,
    pub processors: NonZero<usize>,
    /// The memory limit in bytes for the operator and its children, if there is one.
    pub memory_limit: Option<u64>,
}

impl Machine {
    pub fn this() -> Self {
        let first_line = |path: &str| Some(fs_err::read_to_string(Path::new(path)).ok()?.trim().to_owned());
        Self {
            pod_namespace: first_line(POD_NAMESPACE).filter(|text| !text.is_empty()),
            processors: std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
            memory_limit: MEMORY_LIMITS.iter().find_map(|path| first_line(path)?.parse().ok()),
        }
    }

    /// The default number of concurrent hooks: two for each processor, because a hook mostly waits.
    pub(super) fn hook_slots(&self) -> NonZero<usize> {
        self.processors.saturating_mul(NonZero::<usize>::MIN.saturating_add(1))
    }

    /// The default number of concurrent helms: at most one for each processor, and as many as fit into half of the
    /// memory, because helm computes and is large.
    pub(super) fn helm_slots(&self) -> NonZero<usize> {
        let fitting = self.memory_limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit / 2 / HELM_MEMORY).unwrap_or(usize::MAX)
        });
        NonZero::new(self.processors.get().min(fitting)).unwrap_or(NonZero::<usize>::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_processors_and_memory() {
        let rows = [
            (1, None, 2, 1),
            (8, None, 16, 8),
            (8, Some(1 << 30), 16, 2),
            (8, Some(1 << 20), 16, 1),
        ];
        for (processors, memory_limit, hooks, helms) in rows {
            let machine = Machine {
                pod_namespace: None,
                processors: NonZero::new(processors).unwrap(),
                memory_limit,
            };
            assert_eq!(
                (machine.hook_slots().get(), machine.helm_slots().get()),
                (hooks, helms),
                "{machine:?}"
            );
        }
    }
}
