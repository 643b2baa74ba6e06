# Runs in the guest, below a real systemd: the units of contrib/systemd and the zedlet beside a pool with sync=disabled.
set -euo pipefail
. /lab/state.sh
. /lab/unpack.sh
REPORT=/var/lib/zaudit/report.json

# audits: how often the service has run; ended NUMBER SECONDS: wait until it has run so often
audits() { journalctl -q -o cat -u zaudit.service JOB_TYPE=start JOB_RESULT=done | grep -c . || true; }
ended() { local i; for i in $(seq "$2"); do [ "$(audits)" -lt "$1" ] || return 0; sleep 1; done; return 1; }

modprobe zfs
zpool create tank mirror $N0 $N1 log mirror $N2 $N3
zfs create -o sync=disabled tank/db
load /tank/db
install -m 644 /lab/zaudit*.service /lab/zaudit*.timer /lab/zaudit.path /etc/systemd/system/
for event in history_event config_sync pool_import; do install /lab/zaudit.sh /etc/zfs/zed.d/$event-zaudit.sh; done
mkdir -p /etc/zaudit
systemctl daemon-reload
systemctl enable -q zaudit.timer zaudit.path
systemctl restart zfs-zed.service
systemctl start zaudit.path
systemctl is-active zfs-zed.service zaudit.path

# what made the trap: inside, the file system of the database cannot be written to
printf '[Service]\nType=oneshot\nProtectSystem=strict\nReadWritePaths=/lab\nExecStart=%s\n' \
    "/bin/sh -c 'grep \" /tank/db \" /proc/self/mountinfo >/lab/out/mounts'" >/etc/systemd/system/sandbox.service
systemctl start sandbox.service

zaudit check --format json=out/beside.json >/dev/null || true
systemctl start zaudit.service
systemctl show zaudit.service -p Result -p ExecMainStatus >out/service
cp $REPORT out/inside.json
stat -c '%a %U' $REPORT /var/lib/zaudit >out/modes

# the zedlet: a property that matters, and many snapshots
sleep 20
BEFORE=$(audits); SINCE=$(cut -d. -f1 /proc/uptime)
zfs set sync=standard tank/db
ended $((BEFORE + 1)) 200 || echo "no audit after the change" >&2
STARTED=$(systemctl show zaudit.service -p ExecMainStartTimestampMonotonic --value)
echo "$((STARTED / 1000000 - SINCE)) $(($(audits) - BEFORE))" >out/changed
cp $REPORT out/after.json
sleep 15
BEFORE=$(audits)
for i in $(seq 200); do zfs snapshot tank/db@$i; done
sleep 40
echo "$(($(audits) - BEFORE))" >out/snapshots
