#!/bin/bash
# booted.sh ROOT PACKAGE [OLDER]: what the package does below a real systemd, which is the first process in namespaces of its own:
# install, enable, audit, change during an audit, no module, upgrade with enabled units, remove, purge. (root, unshare, nsenter)
# ROOT is a Debian with systemd, dbus and what the package depends on; it is changed. OLDER is a package to upgrade from. A package
# that is an .rpm is installed by rpm, which ROOT has then; it knows no purge.
# Exit code: 0 all of it, 1 not, 77 where systemd does not start here.
set -euo pipefail
root=$1 package=$2 older=${3:-}
[ "$(id -u)" = 0 ] || { echo "booted.sh: needs root" >&2; exit 77; }

# shellcheck disable=SC2016 # expanded by the inner shell
boot='
    mount --bind "$1" "$1"; cd "$1"
    mount -t proc proc proc; mount -t sysfs -o ro sysfs sys; mkdir -p sys/fs/cgroup; mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs tmpfs run; mount -t tmpfs -o mode=1777 tmpfs tmp; mount -t tmpfs -o mode=755 tmpfs dev
    for each in null zero full random urandom tty; do touch dev/$each; mount --bind /dev/$each dev/$each; done
    mkdir dev/pts dev/shm; mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts; ln -s pts/ptmx dev/ptmx; touch dev/console
    pivot_root . .; umount -l .
    exec env -i container=zaudit PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system'
unshare --mount --pid --fork --kill-child --ipc --uts --cgroup --net --propagation private bash -euc "$boot" bash "$root" >/dev/null 2>&1 &
outer=$!
trap 'kill -KILL $outer 2>/dev/null || true; wait $outer 2>/dev/null || true' EXIT
first=
for _ in $(seq 100); do
    first=$(pgrep -P $outer || true)
    [ -z "$first" ] || [ "$(cat /proc/"$first"/comm)" != systemd ] || break
    sleep 0.2
done
inside() { nsenter -t "$first" -m -p -i -u -C -n -r -w env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
state=
for _ in $(seq 150); do
    state=$(inside systemctl is-system-running 2>/dev/null || true)
    [[ $state =~ running|degraded ]] && break
    sleep 0.2
done
[[ $state =~ running|degraded ]] || { echo "booted.sh: systemd does not start here (${state:-no answer})" >&2; exit 77; }
inside systemctl reset-failed

step() { echo "== $*"; }
wrong() { echo "booted.sh: $*" >&2; exit 1; }
same() { [ "$1" = "$2" ] || wrong "$3: '$1', not '$2'"; } # IS SHOULD WHAT
shown() { inside systemctl show -P "$2" "$1"; }           # UNIT PROPERTY
quiet() { same "$(inside systemctl list-units --failed --plain --no-legend --no-pager 'zaudit*' | wc -l)" 0 "failed units after $1"; }
until_() { # SECONDS WHAT COMMAND...
    local i
    for ((i = 0; i < $1 * 5; i++)); do if inside "${@:3}" >/dev/null 2>&1; then return 0; fi; sleep 0.2; done
    wrong "$2: not within $1 s"
}
case $package in
    *.rpm) add="rpm -U --force --nodeps" remove="rpm -e" purge= ;; # its dependencies are Debian's
    *) add="dpkg -i" remove="dpkg -r" purge="dpkg -P" ;;
esac
# shellcheck disable=SC2086 # the words of a command
install_() { cp "$1" "$root/package" && inside $add /package >/dev/null 2>&1 && rm "$root/package"; }

inside ${purge:-$remove} zaudit >/dev/null 2>&1 || true # of an earlier run
step "install: nothing is on, the folder of reports is there, for root alone"
install_ "${older:-$package}"
for unit in zaudit.timer zaudit.path; do same "$(inside systemctl is-enabled $unit || true)" disabled "$unit"; done
quiet install

step "enable, and upgrade with enabled units"
inside systemctl enable --now zaudit.timer zaudit.path 2>/dev/null
install_ "$package"
for unit in zaudit.timer zaudit.path; do
    same "$(shown $unit ActiveState)" active $unit
    same "$(inside systemctl is-enabled $unit)" enabled $unit
done
for unit in zaudit.timer zaudit.path zaudit.service; do same "$(shown $unit NeedDaemonReload)" no "$unit NeedDaemonReload"; done
same "$(inside stat -c '%a %U' /var/lib/zaudit)" "750 root" /var/lib/zaudit
quiet upgrade

step "an audit without a zfs module: it ends well, and the alert is given"
inside sh -c 'printf "#!/bin/sh\ncp \"\$1\" /var/lib/zaudit/alerted\n" >/etc/zaudit/alert && chmod 755 /etc/zaudit/alert'
inside systemctl start zaudit.service || true
if [ ! -e /sys/module/zfs ]; then
    # what was put into /etc/zaudit starts another audit, while which it is 0
    until_ 300 "exit code 3 without a module" sh -c '[ "$(systemctl show -P ExecMainStatus zaudit.service)" = 3 ]'
    until_ 300 "the alert that there is no report" test -s /var/lib/zaudit/alerted
fi
until_ 300 "the end of all audits" sh -c '
    [ "$(systemctl show -P ActiveState zaudit.service zaudit-soon.timer | tr -d "\n")" = inactiveinactive ]'
until_ 300 "the end of the alert" sh -c '! systemctl is-active --quiet zaudit-alert.service'
quiet "an audit"

step "a change during an audit is audited after it"
inside sh -c 'mkdir -p /run/systemd/system/zaudit.service.d && cat >/run/systemd/system/zaudit.service.d/slow.conf && systemctl daemon-reload' <<'DROP'
[Service]
ExecStart=
ExecStart=/bin/sh -c 'cat /etc/setting >>/var/lib/zaudit/runs; sleep 20'
DROP
inside sh -c 'echo before >/etc/setting; systemctl start --no-block zaudit.service'
until_ 300 "the first audit" test -s /var/lib/zaudit/runs
inside sh -c 'echo after >/etc/setting; systemctl start --no-block zaudit-soon.timer'
until_ 300 "the audit after the change" grep -q after /var/lib/zaudit/runs
same "$(inside cat /var/lib/zaudit/runs | tr '\n' ' ')" "before after " audits
until_ 300 "the end of that audit" sh -c '[ "$(systemctl show -P ActiveState zaudit.service)" = inactive ]'
inside sh -c 'rm -r /run/systemd/system/zaudit.service.d && systemctl daemon-reload'
quiet "a change"

step "remove: no unit goes on or fails, the reports stay"
inside $remove zaudit >/dev/null 2>&1
for unit in zaudit.timer zaudit.path zaudit-soon.timer; do same "$(shown $unit ActiveState)" inactive $unit; done
inside sh -c 'mkdir -p /etc/modprobe.d && touch /etc/modprobe.d/new.conf'
quiet remove
inside test -d /var/lib/zaudit || wrong "the reports are gone before purge"

step "purge: nothing is left"
inside rm /etc/zaudit/alert # which is the site's
[ -z "$purge" ] && inside rm -r /var/lib/zaudit /etc/zaudit || inside $purge zaudit >/dev/null 2>&1
left=$(inside sh -c 'ls -d /var/lib/zaudit /etc/zaudit /usr/share/zaudit /etc/systemd/system/*.wants/zaudit* 2>/dev/null' || true)
same "$left" "" "left after purge"
quiet purge
echo "installed, enabled, upgraded, audited, removed and purged below systemd $(inside systemctl --version | awk 'NR == 1 { print $2 }')"
