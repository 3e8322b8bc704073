//! The status of a pod, computed from the states of its containers.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, HostIP,
    Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::board::{Ended, State, View};
use super::network;

/// The restart policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Restart {
    pub(super) fn of(pod: &Pod) -> Self {
        match pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }

    /// Whether a container that ended with this code is restarted. An init container that succeeded is never restarted.
    pub(super) fn again(self, first: bool, code: i32) -> bool {
        match self {
            Self::Always => !first || code != 0,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// The parts of the status that the agent owns.
pub(super) fn status(pod: &Pod, views: &[View], address: Option<String>, before: &[PodCondition]) -> PodStatus {
    let (first, others): (Vec<&View>, Vec<&View>) = views.iter().partition(|view| view.first);
    let restart = Restart::of(pod);
    let phase = phase(&first, &others, restart);
    let report = |views: &[&View]| Some(views.iter().map(|view| container(view)).collect::<Vec<_>>());
    let node = network::NODE.to_string();
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions(pod, &first, &others, phase, address.is_some(), before)),
        host_ip: Some(node.clone()),
        host_ips: Some(vec![HostIP { ip: node }]),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        start_time: pod
            .status
            .as_ref()
            .and_then(|status| status.start_time.clone())
            .or_else(|| Some(now())),
        init_container_statuses: report(&first).filter(|statuses| !statuses.is_empty()),
        container_statuses: report(&others),
        ..PodStatus::default()
    }
}

pub(super) fn now() -> Time {
    Time(Timestamp::now())
}

fn phase(first: &[&View], others: &[&View], restart: Restart) -> &'static str {
    let over = |view: &&View| view.ended().is_some_and(|ended| !restart.again(view.first, ended.code));
    if first
        .iter()
        .any(|view| over(view) && view.ended().is_some_and(|ended| ended.code != 0))
    {
        return "Failed";
    }
    if others.iter().all(over) {
        let failed = others
            .iter()
            .any(|view| view.ended().is_some_and(|ended| ended.code != 0));
        return if failed { "Failed" } else { "Succeeded" };
    }
    let ran = |view: &&View| view.last.is_some() || !matches!(view.state, State::Waiting { .. });
    if others.iter().any(ran) { "Running" } else { "Pending" }
}

fn conditions(
    pod: &Pod,
    first: &[&View],
    others: &[&View],
    phase: &str,
    placed: bool,
    before: &[PodCondition],
) -> Vec<PodCondition> {
    let initialized = first
        .iter()
        .all(|view| view.ended().is_some_and(|ended| ended.code == 0));
    let unready: Vec<&str> = others
        .iter()
        .filter(|view| !view.ready)
        .map(|view| view.name.as_str())
        .collect();
    let ready = initialized && unready.is_empty();
    let gates = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let given = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let given: Vec<&PodCondition> = given.collect();
    let open = |kind: &str| {
        given
            .iter()
            .any(|condition| condition.type_ == kind && condition.status == "True")
    };
    let gates = gates.into_iter().all(|gate| open(&gate.condition_type));
    let why = |fine: bool| match (fine, phase) {
        (true, _) => (None, None),
        (false, "Succeeded") => (Some("PodCompleted".to_owned()), None),
        (false, _) => {
            let message = format!("containers with unready status: [{}]", unready.join(" "));
            (Some("ContainersNotReady".to_owned()), Some(message))
        }
    };
    let condition = |kind: &str, fine: bool, (reason, message): (Option<String>, Option<String>)| {
        let status = if fine { "True" } else { "False" };
        let old = before.iter().find(|old| old.type_ == kind && old.status == status);
        PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            last_transition_time: old.map_or_else(|| Some(now()), |old| old.last_transition_time.clone()),
            reason,
            message,
            ..PodCondition::default()
        }
    };
    vec![
        condition("PodReadyToStartContainers", placed, (None, None)),
        condition("Initialized", initialized, (None, None)),
        condition("ContainersReady", ready, why(ready)),
        condition("Ready", ready && gates, why(ready)),
    ]
}

