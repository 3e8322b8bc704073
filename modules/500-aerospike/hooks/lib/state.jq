# The difference between the wanted objects and the present ones, and the status that tells it.
include "spec";
include "objects";

# Whether a value has all that is wanted. The API server adds defaults, and leaves out a 0.
def covers($wanted):
  . as $present
  | if ($wanted | type) == "object" and type == "object" then
      all($wanted | keys_unsorted[]; . as $key | $present[$key] | covers($wanted[$key]))
    elif ($wanted | type) == "array" and type == "array" then
      length == ($wanted | length) and all(range(length); . as $at | $present[$at] | covers($wanted[$at]))
    else . == $wanted or (. == null and $wanted == 0) end;

def title: "\(.kind) \(.metadata.namespace)/\(.metadata.name)";

# The wanted objects of a cluster, in the order in which they are written, each with the paths of the fields that may be changed.
def wanted($settings):
  (config_map | {object: ., paths: [["data"]]}),
  (service | {object: ., paths: [["spec", "publishNotReadyAddresses"], ["spec", "selector"], ["spec", "ports"]]}),
  (disruption_budget | {object: ., paths: [["spec"]]}),
  (changeable($settings) as $changeable | stateful_set($settings)
   | {object: ., paths: ($changeable | keys_unsorted | map(["spec", .]))});

