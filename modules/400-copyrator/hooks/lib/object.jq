# The filter of ConfigMaps and Secrets. It keeps no values of objects that are neither source nor copy. Of a copy it keeps short values,
# and of long ones their length and 32 sums: every copy is in the memory of the operator.
def mark($name): "copyrator.flant.com/" + $name;
def digest:
  if utf8bytelength <= 1024 then .
  else
    explode as $codes | ($codes | length) as $length
    | [$length, (range(32) as $n | $codes[($length * $n / 32 | floor):($length * ($n + 1) / 32 | floor)] | add)]
  end;
.metadata as $meta
| ($meta.annotations // {} | del(.["kubectl.kubernetes.io/last-applied-configuration"])) as $annotations
| ($annotations[mark("rule")] != null) as $copy
| ($annotations[mark("source-of-copies")] != null) as $source
| {namespace: $meta.namespace, name: $meta.name, labels: ($meta.labels // {})}
+ (if $meta.deletionTimestamp then {going: true} else {} end)
+ (if .type then {type} else {} end)
+ (if $copy or $source then
     {annotations: $annotations, data: (.data // {} | map_values(digest)), binary: (.binaryData // {} | map_values(digest))}
   else {} end)
+ (if $copy then {rule: $annotations[mark("rule")], immutable: (.immutable // false)}
   elif $source then
     {values: {data: (.data // {}), binary: (.binaryData // {})}, size: ([.data, .binaryData] | tojson | utf8bytelength),
      version: "\($meta.uid)/\($meta.resourceVersion)"}
   else {} end)
