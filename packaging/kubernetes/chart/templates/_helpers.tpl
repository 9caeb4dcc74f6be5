{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "gantry.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "gantry.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "gantry.selector" . }}
{{- end -}}

{{- define "gantry.selector" -}}
app.kubernetes.io/name: gantry
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gantry.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "gantry.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "gantry.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* What gantryctl node-setup has as --handlers. */}}
{{- define "gantry.handlers" -}}
{{- $words := list -}}
{{- range .Values.runtimes -}}
{{- $words = append $words (printf "%s=%s:%s" .handler .name (.sandboxer | default "podsandbox")) -}}
{{- end -}}
{{- join "," $words -}}
{{- end -}}
