//! Facts of the machine, for defaults: our identity in the cluster and the number of runs at once. Never fails: a fact
//! that cannot be read is unknown.

use std::num::NonZero;
use std::path::Path;

const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The container's memory limit, of the second and of the first generation of control groups.
const MEMORY_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];
/// What one helm run takes at its peak with a large chart, rounded up.
const HELM_MEMORY: u64 = 192 << 20;

/// Facts about where we run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The namespace of the pod we run in.
    pub pod_namespace: Option<String>,
    pub processors: NonZero<usize>,
    /// How many bytes we and our children may use, if that is limited.
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

    /// A hook mostly waits for something else, so two share a processor.
    pub(super) fn hook_slots(&self) -> NonZero<usize> {
        self.processors.saturating_mul(NonZero::<usize>::MIN.saturating_add(1))
    }

    /// Helm computes, and it is large: no more than processors, nor than fit into half of the memory.
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
