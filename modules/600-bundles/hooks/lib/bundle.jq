# A Bundle: the facts that its deploys depend on, and the work that there is for it. The input of each function is the Bundle as
# `seen` shows it. Programs and filters of hooks begin with this text.
def api: "operator.werf.dev";
def finalizer: "\(api)/release";

# A number for a text, to notice a change of it.
def checksum:
  reduce explode[] as $character ([5381, 52711];
    [(.[0] * 33 + $character) % 4294967291, (.[1] * 31 + $character) % 4294967279])
  | map(tostring) | join("-");

# The sum of a ConfigMap's data.
def sum_of: [to_entries | sort_by(.key)[] | .key, .value] | join("\u0000") | checksum;

# The part of a Bundle that the hooks need.
def seen:
  .metadata as $meta
  | {uid: $meta.uid, namespace: $meta.namespace, name: $meta.name, created: $meta.creationTimestamp,
     # An annotation with any value pauses.
     paused: (($meta.annotations // {}) | has("\(api)/disable-autoupdate")),
     ending: $meta.deletionTimestamp, finalizers: ($meta.finalizers // []), spec: (.spec // {}),
     ready: (.status.ready // 0), force: (.status.forceUpdate // 0), target: .status.target, deploy: .status.deploy,
     check: (.status.check // {}), rollout: (.status.rollout // {}), health: .status.health};

def key: "\(.namespace)/\(.name)";
def version: .spec.version // "latest";
def runner: .spec.runner // "helm";
# The namespace of the release, and the place of the release in the cluster.
def home: if (.spec.project_namespace // "") == "" then .namespace else .spec.project_namespace end;
def place: "\(home)/\(.name)";
def account($config): .spec.serviceAccount // $config.serviceAccount;

# The place of the chart. A host of one word is a repository of Docker's registry to our program, unless it has a port.
def address($plain):
  .spec.registry as $host
  | if $host | contains(".") or contains(":") or . == "localhost" then $host
    elif any($plain[]; . == $host) then "\($host):80" else "\($host):443" end;
def chart($plain): "\(address($plain))/\(.spec.repo)";

# A question to the registry, and the settings of a deploy. A change of the one needs a new answer, of the other a new deploy.
def question: [.spec.registry, .spec.repo, version, .spec.auth // ""] | tojson | checksum;
def settings: [home, .spec.values // "", .spec.env // {}, .spec.serviceAccount // "", runner] | tojson | checksum;

def is_deployed: .deploy.digest != null;
# A release may be there: a deploy has begun.
def has_release: is_deployed or .rollout.namespace != null;
def is_ours: .finalizers | any(. == finalizer);

# The namespace of the release that is there.
def release_home: .rollout.namespace // home;

# The mistakes of a spec. The API server refuses them; a Bundle may be older than its CRD.
def is_name: type == "string" and (explode | all(.[]; . == 45 or . == 46 or (. >= 48 and . <= 57) or (. >= 97 and . <= 122)))
  and (startswith("-") or startswith(".") | not);
def faults:
  ((.spec.registry, .spec.repo) | select(type != "string" or . == "") | "registry and repo must be texts"),
  (("auth", "values", "project_namespace", "serviceAccount") as $field
  | .spec[$field] | select(. != null and . != "" and (is_name | not)) | "\($field): must be a name of small letters, digits, dots and dashes");

# The work for a Bundle: null, or a text that changes with the work.
def work:
  if .ending then if is_ours and has_release and .rollout.state != "uninstalled" then "uninstall" else null end
  elif [faults] != [] or .paused or .target.digest == null or .check.question != question or (is_ours | not) then null
  elif .force == 1 then "forced \(.target.digest) \(settings) \(.rollout.count // 0)"
  elif .deploy.digest != .target.digest or .rollout.settings != settings or .rollout.state != "done" then
    "deploy \(.target.digest) \(settings)"
  else null end;

# The deploy whose objects are looked at: null, or a text that changes with the deploy. While another one is under way, or after one
# has failed, the condition tells of that.
def deployed:
  if .ending or (is_deployed | not) or .rollout.state != "done" or [faults] != [] then null
  else "\(.deploy.digest) \(.rollout.count // 0)" end;

# The name of an attempt, by which a failure is known. A new version or new settings are another attempt.
def attempt: if .ending then "uninstall" else "\(.target.digest) \(settings)" end;

# Must work wait after a failure?
def must_wait($now): .force != 1 and .rollout.state == "failed" and (.rollout.again // 0) > $now and .rollout.failed == attempt;

# The Bundles that may not deploy, by key, each with the Bundle that has their release.
def refused:
  [.[] | select(.ending == null or has_release)] | group_by(place)
  | reduce .[] as $group ({};
      ($group | sort_by([(if .rollout.namespace == home then 0 else 1 end), .created, key]) | .[0]) as $first
      | reduce ($group[] | select(.uid != $first.uid)) as $other (.; .[$other | key] = ($first | key)));
