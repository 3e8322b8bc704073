//! Cases that pass: each part of a case with the results that the operator would have.

use std::path::Path;

use super::stage::Stage;

fn assert_all_pass(cases: &str) {
    let ran = Stage::with_demo().play(cases);
    assert!(
        ran.code == 0 && ran.out.ends_with(" 0 failed\n"),
        "{}{}",
        ran.out,
        ran.err
    );
    let count = cases.split("\n---\n").count();
    assert_eq!(ran.out.lines().count(), count + 1, "{}", ran.out);
}

#[test]
fn the_shipped_modules_pass_their_cases() {
    let stage = Stage::empty();
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("modules");
    let ran = stage.run(&["module", "test", modules.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let shipped = [
        "sysctl-tuner",
        "registry-secret-copier",
        "sysctl-audit",
        "copyrator",
        "aerospike",
        "bundles",
    ];
    for module in shipped {
        assert!(ran.out.contains(&format!("ok {module}: ")), "{}", ran.out);
    }
}

#[test]
fn values_come_in_layers_and_patches_change_them() {
    assert_all_pass(
        r#"
name: files, the ConfigMap, earlier patches and the hook's own
config: {size: 5, do: "jq -n '[{op: \"add\", path: \"/demo/computed\", value: 7}]' >$VALUES_JSON_PATCH_PATH"}
values: {seen: {a: 1}}
hook: hooks/do.sh
on: beforeHelm
expect:
  values: {size: 5, computed: 7, seen: {a: 1}}
  config: {size: 5, computed: null}
  valuesPatch: [{op: add, path: /demo/computed, value: 7}]
  configPatch: []
  objectPatches: []
  metrics: []
---
name: a patch of config values changes the section, and the chart has its values
config: {do: "echo '{\"op\": \"add\", \"path\": \"/demo/size\", \"value\": 9}' >$CONFIG_VALUES_JSON_PATCH_PATH"}
on: afterHelm
expect:
  config: {size: 9}
  values: {size: 9}
  configPatch: [{op: add, path: /demo/size, value: 9}]
  rendered: [{kind: ConfigMap, data: {size: "9"}}]
  notRendered: [{kind: Secret}]
---
name: the hook reads values and config values as in an operator
config: {size: 4, do: "jq -n --slurpfile v $VALUES_PATH --slurpfile c $CONFIG_VALUES_PATH '[{op: \"add\", path: \"/demo/seen\", value: {v: $v[0].demo.size, g: $v[0].global.zone, c: $c[0].demo.size}}]' >$VALUES_JSON_PATCH_PATH"}
global: {zone: a}
hook: hooks/do.sh
on: hourly
expect: {values: {seen: {v: 4, g: a, c: 4}}}
---
name: the script is asked
expect: {enabled: false, reason: it is late}
"#
        .trim(),
    );
}

#[test]
fn bindings_select_objects_and_object_patches_change_them() {
    assert_all_pass(
        r#"
name: a first run has the selected objects as the filter shows them
objects:
  - {apiVersion: v1, kind: Pod, metadata: {name: b, labels: {app: web}}, spec: {nodeName: n2}}
  - {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}, spec: {nodeName: n1}}
  - {apiVersion: v1, kind: Pod, metadata: {name: c, labels: {app: db}}}
config: {do: "jq '[{op: \"add\", path: \"/demo/seen\", value: .}]' $BINDING_CONTEXT_PATH >$VALUES_JSON_PATCH_PATH"}
hook: hooks/do.sh
on: pods
expect:
  values:
    seen:
      - binding: pods
        type: Synchronization
        objects: [{filterResult: {name: a, node: n1}, object: null}, {filterResult: {name: b, node: n2}}]
---
name: an event changes the cluster before the hook runs
objects:
  - {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}}
config: {do: "jq '[{op: \"add\", path: \"/demo/seen\", value: .}]' $BINDING_CONTEXT_PATH >$VALUES_JSON_PATCH_PATH"}
hook: hooks/do.sh
on: pods
event: {type: Deleted, object: {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}}}
expect:
  values: {seen: [{binding: pods, type: Event, watchEvent: Deleted, filterResult: {name: a}}]}
  absent: [{kind: Pod}]
---
name: a schedule has the snapshots that it includes
objects:
  - {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: x, labels: {app: web}}}
