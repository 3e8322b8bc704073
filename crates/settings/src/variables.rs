//! The variables without a flag, for the help of `start`.
//!
//! Reads nothing: the code that reads a variable knows its meaning.

/// The variables of the program with modules.
pub const OF_MODULES: &str = "\
Variables without a flag:
  ADDON_OPERATOR_HA                    true: replicas elect a leader, and POD, LISTEN_ADDRESS and NAMESPACE must be set;
                                       false: the only replica leads without a lease [default: replicas elect a
                                       leader, and these variables may be missing]
  ADDON_OPERATOR_POD                   Name of this pod [default: HOSTNAME]
  ADDON_OPERATOR_LEASE_DURATION        Time after which a lease that is not renewed may be taken [default: 18s]
  ADDON_OPERATOR_LEASE_RENEW_DEADLINE  Time for which a leader works on without renewing [default: 5s less than the duration]
  ADDON_OPERATOR_LEASE_RETRY_PERIOD    Time between two renewals [default: 3s]
  ADDON_OPERATOR_LEADER_LABEL          Label of the leader's pod; needs the right to patch pods [default: none]
  ADDON_OPERATOR_LEADER_SERVICES       Services without a selector that the leader points to its pod, joined by commas
  ADDON_OPERATOR_WEBHOOK_OWNER         ClusterRole whose deletion deletes the webhook configurations [default: none]
  ADDON_OPERATOR_CHANNEL               false: never ask the registry for other versions [default: true in a pod]
  ADDON_OPERATOR_CHANNEL_REGISTRIES    Registries that may be asked beside that of the operator's image, joined by commas
  ADDON_OPERATOR_CHANNEL_MIRRORS       Mirrors of registries, REGISTRY=MIRROR or REGISTRY=MIRROR/FOLDER, joined by commas
  ADDON_OPERATOR_CHANNEL_PLAIN_HTTP    Registries and mirrors that are asked without TLS, joined by commas
  ADDON_OPERATOR_CHANNEL_CA            File with certificate authorities of registries [default: the system's]
  ADDON_OPERATOR_VERIFICATION_KEYS     File or directory with public keys: only versions signed by one of them are
                                       taken [default: signatures are not checked]
  ADDON_OPERATOR_NOTIFY_TOKEN          File with the token for POST /channel/notify, which asks the registry at once
  HTTPS_PROXY, NO_PROXY                Proxy for requests to registries, and hosts without one
  VALIDATING_WEBHOOK_CONFIGURATION_NAME, VALIDATING_WEBHOOK_SERVICE_NAME, …_LISTEN_ADDRESS, …_LISTEN_PORT,
  …_SERVER_CERT, …_SERVER_KEY, …_CA, …_CLIENT_CA
                                       Admission webhooks, as the flags of 'addon-operator hooks start' with these names
  CONVERSION_WEBHOOK_SERVICE_NAME and so on
                                       Conversion webhooks, as the flags with these names
  TRACING_OTLP_ENDPOINT                Collector of traces, such as https://collector.example:4317 [default: none]
  TRACING_OTLP_AUTH_TOKEN              Bearer token for the collector [default: none]
  OTEL_EXPORTER_OTLP_CERTIFICATE       File with the collector's certificate authority [default: the system's]
  QUEUE_ACTIONS_METRICS                no: leave out the metrics of actions on queues
  FRAMEWORK_DIR                        Directory of the shell framework. Hooks read it from this variable";

/// The variables of the program without modules.
pub const OF_HOOKS: &str = "\
Variables without a flag:
  SHELL_OPERATOR_HA                    true: replicas elect a leader, and POD, LISTEN_ADDRESS and NAMESPACE must be set
                                       [default: the only replica leads without a lease]
  SHELL_OPERATOR_POD                   Name of this pod [default: HOSTNAME]
  SHELL_OPERATOR_LEASE_DURATION        Time after which a lease that is not renewed may be taken [default: 18s]
  SHELL_OPERATOR_LEASE_RENEW_DEADLINE  Time for which a leader works on without renewing [default: 5s less than the duration]
  SHELL_OPERATOR_LEASE_RETRY_PERIOD    Time between two renewals [default: 3s]
  SHELL_OPERATOR_LEADER_LABEL          Label of the leader's pod; needs the right to patch pods [default: none]
  SHELL_OPERATOR_LEADER_SERVICES       Services without a selector that the leader points to its pod, joined by commas
  TRACING_OTLP_ENDPOINT                Collector of traces, such as https://collector.example:4317 [default: none]
  TRACING_OTLP_AUTH_TOKEN              Bearer token for the collector [default: none]
  OTEL_EXPORTER_OTLP_CERTIFICATE       File with the collector's certificate authority [default: the system's]
  QUEUE_ACTIONS_METRICS                no: leave out the metrics of actions on queues";
