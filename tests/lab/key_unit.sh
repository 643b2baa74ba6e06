# Runs in the guest, below a real systemd: encrypted file systems whose keys zfs create, or zfs load-key, has loaded.
set -euo pipefail
. /lab/state.sh
. /lab/unpack.sh

# mounted NAME: which of the two are
mounted() { zfs get -H -o name,value mounted tank/busy tank/idle | awk '$2 == "yes" { print $1 }' >"out/$1"; }

modprobe zfs
mkdir -p /etc/zfs/zfs-list.cache
touch /etc/zfs/zfs-list.cache/tank
systemctl restart zfs-zed.service
zpool create tank mirror $N0 $N1 log mirror $N2 $N3
for name in busy idle; do
    echo 12345678 | zfs create -o encryption=on -o keyformat=passphrase -o mountpoint=/srv/$name tank/$name
done
sleep 1
zfs set atime=off tank/busy; zfs set atime=off tank/idle # ZED writes the list at such an event
for i in $(seq 60); do [ "$(grep -c '^tank/' /etc/zfs/zfs-list.cache/tank)" -lt 2 ] || break; sleep 1; done
mounted created
exec 7>/srv/busy/open
systemctl daemon-reload
sleep 3
mounted reloaded
zaudit check --format json=out/before.json >/dev/null || true
zfs mount tank/idle
sleep 3
mounted by-hand
exec 7>&-
systemctl daemon-reload
for i in $(seq 60); do mounted closed; [ -s out/closed ] || break; sleep 1; done

# the remedy of the rule
systemctl start zfs-load-key@tank-busy.service zfs-load-key@tank-idle.service
for name in busy idle; do zfs mount tank/$name; done
systemctl daemon-reload
sleep 3
mounted started
zaudit check --format json=out/after.json >/dev/null || true
