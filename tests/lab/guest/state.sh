# Sourced by every scenario's setup: names of the disks and small helpers. $N0, $N1... are NVMe disks, $S0... SATA disks.
# NVMe kernel names come up in any order, so that disks are addressed by serial number.
BY_ID=/dev/disk/by-id
for i in 0 1 2 3 4 5; do
    declare "N$i=$BY_ID/nvme-QEMU_NVMe_Ctrl_LABNVME$i" "S$i=$(echo $BY_ID/ata-*_LABSATA$i)"
done

# kname DISK: its kernel name (nvme3n1)
kname() { basename "$(readlink -f "$1")"; }

# param NAME VALUE: a module parameter of zfs, now
param() { echo "$2" >"/sys/module/zfs/parameters/$1"; }

# write_cache "write through"|"write back" DISK...: what the kernel believes of a disk's cache
write_cache() { local mode=$1 disk; shift; for disk; do echo "$mode" >"/sys/block/$(kname "$disk")/queue/write_cache"; done; }

# split DISK SIZE...: partitions of these sizes (0: the rest)
split() {
    local disk=$1 n=0 size; shift
    sgdisk -Z "$disk" >/dev/null
    for size; do n=$((n + 1)); [ "$size" = 0 ] || size=+$size; sgdisk -n "$n:0:$size" "$disk" >/dev/null; done
    udevadm settle
    while [ ! -e "$disk-part$n" ]; do sleep 0.2; done
}

# load FOLDER [MIB]: some data, 40 synchronous writes as a database log makes them, and transaction groups: without
# them the counters of a disk are too young for zaudit to say whether flushes arrive
load() {
    local i
    dd if=/dev/urandom of="$1/bulk" bs=1M count="${2:-16}" status=none
    dd if=/dev/urandom of="$1/log" bs=8k count=40 oflag=dsync status=none
    for i in 1 2 3 4 5; do dd if=/dev/urandom of="$1/group" bs=64k count=8 status=none; zpool sync; done
}

# groups POOL N: N transaction groups with data
groups() { local i; for i in $(seq "$2"); do dd if=/dev/urandom of="/$1/db/group" bs=64k count=8 status=none; zpool sync "$1"; done; }

# fill POOL PERCENT: files of zeros (the data set must not compress) until the pool is so full
fill() {
    local i cap mib
    for i in $(seq 400); do
        cap=$(zpool list -Hpo cap "$1")
        [ "$cap" -lt "$2" ] || return 0
        if [ $((cap + 4)) -lt "$2" ]; then mib=80; else mib=12; fi
        dd if=/dev/zero of="/$1/db/fill$i" bs=1M count=$mib status=none || return 1
        zpool sync "$1"
    done
}

# damage DISK SKIP_MIB COUNT_MIB: overwrite a part of the first partition
damage() { dd if=/dev/urandom of="$1-part1" bs=1M seek="$2" count="$3" conv=notrunc,fsync status=none; }
