#!/bin/bash
# build.sh LINE FOLDER: points and recorder.so for a line of the lab (make lab LINE=2.3), into FOLDER. Prints the release.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
line=$1 to=$2 lab=${ZAUDIT_LAB:-$HOME/.cache/zaudit-lab}
root=$lab/root-$line lib=$lab/root-$line/usr/lib/x86_64-linux-gnu
[ -e "$root/lab-zfs-version" ] || { echo "line $line is not built: make lab LINE=$line" >&2; exit 77; }
release=$(cat "$root/lab-zfs-version")
spl=$lab/src/libspl-$release source=$lab/src/zfs-$release
[ -d "$spl" ] || spl=$source/lib/libspl/include  # of a release that was built from its source
[ -d "$spl" ] || { echo "no headers of OpenZFS $release: make lab LINE=$line" >&2; exit 77; }
command -v gcc >/dev/null || { echo "missing on this host: gcc; apt install gcc libc6-dev" >&2; exit 77; }
mkdir -p "$to"
touch "$to/zfs_config.h"
gcc -w -O1 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -DLIB_ZPOOL_BUILD "-DLINE_${line/./_}" -include "$to/zfs_config.h" -I"$source/include" \
    -I"$spl" -I"$spl/os/linux" -I"$source/include/os/linux/zfs" -I"$to" "$here/points.c" -o "$to/points" \
    "$lib"/libzpool.so.? "$lib"/libnvpair.so.? -Wl,--unresolved-symbols=ignore-in-shared-libs
gcc -Wall -O1 -shared -fPIC "$here/recorder.c" -o "$to/recorder.so"
printf '#!/bin/sh\nexec %s --library-path %s --preload %s %s "$@"\n' "$lib/ld-linux-x86-64.so.2" "$lib" "$to/recorder.so" "$to/points" \
    >"$to/run"
chmod +x "$to/run"
echo "$release"
