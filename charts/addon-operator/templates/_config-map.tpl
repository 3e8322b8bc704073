{{/*
Whose the ConfigMap is: `kept`, a part of this release, or `left`, somebody else's or not wanted.
*/}}
{{- define "addon-operator.configMapIs" -}}
{{- $found := lookup "v1" "ConfigMap" .Release.Namespace .Values.configMap.name -}}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace (include "addon-operator.name" .) -}}
{{- $before := dig "metadata" "annotations" "addon-operator/config-map" "" ($deployment | default dict) -}}
{{- $known := printf "kept %s" .Values.configMap.name -}}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" ($found | default dict) -}}
{{- if not $found -}}
{{- ternary "kept" "left" .Values.configMap.create -}}
{{- else if $before -}}
{{- ternary "kept" "left" (eq $before $known) -}}
{{- else -}}
{{- ternary "kept" "left" (eq $owner .Release.Name) -}}
{{- end -}}
{{- end }}
