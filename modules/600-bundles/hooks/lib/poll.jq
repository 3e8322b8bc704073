# Chooses the Bundles about which registries are asked now, and reads the answers. bundle.jq comes before it.
# Must never take a failed question for an answer.

# The Bundles to ask about. $next is the time of the next question of each Bundle, by its uid.
def asked($next; $now):
  [.[] | select((.ending or .paused) | not) | select([faults] == [])]
  | group_by([.namespace, .spec.registry, .spec.repo, .spec.auth // "", .spec.serviceAccount // ""])
  # The others of a group that is asked come along: they cost no question of their own.
  | [.[] | select(any(.[]; .check.question != question and .check.failed != question or ($next[.uid] // 0) <= $now))[]];

# The question about a Bundle, with the login that was read for it.
def package($logins; $plain):
  (if (.spec.auth // "") == "" then null
   else $logins["\(.namespace)/\(.spec.auth)/\(.spec.serviceAccount // "")"] // {error: "the login was not read"} end) as $login
  | {id: .uid, repository: chart($plain), version: version}
    # A version that is being deployed runs already.
    + (if .rollout.state == "running" and .rollout.digest != null then {running: {tag: .rollout.version, digest: .rollout.digest}}
       elif is_deployed then {running: {tag: .deploy.version, digest: .deploy.digest}} else {} end)
    + (if $login then {login: $login} else {} end);

# The change of the state by an answer.
def answered($answer):
  ([(.check.failures // 0) + 1, 7] | min) as $failures
  | if $answer.unasked then null
    elif $answer.error then
      {status: ({check: {error: $answer.error[:1000], failed: question, failures: $failures}}
                + if .check.question == question then {} else {ready: 0} end)}
    else
      {status: {ready: 1, target: {digest: $answer.digest, version: ($answer.tag // $answer.digest)},
                check: {question: question, failed: null, error: null, failures: 0, kept: $answer.kept}}}
    end;

# Whether a change changes anything.
def changes($change):
  . as $bundle
  | $change.status
  | .ready != null and .ready != $bundle.ready or .target != null and .target != $bundle.target
    or (.check | to_entries | any(.value != $bundle.check[.key]));

# The write of a change. The answer depends on the version that runs: if that is another one by now, the answer is dropped.
def write($change):
  {operation: "JQPatch", apiVersion: "\(api)/v1", kind: "Bundle", namespace, name, ignoreMissingObject: true,
   jqFilter: "if .metadata.uid == \(.uid | tojson) and .status.deploy.digest == \(.deploy.digest | tojson)
     then .status = ((.status // {}) * \($change.status | tojson) | .check |= with_entries(select(.value != null))) else . end"};

# Seconds until the next question: after an error few at first, and as many as the registry asks for.
def pause($answer; $interval):
  if $answer.error then [[5 * pow(2; .check.failures // 0), $interval] | min, $answer.pauseSeconds // 0] | max | floor
  else $interval end;
