{{/* The pod that serves a node. */}}
{{- define "shunt.run" -}}
terminationGracePeriodSeconds: 30
initContainers:
# Mounts a BPF file system on the node where there is none. Only a privileged container's mounts reach the node.
- name: mount-bpffs
  image: {{ include "shunt.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [mount-bpffs]
  securityContext:
    privileged: true
    readOnlyRootFilesystem: true
    # A container that is privileged runs without a seccomp profile.
    seccompProfile:
      type: Unconfined
  volumeMounts:
  - name: bpffs
    mountPath: /sys/fs/bpf
    mountPropagation: Bidirectional
- name: install-plugin
  image: {{ include "shunt.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
  - install-plugin
  - --bin-dir=/host/bin
  {{- if .Values.plugin.dropIn }}
  - --drop-in
  {{- end }}
  {{- if not .Values.plugin.loopback }}
  - --without-loopback
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
  - name: plugins
    mountPath: /host/bin
containers:
- name: agent
  image: {{ include "shunt.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
  - run
  - --cgroup=/host/cgroup
  - --log-format={{ .Values.agent.logFormat }}
  env:
  - name: RUST_LOG
    value: {{ .Values.agent.log | quote }}
  {{- range $name, $value := .Values.agent.env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  {{- if .Values.monitoring.podMonitor }}
  {{- $metrics := required "monitoring.podMonitor: set agent.config.metrics, as 0.0.0.0:9100" .Values.agent.config.metrics }}
  ports:
  - name: metrics
    containerPort: {{ regexFind "[0-9]+$" $metrics }}
  {{- end }}
  livenessProbe:
    exec:
      command: [shunt-agent, status, --live]
    initialDelaySeconds: 10
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    exec:
      command: [shunt-agent, status, --ready]
    periodSeconds: 5
    timeoutSeconds: 5
  resources: {{- toYaml .Values.agent.resources | nindent 4 }}
  # The agent sets no_new_privs itself: the API server refuses allowPrivilegeEscalation: false beside SYS_ADMIN.
  securityContext:
    privileged: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      # The reasons are in agent/src/privileges.rs; a test keeps the two lists the same.
      add: [NET_ADMIN, SYS_ADMIN, SYS_PTRACE]
    # The runtimes' default profile denies every write below /sys but to cgroups, and pins are such.
    appArmorProfile:
      type: Unconfined
  volumeMounts:
  - name: config
    mountPath: /etc/shunt
    readOnly: true
  - name: bpffs
    mountPath: /sys/fs/bpf
  - name: cgroup
    mountPath: /host/cgroup
    readOnly: true
  - name: netns
    mountPath: /run/netns
    mountPropagation: HostToContainer
  - name: run
    mountPath: /run/shunt
  - name: state
    mountPath: /var/lib/shunt
  - name: leases
    mountPath: /var/lib/cni
  - name: grace-periods
    mountPath: /sys/kernel/rcu_expedited
  {{- if include "shunt.prepares" . }}
  # The kubelet calls by the paths that it is told: they are the node's own.
  - name: kubelet-plugins
    mountPath: {{ .Values.host.kubelet }}/plugins
  - name: kubelet-registry
    mountPath: {{ .Values.host.kubelet }}/plugins_registry
  {{- end }}
  {{- if include "shunt.isNetwork" . }}
  - name: networks
    mountPath: {{ .Values.cluster.confDir }}
  {{- end }}
  {{- if include "shunt.looksAtPlugins" . }}
  - name: plugins
    mountPath: {{ .Values.plugin.binDir }}
    readOnly: true
  {{- end }}
  {{- if include "shunt.asks" . }}
  - name: token
    mountPath: /var/run/secrets/kubernetes.io/serviceaccount
    readOnly: true
  {{- end }}
volumes:
- name: plugins
  hostPath: {path: {{ .Values.plugin.binDir }}, type: DirectoryOrCreate}
- name: config
  configMap: {name: shunt}
# The node's own: pins in a pod's BPF file system would go with the pod.
- name: bpffs
  hostPath: {path: /sys/fs/bpf, type: Directory}
# The node's root: programs on the pod's own cgroup would serve the pod alone.
- name: cgroup
  hostPath: {path: {{ .Values.host.cgroup }}, type: Directory}
- name: netns
  hostPath: {path: /run/netns, type: DirectoryOrCreate}
- name: run
  hostPath: {path: /run/shunt, type: DirectoryOrCreate}
- name: state
  hostPath: {path: /var/lib/shunt, type: DirectoryOrCreate}
- name: leases
  hostPath: {path: /var/lib/cni, type: DirectoryOrCreate}
- name: grace-periods
  hostPath: {path: /sys/kernel/rcu_expedited, type: File}
{{- if include "shunt.prepares" . }}
- name: kubelet-plugins
  hostPath: {path: {{ .Values.host.kubelet }}/plugins, type: DirectoryOrCreate}
- name: kubelet-registry
  hostPath: {path: {{ .Values.host.kubelet }}/plugins_registry, type: DirectoryOrCreate}
{{- end }}
{{- if include "shunt.isNetwork" . }}
- name: networks
  hostPath: {path: {{ .Values.cluster.confDir }}, type: DirectoryOrCreate}
{{- end }}
{{- if include "shunt.asks" . }}
# What the service account's own mount would be, for one container. The token is bound to the pod, and so to the node.
- name: token
  projected:
    sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3607}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}
{{- end }}
