{{/* The pod that takes shunt off a node: among the node's own files and processes, as an administrator would. */}}
{{- define "shunt.uninstall" -}}
initContainers:
- name: uninstall
  image: {{ include "shunt.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
  - uninstall
  - --on-host
  - --bin-dir={{ .Values.plugin.binDir }}
  - --conf-dir={{ .Values.cluster.confDir }}
  {{- /* Removed if an agent has written it, whatever the values say by now. */}}
  - --conflist={{ .Values.cluster.confDir }}/{{ .Values.cluster.conflist }}
  {{- if .Values.uninstallForce }}
  - --force
  {{- end }}
  securityContext:
    privileged: true
    readOnlyRootFilesystem: true
    seccompProfile:
      type: Unconfined
containers:
# A pod that has done its work waits here: its DaemonSet would start one that ends again.
- name: done
  image: {{ include "shunt.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [idle]
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
{{- end }}
