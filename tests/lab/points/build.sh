#!/bin/bash
# build.sh LINE FOLDER: points and recorder.so for a line of the lab (make lab LINE=2.3), into FOLDER. ZAUDIT_LAB_ZFS_SOURCE: a git
# repository of openzfs/zfs, for the headers of libzpool. Prints the release.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
line=$1 to=$2 root=${ZAUDIT_LAB:-$HOME/.cache/zaudit-lab}/root-$1
[ -e "$root/lab-zfs-version" ] || { echo "line $line is not built: make lab LINE=$line" >&2; exit 77; }
[ -n "${ZAUDIT_LAB_ZFS_SOURCE:-}" ] || { echo "set ZAUDIT_LAB_ZFS_SOURCE to a git repository of openzfs/zfs" >&2; exit 77; }
release=$(cat "$root/lab-zfs-version") lib=$root/usr/lib/x86_64-linux-gnu
mkdir -p "$to/headers"
git -C "$ZAUDIT_LAB_ZFS_SOURCE" archive "zfs-$release" include lib/libspl/include | tar x -C "$to/headers"
cd "$to/headers"
touch include/zfs_config.h
gcc -w -O1 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -DLIB_ZPOOL_BUILD "-DLINE_${line/./_}" -Iinclude -include include/zfs_config.h \
    -Ilib/libspl/include -Ilib/libspl/include/os/linux -Iinclude/os/linux/zfs "$here/points.c" -o "$to/points" \
    "$lib"/libzpool.so.? "$lib"/libnvpair.so.? -Wl,--unresolved-symbols=ignore-in-shared-libs
gcc -Wall -O1 -shared -fPIC "$here/recorder.c" -o "$to/recorder.so"
printf '#!/bin/sh\nexec %s --library-path %s --preload %s %s "$@"\n' "$lib/ld-linux-x86-64.so.2" "$lib" "$to/recorder.so" "$to/points" \
    >"$to/run"
chmod +x "$to/run"
echo "$release"
