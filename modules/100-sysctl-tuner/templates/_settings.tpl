{{- /* One line `name = value` for each setting, sorted by name; settings win over the profile, and the profile over what
follows from the number of nodes. Numbers arrive as
floats, which would print large ones as 1e+06. */ -}}
{{- define "sysctl-tuner.settings" -}}
{{- $tuner := .Values.sysctlTuner -}}
{{- $preset := ($tuner.derived | default dict).preset | default dict -}}
{{- $all := merge (dict) ($tuner.settings | default dict) $preset ($tuner.neighbours | default dict) -}}
{{- range $name := keys $all | sortAlpha }}
{{- $value := get $all $name }}
{{ $name }} = {{ if kindIs "float64" $value }}{{ printf "%.0f" $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end -}}

{{- define "sysctl-tuner.pauseImage" -}}
{{- $tuner := .Values.sysctlTuner -}}
{{- coalesce $tuner.pauseImage ($tuner.derived | default dict).pauseImage "registry.k8s.io/pause:3.10" -}}
{{- end -}}
