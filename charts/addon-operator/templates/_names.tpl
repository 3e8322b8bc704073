{{/* The name of all objects. */}}
{{- define "addon-operator.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The name of objects that live in no namespace. */}}
{{- define "addon-operator.clusterName" -}}
{{- printf "%s.%s" (include "addon-operator.name" .) .Release.Namespace -}}
{{- end }}

{{- define "addon-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "addon-operator.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{/* By these pods are found; they never change. */}}
{{- define "addon-operator.selector" -}}
app.kubernetes.io/name: addon-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "addon-operator.labels" -}}
{{ include "addon-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "addon-operator.image" -}}
{{- $missing := "image.repository is not set, and there is no public image yet: push your own, and say where it is pulled from" -}}
{{- $repository := required $missing .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end }}

{{/* The webhook configurations that the operator keeps. The name of the second one is its own choice. */}}
{{- define "addon-operator.hooksConfiguration" -}}
addon-operator-hooks.{{ .Release.Namespace }}
{{- end }}
{{- define "addon-operator.editsConfiguration" -}}
addon-operator-config.{{ .Release.Namespace }}
{{- end }}

{{- /* The digest of the sections that a ConfigMap is made with; the operator works it out as well. */}}
{{- define "addon-operator.madeWith" -}}
{{- $lines := "" -}}
{{- range $key, $text := .Values.configMap.sections -}}
{{- $lines = printf "%s%s=%s\n" $lines $key (toString $text | sha256sum) -}}
{{- end -}}
{{- sha256sum $lines -}}
{{- end }}
