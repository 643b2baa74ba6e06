#!/usr/bin/env bash
# newcomer.sh SUITE WHO:TARGET[,TARGET...]...: run the README's commands in a bare Debian, as a new user would.
# Example: newcomer.sh trixie user:demo,test root:demo,quick
#
# SUITE is a release of Debian (bookworm, trixie), with its security updates. The root holds what mmdebstrap calls minbase and the
# three packages that the README names. WHO is "user" (umask 0002, the default of Debian 13) or "root" (umask 0022). Each WHO gets a
# fresh clone of this commit and runs make TARGET there. The root is deleted at the end.
# Needs root, mmdebstrap and unshare. Exit code: 1 if a target failed, 77 if the root cannot be made here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PACKAGES=git,make,python3-venv # as in README.md, "Try it"

cannot() { echo "newcomer.sh: $1" >&2; exit 77; }

[ "$(id -u)" = 0 ] || cannot "needs root"
command -v mmdebstrap unshare >/dev/null || cannot "needs mmdebstrap and unshare: apt install mmdebstrap"
suite=$1
shift

# The archives of this machine's own apt configuration: "SITE COMPONENT", one for packages and one for security updates.
# shellcheck disable=SC2016 # words of apt-get
archive() { # GREP-OPTION...
    apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
        awk '$3 == "main"' | grep "$@" -- -security | awk '!seen++ { print $1 }'
}
main=$(archive -v) security=$(archive || true)
[ -n "$main" ] || cannot "no Debian archive in the apt configuration of this machine"
sources=("deb $main $suite main")
if [ -n "$security" ]; then
    sources+=("deb $security $suite-security main")
else
    echo "newcomer.sh: no archive of security updates in the apt configuration: without them" >&2
fi

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root" "$root.log"' EXIT
chmod 755 "$root"
mmdebstrap --mode=root --variant=minbase --include="$PACKAGES" --aptopt='Acquire::Languages "none"' \
    --aptopt='APT::Sandbox::User "root"' "$suite" "$root" "${sources[@]}" >"$root.log" 2>&1 ||
    { tail -n 3 "$root.log" >&2; cannot "mmdebstrap failed"; }
# how this machine reaches the Python package index: names, certificates, pip's configuration
for file in /etc/resolv.conf /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || install -D -m 644 "$file" "$root$file"
done
git bundle create --quiet "$root/zaudit.bundle" HEAD
chroot "$root" useradd --create-home --shell /bin/bash user
grep -h PRETTY_NAME "$root/etc/os-release"
chroot "$root" python3 -VV

# Its own process numbers, mounts and /proc, so that it sees itself as a machine; the devices are those of this one.
# shellcheck disable=SC2016 # expanded by the inner shell
inside='
    root=$1 who=$2; shift 2
    mount --bind "$root" "$root"; cd "$root"
    mount --rbind /dev dev; mount -t proc proc proc; mount -t sysfs -o ro sysfs sys
    mount -t tmpfs -o mode=1777 tmpfs tmp; mount -t tmpfs tmpfs run
    pivot_root . .; umount -l .  # not a chroot, in which the kernel refuses user namespaces
    if [ "$who" = user ]; then umask 0002; else umask 0022; fi
    exec /usr/sbin/runuser -u "$who" -- "$@"'
enter() { # WHO COMMAND...
    local kept=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb) name
    for name in CI PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_CERT PIP_DEFAULT_TIMEOUT http_proxy https_proxy no_proxy; do [ -z "${!name:-}" ] || kept+=("$name=${!name}"); done
    [ "$1" = root ] && kept+=(HOME=/root) || kept+=(HOME=/home/user)
    env -i "${kept[@]}" unshare --mount --pid --fork --kill-child --propagation private bash -euc "$inside" bash "$root" "$@"
}

failed=0
for each in "$@"; do
    who=${each%%:*}
    enter "$who" sh -ec 'cd; git clone --quiet -c advice.detachedHead=false /zaudit.bundle zaudit'
    for target in $(tr , ' ' <<<"${each#*:}"); do
        printf '== %s, as %s (umask %s): make %s\n' "$suite" "$who" "$(enter "$who" sh -c umask)" "$target"
        start=$SECONDS
        enter "$who" sh -c "cd ~/zaudit && make $target" || { failed=1; echo "FAILED: make $target as $who in $suite"; }
        echo "== make $target: $((SECONDS - start)) s"
    done
    enter "$who" sh -c 'rm -rf ~/zaudit'
done
exit $failed
