//! Cases of global hooks: the same as those of modules, with global values and without a chart.

use super::stage::{Ran, Stage};

/// A global hook that does what the value `do` says.
const HOOK: &str = r#"#!/usr/bin/env bash
set -euo pipefail
if [[ ${1-} == --config ]]; then
  cat <<'YAML'
configVersion: v1
beforeAll: 10
kubernetes:
  - {name: nodes, kind: Node, apiVersion: v1, jqFilter: .metadata.name}
YAML
  exit 0
fi
eval "$(jq -r '.global.do // ""' "$VALUES_PATH")"
"#;

fn stage() -> Stage {
    let stage = Stage::empty();
    stage.put("global-hooks/hooks/do.sh", HOOK);
    stage.put(
        "global-hooks/openapi/config-values.yaml",
        "type: object\nproperties: {do: {type: string}, zone: {type: string}}\n",
    );
    stage.put(
        "global-hooks/openapi/values.yaml",
        "x-extend: {schema: config-values.yaml}\ntype: object\nproperties: {nodes: {type: integer}}\n",
    );
    stage.put("modules/values.yaml", "global: {zone: a}\n");
    stage
}

fn play(cases: &str) -> Ran {
    let stage = stage();
    stage.put("global-hooks/tests/case.yaml", cases);
    stage.run(&["global", "test", "global-hooks", "--modules", "modules"])
}

#[test]
fn global_hooks_pass_their_cases() {
    let cases = r#"
name: nodes are counted
config: {do: "jq '[{op: \"add\", path: \"/global/nodes\", value: (.[0].snapshots.nodes | length)}]' $BINDING_CONTEXT_PATH >$VALUES_JSON_PATCH_PATH"}
objects: [{apiVersion: v1, kind: Node, metadata: {name: a}}, {apiVersion: v1, kind: Node, metadata: {name: b}}]
hook: hooks/do.sh
on: beforeAll
expect:
  values: {nodes: 2, zone: a}
  valuesPatch: [{op: add, path: /global/nodes, value: 2}]
---
name: a node that comes
config: {do: "jq -n '{name: \"came\", set: 1}' >$METRICS_PATH"}
values: {nodes: 7}
hook: hooks/do.sh
on: nodes
event: {type: Added, object: {apiVersion: v1, kind: Node, metadata: {name: c}}}
expect: {values: {nodes: 7}, metrics: [{name: came}]}
---
name: all hooks of a stage, which may switch a module on
config: {do: "jq -n '[{op: \"add\", path: \"/oneEnabled\", value: true}]' >$VALUES_JSON_PATCH_PATH"}
on: beforeAll
expect: {valuesPatch: [{op: add, path: /oneEnabled, value: true}]}
---
name: the schema refuses
config: {do: "jq -n '[{op: \"add\", path: \"/global/nodes\", value: \"x\"}]' >$VALUES_JSON_PATCH_PATH"}
on: beforeAll
expect: {refused: nodes in body must be of type integer}
---
name: a section is refused
config: {zone: 5}
expect: {refused: zone in body must be of type string}
"#;
    let ran = play(cases.trim());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("ok global: nodes are counted\n"), "{}", ran.out);
    assert!(ran.out.ends_with("5 passed, 0 failed\n"), "{}", ran.out);
}

#[test]
fn mistakes_in_cases_of_global_hooks_name_their_field() {
    for (case, expected) in [
        (
            "hook: hooks/do.sh\non: beforeHelm",
            "2: on: the hook has no binding 'beforeHelm', only: beforeAll, nodes",
        ),
        (
            "on: beforeHelm",
            "1: on: without 'hook' it should be one of onStartup, beforeAll, afterAll",
        ),
        (
            "hook: hooks/no.sh",
            "1: hook: there is no hook 'hooks/no.sh', only: hooks/do.sh",
        ),
        (
            "global: {zone: a}\non: beforeAll",
            "1: global: it has no effect in a case of global hooks: the field 'config' is the global section",
        ),
        (
            "enabledModules: [one]\non: beforeAll",
            "1: enabledModules: it has no effect in a case of global hooks",
        ),
        (
            "expect: {rendered: [{kind: Pod}]}",
            "1: expect.rendered: global hooks have no chart",
        ),
        (
            "expect: {enabled: true}",
            "1: expect.enabled: global hooks have no chart",
        ),
    ] {
        let ran = play(case);
        assert_eq!(ran.code, 1, "{}", ran.out);
        let expected = format!("global-hooks/tests/case.yaml:{expected}");
        assert!(ran.out.contains(&expected), "{case}\n{}{}", ran.out, ran.err);
    }
}

#[test]
fn global_hooks_that_cannot_be_read_are_named() {
    let stage = stage();
    let ran = stage.run(&["global", "test", "global-hooks"]);
    assert!(ran.err.contains("there are no cases in global-hooks"), "{}", ran.err);
    let ran = stage.run(&["global", "test", "nowhere"]);
    assert!(ran.err.contains("cannot look at nowhere"), "{}", ran.err);
    stage.put("global-hooks/tests/case.yaml", "on: beforeAll");
    stage.put("global-hooks/openapi/values.yaml", "type: [");
    let ran = stage.run(&["global", "test", "global-hooks"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    for words in ["the global hooks cannot be tested: ", "openapi", "bad yaml"] {
        assert!(ran.err.contains(words), "{words} is not in {}", ran.err);
    }
}
