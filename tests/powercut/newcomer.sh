#!/bin/sh
# What docs/powercut.md prints, by somebody new: two machines (network namespaces), the zipapp on both, the witness as nobody.
# The host "boots" by another boot_id, and its drive counts. Needs root. Usage: tests/powercut/newcomer.sh ZAUDIT.PYZ
set -eu
pyz=$(realpath "$1")
python=${PYTHON:-/usr/bin/python3} # 3.11 or later, which everybody may run
top=$(mktemp -d)
chmod 755 "$top"
ip netns add zaudit-host
ip netns add zaudit-witness
trap 'kill "$witness" 2>/dev/null || true; ip netns del zaudit-host; ip netns del zaudit-witness; rm -rf "$top"' EXIT
ip link add zh type veth peer name zw
ip link set zh netns zaudit-host
ip link set zw netns zaudit-witness
ip -n zaudit-host addr add 192.0.2.1/24 dev zh
ip -n zaudit-witness addr add 192.0.2.2/24 dev zw
for each in host:zh witness:zw; do
    ip -n "zaudit-${each%:*}" link set lo up
    ip -n "zaudit-${each%:*}" link set "${each#*:}" up
done

mkdir "$top/lib" "$top/sbin" "$top/data" "$top/witness"
cp "$pyz" "$top/zaudit.pyz"
chmod 644 "$top/zaudit.pyz"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$top/key"
cp "$top/key" "$top/witness/key"
chmod 600 "$top/key" "$top/witness/key"
chown -R nobody "$top/witness"
printf '#!/bin/sh\ncat %s\n' "$top/counters" > "$top/sbin/smartctl"
chmod 755 "$top/sbin/smartctl"

boot() { # boot NUMBER
    echo "boot-$1" > "$top/boot"
    printf '{"power_cycle_count": %s, "model_name": "MODEL", "serial_number": "S1"}' "$1" > "$top/counters"
}

on_host() {
    ip netns exec zaudit-host unshare -m --propagation private sh -c '
        mount --bind "$1/lib" /var/lib && mount --bind "$1/sbin" /usr/local/sbin
        mount --bind "$1/boot" /proc/sys/kernel/random/boot_id
        top=$1; shift; exec "$0" "$top/zaudit.pyz" powercut "$@"' "$python" "$top" "$@"
}

boot 1
cd "$top/witness"
ip netns exec zaudit-witness setpriv --reuid nobody --regid nogroup --clear-groups \
    $python "$top/zaudit.pyz" powercut witness --key key 2> "$top/witness.log" &
witness=$!
on_host plan "$top/data" || true
sleep 3
(on_host start "$top/data" --witness 192.0.2.2 --key "$top/key" 2> "$top/start.log") &
for _ in $(seq 600); do
    grep -q 'writes to' "$top/start.log" 2>/dev/null && break
    sleep 0.1
done
sleep 2
ip netns pids zaudit-host | xargs -r kill -9 # the power is gone
boot 2
code=0
on_host check > "$top/check.out" || code=$?
cat "$top/check.out"
test "$code" = 10
grep -q 'power cycles 1 to 2' "$top/check.out"
grep -q 'nothing lost' "$top/check.out"
code=0
setpriv --reuid nobody --regid nogroup --clear-groups $python "$top/zaudit.pyz" powercut report cuts > "$top/report.out" || code=$?
test "$code" = 10
diff "$top/check.out" "$top/report.out"
echo "five commands, one cut: as printed"