config: {do: "jq '[{op: \"add\", path: \"/demo/seen\", value: .}]' $BINDING_CONTEXT_PATH >$VALUES_JSON_PATCH_PATH"}
hook: hooks/do.sh
on: hourly
expect:
  values: {seen: [{binding: hourly, type: Schedule, snapshots: {pods: [{filterResult: {name: a}}], quiet: null}}]}
---
name: contexts are given literally
config: {do: "jq '[{op: \"add\", path: \"/demo/seen\", value: .}]' $BINDING_CONTEXT_PATH >$VALUES_JSON_PATCH_PATH"}
hook: hooks/do.sh
contexts: [{binding: mine, anything: [1]}]
expect: {values: {seen: [{binding: mine, anything: [1]}]}}
---
name: object patches act on the cluster in their order
objects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: shop}, data: {k: "1"}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: shop}}
  - {apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop}, spec: {n: 1}}
config:
  do: |
    cat >$KUBERNETES_PATCH_PATH <<'END'
    {operation: MergePatch, apiVersion: v1, kind: ConfigMap, namespace: shop, name: old, mergePatch: {data: {k: "2"}}}
    ---
    {operation: JQPatch, kind: cm, namespace: shop, name: old, jqFilter: '.data.j = "3"'}
    ---
    {operation: Delete, kind: configmaps, namespace: shop, name: gone}
    ---
    {operation: JSONPatch, apiVersion: example.com/v1, kind: Gadget, namespace: shop, name: g, jsonPatch: [{op: replace, path: /spec/n, value: 2}]}
    ---
    {operation: CreateOrUpdate, object: {apiVersion: v1, kind: Secret, metadata: {name: new, namespace: shop}, data: {a: YQ==}}}
    END
hook: hooks/do.sh
on: beforeHelm
expect:
  objects:
    - {kind: ConfigMap, metadata: {name: old}, data: {k: "2", j: "3"}}
    - {apiVersion: example.com/v1, kind: Gadget, metadata: {name: g}, spec: {n: 2}}
    - {kind: Secret, metadata: {name: new, namespace: shop}, data: {a: YQ==}}
  absent: [{kind: ConfigMap, metadata: {name: gone}}]
---
name: a hook that fails changes only the status that it may change
objects: [{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}}]
config:
  do: |
    cat >$KUBERNETES_PATCH_PATH <<'END'
    {operation: MergePatch, kind: Pod, namespace: shop, name: a, subresource: status, ignoreHookError: true, mergePatch: {status: {phase: Failed}}}
    ---
    {operation: Delete, kind: Pod, namespace: shop, name: a}
    END
    echo 'out of paper' >&2
    exit 3
hook: hooks/do.sh
on: beforeHelm
expect:
  refused: "hook 'hooks/do.sh' failed: out of paper"
  objects: [{kind: Pod, status: {phase: Failed}}]
"#
        .trim(),
    );
}

