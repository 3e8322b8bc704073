use addon_core::operator::query::{
    HeldBy, HeldRemoval, ModulesQuery, NoSuchModule, QueuesQuery, ReleaseValuesQuery, Status, StatusQuery,
};
use names::HookName;
use settings::LogLevel;
use tokio::task::JoinSet;

use super::super::stage::{self, Answers};
use super::*;
use hooks::records::Recorder;

mod channel;

fn answers() -> Answers {
    stage::on(|StatusQuery| Status {
        held: ["a", "b"].map(held).into(),
        ..stage::status()
    })
    .on(|QueuesQuery| {
        vec![
            stage::queue("main", "run first task", &["ModuleRun:main:one"]),
            stage::queue("side", "", &[]),
        ]
    })
    .on(|ModulesQuery| {
        vec![
            stage::module("two", true),
            stage::module("one", true),
            stage::module("off", false),
        ]
    })
    .on(|query: &ValuesQuery| {
        let values = match (of_one(query.module.as_ref())?, query.with_global) {
            (true, true) => json!({"global": {"zone": "a"}, "one": {"size": 1}}),
            (true, false) => json!({"size": 1}),
            (false, _) => json!({"zone": "a"}),
        };
        Ok(values)
    })
    .on(|query: &ConfigValuesQuery| {
        Ok(if of_one(query.module.as_ref())? {
            Value::Null
        } else {
            json!({"asked": format!("{:?}", query.secrets), "quoted": "say opensesame"})
        })
    })
    .on(|query: &PatchesQuery| {
        Ok(if of_one(query.module.as_ref())? {
            json!([{"op": "add", "path": "/one/size", "value": 1}])
        } else {
            Value::Null
        })
    })
    .on(|ReleaseValuesQuery(_)| Err(NoSuchModule))
    .on(|GlobalHooksQuery| vec![HookName::parse("hooks/g.sh").unwrap()])
}

/// Whether module `one` is asked for instead of the global section. There is no other module.
fn of_one(module: Option<&ModuleName>) -> Result<bool, NoSuchModule> {
    match module.map(ModuleName::as_str) {
        None => Ok(false),
        Some("one") => Ok(true),
        Some(_) => Err(NoSuchModule),
    }
}

fn held(release: &str) -> HeldRemoval {
    HeldRemoval {
        by: HeldBy::Brake,
        release: release.to_owned(),
        sign: "no source names its module any more",
        reason: "2 of our 2 releases would go".to_owned(),
    }
}

async fn ask(request: &str) -> (u16, String, String) {
    ask_of(Disclosure::OnRequest, ActingRole::Leads, request).await
}

async fn ask_of(disclosure: Disclosure, standing: ActingRole, request: &str) -> (u16, String, String) {
    let powers = Powers::Confirming;
    ask_with(disclosure, powers, standing, request).await
}

async fn ask_with(
    disclosure: Disclosure,
    powers: Powers,
    standing: ActingRole,
    request: &str,
) -> (u16, String, String) {
    let (leader, _tasks) = debug(channel::off());
    let debug = Debug {
        standing: tokio::sync::watch::channel(standing).1,
        disclosure,
        powers,
        ..leader
    };
    stage::ask(router(debug), request).await
}

/// A leader's debug socket; it works while the tasks are there.
fn debug(channel: Channel) -> (Debug, JoinSet<()>) {
    let secrets = Secrets::default();
    secrets.learn(Arc::new(["opensesame"].into_iter().collect()));
    let (doors, tasks) = answers().answering();
    let debug = Debug {
        doors,
        parameters: Arc::new(Parameters::new(LogLevel::Info, |_| {})),
        monitors: Arc::default(),
        lookout: Arc::default(),
        charts: Arc::default(),
        planner: Arc::default(),
        reloader: Arc::default(),
        sources: Arc::default(),
        recorder: Recorder::new("/nowhere/records".into(), Secrets::default()),
        channel,
        standing: tokio::sync::watch::channel(ActingRole::Leads).1,
        secrets,
        disclosure: Disclosure::OnRequest,
        powers: Powers::Confirming,
    };
    (debug, tasks)
}