fn container(view: &View) -> ContainerStatus {
    ContainerStatus {
        name: view.name.clone(),
        image: view.image.clone(),
        image_id: view.image_id.clone(),
        container_id: Some(view.id.clone()).filter(|id| !id.is_empty()),
        ready: view.ready || (view.first && view.ended().is_some_and(|ended| ended.code == 0)),
        started: Some(view.started),
        restart_count: view.restarts,
        state: Some(match &view.state {
            State::Waiting { reason, message } => ContainerState {
                waiting: Some(ContainerStateWaiting {
                    reason: Some(reason.clone()),
                    message: Some(message.clone()).filter(|message| !message.is_empty()),
                }),
                ..ContainerState::default()
            },
            State::Running { since } => ContainerState {
                running: Some(ContainerStateRunning {
                    started_at: Some(since.clone()),
                }),
                ..ContainerState::default()
            },
            State::Ended(ended) => over(ended),
        }),
        last_state: view.last.as_ref().map(over),
        ..ContainerStatus::default()
    }
}

fn over(ended: &Ended) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            container_id: Some(ended.id.clone()),
            exit_code: ended.code,
            reason: Some(ended.reason.clone()),
            message: Some(ended.message.clone()).filter(|message| !message.is_empty()),
            started_at: Some(ended.started.clone()),
            finished_at: Some(ended.finished.clone()),
            signal: None,
        }),
        ..ContainerState::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node::board::Board;

    fn pod(restart: &str) -> Pod {
        let pod = json!({ "metadata": {}, "spec": {
            "restartPolicy": restart,
            "initContainers": [{ "name": "before" }],
            "containers": [{ "name": "one" }, { "name": "two" }],
        }});
        serde_json::from_value(pod).unwrap()
    }

    fn ended(code: i32) -> State {
        State::Ended(Ended {
            code,
            reason: String::new(),
            message: String::new(),
            started: now(),
            finished: now(),
            id: String::new(),
        })
    }

    fn phase_of(restart: &str, states: [State; 3]) -> String {
        let pod = pod(restart);
        let board = Board::new(pod.spec.as_ref().unwrap());
        for (index, state) in states.into_iter().enumerate() {
            board.change(index, |view| view.state = state);
        }
        status(&pod, &board.read().borrow(), None, &[]).phase.unwrap()
    }

    #[test]
    fn a_phase_tells_how_far_a_pod_has_come() {
        let waiting = || State::waiting("", "");
        let running = || State::Running { since: now() };
        assert_eq!(phase_of("Always", [running(), waiting(), waiting()]), "Pending");
        assert_eq!(phase_of("Always", [ended(1), waiting(), waiting()]), "Pending");
        assert_eq!(phase_of("Never", [ended(1), waiting(), waiting()]), "Failed");
        assert_eq!(phase_of("Always", [ended(0), running(), waiting()]), "Running");
        assert_eq!(phase_of("Always", [ended(0), ended(0), ended(0)]), "Running");
        assert_eq!(phase_of("OnFailure", [ended(0), ended(0), ended(1)]), "Running");
        assert_eq!(phase_of("OnFailure", [ended(0), ended(0), ended(0)]), "Succeeded");
        assert_eq!(phase_of("Never", [ended(0), ended(0), ended(1)]), "Failed");
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let pod = pod("Always");
        let board = Board::new(pod.spec.as_ref().unwrap());
        let first = status(&pod, &board.read().borrow(), None, &[]).conditions.unwrap();
        let second = status(&pod, &board.read().borrow(), None, &first).conditions.unwrap();
        assert_eq!(first, second);
        for index in 0..3 {
            board.change(index, |view| {
                view.state = ended(0);
                view.ready = true;
            });
        }
        let third = status(&pod, &board.read().borrow(), None, &first).conditions.unwrap();
        let ready = third.iter().find(|condition| condition.type_ == "Ready").unwrap();
        assert_eq!(ready.status, "True");
        assert_ne!(ready.last_transition_time, first[3].last_transition_time);
    }
}
