#!/bin/bash
# module.sh KERNEL: build refuse_flush.ko for the kernel of a guest with the lab's builder of that kernel (tests/lab/build.sh),
# into ${ZAUDIT_LAB:-~/.cache/zaudit-lab}/modules/refuse_flush-KERNEL.ko. Needs root (chroot).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB=${ZAUDIT_LAB:-$HOME/.cache/zaudit-lab} kernel=$1
folder=usr/src/refuse_flush builder=$LAB/builder-$kernel
rm -rf "${builder:?}/$folder"; mkdir -p "$builder/$folder"
cp "$HERE/refuse_flush.c" "$builder/$folder/"
echo 'obj-m := refuse_flush.o' >"$builder/$folder/Makefile"
unshare --mount sh -euc 'mount -t proc proc "$1/proc"; exec chroot "$1" make -C "/lib/modules/$2/build" M="/$3" modules' - \
    "$builder" "$kernel" "$folder"
mv "$builder/$folder/refuse_flush.ko" "$LAB/modules/refuse_flush-$kernel.ko"
rm -rf "${builder:?}/$folder"
