use super::*;

fn name(text: &str) -> HookName {
    HookName::parse(text).unwrap()
}

fn order() -> HookOrder {
    HookOrder {
        startup: vec![name("s")],
        watching: Vec::new(),
        before_helm: vec![name("b1"), name("b2")],
        after_helm: vec![name("a")],
        before_delete: vec![name("bd")],
        after_delete: vec![name("ad")],
    }
}

fn drive(state: &mut Lifecycle, hooks: &HookOrder, facts: Facts) -> Vec<ModuleStep> {
    let mut steps = Vec::new();
    loop {
        let step = state.step(hooks, facts);
        if step == ModuleStep::Done {
            return steps;
        }
        steps.push(step);
        state.succeeded(facts.version);
    }
}

fn chart() -> Facts {
    Facts {
        has_chart: true,
        needs_crds: false,
        needs_conversions: false,
        has_release: true,
        version: Version::default(),
    }
}

fn ready() -> Lifecycle {
    Lifecycle::Ready {
        released: Version::default(),
    }
}

#[test]
fn a_first_run_does_everything_and_a_second_leaves_out_start_up() {
    let mut state = Lifecycle::Disabled;
    state.begin_run();
    let before = [
        ModuleStep::Hook(Stage::BeforeHelm, name("b1")),
        ModuleStep::Hook(Stage::BeforeHelm, name("b2")),
    ];
    let after = [ModuleStep::Release, ModuleStep::Hook(Stage::AfterHelm, name("a"))];
    let start = [ModuleStep::Configure, ModuleStep::Hook(Stage::OnStartup, name("s"))];
    assert_eq!(
        drive(&mut state, &order(), chart()),
        [&start[..], &before, &after].concat()
    );
    assert_eq!(state, ready());
    state.begin_run();
    assert_eq!(drive(&mut state, &order(), chart()), [&before[..], &after].concat());
}

#[test]
fn a_module_without_chart_and_hooks_is_ready_at_once() {
    let mut state = Lifecycle::Starting(0);
    assert_eq!(
        drive(
            &mut state,
            &HookOrder::default(),
            Facts {
                has_chart: false,
                ..chart()
            }
        ),
        []
    );
    assert_eq!(state, ready());
}

#[test]
fn a_failure_after_the_release_goes_back_before_it() {
    let mut state = Lifecycle::AfterHelm {
        released: Version::default(),
        next: 0,
    };
    state.begin_run();
    assert_eq!(state, Lifecycle::BeforeHelm(0));
    let mut state = Lifecycle::Starting(1);
    state.begin_run();
    assert_eq!(
        state,
        Lifecycle::Starting(1),
        "start-up hooks that succeeded are not run again"
    );
}

#[test]
fn a_removal_without_a_release_runs_only_the_hooks_after_it() {
    let mut state = ready();
    state.begin_delete(true);
    let steps = drive(
        &mut state,
        &order(),
        Facts {
            has_release: false,
            ..chart()
        },
    );
    assert_eq!(steps, [ModuleStep::Hook(Stage::AfterDeleteHelm, name("ad"))]);
    assert_eq!(state, Lifecycle::Disabled);
}

#[test]
fn a_removal_decided_while_we_were_down_asks_for_the_hooks_first() {
    let mut state = Lifecycle::Disabled;
    state.begin_delete(false);
    let steps = drive(&mut state, &order(), chart());
    assert_eq!(
        steps,
        [
            ModuleStep::Configure,
            ModuleStep::Hook(Stage::BeforeDeleteHelm, name("bd")),
            ModuleStep::Uninstall,
            ModuleStep::Hook(Stage::AfterDeleteHelm, name("ad")),
        ]
    );
}

#[test]
fn a_module_switched_on_again_after_its_removal_failed_starts_from_the_beginning() {
    let mut state = Lifecycle::Deleting(Deletion::Uninstalling);
    state.begin_run();
    assert_eq!(state, Lifecycle::Ensuring);
}

#[test]
fn the_release_waits_for_first_runs_and_for_nothing_when_there_are_none() {
    let hooks = HookOrder {
        watching: vec![name("w1"), name("w2")],
        ..HookOrder::default()
    };
    let mut state = Lifecycle::Starting(0);
    assert_eq!(state.step(&hooks, chart()), ModuleStep::Watch(name("w1")));
    state.watched(FirstRuns {
        own: [MonitorId(1)].into(),
        elsewhere: [MonitorId(2), MonitorId(3)].into(),
    });
    assert_eq!(state.step(&hooks, chart()), ModuleStep::Watch(name("w2")));
    state.first_run_over(MonitorId(2));
    state.begin_run();
    state.watched(FirstRuns::default());
    assert_eq!(state.step(&hooks, chart()), ModuleStep::FirstRun(MonitorId(1)));
    state.first_run_over(MonitorId(1));
    state.begin_run();
    assert_eq!(state.step(&hooks, chart()), ModuleStep::AwaitFirstRuns);
    assert!(state.awaits(MonitorId(3)) && !state.takes_events());
    state.first_run_over(MonitorId(3));
    assert_eq!(state, Lifecycle::BeforeHelm(0));
    state.begin_run();
    assert_eq!(state.step(&hooks, chart()), ModuleStep::Release, "once in a life");

    let mut state = Lifecycle::Watching {
        next: 2,
        runs: FirstRuns::default(),
    };
    assert_eq!(state.step(&hooks, chart()), ModuleStep::Release);
    state.watch_again();
    assert_eq!(state.step(&hooks, chart()), ModuleStep::Watch(name("w1")));
}
