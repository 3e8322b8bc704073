//! The modules of the tour: greeter can be broken by a wrong value in its section, web by the name of a missing node, page
//! needs web, and crowd has so many objects that helm needs a while. web and page are off at first.

use crate::stage::File;

/// The number of objects in the crowd at the beginning.
pub(crate) const FEW: usize = 12;

/// The number of objects for which helm needs a second or two.
pub(crate) const MANY: usize = 400;

pub(crate) const FILES: [File; 14] = [
    File {
        path: "values.yaml",
        text: "greeterEnabled: true\ncrowdEnabled: true\n",
    },
    File {
        path: "200-greeter/Chart.yaml",
        text: "apiVersion: v2\nname: greeter\ndescription: Says something short\nversion: 0.1.0\n",
    },
    File {
        path: "200-greeter/values.yaml",
        text: "greeter:\n  text: Welcome.\n",
    },
    File {
        path: "200-greeter/templates/greeting.yaml",
        text: r#"{{- if gt (len .Values.greeter.text) 40 }}
{{- fail "greeter.text has more than 40 characters" }}
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: greeter
  labels: {app: greeter}
data:
  text: {{ .Values.greeter.text | quote }}
"#,
    },
    File {
        path: "210-web/Chart.yaml",
        text: "apiVersion: v2\nname: web\ndescription: Runs on one node\nversion: 0.1.0\n",
    },
    File {
        path: "210-web/module.yaml",
        text: "health: {timeout: 10s, onFailure: return}\n",
    },
    File {
        path: "210-web/values.yaml",
        text: "web:\n  node: node-2\n",
    },
    File {
        path: "210-web/templates/web.yaml",
        text: r"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      nodeSelector:
        kubernetes.io/hostname: {{ .Values.web.node }}
      containers:
      - name: web
        image: registry.example/web:1
",
    },
    File {
        path: "220-page/Chart.yaml",
        text: "apiVersion: v2\nname: page\ndescription: Needs web\nversion: 0.1.0\n",
    },
    File {
        path: "220-page/module.yaml",
        text: "dependsOn: [web]\n",
    },
    File {
        path: "220-page/templates/page.yaml",
        text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\ndata: {text: Served by web}\n",
    },
    File {
        path: "400-crowd/Chart.yaml",
        text: "apiVersion: v2\nname: crowd\ndescription: Sings in many voices\nversion: 0.1.0\n",
    },
    File {
        path: "400-crowd/values.yaml",
        text: "crowd:\n  size: 12\n  song: hum\n",
    },
    File {
        path: "400-crowd/templates/members.yaml",
        text: r"{{- range $number := until (int .Values.crowd.size) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: crowd-{{ $number }}
  labels: {app: crowd}
data:
  song: {{ $.Values.crowd.song | quote }}
{{- end }}
",
    },
];
