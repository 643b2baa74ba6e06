#!/bin/bash
# monitors.sh ROOT: what docs/formats.md prints for NRPE, Nagios and Icinga 2, in these daemons; and the alert rules with promtool, with
# the series that a real node_exporter serves. ROOT is a Debian with them and what zaudit needs; it is changed. (root, unshare)
# Exit code: 0 each says what the report says, 1 not, 77 where one of them is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
wrong() { echo "monitors.sh: $*" >&2; exit 1; }

if [ "${1-}" != --inside ]; then
    for program in nrpe nagios4 icinga2 promtool prometheus-node-exporter python3; do
        chroot "$1" sh -c "PATH=/usr/sbin:/usr/bin command -v $program" >/dev/null || { echo "monitors.sh: no $program" >&2; exit 77; }
    done
    mkdir -p "$1/src"
    # shellcheck disable=SC2016 # expanded by the inner shell
    exec unshare --mount --net --pid --fork --kill-child --propagation private bash -euc '
        python3 -c "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh14x\", b\"lo\", 9))"  # lo up
        mount --bind "$2" "$1/src"; mount -t proc proc "$1/proc"; mount -t tmpfs tmpfs "$1/run"; mount -t tmpfs tmpfs "$1/tmp"
        chmod 1777 "$1/tmp"; mount -t tmpfs tmpfs "$1/dev"
        for each in null zero full random urandom; do touch "$1/dev/$each"; mount --bind /dev/$each "$1/dev/$each"; done
        exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 bash /src/tests/contrib/monitors.sh --inside
    ' bash "$1" "$here"
fi

cd /src
printf '#!/bin/sh\nPYTHONPATH=/src PYTHONDONTWRITEBYTECODE=1 exec python3 -P -m auditor "$@"\n' >/usr/bin/zaudit
chmod 755 /usr/bin/zaudit
block() { # WORDS: the block of the document in which they are
    python3 -c 'import re, sys; print(next(each for each in re.findall(r"(?ms)^```\w*\n(.*?)^```", open("docs/formats.md").read())
                                           if sys.argv[1] in each), end="")' "$1"
}
until_() { # WORDS FILE...: WHAT is in one of the files within a minute
    for _ in $(seq 300); do if grep -qs "$1" "${@:2}"; then return 0; fi; sleep 0.2; done
    wrong "'$1' in none of ${*:2}"
}
zaudit check --replay fixtures/hosts/2.3-sync-disabled-local.zaudit --format json=/run/report.json \
    --format prometheus=/run/zaudit.prom --quiet || [ $? -eq 14 ]
python3 -c 'import datetime, json; found = json.load(open("/run/report.json")); found["taken"] = datetime.datetime.now(datetime.UTC).isoformat(
            timespec="seconds"); json.dump(found, open("/run/zaudit-report.json", "w"))' # of this hour, as the documents ask
chmod 644 /run/zaudit-report.json

echo "== NRPE"
block 'command[check_zaudit]' >/etc/nagios/nrpe.d/zaudit.cfg
install -d -o nagios /run/nagios
nrpe -c /etc/nagios/nrpe.cfg -d
status=0
for _ in $(seq 50); do
    status=0
    /usr/lib/nagios/plugins/check_nrpe -H 127.0.0.1 -c check_zaudit >/run/nrpe || status=$?
    grep -q ^ZAUDIT /run/nrpe && break
    sleep 0.2
done
[ $status -eq 2 ] && grep -q '^ZAUDIT CRITICAL' /run/nrpe || wrong "check_nrpe ended with $status: $(head -n 1 /run/nrpe)"

