use addon_core::metric;
use names::{HookId, HookName, Owner};

use super::super::stage;
use super::*;

mod channel;

/// The content type for a scraper that asks for no escaping.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

fn probe(doors: Loop, trouble: Option<&str>) -> Probe {
    let (_, trouble) = watch::channel(trouble.map(str::to_owned));
    Probe {
        secrets: Secrets::default(),
        doors,
        meters: Arc::new(Meters::new("own_")),
        trouble,
        monitors: Arc::default(),
        outdated: Board::default(),
        lookout: Arc::default(),
        standing: watch::channel(ActingRole::Leads).1,
        port: 0,
        endpoint: bell::Endpoint {
            bell: bell::Bell::default(),
            token: None,
        },
    }
}

/// The answer of `path` with this status.
async fn at(status: Status, path: &str) -> (u16, String) {
    let (doors, _tasks) = stage::on(move |StatusQuery| status.clone())
        .on(|QueuesQuery| vec![stage::queue("main", "", &["ModuleRun:main"])])
        .on(|ModulesQuery| vec![stage::module("one", true)])
        .answering();
    let (code, _, body) = stage::ask(router(probe(doors, None)), &format!("GET {path}")).await;
    (code, body)
}

#[tokio::test]
async fn a_converge_is_told_from_before_its_start_to_after_its_end() {
    let before = stage::status();
    let first = Status {
        not_started: false,
        converge_tasks: 3,
        ..stage::status()
    };
    let done = Status {
        not_started: false,
        ready: true,
        ..stage::status()
    };
    let again = Status {
        converge_tasks: 3,
        ..done.clone()
    };
    let rows = [
        (&before, "/readyz", 500, "Startup converge in progress\n"),
        (&before, "/status/converge", 200, "STARTUP_CONVERGE_NOT_STARTED\n"),
        (&first, "/readyz", 500, "Startup converge in progress\n"),
        (
            &first,
            "/status/converge",
            200,
            "STARTUP_CONVERGE_IN_PROGRESS: 3 tasks\n",
        ),
        (
            &first,
            "/status/converge?output=json",
            200,
            "{\"CONVERGE_IN_PROGRESS\":0,\"CONVERGE_WAIT_TASK\":false,\"STARTUP_CONVERGE_DONE\":false,\
             \"STARTUP_CONVERGE_IN_PROGRESS\":3,\"STARTUP_CONVERGE_NOT_STARTED\":false}\n",
        ),
        (&done, "/readyz", 200, "Startup converge done.\n"),
        (
            &done,
            "/status/converge",
            200,
            "STARTUP_CONVERGE_DONE\nCONVERGE_WAIT_TASK\n",
        ),
        (
            &done,
            "/status/converge?output=json",
            200,
            "{\"CONVERGE_IN_PROGRESS\":0,\"CONVERGE_WAIT_TASK\":true,\"STARTUP_CONVERGE_DONE\":true,\
             \"STARTUP_CONVERGE_IN_PROGRESS\":0,\"STARTUP_CONVERGE_NOT_STARTED\":false}\n",
        ),
        (&again, "/readyz", 200, "Startup converge done.\n"),
        (
            &again,
            "/status/converge",
            200,
            "STARTUP_CONVERGE_DONE\nCONVERGE_IN_PROGRESS: 3 tasks\n",
        ),
        (
            &again,
            "/status/converge?output=json",
            200,
            "{\"CONVERGE_IN_PROGRESS\":3,\"CONVERGE_WAIT_TASK\":false,\"STARTUP_CONVERGE_DONE\":true,\
             \"STARTUP_CONVERGE_IN_PROGRESS\":0,\"STARTUP_CONVERGE_NOT_STARTED\":false}\n",
        ),
        (&before, "/healthz", 200, ""),
        (&before, "/nowhere", 404, "404 page not found\n"),
    ];
    for (status, path, code, body) in rows {
        assert_eq!(at(status.clone(), path).await, (code, body.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn readiness_says_what_it_waits_for() {
    let mut status = stage::status();
    status.waiting.push("the releases have not been listed yet".into());
    status.config_problems.insert("one".into(), "line 1: no YAML".into());
    let (_, body) = at(status.clone(), "/readyz?verbose").await;
    assert_eq!(
        body,
        "Startup converge in progress\nwaiting: the releases have not been listed yet\nConfigMap key one: line 1: no YAML\n"
    );
    let (doors, _tasks) = stage::on(move |StatusQuery| status.clone()).answering();
    let (code, kind, body) = stage::ask(
        router(probe(doors, Some("API server cannot be reached: connection refused"))),
        "GET /readyz",
    )
    .await;
    assert_eq!((code, kind.as_str()), (500, "text/plain; charset=utf-8"));
    assert_eq!(
        body,
        "Startup converge in progress\nAPI server cannot be reached: connection refused\n"
    );
}

#[tokio::test]
async fn a_loop_that_does_not_answer_shows() {
    let (doors, _mail) = stage::wedged();
    let (code, _, body) = stage::ask(router(probe(doors, None)), "GET /healthz").await;
    assert_eq!(
        (code, body.as_str()),
        (503, "the main loop did not answer within 900 ms\n")
    );
    let (doors, mail) = stage::wedged();
    drop(mail);
    let (code, _, body) = stage::ask(router(probe(doors, None)), "GET /readyz").await;
    assert_eq!((code, body.as_str()), (503, "the operator is shutting down\n"));
}

#[tokio::test]
async fn metrics_show_queues_and_modules_and_survive_a_silent_loop() {
    let (code, body) = at(stage::status(), "/metrics").await;
    assert_eq!(code, 200);
    assert!(body.contains("own_tasks_queue_length{queue=\"main\"} 1\n"), "{body}");
    assert!(
        body.contains("own_mm_module_info{critical=\"true\",enabled=\"true\",module=\"one\"} 1\n"),
        "{body}"
    );
    let (doors, _mail) = stage::wedged();
    let (code, kind, body) = stage::ask(router(probe(doors, None)), "GET /metrics").await;
    assert_eq!((code, kind.as_str()), (200, PLAIN));
    assert!(
        body.contains("process_cpu_seconds_total ") && !body.contains("own_"),
        "{body}"
    );

    let (doors, _tasks) = stage::on(|StatusQuery| stage::status()).answering();
    let probe = probe(doors, None);
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("a.sh").unwrap(),
    };
    let written = metric::parse(r#"{"name": "node-size", "set": 1, "labels": {"плод": "x"}}"#).unwrap();
    probe.meters.apply_hook_metrics(&hook, written.operations);
    let (code, kind, body) = stage::ask(router(probe.clone()), "GET /metrics/hooks").await;
    assert_eq!((code, kind.as_str()), (200, PLAIN));
    assert!(body.contains("\nnode_size{hook=\"a.sh\",____=\"x\"} 1\n"), "{body}");
    let asked = "GET /metrics/hooks\nAccept: text/plain;version=0.0.4;escaping=allow-utf-8";
    let (_, kind, body) = stage::ask(router(probe), asked).await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8");
    assert!(
        body.contains("\n{\"node-size\",hook=\"a.sh\",\"плод\"=\"x\"} 1\n"),
        "{body}"
    );
}

#[tokio::test]
async fn the_index_leads_to_every_route() {
    let (code, page) = at(stage::status(), "/").await;
    assert_eq!(code, 200);
    let (_, routes) = at(stage::status(), "/discovery").await;
    for route in routes.lines().skip(1) {
        let path = route.strip_prefix("GET ").unwrap();
        assert!(page.contains(&format!("<a href=\"{path}\">")), "{path}");
        assert_ne!(at(stage::status(), path).await.0, 404, "{path}");
    }
    assert!(
        !page.contains('{') || !page.contains("{routes}"),
        "a placeholder is left"
    );
}

/// The readiness of a replica in this role, whose leader listens at this port.
async fn readyz_of(standing: ActingRole, port: u16) -> (u16, String) {
    asked(standing, port, "GET /readyz").await
}

async fn asked(standing: ActingRole, port: u16, request: &str) -> (u16, String) {
    let (doors, _tasks) = stage::on(|StatusQuery| stage::status()).answering();
    let probe = Probe {
        standing: watch::channel(standing).1,
        port,
        ..probe(doors, None)
    };
    let (code, _, body) = stage::ask(router(probe), request).await;
    (code, body)
}

/// The readiness of a standby whose leader has this status.
async fn standby_of(leader: Status) -> (u16, String) {
    let (doors, _tasks) = stage::on(move |StatusQuery| leader.clone()).answering();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let asked = async {
        let leader = standing::Leader {
            name: "operator-0.127-0-0-1.ns.pod".to_owned(),
            address: Some(address.ip()),
        };
        let answer = readyz_of(ActingRole::Standby(leader), address.port()).await;
        stop.cancel();
        answer
    };
    let routes = router(probe(doors, None));
    let (served, answer) = tokio::join!(listeners::listen(listener, routes, stop.clone()), asked);
    served.unwrap();
    answer
}

#[tokio::test]
async fn a_standby_is_as_ready_as_its_leader() {
    let ready = Status {
        not_started: false,
        ready: true,
        ..stage::status()
    };
    let waits = "HA mode is enabled and waiting for acquiring the lock.\n";
    assert_eq!(standby_of(ready).await, (200, waits.to_owned()));
    let not_ok = "HA mode is enabled but the leader's status response code isn't OK\n";
    assert_eq!(standby_of(stage::status()).await, (500, not_ok.to_owned()));
    let leader = |address: Option<&str>| standing::Leader {
        name: "someone".to_owned(),
        address: address.map(|address| address.parse().unwrap()),
    };
    let nobody = "HA mode is enabled but couldn't send a request to the leader\n";
    assert_eq!(
        readyz_of(ActingRole::Standby(leader(Some("127.0.0.1"))), 0).await,
        (500, nobody.to_owned())
    );
    assert_eq!(
        readyz_of(ActingRole::Standby(leader(None)), 0).await,
        (200, waits.to_owned()),
        "the lease is renewed, and where it answers is not known"
    );
}

#[tokio::test]
async fn a_standby_that_is_asked_for_itself_does_not_ask_its_leader() {
    let nowhere = standing::Leader {
        name: "someone".to_owned(),
        address: Some("127.0.0.1".parse().unwrap()),
    };
    let waits = "HA mode is enabled and waiting for acquiring the lock.\n";
    assert_eq!(
        asked(ActingRole::Standby(nowhere), 0, "GET /readyz?self").await,
        (200, waits.to_owned())
    );
    // A leader reports its own state, and so does a replica that knows of no leader.
    let progress = "Startup converge in progress\n";
    assert_eq!(
        asked(ActingRole::Leads, 0, "GET /readyz?self").await,
        (500, progress.to_owned())
    );
    let seeks = ActingRole::Seeks { trouble: None };
    assert_eq!(asked(seeks, 0, "GET /readyz?self").await, (500, progress.to_owned()));
}

#[tokio::test]
async fn who_cannot_be_elected_says_why() {
    let trouble = Some("cannot get it".to_owned());
    assert_eq!(
        readyz_of(ActingRole::Seeks { trouble }, 0).await,
        (
            500,
            "Startup converge in progress\nno leader is elected: cannot get it\n".to_owned()
        )
    );
}
