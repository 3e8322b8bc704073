//! Two modules of the tour: one that a wrong value in its section can break, and one with so many objects that helm
//! needs a while.

use crate::stage::File;

/// The number of objects in the crowd at the beginning.
pub(crate) const FEW: usize = 12;

/// The number of objects for which helm needs a second or two.
pub(crate) const MANY: usize = 400;

pub(crate) const FILES: [File; 7] = [
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