#[test]
fn metrics_reviews_and_refusals_come_out() {
    assert_all_pass(
        r#"
name: metrics
config: {do: "echo '{\"name\": \"done\", \"action\": \"set\", \"value\": 2, \"labels\": {\"a\": \"b\"}, \"group\": \"g\"} {\"action\": \"expire\", \"group\": \"h\"} {\"name\": \"took\", \"action\": \"observe\", \"value\": 1.5, \"buckets\": [1, 2]}' >$METRICS_PATH"}
hook: hooks/do.sh
on: beforeHelm
expect:
  metrics:
    - {name: done, action: set, value: 2, labels: {a: b}, group: g}
    - {action: expire, group: h}
    - {name: took, action: observe, value: 1.5, buckets: [1, 2]}
---
name: a denied request
config: {do: "jq -n '{allowed: false, message: \"not here\", warnings: [\"w\"]}' >$VALIDATING_RESPONSE_PATH"}
hook: hooks/do.sh
on: check.example.com
request: {operation: CREATE, object: {kind: Pod}}
expect: {review: {allowed: false, message: not here, warnings: [w]}}
---
name: a changed object
config: {do: "jq -n '{allowed: true, patch: ([{op: \"add\", path: \"/a\", value: 1}] | tojson | @base64)}' >$ADMISSION_RESPONSE_PATH"}
hook: hooks/do.sh
on: change.example.com
request: {operation: CREATE, object: {kind: Pod}}
expect: {review: {allowed: true, patch: [{op: add, path: /a, value: 1}]}}
---
name: a converted object
config: {do: "jq '{convertedObjects: [.[0].review.request.objects[] | .apiVersion = \"example.com/v2\"]}' $BINDING_CONTEXT_PATH >$CONVERSION_RESPONSE_PATH"}
hook: hooks/do.sh
on: convert
request: {desiredAPIVersion: example.com/v2, objects: [{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}]}
expect: {review: {convertedObjects: [{apiVersion: example.com/v2, metadata: {name: a}}]}}
---
name: a section that breaks its schema
config: {size: many}
expect: {refused: demo.size in body must be of type integer}
---
name: values that break their schema
values: {computed: many}
expect: {refused: demo.computed in body must be of type integer}
---
name: a patch of another module's values
config: {do: "echo '{\"op\": \"add\", \"path\": \"/other/a\", \"value\": 1}' >$VALUES_JSON_PATCH_PATH"}
hook: hooks/do.sh
on: beforeHelm
expect: {refused: "unacceptable patch operation for path 'other'"}
---
name: a file that is no patch
config: {do: "echo nonsense >$VALUES_JSON_PATCH_PATH"}
hook: hooks/do.sh
on: beforeHelm
expect: {refused: got bad json patch for values}
---
name: an object patch that the API server refuses
config: {do: "echo '{operation: MergePatch, kind: Pod, namespace: a, name: none, mergePatch: {a: 1}}' >$KUBERNETES_PATCH_PATH"}
hook: hooks/do.sh
on: beforeHelm
expect: {refused: "pods \"none\" not found"}
---
name: a chart that refuses its values
config: {size: 101}
expect: {refused: too large}
---
name: no program of a hook finds a cluster
config: {do: "[[ -z ${KUBERNETES_SERVICE_HOST-} ]]; grep a-test-has-no-cluster.invalid \"$KUBECONFIG\""}
hook: hooks/do.sh
on: beforeHelm
expect: {}
"#
        .trim(),
    );
}

#[test]
fn a_hook_is_asked_once_for_all_cases() {
    let stage = Stage::with_demo();
    let case = "name: one\nhook: hooks/do.sh\non: beforeHelm\nexpect: {metrics: []}\n";
    let ran = stage.play(&[case; 20].join("---\n"));
    assert!(
        ran.code == 0 && ran.out.ends_with("20 passed, 0 failed\n"),
        "{}",
        ran.out
    );
    assert_eq!(fs_err::read_to_string(stage.path().join("asked")).unwrap(), "asked\n");
}

#[test]
fn fields_are_applied_and_conflicts_are_refused() {
    assert_all_pass(
        r#"
name: other fields stay
config: {do: "echo '{operation: Apply, fieldManager: demo, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: n}, data: {a: x}}}' >$KUBERNETES_PATCH_PATH"}
objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: n}, data: {b: y}}]
hook: hooks/do.sh
on: beforeHelm
expect:
  objects: [{kind: ConfigMap, metadata: {name: m}, data: {a: x, b: y}}]
  objectPatches: [{operation: Apply, fieldManager: demo, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: n}, data: {a: x}}}]
---
name: a field of another manager
config: {do: "for m in one two; do echo \"{operation: Apply, fieldManager: $m, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: n}, data: {a: $m}}}\"; echo ---; done | head -n 3 >$KUBERNETES_PATCH_PATH"}
hook: hooks/do.sh
on: beforeHelm
expect: {refused: 'conflict with "one": .data.a'}
"#
        .trim(),
    );
}
