#!/bin/bash
# states.c on one line of the lab: tests/lab/states/run.sh OPENZFS LINE, with a clone of openzfs/zfs. Prints rows of states.tsv.
# A row: release, layout, state, the event, files that are gone at import, how it imports, records acknowledged, records left.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
openzfs=$1 line=$2
root=$HOME/.cache/zaudit-lab/root-$line lib=$HOME/.cache/zaudit-lab/root-$line/usr/lib/x86_64-linux-gnu
release=$(sed -n '/^Package: zfsutils-linux$/,/^$/s/^Version: \([0-9.]*\).*/\1/p' "$root/var/lib/dpkg/status")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
git -C "$openzfs" archive "zfs-$release" include lib/libspl/include | tar x
touch include/zfs_config.h
gcc -w -O1 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -DLIB_ZPOOL_BUILD "-DLINE_${line/./_}" -Iinclude -include include/zfs_config.h \
    -Ilib/libspl/include -Ilib/libspl/include/os/linux -Iinclude/os/linux/zfs "$here/states.c" -o states \
    "$lib"/libzpool.so.? "$lib"/libnvpair.so.? -Wl,--unresolved-symbols=ignore-all
states() { "$lib/ld-linux-x86-64.so.2" --library-path "$lib" ./states "$@" 2>/dev/null; }
while read -r layout state event gone; do
    rm -rf pool kept
    mkdir pool
    restart=$([ "$event" = restart ] && echo restart || true)
    acknowledged=$(states write "$work/pool" "$layout" "$state" $restart | tail -n 1)
    for file in ${gone//,/ }; do [ "$file" = none ] || rm "pool/$file"; done
    cp -r pool kept
    left=0 how=failed
    for try in plain -m; do
        if [ "$how" = failed ] && found=$(states check "$work/pool" "$try" | tail -n 1) && [ -n "$found" ]; then
            left=$found how=$try
        fi
        rm -rf pool
        cp -r kept pool
    done
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$release" "$layout" "$state" "$event" "$gone" "$how" "$acknowledged" "$left"
done <<'ROWS'
log-mirror nothing crash none
log-mirror nothing power+log l0
log-mirror nothing power+drive d0
log-mirror nothing crash l0,l1
log-one nothing power+log l0
log-striped nothing power+log l0
log-mirror one-offline crash none
log-mirror one-offline power+log l1
log-one attached power+log l0
log-mirror offline crash none
log-mirror offline restart none
log-mirror forced crash none
log-mirror forced restart none
log-mirror removed crash l0,l1
log-mirror removed restart l0,l1
log-mirror faulted crash none
log-mirror faulted crash l0,l1
log-mirror faulted restart l0,l1
log-one offline crash none
log-one offline power+log l0
log-one forced crash none
log-one forced power+log l0
log-one removed crash l0
log-one removed restart l0
log-one faulted crash l0
mirror one-offline crash none
mirror one-offline power+drive d1
one attached crash none
one attached power+drive d0
raidz1 one-offline crash none
raidz1 one-offline power+drive d1
raidz2 one-offline power+drive d1
ROWS
