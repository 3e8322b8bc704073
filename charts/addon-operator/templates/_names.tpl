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

{{/* The image as the values name it. */}}
{{- define "addon-operator.image" -}}
{{- $missing := "image.repository is not set, and there is no public image yet: push your own, and say where it is pulled from" -}}
{{- $repository := required $missing .Values.image.repository -}}
{{- if and .Values.image.digest .Values.image.tag -}}
{{- printf "%s:%s@%s" $repository .Values.image.tag .Values.image.digest -}}
{{- else if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end }}

{{/*
The image of the container. An upgrade with the values of before keeps the version that the channel has reached since: that the values are those
of before tells the note of them on the Deployment. Where no cluster can be looked at, the values count.
*/}}
{{- define "addon-operator.runningImage" -}}
{{- $said := include "addon-operator.image" . -}}
{{- $image := $said -}}
{{- if .Values.channel.enabled -}}
{{- $found := lookup "apps/v1" "Deployment" .Release.Namespace (include "addon-operator.name" .) | default dict -}}
{{- if eq $said (dig "metadata" "annotations" "addon-operator/chart-image" "" $found) -}}
{{- range dig "spec" "template" "spec" "containers" list $found -}}
{{- if eq .name "addon-operator" -}}
{{- $image = .image -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $image -}}
{{- end }}

{{/* The one that the operator makes for a trial, beside that of the Deployment. */}}
{{- define "addon-operator.trialReplicaSet" -}}
{{ include "addon-operator.name" . }}-trial
{{- end }}

{{/* Services that lead to the leader, one a line. */}}
{{- define "addon-operator.leaderServices" -}}
{{- $name := include "addon-operator.name" . -}}
{{- if .Values.webhooks.enabled }}
- {{ $name }}-validating-svc
- {{ $name }}-conversion-svc
{{- end }}
{{- if include "addon-operator.isNotified" . }}
- {{ $name }}-notify-svc
{{- end }}
{{- if include "addon-operator.isPageOutside" . }}
- {{ $name }}-page-svc
{{- end }}
{{- end }}

{{/* Not empty if the page is served outside of the pod. */}}
{{- define "addon-operator.isPageOutside" -}}
{{- if and .Values.page.enabled .Values.page.outside }}true{{ end -}}
{{- end }}

{{/* Not empty if a client with the token may have the registry asked at once. */}}
{{- define "addon-operator.isNotified" -}}
{{- if and .Values.channel.enabled .Values.channel.notifyTokenSecret.name }}true{{ end -}}
{{- end }}

{{/* Not empty if the operator is given keys. */}}
{{- define "addon-operator.isVerified" -}}
{{- if .Values.verification.keys }}true{{ end -}}
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
