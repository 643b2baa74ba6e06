#!/bin/sh
# Builds the package twice in a fresh Debian, compares, installs, runs its tests and lintian, removes it; then what it does
# below a real systemd (booted.sh), where that starts here (root, mmdebstrap):
#     contrib/debian/try.sh bookworm /tmp/packages [CHROOT, made where it is missing]
set -eu
suite=$1 out=$2 root=${3:-$(mktemp -d)/chroot}
cd "$(dirname "$0")/../.."
packages=debhelper,lintian,$(sed -n 's/^Build-Depends: //p' contrib/debian/control | sed 's/debhelper-compat ([^)]*), *//; s/ ([^)]*)//g; s/ //g; s/dh-sequence-python3/dh-python/')
[ -d "$root/usr" ] || mmdebstrap --variant=buildd --include="$packages,systemd,dbus" "$suite" "$root" >&2
rm -rf "$root/src" "$root/out"
mkdir -p "$root/src"
git archive HEAD | tar -x -C "$root/src"
git archive --format=tar --prefix="zaudit-$(sed -n '1s/.*(\(.*\)-.*/\1/p' contrib/debian/changelog)/" HEAD | gzip -9n >"$root/src.tar.gz"
inside() { chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
for build in first second; do
    inside sh -eu -c '
        version=$(sed -n "1s/.*(\(.*\)-.*/\1/p" /src/contrib/debian/changelog)
        rm -rf /work.$1 && mkdir -p /work.$1 /out/$1 && cd /work.$1
        cp /src.tar.gz zaudit_$version.orig.tar.gz
        tar -xf zaudit_$version.orig.tar.gz && cd zaudit-$version && cp -r contrib/debian debian && rm debian/*.sh
        dpkg-buildpackage --no-sign >/out/$1/log 2>&1 || { tail -n 30 /out/$1/log; exit 1; }
        mv ../zaudit_* /out/$1/' sh "$build"
done
(cd "$root/out/first" && sha256sum ./*.deb ./*.debian.tar.* ./*.dsc) >"$root/out/sums"
(cd "$root/out/second" && sha256sum --check ../sums)
inside sh -eu -c '
    lintian --info --pedantic --fail-on error,warning,info /out/first/*.changes
    apt-get install -y -qq /out/first/*.deb >/dev/null
    cd /src && zaudit --version && contrib/debian/tests/replay
    cd / && python3 -c "import auditor" 2>/dev/null && { echo "the modules are not private" >&2; exit 1; }
    dpkg --verify zaudit
    apt-get purge -y -qq zaudit >/dev/null 2>&1
    [ ! -e /usr/share/zaudit ] && [ ! -e /etc/zaudit ]'
status=0
contrib/debian/booted.sh "$root" "$(ls "$root"/out/first/zaudit_*_all.deb)" || status=$?
[ $status -eq 77 ] || [ $status -eq 0 ] || exit $status
mkdir -p "$out/$suite"
cp "$root"/out/first/zaudit_* "$out/$suite/"
echo "$suite: built twice, the same; installed, tried, removed"