#[tokio::test]
async fn every_path_has_its_form() {
    let text = "text/plain; charset=utf-8";
    let (json, yaml) = ("application/json", "application/yaml");
    let rows = [
        ("/", 200, text, "debug endpoint is alive"),
        (
            "/module/apis.json?target=latest",
            400,
            "text/plain; charset=utf-8",
            "'latest' is no version of Kubernetes: write it as 1.38\n",
        ),
        (
            "/module/apis.json",
            503,
            "text/plain; charset=utf-8",
            "the operator is still starting\n",
        ),
        (
            "/queue/main.json",
            200,
            json,
            "{\"name\":\"main\",\"status\":\"run first task\",\"tasks\":[{\"description\":\"ModuleRun:main:one\",\"index\":1}],\"tasksCount\":1}\n",
        ),
        (
            "/queue/main.text",
            200,
            text,
            "Queue 'main': length 1, status: 'run first task'\n\n 1. ModuleRun:main:one\n",
        ),
        ("/queue/list.yaml?showEmpty=true", 200, yaml, "active:\n"),
        (
            "/module/list.json",
            200,
            json,
            "{\"enabledModules\":[\"one\",\"two\"]}\n",
        ),
        (
            "/module/list.text",
            200,
            json,
            "{\"enabledModules\":[\"one\",\"two\"]}\n",
        ),
        ("/module/list.yaml", 200, yaml, "enabledModules:\n"),
        (
            "/module/resource-monitor.json",
            200,
            json,
            "{\"one\":\"No monitor\",\"two\":\"No monitor\"}\n",
        ),
        ("/graph?format=svg", 400, text, "the graph has one form: text\n"),
        ("/module/one/render", 500, text, "module not found\n"),
        ("/module/one/values.json", 200, json, "{\"size\":1}\n"),
        (
            "/module/one/values.json?global=true",
            200,
            json,
            "{\"global\":{\"zone\":\"a\"},\"one\":{\"size\":1}}\n",
        ),
        ("/module/one/values.yaml", 200, yaml, "size: 1\n"),
        ("/module/one/config.json", 200, json, "null\n"),
        (
            "/module/one/patches.json",
            200,
            json,
            "[{\"Operations\":[{\"op\":\"add\",\"path\":\"/one/size\",\"value\":1}]}]\n",
        ),
        ("/module/nowhere/values.json", 500, text, "module not found\n"),
        ("/module/No_Name/config.yaml", 500, text, "module not found\n"),
        ("/module/nowhere/patches.json", 500, text, "unknown module nowhere\n"),
        ("/module/one/values.text", 404, text, "404 page not found\n"),
        ("/global/list.json", 200, json, "{\"globalHooks\":[\"hooks/g.sh\"]}\n"),
        ("/global/values.json", 200, json, "{\"zone\":\"a\"}\n"),
        ("/global/patches.json", 200, json, "null\n"),
        (
            "/config/list.json",
            200,
            json,
            "[{\"default\":\"info\",\"description\":\"Global log level. Default duration for debug level is 30m0s\",\"name\":\"log.level\",\"value\":\"info\"}]\n",
        ),
        ("/nowhere", 404, text, "404 page not found\n"),
        ("/queue/list.xml", 404, text, "404 page not found\n"),
    ];
    for (path, status, kind, body) in rows {
        let answer = ask(&format!("GET {path}")).await;
        assert_eq!((answer.0, answer.1.as_str()), (status, kind), "{path}");
        let same = if kind == yaml {
            answer.2.starts_with(body)
        } else {
            answer.2 == body
        };
        assert!(same, "{path}: {}", answer.2);
    }
}

