# Runs in the guest: one cause after the other. /lab/plan-NUMBER-NAME holds CASE_SETUP and CASE_LOAD, bash each.
. /lab/state.sh
. /lab/unpack.sh
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
T=/sys/kernel/tracing
ALL=$(find $BY_ID -name 'nvme-QEMU_NVMe_Ctrl_LABNVME?')
modprobe dm-delay

# delayed NAME DISK READ_MS WRITE_MS FLUSH_MS: /dev/mapper/NAME
delayed() { local n; n=$(blockdev --getsz "$2"); dmsetup create "$1" --table "0 $n delay $2 0 $3 $2 0 $4 $2 0 $5"; udevadm settle; }

# retable NAME TARGET...: another table for it, at once
retable() { local n to=$1; shift; n=$(blockdev --getsz "/dev/mapper/$to"); dmsetup reload "$to" --table "0 $n $*"; dmsetup suspend --noflush "$to"; dmsetup resume "$to"; }

# load NAME WORDS...: a load of load.py in the background; what it measured goes to out/
load() { local to=$1; shift; nice -n "${NICE:-0}" python3 /lab/load.py "$@" >"/lab/out/$NAME.load-$to" 2>&1 & LOADS="$LOADS $!"; }

# grouped CGROUP: the last load is in it from now on, as docker and libvirt name those of their containers and guests
grouped() {
    mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
    mkdir -p "/sys/fs/cgroup/$1"; echo "${LOADS##* }" >"/sys/fs/cgroup/$1/cgroup.procs"
}

# again COMMAND: over and over, in the background
again() { (while :; do eval "$1"; done) >/dev/null 2>&1 & LOADS="$LOADS $!"; }

# set_param NAME VALUE: a module parameter of zfs, until this cause is over
set_param() { PARAMS="$PARAMS $1=$(cat "/sys/module/zfs/parameters/$1")"; param "$1" "$2"; }

tidy() {
    cat $T/kprobe_events $T/synthetic_events; ls $T/instances
}

for plan in /lab/plan-*; do
    NAME=${plan#/lab/plan-}
    . "$plan"
    LOADS= PARAMS=
    started=$(date +%s)
    {
        eval "$CASE_SETUP"
        eval "$CASE_LOAD"
        sleep 2
        eval "${CASE_DIAGNOSE:-zaudit diagnose tank --seconds 12 --record out/$NAME.tar.gz}" >"out/$NAME.report" 2>"out/$NAME.err"
        echo $? >"out/$NAME.exit"
    } 2>"out/$NAME.setup"
    tidy >"out/$NAME.left" 2>&1
    for i in 0 1 2 3 4; do n=N$i; echo "N$i $(kname "${!n}")"; done >"out/$NAME.names"
    [ -z "$LOADS" ] || { kill $LOADS; wait $LOADS; }
    eval "${CASE_AFTER:-}"
    for each in $PARAMS; do param "${each%%=*}" "${each#*=}"; done
    zpool destroy -f tank || { sleep 3; zpool destroy -f tank; }
    dmsetup remove_all 2>/dev/null
    for disk in $ALL; do wipefs -aq "$disk"* 2>/dev/null; done
    udevadm settle
    echo "$(($(date +%s) - started))" >"out/$NAME.seconds"
    echo "$NAME done"
done
