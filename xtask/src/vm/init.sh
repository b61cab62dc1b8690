#!/bin/busybox sh
# The machine's first program: the host's root, which nobody can write to, becomes the guest's root with a layer of
# memory over it. Whatever goes wrong here ends the machine without a status, which counts as a failure.
set -e
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
. /settings
for module in $MODULES_TO_LOAD; do
    insmod "/modules/$module"
done
mount -t virtiofs -o ro hostroot /lower
mount -t tmpfs tmpfs /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/lower,upperdir=/memory/upper,workdir=/memory/work overlay /top
for directory in proc sys dev; do
    mount --move "/$directory" "/top/$directory"
done
mount -t tmpfs tmpfs /top/run
cp /settings /guest /tests /top/run/
mkdir -p /top/lib/modules
ln -s "$MODULES" "/top/lib/modules/$(uname -r)"
exec switch_root /top /bin/sh /run/guest
