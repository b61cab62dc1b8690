#!/bin/sh
# Stands in for systemctl on a node without systemd: one unit, whose process is in a file.
unit=/usr/lib/systemd/system/shunt-agent.service
wanted=/etc/systemd/system/multi-user.target.wants/shunt-agent.service
file=/run/shunt-agent.pid
# What it was asked.
echo "$*" >>/var/log/systemctl.log

alive() {
    [ -f "$file" ] && kill -0 "$(cat "$file")" 2>/dev/null
}

stop() {
    alive || { rm -f "$file" && return 0; }
    kill "$(cat "$file")"
    n=0
    while alive && [ $n -lt 200 ]; do
        sleep 0.05
        n=$((n + 1))
    done
    ! alive && rm -f "$file"
}

# Ends when the agent serves, as for a unit that notifies.
start() {
    alive && return 0
    mkdir -p /var/lib/shunt /run/shunt
    # shellcheck disable=SC2046
    setsid $(sed -n 's/^ExecStart=//p' "$unit") >>/var/log/shunt-agent.log 2>&1 </dev/null &
    echo $! >"$file"
    n=0
    while [ $n -lt 300 ]; do
        shunt-agent status >/dev/null 2>&1 && return 0
        alive || break
        sleep 0.05
        n=$((n + 1))
    done
    rm -f "$file"
    return 1
}

for word; do
    case "$word" in
        -*) ;;
        *) verb=$word && break ;;
    esac
done
case "$verb" in
    start) start ;;
    stop) stop ;;
    restart) stop && start ;;
    try-restart) ! alive || { stop && start; } ;;
    is-active) alive ;;
    is-enabled) [ -L "$wanted" ] && echo enabled || echo disabled ;;
    preset) mkdir -p "$(dirname "$wanted")" && ln -sf "$unit" "$wanted" ;;
    disable) rm -f "$wanted" && rmdir --ignore-fail-on-non-empty "$(dirname "$wanted")" && stop ;;
    daemon-reload | show) ;;
    *) echo "systemctl: $*" >&2 && exit 1 ;;
esac