#[tokio::test]
async fn all_that_is_known_of_the_modules_is_one_document() {
    let (_, _, body) = ask("GET /module/status.json").await;
    let modules: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        modules[2],
        json!({"name": "off", "order": 10, "enabled": false, "decided": true, "enabled_by": "Static", "state": "Ready",
               "waits_for": "", "error": null, "hints": [], "remarks": [], "failures": 0, "fails": false, "health": "Healthy", "unhealthy": null, "unhealthy_for": null, "late": false, "depends_on": [], "failing": [], "needs": null,
               "upgrade_held": false, "in_maintenance": false, "after": [], "config_problems": [], "version": null, "release": null})
    );
}

#[tokio::test]
async fn secrets_are_shown_to_those_who_may_ask_for_them() {
    let masked = "{\"asked\":\"Masked\",\"quoted\":\"say <masked>\"}\n";
    let shown = "{\"asked\":\"Shown\",\"quoted\":\"say opensesame\"}\n";
    let refused = "secrets are shown to those who ask at the debug socket, not here\n";
    let rows = [
        (Disclosure::Never, "", (200, masked)),
        (Disclosure::Never, "?showSecrets=true", (403, refused)),
        (Disclosure::OnRequest, "", (200, masked)),
        (Disclosure::OnRequest, "?showSecrets=no", (200, masked)),
        (Disclosure::OnRequest, "?showSecrets=true", (200, shown)),
        (Disclosure::Always, "", (200, shown)),
    ];
    for (disclosure, wish, expected) in rows {
        let (status, _, body) = ask_of(disclosure, ActingRole::Leads, &format!("GET /global/config.json{wish}")).await;
        assert_eq!((status, body.as_str()), expected, "{disclosure:?} {wish}");
    }
}

#[tokio::test]
async fn parameters_are_set_by_a_form() {
    let rows = [
        ("name=log.level&value=debug", 200, ""),
        ("name=log.level&value=debug&duration=90s", 200, ""),
        ("value=debug", 400, "'name' parameter is required\n"),
        ("name=log.level", 400, "'value' parameter is required\n"),
        ("name=x&value=info", 400, "unknown runtime parameter \"x\"\n"),
        (
            "name=log.level&value=loud",
            400,
            "'value' parameter is invalid: no level found\n",
        ),
        (
            "name=log.level&value=info&duration=soon",
            400,
            "parse duration \"soon\" failed: it should be like 90s, 20m or 1h30m\n",
        ),
    ];
    for (form, status, body) in rows {
        let request = format!("POST /config/set\nContent-Type: application/x-www-form-urlencoded\n\n{form}");
        let answer = ask(&request).await;
        assert_eq!((answer.0, answer.2.as_str()), (status, body), "{form}");
    }
    let (status, _, body) = ask("GET /config/set").await;
    assert_eq!((status, body.as_str()), (405, ""));
}

/// The role while another replica leads.
fn standby() -> ActingRole {
    ActingRole::Standby(standing::Leader {
        name: "operator-0".to_owned(),
        address: None,
    })
}

#[tokio::test]
async fn a_lost_configuration_is_confirmed_at_the_socket_of_the_leader_alone() {
    let rows = [
        (
            Powers::Confirming,
            ActingRole::Leads,
            400,
            "no configuration is lost, so there is nothing to be confirmed\n",
        ),
        (
            Powers::Looking,
            ActingRole::Leads,
            403,
            "POST /config/lost is answered at the debug socket, not here\n",
        ),
        (
            Powers::Confirming,
            standby(),
            503,
            "this replica is a standby and does nothing: operator-0 leads\n",
        ),
    ];
    for (powers, standing, status, body) in rows {
        let answer = ask_with(Disclosure::Never, powers, standing, "POST /config/lost").await;
        assert_eq!((answer.0, answer.2.as_str()), (status, body));
    }
}

