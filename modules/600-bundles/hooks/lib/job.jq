# The Jobs of werf for Bundles with `runner: job`: deploys, and the dismissal of a release. The input of each function is a Bundle.
def job_name($action; $work): "werf-\($action)-\([.uid, $work, "\(.rollout.count // 0)"] | join("/") | checksum)";

# What the operator sets. Nothing in the spec overrides it.
def own_environment:
  {WERF_REPO: "\(.spec.registry)/\(.spec.repo)", WERF_TAG: .target.version, WERF_NAMESPACE: home, WERF_RELEASE: .name};

# $files are the keys of the ConfigMap with values.
def environment($files):
  own_environment as $own
  | ($files | to_entries | map({key: "WERF_VALUES_OPERATOR_\(.key)", value: "/home/build/.values/\(.value)"}) | from_entries) as $values
  | (.spec.env // {}) + $values + $own
  | to_entries | map({name: .key, value: .value | tostring});

def image($config): "\($config.job.image):\($config.job.tag)";
def docker: {name: "docker", mountPath: "/home/build/.docker"};

def login($config):
  if (.spec.auth // "") == "" then [] else
    .spec.auth as $secret
    | [{name: "repo-auth", image: image($config), command: ["sh"], args: ["-ec", "werf cr login \(.spec.registry)"],
        env: [{name: "WERF_USERNAME", valueFrom: {secretKeyRef: {name: $secret, key: "username"}}},
              {name: "WERF_PASSWORD", valueFrom: {secretKeyRef: {name: $secret, key: "password"}}}],
        volumeMounts: [docker]}]
  end;

def job($config; $action; $work; $container; $more):
  {apiVersion: "batch/v1", kind: "Job",
   metadata: {name: job_name($action; $work), namespace,
              labels: {"\(api)/bundle": .uid},
              annotations: {"\(api)/deployment": .name, "\(api)/work": $work}},
   spec: {ttlSecondsAfterFinished: $config.job.ttl, backoffLimit: 0,
          template: {spec: ({serviceAccountName: account($config), automountServiceAccountToken: true, restartPolicy: "Never",
                             volumes: [{name: "docker", emptyDir: {}}], containers: [$container]} + $more)}}};

def apply_job($config; $work; $files):
  (if $files == [] then [] else [{name: "values", configMap: {name: .spec.values}}] end) as $volumes
  | {name: "bundle-apply", image: image($config), command: ["sh"], args: ["-ec", "werf bundle apply"],
     env: environment($files),
     volumeMounts: ([docker] + if $files == [] then [] else [{name: "values", mountPath: "/home/build/.values", readOnly: true}] end)}
    as $container
  | job($config; "bundle-apply"; $work; $container; {})
  | .spec.template.spec.volumes += $volumes;

def with_login($config; $bundle):
  ($bundle | login($config)) as $login
  | if $login == [] then . else .spec.template.spec.initContainers = $login end;

# The Bundle owns its deploys: with it they go. The dismissal has to outlive it.
def owned_by($bundle):
  .metadata.ownerReferences = [{apiVersion: "\(api)/v1", kind: "Bundle", name: $bundle.name, uid: $bundle.uid, controller: true}];

def deploy_job($config; $work; $files):
  . as $bundle | apply_job($config; $work; $files) | with_login($config; $bundle) | owned_by($bundle);

def dismiss_job($config; $work):
  release_home as $namespace
  | {name: "dismiss-bundle", image: image($config), command: ["sh"],
     args: ["-ec", "werf helm uninstall \"$WERF_RELEASE\" --namespace \"$WERF_NAMESPACE\""],
     env: ((.spec.env // {}) + own_environment + {WERF_NAMESPACE: $namespace, WERF_TAG: (.deploy.version // .target.version)}
           | to_entries | map(select(.value != null) | {name: .key, value: .value | tostring})),
     volumeMounts: [docker]} as $container
  | job($config; "dismiss"; $work; $container; {});
