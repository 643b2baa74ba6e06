# Runs in the guest, below a real systemd: a volume that LIO offers, with the unit of Debian's python3-rtslib-fb.
set -euo pipefail
. /lab/state.sh
. /lab/unpack.sh

report() { zaudit check --format "json=out/$1.json" >/dev/null || true; }

modprobe zfs
zpool create tank mirror $N0 $N1
zfs create -V 64M tank/v
zfs create tank/db
udevadm settle
modprobe target_core_mod
modprobe target_core_file
[ -d /sys/kernel/config/target ] || mount -t configfs none /sys/kernel/config
mkdir -p /sys/kernel/config/target/core/fileio_0/db
echo "fd_dev_name=/dev/zvol/tank/v,fd_dev_size=67108864" >/sys/kernel/config/target/core/fileio_0/db/control
echo 1 >/sys/kernel/config/target/core/fileio_0/db/enable
report unsaved

# what targetcli saves
mkdir -p /etc/rtslib-fb-target
cat >/etc/rtslib-fb-target/saveconfig.json <<'EOF'
{"fabric_modules": [], "storage_objects": [{"dev": "/dev/zvol/tank/v", "name": "db", "plugin": "fileio", "size": 67108864}],
 "targets": [{"fabric": "iscsi", "tpgs": [{"enable": true, "luns": [{"index": 0, "storage_object": "/backstores/fileio/db"}],
 "node_acls": [{"chap_password": "chap-secret"}], "portals": []}], "wwn": "iqn.2003-01.org:db"}]}
EOF
cat >/etc/systemd/system/rtslib-fb-targetctl.service <<'EOF'
[Unit]
Description=Restore LIO kernel target configuration
Requires=sys-kernel-config.mount
After=sys-kernel-config.mount network.target local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true

[Install]
WantedBy=multi-user.target
EOF
systemctl daemon-reload
report disabled
systemctl enable -q rtslib-fb-targetctl.service
systemctl daemon-reload
report enabled
zaudit record --output out/recording.tar.gz >/dev/null
