# Sourced by every scenario's setup: names of the disks and small helpers. $N0, $N1... are NVMe disks, $S0... SATA disks,
# $V0... virtio-blk disks.
# NVMe kernel names come up in any order, so that disks are addressed by serial number.
BY_ID=/dev/disk/by-id
for i in 0 1 2 3 4 5; do
    declare "N$i=$BY_ID/nvme-QEMU_NVMe_Ctrl_LABNVME$i" "S$i=$(echo $BY_ID/ata-*_LABSATA$i)" "V$i=$BY_ID/virtio-LABVBLK$i"
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

# groups POOL N [FILE]: N transaction groups with data
groups() { local i; for i in $(seq "$2"); do dd if=/dev/urandom of="/$1/db/${3:-group}" bs=64k count=8 status=none; zpool sync "$1"; done; }

# resilvered POOL: wait until a resilver that was just asked for is over; zpool wait does not wait for it to begin
resilvered() { sleep 1; zpool sync "$1"; zpool wait -t resilver "$1"; zpool sync "$1"; }

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

# as USER COMMAND...: run it as that user, with the environment that a unit of systemd would give it
as() {
    local user=$1 home; shift
    home=$(getent passwd "$user" | cut -d: -f6)
    setpriv --reuid="$user" --regid="$user" --init-groups env -i HOME="$home" USER="$user" LOGNAME="$user" PATH="$PATH" LC_ALL=C "$@"
}

# postgres_at DATA [WAL]: a PostgreSQL of Debian's package whose data and WAL lie there; its files are those of Debian's
# layout. What is appended to $PG_CONF before postgres_start is in force. It listens on /run/postgresql and 127.0.0.1.
PG_BIN=$(echo /usr/lib/postgresql/*/bin)
PG_CONF=/etc/postgresql/lab/main/postgresql.conf
postgres_at() {
    local data=$1 wal=${2:-}
    [ -x "$PG_BIN/postgres" ] || { echo "NOT RUN: this guest has no PostgreSQL" >&2; exit 77; }
    mkdir -p "$data" $wal /etc/postgresql/lab/main/conf.d /run/postgresql /var/log/postgresql
    chown postgres:postgres "$data" $wal /run/postgresql /var/log/postgresql; chmod 700 "$data" $wal
    as postgres "$PG_BIN/initdb" -A trust -N -D "$data/main" ${wal:+-X "$wal/main"} >/var/log/postgresql/initdb.log
    mv "$data/main/postgresql.conf" "$PG_CONF"; mv "$data/main/pg_hba.conf" "$data/main/pg_ident.conf" /etc/postgresql/lab/main/
    printf "data_directory = '%s'\nhba_file = '%s'\nident_file = '%s'\nlisten_addresses = '127.0.0.1'\n%s\n" "$data/main" \
        /etc/postgresql/lab/main/pg_hba.conf /etc/postgresql/lab/main/pg_ident.conf \
        "unix_socket_directories = '/run/postgresql'
shared_buffers = 16MB
include_dir = 'conf.d'" >>"$PG_CONF"
    chown -R postgres:postgres /etc/postgresql/lab
    PG_DATA=$data/main
}
postgres_start() {
    (cd / && exec setsid -f setpriv --reuid=postgres --regid=postgres --init-groups env -i HOME=/var/lib/postgresql LC_ALL=C \
        "$PG_BIN/postgres" -D "$PG_DATA" -c config_file="$PG_CONF" >/var/log/postgresql/lab.log 2>&1 </dev/null)
    for i in $(seq 150); do ! sql 'SELECT 1' >/dev/null 2>&1 || return 0; sleep 0.2; done
    cat /var/log/postgresql/lab.log >&2; return 1
}
postgres_stop() { as postgres "$PG_BIN/pg_ctl" stop -w -m fast -D "$1"; }
sql() { as postgres psql -XqAt -v ON_ERROR_STOP=1 -h /run/postgresql postgres -c "$1"; }

# mariadb_at DATA [OPTION...]: a MariaDB of Debian's package; options go to a file of their own in /etc/mysql/conf.d
mariadb_at() {
    local data=$1; shift
    command -v mariadbd >/dev/null || { echo "NOT RUN: this guest has no MariaDB" >&2; exit 77; }
    mkdir -p "$data" /run/mysqld; chown mysql:mysql "$data" /run/mysqld
    { echo '[mysqld]'; echo "datadir = $data"; for option; do echo "$option"; done; } >/etc/mysql/conf.d/lab.cnf
    as mysql mariadb-install-db --datadir="$data" --skip-test-db >/var/log/mariadb-install.log 2>&1 || { cat /var/log/mariadb-install.log >&2; return 1; }
    mariadb_start
}
mariadb_start() {
    (cd / && exec setsid -f setpriv --reuid=mysql --regid=mysql --init-groups env -i HOME=/nonexistent LC_ALL=C \
        /usr/sbin/mariadbd >/var/log/mariadb-lab.log 2>&1 </dev/null)
    for i in $(seq 300); do ! mariadb -e 'SELECT 1' >/dev/null 2>&1 || return 0; sleep 0.2; done
    cat /var/log/mariadb-lab.log >&2; return 1
}
mariadb_stop() { mariadb-admin shutdown; while pgrep -x mariadbd >/dev/null; do sleep 0.2; done; }
