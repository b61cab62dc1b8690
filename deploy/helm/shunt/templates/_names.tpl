{{/* One agent serves a node, so there is one installation in a cluster, under one name. */}}
{{- define "shunt.labels" -}}
app.kubernetes.io/name: shunt
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Of the Prometheus operator's objects. */}}
{{- define "shunt.monitoringLabels" -}}
{{ include "shunt.labels" . }}
{{- with .Values.monitoring.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "shunt.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Whether anything is asked of the API server. */}}
{{- define "shunt.publishes" -}}
{{- if and (ne .Values.kubernetes.publish "off") (not .Values.uninstall) }}yes{{ end }}
{{- end }}

{{/* Whether the agent is the cluster's network. */}}
{{- define "shunt.isNetwork" -}}
{{- if and .Values.cluster.enabled (not .Values.uninstall) }}yes{{ end }}
{{- end }}

{{/* Whether the agent asks the API server for anything, and so needs rights and a token. */}}
{{- define "shunt.asks" -}}
{{- if or (include "shunt.publishes" .) (include "shunt.isNetwork" .) }}yes{{ end }}
{{- end }}

{{/* Whether ADDs are admitted by the free bandwidth. */}}
{{- define "shunt.admits" -}}
{{- if has .Values.agent.config.admission (list "warn" "enforce") }}yes{{ end }}
{{- end }}

{{/* Whether CNI is served. Values that are kept from an earlier chart say nothing of it. */}}
{{- define "shunt.serves" -}}
{{- if dig "enabled" true (default dict .Values.service) }}yes{{ end }}
{{- end }}

{{/* Whether the node's other plugins are looked at, or called. */}}
{{- define "shunt.looksAtPlugins" -}}
{{- if or (include "shunt.isNetwork" .) (include "shunt.serves" .) }}yes{{ end }}
{{- end }}

{{/* Whether claims are prepared for the kubelet. */}}
{{- define "shunt.prepares" -}}
{{- if and (include "shunt.publishes" .) .Values.kubernetes.claims (ne .Values.kubernetes.publish "node") }}yes{{ end }}
{{- end }}

{{/* The agent's configuration file. Helm's numbers are floating, and some keys are whole numbers; one may be a word. */}}
{{- define "shunt.agentToml" -}}
{{- $config := deepCopy .Values.agent.config -}}
{{- range $key := list "max_flows" "max_flows_per_container" "mark_mask" "big_tcp" -}}
{{- with get $config $key -}}
{{- if not (kindIs "string" .) -}}
{{- $config = set $config $key (int64 .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if ne .Values.kubernetes.publish "off" -}}
{{- $kubernetes := dict "publish" .Values.kubernetes.publish -}}
{{- if include "shunt.prepares" . -}}
{{- $kubernetes = set $kubernetes "kubelet_root" .Values.host.kubelet -}}
{{- else -}}
{{- $kubernetes = set $kubernetes "dra" false -}}
{{- end -}}
{{- $config = set $config "kubernetes" $kubernetes -}}
{{- end -}}
{{- if include "shunt.serves" . -}}
{{- $config = set $config "api" (dict "cni_path" (list .Values.plugin.binDir)) -}}
{{- end -}}
{{- if include "shunt.isNetwork" . -}}
{{- with .Values.cluster -}}
{{- $conflist := printf "%s/%s" .confDir .conflist -}}
{{- $cluster := dict "enabled" true "routes" .routes "conflist" $conflist "cni_bin_dir" $.Values.plugin.binDir -}}
{{- with .podCidrs -}}
{{- $cluster = set $cluster "pod_cidrs" . -}}
{{- end -}}
{{- with .vxlan -}}
{{- $cluster = set $cluster "vxlan" . -}}
{{- end -}}
{{- $config = set $config "cluster" $cluster -}}
{{- end -}}
{{- end -}}
{{ toToml $config | trim }}
{{- end }}
