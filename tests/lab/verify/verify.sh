# Runs in the guest: one case after the other. Arguments come as files: /lab/cases holds a folder a case, with setup, target,
# arguments and after.
. /lab/state.sh
. /lab/unpack.sh
# $C0, $C1...: SCSI disks; every disk of the guest
for i in $(seq 0 47); do declare "C$i=$BY_ID/scsi-0QEMU_QEMU_HARDDISK_LABSCSI$i"; done
ALL=$(find $BY_ID -name 'nvme-QEMU_NVMe_Ctrl_LABNVME?' -o -name 'scsi-0QEMU_QEMU_HARDDISK_LABSCSI*' ! -name '*-part*')
for plan in /lab/plan-*; do
    name=${plan#/lab/plan-}
    . "$plan" # CASE_SETUP CASE_ARGUMENTS CASE_AFTER
    started=$(date +%s)
    (
        set -e
        eval "$CASE_SETUP"
        set +e
        zaudit verify tank/db --quick --format json -o "out/$name.json" --record "out/$name.tar.gz" $CASE_ARGUMENTS 2>"out/$name.err"
        echo $? >"out/$name.exit"
    ) 2>"out/$name.setup"
    { ls -A /tank/db 2>/dev/null | grep '^\.zaudit' ; zfs list -H -o name 2>/dev/null | grep zaudit- ; ls -A /var/lib/zaudit 2>/dev/null; } >"out/$name.left"
    for i in 0 1 2 3 4; do n=N$i; [ ! -e "${!n}" ] || echo "N$i $(kname "${!n}")"; done >"out/$name.names"
    eval "$CASE_AFTER"
    [ -f /tmp/background ] && { kill "$(cat /tmp/background)"; rm /tmp/background; sleep 1; }
    rmmod refuse_flush 2>/dev/null
    for parameter in zfs_nocacheflush zil_nocacheflush; do param $parameter 0; done
    for disk in $N0 $N1 $N2 $N3; do [ ! -e $disk ] || write_cache "write back" $disk; done
    umount /tank/db 2>/dev/null; zfs mount -a 2>/dev/null
    zpool destroy -f tank || { sleep 3; zpool destroy -f tank; }
    dmsetup remove_all 2>/dev/null
    for disk in $ALL; do wipefs -aq "$disk"* 2>/dev/null; done
    udevadm settle
    echo "$(($(date +%s) - started))" >"out/$name.seconds"
    echo "$name done"
done