#[tokio::test]
async fn removals_are_confirmed_at_the_socket_of_the_leader_alone() {
    let request = |form: &str| format!("POST /module/purge\nContent-Type: application/x-www-form-urlencoded\n\n{form}");
    let rows = [
        (
            Powers::Confirming,
            ActingRole::Leads,
            "confirm=2",
            200,
            "confirmed, and removed from now on: a,b\n",
        ),
        (
            Powers::Confirming,
            ActingRole::Leads,
            "confirm=b",
            200,
            "confirmed, and removed from now on: b\n",
        ),
        (
            Powers::Confirming,
            ActingRole::Leads,
            "confirm=3",
            400,
            "2 removals are held, not 3: a,b\n",
        ),
        (
            Powers::Confirming,
            ActingRole::Leads,
            "",
            400,
            "the removal of '' is not held; held are: a,b\n",
        ),
        (
            Powers::Looking,
            ActingRole::Leads,
            "confirm=2",
            403,
            "POST /module/purge is answered at the debug socket, not here\n",
        ),
        (
            Powers::Confirming,
            standby(),
            "confirm=2",
            503,
            "this replica is a standby and does nothing: operator-0 leads\n",
        ),
    ];
    for (powers, standing, form, status, body) in rows {
        let answer = ask_with(Disclosure::Never, powers, standing, &request(form)).await;
        assert_eq!((answer.0, answer.2.as_str()), (status, body), "{form}");
    }
    let (_, _, listed) = ask("GET /module/purge.json").await;
    assert!(
        listed.starts_with(r#"[{"by":"brake","reason":"#) && listed.contains(r#""release":"a""#),
        "{listed}"
    );
}

#[tokio::test]
async fn deeds_are_done_at_the_socket_of_the_leader_alone() {
    let deeds = PATTERNS
        .iter()
        .filter(|route| route.starts_with("POST ") && **route != "POST /config/set");
    for deed in deeds {
        let request = format!("{deed}\nContent-Type: application/x-www-form-urlencoded\n\n");
        let elsewhere = ask_with(Disclosure::Never, Powers::Looking, ActingRole::Leads, &request).await;
        let refusal = format!("{deed} is answered at the debug socket, not here\n");
        assert_eq!((elsewhere.0, elsewhere.2), (403, refusal));
        let of_standby = ask_with(Disclosure::Never, Powers::Confirming, standby(), &request).await;
        assert_eq!(of_standby.0, 503, "{deed}: {}", of_standby.2);
    }
}

#[tokio::test]
async fn a_standby_names_its_leader_instead_of_what_it_does_not_know() {
    for path in ["/queue/list.text", "/module/one/values.yaml", "/global/list.json"] {
        let (code, _, body) = ask_of(Disclosure::OnRequest, standby(), &format!("GET {path}")).await;
        let told = "this replica is a standby and does nothing: operator-0 leads\n";
        assert_eq!((code, body.as_str()), (503, told), "{path}");
    }
    for path in ["/", "/discovery", "/config/list.text"] {
        assert_eq!(
            ask_of(Disclosure::OnRequest, standby(), &format!("GET {path}")).await.0,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn hooks_are_recorded_and_records_shown_at_the_socket_alone() {
    let form = |text: &str| format!("POST /hook/record\nContent-Type: application/x-www-form-urlencoded\n\n{text}");
    let not_here = "records of hook runs are shown at the debug socket, not here\n";
    let rows = [
        (
            Powers::Confirming,
            form("hook=a&runs=many"),
            400,
            "'runs' should be a number up to 1000, and is 'many'\n",
        ),
        (
            Powers::Confirming,
            "GET /hook/records/2026-1.json".to_owned(),
            400,
            "there is no record '2026-1' any more; `hook records` lists those that are kept\n",
        ),
        (
            Powers::Confirming,
            "GET /hook/records.json".to_owned(),
            200,
            "{\"recorded\":[],\"records\":[]}\n",
        ),
        (
            Powers::Looking,
            form("hook=a"),
            403,
            "POST /hook/record is answered at the debug socket, not here\n",
        ),
        (Powers::Looking, "GET /hook/records.json".to_owned(), 403, not_here),
        (
            Powers::Looking,
            "GET /hook/records/2026-1.json".to_owned(),
            403,
            not_here,
        ),
    ];
    for (powers, request, status, body) in rows {
        let answer = ask_with(Disclosure::Never, powers, ActingRole::Leads, &request).await;
        assert_eq!((answer.0, answer.2.as_str()), (status, body), "{request}");
    }
}