echo "== Nagios"
install -d -o nagios /run/n /run/n/results
block 'define command' >/run/n/zaudit.cfg
printf 'define host {\n use linux-server\n host_name db1\n address 127.0.0.1\n}\n' >/run/n/host.cfg
cat >/run/n/nagios.cfg <<'END'
log_file=/run/n/log
cfg_file=/etc/nagios4/objects/templates.cfg
cfg_file=/etc/nagios4/objects/commands.cfg
cfg_file=/etc/nagios4/objects/timeperiods.cfg
cfg_file=/etc/nagios4/objects/contacts.cfg
cfg_dir=/etc/nagios-plugins/config
cfg_file=/run/n/host.cfg
cfg_file=/run/n/zaudit.cfg
object_cache_file=/run/n/objects
precached_object_file=/run/n/precached
resource_file=/etc/nagios4/resource.cfg
status_file=/run/n/status
lock_file=/run/n/pid
temp_file=/run/n/temp
temp_path=/tmp
check_result_path=/run/n/results
command_file=/run/n/command
query_socket=/run/n/query
nagios_user=nagios
nagios_group=nagios
status_update_interval=1
interval_length=1
use_syslog=0
END
nagios4 -v /run/n/nagios.cfg >/run/n/check || wrong "Nagios refuses it: $(grep -m 3 Error /run/n/check)"
nagios4 -d /run/n/nagios.cfg
until_ 'plugin_output=ZAUDIT CRITICAL' /run/n/status
sed -n '/^servicestatus/,/}/p' /run/n/status | grep -q 'current_state=2' || wrong "the state in Nagios is not 2"

echo "== Icinga 2"
block 'object CheckCommand' >/etc/icinga2/conf.d/zaudit.conf
rm -f /etc/icinga2/conf.d/services.conf
printf 'object Host "db1" {\n import "generic-host"\n check_command = "dummy"\n vars.zfs = true\n}\n' >/etc/icinga2/conf.d/hosts.conf
install -d -o nagios -g nagios /run/icinga2 /var/log/icinga2 /var/cache/icinga2 /var/lib/icinga2 /run/perfdata
cat >/etc/icinga2/features-enabled/perfdata.conf <<'END'
object PerfdataWriter "perfdata" {
  rotation_interval = 1s
  service_perfdata_path = "/run/perfdata/service"
  service_temp_path = "/run/perfdata/temp-service"
  service_format_template = "STATE $service.state$ $service.output$"
}
END
icinga2 daemon -C >/run/icinga 2>&1 || wrong "Icinga refuses it: $(grep -m 3 -i critical /run/icinga)"
icinga2 daemon >/run/icinga 2>&1 &
for _ in $(seq 300); do cat /run/perfdata/* 2>/dev/null | grep -q 'STATE CRITICAL ZAUDIT CRITICAL' && break; sleep 0.2; done
cat /run/perfdata/* | grep -q 'STATE CRITICAL ZAUDIT CRITICAL' || wrong "no state in Icinga: $(tail -n 2 /run/icinga)"

echo "== Prometheus"
for pool in tank logs; do mkdir -p "/run/proc/spl/kstat/zfs/$pool" && echo ONLINE >"/run/proc/spl/kstat/zfs/$pool/state"; done
prometheus-node-exporter --collector.disable-defaults --collector.zfs --collector.textfile --collector.textfile.directory=/run \
    --path.procfs=/run/proc --web.listen-address=127.0.0.1:9100 2>/run/exporter &
until_ 'Listening on\|address=127' /run/exporter
python3 - <<'END'
import re, urllib.request
text = urllib.request.urlopen("http://127.0.0.1:9100/metrics", timeout=30).read().decode()
open("/run/metrics", "w").write(text)
series = [line.rpartition(" ")[0] for line in text.splitlines() if line and not line.startswith("#")]
assert len(series) == len(set(series)), "a series is there twice"
assert any(each.startswith("zaudit_finding{") for each in series), "none of zaudit"
served = {frozenset(re.findall(r'(state|zpool)="(\w+)"', each)) for each in series if each.startswith("node_zfs_zpool_state")}
rows = re.findall(r"node_zfs_zpool_state\{(.*?)\}", open("contrib/prometheus/zaudit.rules.test.yml").read())
tested = {frozenset(re.findall(r'(state|zpool)="(\w+)"', each)) for each in rows}
assert served <= tested and len(served) >= 12, (served ^ tested)  # 1.5 knows no pool that is suspended
END
promtool check metrics <<<"$(grep -E '^(# (HELP|TYPE) )?zaudit' /run/metrics)" || wrong "promtool refuses the metrics"
promtool check rules contrib/prometheus/zaudit.rules.yml >/run/rules || wrong "$(cat /run/rules)"
promtool test rules contrib/prometheus/zaudit.rules.test.yml >/run/rules || wrong "$(cat /run/rules)"
echo "NRPE, Nagios, Icinga 2 and node_exporter with promtool take what the documents print"
