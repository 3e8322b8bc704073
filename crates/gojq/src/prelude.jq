# What filters may use besides the natives. `_name` is the native `!name`.

def not: if . then false else true end;
def in(xs): . as $x | xs | has($x);
def map(f): [.[] | f];
def map_values(f): .[] |= f;
def select(f): if f then . else empty end;
def with_entries(f): to_entries | map(f) | from_entries;

def recurse(f): def again: ., (f | again); again;
def recurse(f; cond): recurse(f | select(cond));
def while(cond; update): def again: if cond then ., (update | again) else empty end; again;
def until(cond; update): def again: if cond then . else update | again end; again;
def repeat(f): def again: f, again; again;
def range($end): _range(0; $end; 1);
def range($start; $end): _range($start; $end; 1);
def range($start; $end; $step): _range($start; $end; $step);

def add(f): [f] | add;
def min_by(f): _min_by(map([f]));
def max_by(f): _max_by(map([f]));
def sort_by(f): _sort_by(map([f]));
def group_by(f): _group_by(map([f]));
def unique_by(f): _unique_by(map([f]));

def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type | . == "array" or . == "object");
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def finites: select(isfinite);
def normals: select(isnormal);
def strings: select(type == "string");
def nulls: select(. == null);
def values: select(. != null);
def scalars: select(type | . != "array" and . != "object");

def inside(xs): . as $x | xs | contains($x);
def first: .[0];
def last: .[-1];
def limit($n; f): if $n > 0 then _limit($n; f) elif $n == 0 then empty else error("limit doesn't support negative count") end;
def skip($n; f): if $n > 0 then _skip($n; f) elif $n == 0 then f else error("skip doesn't support negative count") end;
def nth($n): .[$n];
def nth($n; f): if $n >= 0 then first(skip($n; f)) else error("nth doesn't support negative index") end;
def all(f; cond): isempty(f | select(cond | not));
def all(cond): all(.[]; cond);
def all: all(.);
def any(f; cond): isempty(f | select(cond)) | not;
def any(cond): any(.[]; cond);
def any: any(.);

def combinations: if length == 0 then [] else .[0][] as $x | [$x] + (.[1:] | combinations) end;
def combinations(n): [limit(n; repeat(.))] | combinations;
def walk(f):
  def down: if type == "array" then map(down) elif type == "object" then map_values(down) else . end | f;
  down;

def del(f): delpaths([path(f)]);
def paths: path(..) | select(. != []);
def paths(f): path(.. | select(f)) | select(. != []);
def pick(f): . as $whole | reduce path(f) as $p (null; setpath($p; $whole | getpath($p)));
def tostream:
  path(def below: (.[]? | below), .; below) as $p
  | getpath($p)
  | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def fromstream(f):
  foreach f as $event (null;
    if .done then null else . end
    | $event as [$p, $v]
    | if $event | length == 2
      then setpath(["value"] + $p; $v) | setpath(["done"]; $p | length == 0)
      else setpath(["done"]; $p | length == 1) end;
    if .done then .value else empty end);
def truncate_stream(f): . as $n | null | f | if .[0] | length > $n then .[0] |= .[$n:] else empty end;

def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%S%z") | mktime;
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdate: fromdateiso8601;
def todate: todateiso8601;

def match($re; $flags): _match($re; $flags; false) | .[];
def match($re): match($re; null);
def test($re; $flags): _match($re; $flags; true);
def test($re): test($re; null);
def capture($re; $flags): match($re; $flags) | _capture;
def capture($re): capture($re; null);
def scan($re; $flags): match($re; $flags + "g") | if .captures == [] then .string else [.captures[].string] end;
def scan($re): scan($re; null);
def splits($re; $flags): split($re; $flags) | .[];
def splits($re): splits($re; null);
def sub($re; f; $flags): _replace([match($re; $flags)]; f);
def sub($re; f): sub($re; f; null);
def gsub($re; f; $flags): sub($re; f; $flags + "g");
def gsub($re; f): sub($re; f; "g");

def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def JOIN($index; f): [.[] | [., $index[f]]];
def JOIN($index; stream; f): stream | [., $index[f]];
def JOIN($index; stream; f; join): stream | [., $index[f]] | join;
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
