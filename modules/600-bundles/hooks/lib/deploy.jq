# The changes of a Bundle's state by a deploy or an uninstall with helm. bundle.jq comes before it.

# The Bundles with work for helm, the one that waits longest first.
def to_do($now):
  . as $all | refused as $refused
  | [$all[] | select(runner == "helm" and (work != null) and (must_wait($now) | not))
     | select(.ending or $refused[key] == null)]
  | sort_by([(if .force == 1 then 0 else 1 end), .rollout.again // 0, key]);

# What the work on a Bundle needs to know; nothing about another one of its name, and without work.
def facts($uid; $now; $plain; $account):
  select(.uid == $uid and (must_wait($now) | not) and work != null)
  | work as $work
  | $work, tojson, (.spec.serviceAccount // $account), (.spec.values // ""), (.spec.auth // ""), (.rollout.unended == true),
    # The spec of a Bundle that is going may have any mistake.
    (if $work == "uninstall" then release_home, "", "", ""
     else home, .target.version, "\(chart($plain))@\(.target.digest)", address($plain) end);

# Until helm has ended, `unended` tells that a pending record of the release is ours.
def begun($now; $values): {status: {rollout: {state: "running", unended: true, job: null, begun: $now, settings: settings, namespace: home,
  digest: .target.digest, version: .target.version, $values}}};

def done: {status: {forceUpdate: 0, deploy: .target,
  rollout: {state: "done", unended: null, message: null, failures: 0, failed: null, again: null, count: ((.rollout.count // 0) + 1)}}};

def failed($message; $interval; $now; $ended):
  ((.rollout.failures // 0) + 1) as $failures
  | {status: {forceUpdate: 0,
      rollout: {state: "failed", unended: (if $ended then null else .rollout.unended end), message: $message[-1000:], $failures, failed: attempt,
                again: ($now + ([$interval, 10 * pow(2; [$failures, 10] | min)] | min | floor)), count: ((.rollout.count // 0) + 1)}}};

def uninstalled: {status: {rollout: {state: "uninstalled", message: null}}};

def event($type; $reason; $message; $now):
  {apiVersion: "v1", kind: "Event", metadata: {namespace, generateName: "\(.name[:200])."},
   involvedObject: {apiVersion: "\(api)/v1", kind: "Bundle", namespace, name, uid},
   $type, $reason, message: $message[-1000:], count: 1, firstTimestamp: ($now | todate), lastTimestamp: ($now | todate),
   source: {component: "addon-operator"}, reportingComponent: "addon-operator", reportingInstance: "bundles"};

# Values that the environment of the spec gives to helm, as flags, each with its value behind it.
def flags:
  .spec.env // {} | to_entries | sort_by(.key)[]
  | (if .key | startswith("WERF_SET_STRING_") then "--set-string" elif .key | startswith("WERF_SET_") then "--set" else empty end), (.value | tostring);
