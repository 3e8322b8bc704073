# The objects of one AerospikeCluster. The input of each function is the cluster as the hook's filter shows it, with a completed
# spec; $settings are the module's values. Maps and lists without contents are left out, because the API server drops them.
def api: "aerospike.dzolotov.tech";
def mark: "\(api)/cluster";

# A number for a text, to notice a change of it.
def checksum:
  reduce explode[] as $character ([5381, 52711];
    [(.[0] * 33 + $character) % 4294967291, (.[1] * 31 + $character) % 4294967279])
  | map(tostring) | join("-");

# Quantities in the form that the API server gives them.
def gibibytes: if . % 1024 == 0 then "\(. / 1024)Ti" else "\(.)Gi" end;
def cores_of_percent: if . % 100 == 0 then "\(. / 100)" else "\(. * 10)m" end;

def without_empty: with_entries(select(.value != {} and .value != [] and .value != null));

def labels:
  {"app.kubernetes.io/name": "aerospike", "app.kubernetes.io/instance": .name,
   "app.kubernetes.io/managed-by": "addon-operator", (mark): .name};
def selector: {(mark): .name};

def metadata:
  {namespace, name, labels: labels,
   ownerReferences: [{apiVersion: "\(api)/v1alpha1", kind: "AerospikeCluster", name, uid, controller: true}]};

# The engine gets three quarters of the memory; the index and the server itself need the rest. Of a volume it gets nine tenths.
def engine:
  (.spec.compressionLevel | if . == null then "" else
    "        compression zstd\n        compression-level \(.)\n" end) as $compression
  | if .spec.storage then
      "    storage-engine device {\n        file /opt/aerospike/data/test.dat\n        filesize \(.spec.storage.size * 920)M\n\($compression)    }"
    else
      "    storage-engine memory {\n        data-size \(.spec.maxMemory * 768)M\n\($compression)    }"
    end;

# Servers find each other by the first three: a change of their number changes nothing in the file.
def seeds: [range(3) as $number | "        mesh-seed-address-port \(.name)-\($number).\(.name).\(.namespace).svc 3002"] | join("\n");

def configuration: "# Made from AerospikeCluster \(.namespace)/\(.name). Changes of this file are reverted.
service {
    cluster-name \(.name)
}
logging {
    console {
        context any \(.spec.logging)
    }
}
network {
    service {
        address any
        port 3000
    }
    fabric {
        address any
        port 3001
        keepalive-enabled \(.spec.keepalive.enabled)
        keepalive-intvl \(.spec.keepalive.interval)
    }
    heartbeat {
        mode mesh
        address any
        port 3002
\(seeds)
        interval \(.spec.heartbeat.interval)
        timeout 10
    }
}
namespace test {
    replication-factor \(.spec.replicationFactor)
\(if .spec.strongConsistency then "    strong-consistency true\n" else "" end)\(engine)
}
";

def config_map: {apiVersion: "v1", kind: "ConfigMap", metadata: metadata, data: {"aerospike.conf": configuration}};

def ports: [{name: "service", port: 3000}, {name: "fabric", port: 3001}, {name: "heartbeat", port: 3002}];

def service:
  {apiVersion: "v1", kind: "Service", metadata: metadata,
   spec: {clusterIP: "None",
          # Servers need each other's names before they are ready.
          publishNotReadyAddresses: true,
          selector: selector,
          ports: (ports | map(. + {targetPort: .name, protocol: "TCP"}))}};

def disruption_budget:
  {apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: metadata,
   spec: {maxUnavailable: 1, selector: {matchLabels: selector}}};

def probe($every; $failures):
  {tcpSocket: {port: "service"}, periodSeconds: $every, timeoutSeconds: 3, failureThreshold: $failures};

def container($settings):
  {name: "aerospike", image: $settings.image,
   env: [{name: "MEM_GB", value: "\(.spec.maxMemory)"}, {name: "REPL_FACTOR", value: "\(.spec.replicationFactor)"}],
   ports: (ports | map({name, containerPort: .port, protocol: "TCP"})),
   resources: {limits: {cpu: (.spec.maxCPU | cores_of_percent), memory: (.spec.maxMemory | gibibytes)}},
   securityContext: $settings.securityContext,
   startupProbe: probe(5; 120), livenessProbe: probe(10; 6), readinessProbe: probe(5; 2),
   # The whole directory: the file beside it, from which images make their own configuration, is hidden.
   volumeMounts: ([{name: "config", mountPath: "/etc/aerospike", readOnly: true}]
     + if .spec.storage then [{name: "data", mountPath: "/opt/aerospike/data"}] else [] end)}
  | without_empty;

def template($settings):
  {metadata: {labels: labels, annotations: {"\(api)/configuration": (configuration | checksum)}},
   spec: ({
     automountServiceAccountToken: false, enableServiceLinks: false, terminationGracePeriodSeconds: 60,
     imagePullSecrets: $settings.imagePullSecrets, nodeSelector: $settings.nodeSelector, tolerations: $settings.tolerations,
     securityContext: $settings.podSecurityContext,
     topologySpreadConstraints: [{maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway",
                                  labelSelector: {matchLabels: selector}}],
     containers: [container($settings)],
     volumes: [{name: "config", configMap: {name}}]} | without_empty)};

def volume:
  {metadata: {name: "data", labels: selector},
   spec: ({accessModes: ["ReadWriteOnce"], storageClassName: .spec.storage.className,
           resources: {requests: {storage: (.spec.storage.size | gibibytes)}}} | without_empty)};

# The part of the StatefulSet's spec that may be changed.
def changeable($settings):
  {replicas: .spec.deployments, minReadySeconds: ($settings.minReadySeconds // 0), template: template($settings),
   # Without a partition the controller of Kubernetes may delete and make a pod for ever that cannot be scheduled.
   updateStrategy: {type: "RollingUpdate", rollingUpdate: {partition: 0}},
   # Volumes hold records: nothing here deletes one.
   persistentVolumeClaimRetentionPolicy: {whenDeleted: "Retain", whenScaled: "Retain"}};

def stateful_set($settings):
  changeable($settings) as $changeable
  | {apiVersion: "apps/v1", kind: "StatefulSet",
     metadata: (metadata + {annotations: {"\(api)/checksum": ($changeable | tojson | checksum)}}),
     spec: ($changeable + {serviceName: .name, selector: {matchLabels: selector}, podManagementPolicy: "Parallel"}
       + if .spec.storage then {volumeClaimTemplates: [volume]} else {} end)};
