# The spec of an AerospikeCluster: its defaults and its limits. The review refuses what breaks a limit, and the reconciliation
# does not act on it.

def whole: type == "number" and . == floor;

# Programs that know a field as a number or a text write 0 or "" when it has no value.
def unset: . == null or . == 0 or . == "";
def fill($key; $default): if .[$key] | unset then .[$key] = $default else . end;
def fill_flag($key; $default): if .[$key] == null then .[$key] = $default else . end;
def fill_within(section; filling):
  if section == null then section = {} else . end
  | if (section | type) == "object" then section |= filling else . end;

# A spec with all defaults. Values of a wrong type stay, and `violations` names them.
def completed:
  if type != "object" then . else
    fill("maxMemory"; 1)
    | fill("maxCPU"; 100)
    | fill("logging"; "info")
    | fill("replicationFactor"; if (.deployments | whole) and .deployments == 1 then 1 else 2 end)
    | fill_flag("strongConsistency"; false)
    | if .compressionLevel | unset then del(.compressionLevel) else . end
    | if .storage == null then del(.storage) else . end
    | fill_within(.heartbeat; fill("interval"; 150))
    | fill_within(.keepalive; fill_flag("enabled"; true) | fill("interval"; 1))
  end;

def number($path; $low; $high):
  if whole | not then "\($path): must be a whole number, is \(tojson)"
  elif . < $low then "\($path): must be at least \($low), is \(.)"
  elif . > $high then "\($path): must be at most \($high), is \(.)"
  else empty end;

def flag($path): if type == "boolean" then empty else "\($path): must be true or false, is \(tojson)" end;

# section(PATH; OF): the violations of a map, or the one that it is no map.
def section($path; of): if type == "object" then of else "\($path): must be a map, is \(tojson)" end;

def levels: ["critical", "warning", "info", "debug", "detail"];
def class_form: "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";

def violations_of_storage:
  section("spec.storage";
    (if .size == null then "spec.storage.size: is missing: the size of each volume in GiB"
     else .size | number("spec.storage.size"; 1; 65536) end),
    (.className | select(. != null) | select(type != "string" or (test(class_form) | not) or length > 253)
     | "spec.storage.className: must be the name of a storage class, is \(tojson)"));

# The violations of a completed spec, in the order of the fields: texts that begin with the path of the field.
def violations:
  if . == null then ["spec: is missing"] else [section("spec";
    . as $spec
    | (if .deployments == null then "spec.deployments: is missing: the number of servers, at least 1"
       else .deployments | number("spec.deployments"; 1; 256) end),
      (.maxMemory | number("spec.maxMemory"; 1; 65536)),
      (.maxCPU | number("spec.maxCPU"; 1; 100000)),
      (.logging | select(. as $level | levels | index([$level]) == null)
       | "spec.logging: must be one of \(levels | join(", ")), is \(tojson)"),
      (.compressionLevel | select(. != null) | number("spec.compressionLevel"; 1; 9)),
      (.replicationFactor | number("spec.replicationFactor"; 1; 256)),
      (.replicationFactor | select(whole) | select($spec.deployments | whole) | select(. > $spec.deployments)
       | "spec.replicationFactor: must not exceed spec.deployments, which is \($spec.deployments), is \(.)"),
      (.strongConsistency | flag("spec.strongConsistency")),
      (.heartbeat | section("spec.heartbeat"; .interval | number("spec.heartbeat.interval"; 50; 600000))),
      (.keepalive | section("spec.keepalive";
         (.enabled | flag("spec.keepalive.enabled")),
         (.interval | number("spec.keepalive.interval"; 1; 32767)))),
      (.storage | select(. != null) | violations_of_storage))]
  end;

# The violations of a name, from which names of pods, Services and labels are made.
def violations_of_name:
  select(length > 52 or (test("^[a-z]([-a-z0-9]*[a-z0-9])?$") | not))
  | "metadata.name: must be at most 52 small letters, digits and dashes, and begin with a letter, is \(tojson)";

def storage_is_fixed: "spec.storage: cannot be changed: make a cluster of another name, and move the data";
