//! The variables that no flag stands beside, as the help of start tells of them.
//!
//! Reads nothing: whoever looks a variable up knows what it means.

/// Those of the operator with modules.
pub const OF_MODULES: &str = "\
Variables without a flag:
  ADDON_OPERATOR_HA                    true: replicas elect a leader, and POD, LISTEN_ADDRESS and NAMESPACE have to be
                                       said; false: nobody is elected [default: a leader, named as well as can be]
  ADDON_OPERATOR_POD                   Name of the own pod [default: HOSTNAME]
  ADDON_OPERATOR_LEASE_DURATION        How long the lease of a leader that has ended keeps others away [default: 18s]
  ADDON_OPERATOR_LEASE_RENEW_DEADLINE  How long a leader goes on that cannot renew it [default: 5 s less than that]
  ADDON_OPERATOR_LEASE_RETRY_PERIOD    How often it is renewed [default: 3s]
  ADDON_OPERATOR_LEADER_LABEL          Label that the leader's pod has, which takes a right to patch pods
  ADDON_OPERATOR_LEADER_SERVICES       Services without a selector that lead to the leader's pod, joined by commas
  ADDON_OPERATOR_WEBHOOK_OWNER         ClusterRole that owns the webhook configurations, which go with it
  ADDON_OPERATOR_CHANNEL               false: the registry of our image is not asked for other versions [default: true in a
                                       pod]
  ADDON_OPERATOR_CHANNEL_REGISTRIES    Registries that may be asked besides the one of our image, joined by commas
  ADDON_OPERATOR_CHANNEL_MIRRORS       Mirrors as REGISTRY=MIRROR or REGISTRY=MIRROR/FOLDER, joined by commas
  ADDON_OPERATOR_CHANNEL_PLAIN_HTTP    Registries and mirrors that are asked without TLS, joined by commas
  ADDON_OPERATOR_CHANNEL_CA            File with authorities of registries [default: those that the machine trusts]
  ADDON_OPERATOR_VERIFICATION_KEYS     File or directory with public keys: a version that none of them has signed is not
                                       taken [default: signatures are not looked at]
  ADDON_OPERATOR_NOTIFY_TOKEN          File with the token by which POST /channel/notify makes us ask the registry at once
  HTTPS_PROXY, NO_PROXY                The way to registries
  VALIDATING_WEBHOOK_CONFIGURATION_NAME, VALIDATING_WEBHOOK_SERVICE_NAME, …_LISTEN_ADDRESS, …_LISTEN_PORT,
  …_SERVER_CERT, …_SERVER_KEY, …_CA, …_CLIENT_CA
                                       Reviews of hooks, as the flags of 'addon-operator hooks start' of these names say
  CONVERSION_WEBHOOK_SERVICE_NAME and so on
                                       Likewise for conversions
  TRACING_OTLP_ENDPOINT                Where traces go, such as https://collector.example:4317 [default: nowhere]
  TRACING_OTLP_AUTH_TOKEN              Said to the collector
  OTEL_EXPORTER_OTLP_CERTIFICATE       Who vouches for the collector [default: whoever the machine trusts]
  QUEUE_ACTIONS_METRICS                no: what is done with queues is not measured
  FRAMEWORK_DIR                        Where hooks find the shell framework; handed on to them as all other variables are";

/// Those of hooks alone.
pub const OF_HOOKS: &str = "\
Variables without a flag:
  SHELL_OPERATOR_HA                    true: replicas elect a leader, and POD, LISTEN_ADDRESS and NAMESPACE have to be
                                       said [default: nobody is elected]
  SHELL_OPERATOR_POD                   Name of the own pod [default: HOSTNAME]
  SHELL_OPERATOR_LEASE_DURATION        How long the lease of a leader that has ended keeps others away [default: 18s]
  SHELL_OPERATOR_LEASE_RENEW_DEADLINE  How long a leader goes on that cannot renew it [default: 5 s less than that]
  SHELL_OPERATOR_LEASE_RETRY_PERIOD    How often it is renewed [default: 3s]
  SHELL_OPERATOR_LEADER_LABEL          Label that the leader's pod has, which takes a right to patch pods
  SHELL_OPERATOR_LEADER_SERVICES       Services without a selector that lead to the leader's pod, joined by commas
  TRACING_OTLP_ENDPOINT                Where traces go, such as https://collector.example:4317 [default: nowhere]
  TRACING_OTLP_AUTH_TOKEN              Said to the collector
  OTEL_EXPORTER_OTLP_CERTIFICATE       Who vouches for the collector [default: whoever the machine trusts]
  QUEUE_ACTIONS_METRICS                no: what is done with queues is not measured";
