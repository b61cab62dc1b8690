# The guest's only job, as process 1: run the test binaries one after the other and write on the second serial line
# what came of it: `kernel RELEASE`, what tests skip, `record LINE` where that is renewed, and last `status N`.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/run
. /run/settings
report=/dev/ttyS1
"$BUSYBOX" stty -F "$report" raw 115200
echo "kernel $(uname -r)" >"$report"

# Modules load when they are asked for; depmod's text files are busybox's.
ln -s "$BUSYBOX" /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
# Loaded on demand it would make two devices that no test has asked for.
/run/modprobe ifb numifbs=0
# Two tests that ask for one module at the same time: the second is refused while the first still loads it. Nobody asks for a
# card's, and nobody asks for what shows bridged packets to the rules of IP.
for module in bridge veth sch_ingress cls_bpf virtio_net br_netfilter; do
    /run/modprobe "$module"
done

mkdir -p /dev/pts /dev/shm /run/tmp /run/netns
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up

# Random packets cost an emulated processor a tenth of a second each. What waits for the host's disk waits by its clock.
export SHUNT_RANDOM_PACKETS=100 SHUNT_PATIENCE=3
export TMPDIR=/run/tmp SHUNT_SKIPS="$report" SHUNT_BIN_DIR RUST_BACKTRACE=0
[ -z "$SHUNT_RENEW_BUDGETS" ] || export SHUNT_RENEW_BUDGETS
status=0
run() {
    cd "$1" || status=1
    echo "     Running $2"
    shift
    "$@" || status=1
}
. /run/tests
[ -z "$SHUNT_RENEW_BUDGETS" ] || "$BUSYBOX" sed 's/^/record /' "$RECORD" >"$report"
echo "status $status" >"$report"
"$BUSYBOX" sync
exec "$BUSYBOX" poweroff -f
