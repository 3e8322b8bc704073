//! Other things that hooks and scripts leave in place of their files, and the end of their runs.

use super::*;

/// The harms that a hook does to its own output files, each with the error that reports it.
const VANDALS: [(&str, &str); 5] = [
    (
        "truncate -s 800M \"$F\"",
        "holds 838860800 bytes: at most 16777216 are read",
    ),
    ("rm \"$F\"; mkfifo \"$F\"", "is a named pipe now and no file"),
    ("rm \"$F\"; ln -s /dev/zero \"$F\"", "is a link now and no file"),
    ("rm \"$F\"; mkdir \"$F\"", "is a directory now and no file"),
    ("rm \"$F\"; ln -s /etc/passwd \"$F\"", "is a link now and no file"),
];

#[tokio::test]
async fn a_hook_that_puts_something_else_in_the_place_of_a_file_fails_by_name() {
    for (variable, what) in [
        ("METRICS_PATH", "metrics"),
        ("KUBERNETES_PATCH_PATH", "object patches"),
        ("VALUES_JSON_PATCH_PATH", "json patch for values"),
        ("CONFIG_VALUES_JSON_PATCH_PATH", "json patch for config values"),
    ] {
        for (vandal, said) in VANDALS {
            let world = world(&[("hooks/a.sh", &format!("F=${variable}; {vandal}"))]).await;
            let failure = world.hook(Duration::from_mins(1)).await.unwrap_err();
            assert_eq!(failure.class, Class::HookFailed);
            assert!(failure.report.starts_with(&format!("got bad {what}: ")), "{failure}");
            assert!(failure.report.contains(said), "{variable}: {failure}");
            assert!(!failure.hints.is_empty(), "{failure}");
        }
    }
}

#[tokio::test]
async fn a_failed_hook_keeps_nobody_waiting_for_its_object_patches() {
    for (vandal, _) in VANDALS {
        let script = format!("F=$KUBERNETES_PATCH_PATH; {vandal}; echo no luck >&2; exit 1");
        let failure = world(&[("hooks/a.sh", &script)])
            .await
            .hook(Duration::from_mins(1))
            .await
            .unwrap_err();
        assert_eq!(failure.report, "no luck");
    }
}

#[tokio::test]
async fn an_enabled_script_that_leaves_no_file_gives_no_answer() {
    for (vandal, said) in VANDALS {
        for (script, variable) in [
            (format!("F=$MODULE_ENABLED_RESULT; {vandal}"), "MODULE_ENABLED_RESULT"),
            (
                format!("echo false >$MODULE_ENABLED_RESULT; F=$MODULE_ENABLED_REASON; {vandal}"),
                "MODULE_ENABLED_REASON",
            ),
        ] {
            let failure = world(&[("enabled", &script)]).await.script().await.unwrap_err();
            assert_eq!(failure.class, Class::HookFailed);
            let told = format!("got no {variable}: ");
            assert!(
                failure.report.contains(&told) && failure.report.contains(said),
                "{failure}"
            );
        }
    }
}
