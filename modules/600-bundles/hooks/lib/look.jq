# Chooses the Bundles whose objects are looked at now, and reads what was seen. bundle.jq comes before it.
# Must never take a failed look for a state of the objects.

# What earlier looks saw of this deploy.
def known: if .health != null and .health.of == deployed then .health else {of: deployed} end;
def is_healthy: known.state == "healthy";

# The Bundles to look at, the ones of new deploys first. $next is the time of the next look of each Bundle, by its uid.
def due($next; $now):
  [.[] | select(deployed != null) | select(.health.of != deployed or ($next[.uid] // 0) <= $now)]
  | sort_by([(if .health.of != deployed then 0 else 1 end), $next[.uid] // 0, key]);

# Seconds until the next look: few while the objects are on their way. Of many Bundles each has fewer looks, so that there is at most
# one every two seconds.
def pause($bundles; $now; $limit):
  [if known.error then 30 elif is_healthy then 60 elif $now - (known.since // $now) < $limit then 10 else 30 end,
   2 * ([$bundles[] | select(deployed != null)] | length)] | max;

def rank: {Failed: 2, RollingOut: 1}[.health] // 0;
# A Job that is gone has done its work: it may have been deleted after its end.
def counts: rank > 0 and ((.kind == "Job" and .sentence == "it is absent") | not);

# The object that tells most. A claim has its reason in a pod that uses it, as a rule.
def worst: [.[] | select(counts)] | sort_by([-rank, (if .kind == "PersistentVolumeClaim" then 1 else 0 end)]) | .[0];

def title($home): "\(.kind) \(if (.namespace | IN("", $home)) then "" else "\(.namespace)/" end)\(.name)";

# The health by a look that saw all objects. What is on its way for longer than a deploy may take has failed.
def looked($rows; $now; $limit):
  known as $known | release_home as $home
  | ($rows | worst) as $worst
  | if $worst == null then {of: deployed, state: "healthy"}
    else
      (if $known.state == "healthy" then $now else $known.since // $now end) as $since
      | {of: deployed, state: (if $worst.health == "Failed" or $now - $since >= $limit then "failed" else "rollingOut" end),
         message: "\($worst | title($home)): \($worst.sentence)", $since}
    end;

# The health by a look that failed: what was known stays.
def unseen($error): known | .error = $error[:300];

# The write of a health. A deploy that has begun meanwhile is another one.
def write($health):
  {operation: "JQPatch", apiVersion: "\(api)/v1", kind: "Bundle", namespace, name, ignoreMissingObject: true,
   jqFilter: "if .metadata.uid == \(.uid | tojson) and .status.deploy.digest == \(.deploy.digest | tojson) and .status.rollout.count == \(.rollout.count | tojson)
     then .status.health = \($health | tojson) else . end"};

# The objects around the one that tells most, as arguments of kubectl, each list one line.
def questions($objects):
  . as $rows | worst as $worst
  | select($worst)
  | [$objects[] | if .items then .items[] else . end
     | select(.kind == $worst.kind and .metadata.name == $worst.name and (.metadata.namespace // "") == $worst.namespace)] as $found
  | ($found[0].spec.selector.matchLabels? // {} | to_entries | map("\(.key)=\(.value)") | join(",")) as $labels
  | (select($labels != "") | ["pods,replicasets.apps", "--selector=\($labels)", $worst.namespace]),
    ["events", "--field-selector=involvedObject.name=\($worst.name)", $worst.namespace],
    ([$rows[] | select(counts and .kind == "PersistentVolumeClaim") | .namespace] | unique[:3][]
     | ["events", "--field-selector=involvedObject.kind=PersistentVolumeClaim", .])
  | select(.[2] != "");
