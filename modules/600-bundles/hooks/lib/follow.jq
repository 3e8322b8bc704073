# Compares all Bundles with their states, and prints the operations: finalizers, forced deploys, Jobs, conditions and Events. bundle.jq
# and job.jq come before it. Must never delete anything, and never take an unknown list for an empty one.

def operation($do): {operation: $do, apiVersion: "\(api)/v1", kind: "Bundle", namespace, name};
def patch($change): operation("MergePatch") + {mergePatch: $change, ignoreMissingObject: true};
def stamp($now): $now | todate;

# An Event about the Bundle. The operator counts one that has been written already.
def event($type; $reason; $message): operation("Event") + {uid, $type, $reason, $message};
# Finalizers of others are not ours to write.
def hold: operation("AddFinalizer") + {finalizer: finalizer, ignoreMissingObject: true};
def let_go: operation("RemoveFinalizer") + {finalizer: finalizer, ignoreMissingObject: true};

# The state of a Bundle, as status, reason and message of the condition Ready.
def is($status; $reason; $message): {$status, $reason, $message};
def readiness($refused; $work):
  (.deploy.version // "") as $deployed
  | if .ending then
      is("False"; "Deleting"; if has_release then "the release is being uninstalled" + (.rollout.message // "" | if . == "" then . else ": \(.)" end)
                             else "there is no release" end)
    elif [faults] != [] then is("False"; "Invalid"; [faults] | join("; "))
    elif $refused then is("False"; "Refused"; "Bundle \($refused) has the release \(place): rename this Bundle, or give it another project_namespace")
    elif .paused then
      if is_deployed then is("True"; "Paused"; "\($deployed) is deployed, and an annotation pauses updates")
      else is("False"; "Paused"; "nothing is deployed, and an annotation pauses updates") end
    elif .check.error then
      # The answer for this question may still be the wanted one.
      if is_deployed and .check.question == question then is("Unknown"; "CheckFailed"; "\($deployed) stays: \(.check.error)")
      else is("False"; "CheckFailed"; .check.error) end
    elif .check.question != question then is("Unknown"; "Checking"; "the registry has not been asked yet")
    elif $work == null and .rollout.state == "done" then
      if .check.kept then is("True"; "Kept"; "\($deployed) stays: \(.check.kept)") else is("True"; "Deployed"; "\($deployed) is deployed") end
    elif .rollout.state == "failed" and must_wait(0) then is("False"; "DeployFailed"; "\(.target.version): \(.rollout.message // "")")
    else is("Unknown"; "Deploying"; "\(.target.version) is being deployed") end;

def old_condition: [.conditions[] | select(.type == "Ready")] | .[0];

# A deployed Bundle is ready if its objects do their work. $is is its state without that.
def with_health($is):
  .health as $health
  | ($health.error // "" | if . == "" then "" else "; its health could not be seen: \(.)" end) as $unseen
  | if $is.status != "True" or deployed == null then $is
    elif $health.of != deployed then
      # A Bundle that an earlier version has called ready stays so until it was looked at.
      if $health == null and old_condition.status == "True" then $is
      else is("Unknown"; "RollingOut"; "\(.deploy.version) is deployed, and its objects are looked at") end
    elif $health.state == "failed" then is("False"; "NotHealthy"; "\(.deploy.version) is deployed, but not healthy: \($health.message)\($unseen)")
    elif $health.state == "rollingOut" then is("Unknown"; "RollingOut"; "\(.deploy.version) is deployed, and on its way: \($health.message)\($unseen)")
    else $is | .message += $unseen end;

# The condition with its times. Each write of an object raises its generation, and so does this one.
def condition($new; $now):
  .generation as $generation | old_condition as $old
  | if $old and ($new | to_entries | all(.[]; $old[.key] == .value)) and $old.observedGeneration == $generation then null
    else $new + {type: "Ready", observedGeneration: ($generation + 1),
                 lastTransitionTime: (if $old.status == $new.status then $old.lastTransitionTime else stamp($now) end)}
    end;

# The operations for the Jobs of one Bundle. $jobs are its Jobs, $map its ConfigMap.
def run_jobs($config; $work; $jobs; $map; $now):
  .rollout as $rollout
  | if $rollout.state == "running" and $rollout.job then
      ([$jobs[] | select(.name == $rollout.job)] | .[0]) as $job
      | (($rollout.count // 0) + 1) as $count
      | if $job.state == "succeeded" and $rollout.action == "dismiss" then
          patch({status: {rollout: {state: "uninstalled", job: null, $count}}}), event("Normal"; "Uninstalled"; "the release is uninstalled")
        elif $job.state == "succeeded" then
          patch({status: {forceUpdate: 0, deploy: {digest: $rollout.digest, version: $rollout.version},
                          rollout: {state: "done", job: null, message: null, failures: 0, failed: null, again: null, $count}}}),
          event("Normal"; "Deployed"; "\($rollout.version) is deployed")
        elif $job.state == "failed" or ($job == null and $now > ($rollout.begun // 0) + 60) then
          (($rollout.failures // 0) + 1) as $failures
          | (if $job then "Job \($rollout.job) failed: \($job.message // "its pod says why")" else "Job \($rollout.job) is gone" end) as $message
          | patch({status: {forceUpdate: 0, rollout: {state: "failed", job: null, $message, $failures,
                            failed: (if $rollout.action == "dismiss" then "uninstall" else "\($rollout.digest) \($rollout.settings)" end),
                            again: ($now + ([$config.interval, 10 * pow(2; [$failures, 10] | min)] | min | floor)), $count}}}),
            event("Warning"; "DeployFailed"; "\($rollout.version): \($message)")
        else empty end
    elif $work == null or must_wait($now) then empty
    elif $work == "uninstall" then
      dismiss_job($config; $work) as $job
      | {operation: "CreateIfNotExists", object: $job},
        patch({status: {rollout: {state: "running", action: "dismiss", job: $job.metadata.name, begun: $now}}})
    elif (.spec.values // "") != "" and $map == null then
      if .rollout.message == "ConfigMap \(.spec.values) is not there" then empty else
        patch({status: {rollout: {state: "failed", message: "ConfigMap \(.spec.values) is not there", failed: attempt,
                        again: ($now + $config.interval)}}}) end
    else
      deploy_job($config; $work; ($map.files // [])) as $job
      | {operation: "CreateIfNotExists", object: $job},
        patch({status: {rollout: {state: "running", action: "apply", job: $job.metadata.name, begun: $now, settings: settings, namespace: home,
                        digest: .target.digest, version: .target.version, values: ($map.sum // "")}}}),
        event("Normal"; "Update"; "\(.target.version) is being deployed by Job \($job.metadata.name)")
    end;

# The end of a Bundle that is being deleted. $gone are namespaces that are being deleted, too.
def ended($config; $gone; $now):
  release_home as $home
  | ($now - (.ending | fromdate)) as $waited
  | (if has_release | not then ""
     elif .rollout.state == "uninstalled" then ""
     # Everything of the release goes with its namespace.
     elif $gone[$home] then ""
     elif $waited >= $config.uninstallLimit then "the release \($home)/\(.name) stays, because it was not uninstalled within \($config.uninstallLimit) s: \(.rollout.message // "no reason is known")"
     elif $gone[.namespace] and $waited >= 30 then "the release \($home)/\(.name) stays, because the namespace of its Bundle is being deleted: \(.rollout.message // "no reason is known")"
     else null end) as $why
  | if $why == null then empty else
      (if $why == "" then empty elif $gone[.namespace] then {note: "\(key): \($why)"} else {note: "\(key): \($why)"}, event("Warning"; "Abandoned"; $why) end),
      let_go
    end;

($values[0].bundles) as $config
| (reduce (listed("namespaces")[] | select(.ending)) as $space ({}; .[$space.name] = true)) as $gone
| (reduce listed("config-maps")[] as $map ({}; .["\($map.namespace)/\($map.name)"] = $map)) as $maps
| (listed("jobs") | group_by(.uid) | reduce .[] as $group ({}; .[$group[0].uid] = $group)) as $jobs
| listed("bundles") as $bundles
| ($bundles | refused) as $refused
| $bundles[]
| . as $bundle
| $refused[key] as $holder
| (if $holder and (.ending | not) then null else work end) as $work
| ($maps["\(.namespace)/\(.spec.values // "")"]) as $map
| [(select(.ending and is_ours) | ended($config; $gone; $now)),
   (select((.ending or is_ours) | not) | select($gone[.namespace] | not) | hold),
   # The data of the ConfigMap is not the one that was deployed.
   (select((.ending | not) and .force != 1 and $map and (.rollout.state == "done" or .rollout.state == "failed")
           and .rollout.values != null and .rollout.values != $map.sum and $holder == null)
    | patch({status: {forceUpdate: 1}})),
   (select(runner == "job" and ($gone[.namespace] | not)) | run_jobs($config; $work; $jobs[.uid] // []; $map; $now)),
   (select($gone[.namespace] | not)
    | (condition(with_health(readiness($holder; $work)); $now) // empty) as $condition
    | (old_condition // {}) as $old
    | (select((["CheckFailed", "Kept", "Refused"] | any(. == $condition.reason)) and ($old.reason != $condition.reason or $old.message != $condition.message)
              # The counts of pods in its message change too often.
              or $condition.reason == "NotHealthy" and $old.reason != "NotHealthy")
       | event(if $condition.status == "True" then "Normal" else "Warning" end; $condition.reason; $condition.message)),
      # A new deploy has an Event of its own.
      (select($old.reason == "NotHealthy" and $condition.reason == "Deployed")
       | event("Normal"; "Healthy"; "\(.deploy.version) is healthy again")),
      patch({status: {conditions: ([.conditions[] | select(.type != "Ready")] + [$condition])}}))]
# One patch for each Bundle, because each raises the generation. Without the finalizer it may be gone.
| def are($wanted): map(select(.operation | IN($wanted[])));
  (. - are(["MergePatch", "RemoveFinalizer"]))[],
  (are(["MergePatch"]) | select(. != []) | .[0] + {mergePatch: (map(.mergePatch) | reduce .[] as $one ({}; . * $one))}),
  are(["RemoveFinalizer"])[]