# The JSON patch that makes a present object the wanted one; without a difference it is empty.
def changes($present; $paths):
  . as $wanted
  | ($wanted.metadata.annotations // {}) as $notes
  | (($present.annotations // {}) | covers($notes) | not) as $outdated
  | [(select(($present.labels // {}) | covers($wanted.metadata.labels) | not)
      | {op: "add", path: "/metadata/labels", value: (($present.labels // {}) + $wanted.metadata.labels)}),
     (select($outdated) | {op: "add", path: "/metadata/annotations", value: (($present.annotations // {}) + $notes)}),
     ($paths[] as $path | ($wanted | getpath($path)) as $value
      | select($outdated or ($present | getpath($path) | covers($value) | not))
      | {op: "add", path: "/\($path | join("/"))", value: $value})]
  # Another object of that name must not be changed.
  | if . == [] then . else [{op: "test", path: "/metadata/uid", value: $present.uid}] + . end;

# The StatefulSet as `object health` reads it, from the form in which the hook sees it.
def set_object:
  {apiVersion: "apps/v1", kind: "StatefulSet", metadata: ({namespace, name, generation, deletionTimestamp: .ending} | without_empty),
   spec, status: (.status // {})};

# Whether a StatefulSet has the volumes that the cluster asks for.
def has_volumes($cluster):
  (.spec.volumeClaimTemplates // [] | map({size: .spec.resources.requests.storage, class: .spec.storageClassName}))
  == ($cluster.spec.storage | if . == null then [] else [{size: (.size | gibibytes), class: .className}] end);

# judged(PRESENT; HEALTH; SETTINGS): the cluster with its violations and with the state of each object. PRESENT is a table of all
# objects, HEALTH the list that `object health` prints, or null.
def judged($table; $health; $settings):
  (.spec | completed) as $spec
  | .violations = [(.name | violations_of_name), ($spec | violations[])]
  | if .violations == [] then .spec = $spec else . end
  | . as $cluster
  | $table["StatefulSet \(.namespace)/\(.name)"] as $set
  | .set = (if $set.owner == .uid then $set else null end)
  | .health = (if .set == null or $health == null then null
               else [$health[] | select(.namespace == $cluster.namespace and .name == $cluster.name)][0] end)
  | if .violations == [] and .set != null and (.set | has_volumes($cluster) | not) then .violations = [storage_is_fixed] else . end
  | .objects = if .violations != [] then [] else
      [wanted($settings) | . as {$object, $paths} | $table[$object | title] as $present
       | {$object, state: (if $present == null then "missing" elif $present.owner != $cluster.uid then "foreign" else "own" end)}
         + if $present.owner == $cluster.uid then {changes: ($object | changes($present; $paths))} else {} end]
    end;

# The object patches of a judged cluster. Servers must not start with the file or the names of another owner.
def operations:
  ([.objects[] | select(.object.kind == "ConfigMap" or .object.kind == "Service") | .state] | all(. == "own")) as $may_start
  | .objects[]
  | if .state == "missing" and (.object.kind != "StatefulSet" or $may_start) then {operation: "CreateIfNotExists", object}
    elif .state == "own" and .changes != [] then
      {operation: "JSONPatch", ignoreMissingObject: true, jsonPatch: .changes, apiVersion: .object.apiVersion, kind: .object.kind,
       namespace: .object.metadata.namespace, name: .object.metadata.name}
    else empty end;

def condition($type; $status; $reason; $message): {type: $type, status: $status, reason: $reason, message: $message};

def titles(chosen): [.objects[] | select(chosen) | .object | title] | join(", ");

def condition_of_spec:
  if .violations == [] then condition("Accepted"; "True"; "Valid"; "the spec is valid")
  else condition("Accepted"; "False"; "Invalid"; .violations | join("; ")) end;

def condition_of_objects:
  titles(.state == "foreign") as $foreign
  | titles(.state == "missing") as $missing
  | titles(.state == "own" and .changes != []) as $changing
  | if .violations != [] then condition("Prepared"; "False"; "Invalid"; "the objects stay as they are until the spec is valid")
    elif $foreign != "" then
      condition("Prepared"; "False"; "Foreign";
        "\($foreign): belongs to another owner and is left alone; delete it, or give the cluster another name")
    elif $missing != "" then
      condition("Prepared"; "False"; "Missing";
        "\($missing): to be created; if it exists, it belongs to another owner: delete it, or give the cluster another name")
    elif $changing != "" then condition("Prepared"; "False"; "Changing"; "\($changing): to be changed")
    else condition("Prepared"; "True"; "AsWanted"; "all objects are as the spec wants them") end;

# All servers may be ready while the StatefulSet is still to be changed, or is on its way to another version of them.
def condition_of_servers($count; $ready):
  "\([$ready, $count] | min) of \($count) servers are ready" as $counts
  | any(.objects[]; .object.kind == "StatefulSet" and .state == "own" and .changes != []) as $changing
  | if $count <= 0 or $ready < $count then condition("Ready"; "False"; "NotReady"; $counts)
    elif $changing then condition("Ready"; "False"; "RollingOut"; "\($counts), and the StatefulSet is to be changed")
    elif .health == null then condition("Ready"; "True"; "AllReady"; "\($counts); the StatefulSet could not be judged")
    elif .health.health == "RollingOut" or .health.health == "Failed" then
      condition("Ready"; "False"; "RollingOut"; "\($counts), but of the StatefulSet: \(.health.sentence)")
    else condition("Ready"; "True"; "AllReady"; $counts) end;

# status(OLD): the wanted status of a judged cluster. A time of transition is kept as long as the status of its condition is.
def status($old):
  . as $cluster
  | (.spec.deployments? | if whole and . > 0 then . else $cluster.set.spec.replicas // 0 end) as $count
  | (.set.status.readyReplicas // 0) as $ready
  | condition_of_objects as $prepared
  | {observedGeneration: .generation,
     deployed: ($prepared.status == "True"),
     brokenNodes: ([$count - $ready, 0] | max),
     conditions: [condition_of_spec, $prepared, condition_of_servers($count; $ready)
       | . + {observedGeneration: $cluster.generation}
       | . as $condition
       | [($old.conditions // [])[] | select(.type == $condition.type and .status == $condition.status) | .lastTransitionTime] as $since
       | .lastTransitionTime = ($since[0] // (now | todate))]};

def status_operation($old):
  status($old) as $new
  | select(($old // {} | {observedGeneration, deployed, brokenNodes, conditions}) != $new)
  | {operation: "MergePatch", subresource: "status", ignoreMissingObject: true, apiVersion: "\(api)/v1alpha1", kind: "AerospikeCluster",
     namespace, name, mergePatch: {status: $new}};

# all_operations(SEEN; HEALTH; SETTINGS): the object patches for all clusters. SEEN is a map of the snapshots' filter results.
def all_operations($seen; $health; $settings):
  ([$seen.namespaces[] | select(.ending) | {key: .name, value: true}] | from_entries) as $ending
  | ({"config-maps": "ConfigMap", services: "Service", budgets: "PodDisruptionBudget", sets: "StatefulSet"}
     | [to_entries[] | .value as $kind | $seen[.key][] | {key: "\($kind) \(.namespace)/\(.name)", value: .}] | from_entries) as $table
  | ([$seen.statuses[] | {key: .uid, value: .status}] | from_entries) as $statuses
  | $seen.clusters[]
  # Objects are not made for a cluster that goes, nor in a namespace that goes.
  | select((.ending or $ending[.namespace]) | not)
  | judged($table; $health; $settings)
  | operations, status_operation($statuses[.uid]);
