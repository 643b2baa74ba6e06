#!/bin/bash
# build.sh [LINE...]: build the guests of the lab (OpenZFS lines 2.1, 2.2, 2.3, 2.4; all by default) from Debian's packages.
# build.sh --check [LINE...]: build nothing; exit code 1 and one sentence where this host cannot build them.
# Line 2.2 is in no suite of Debian that is here: it is built from OpenZFS's own source, which ZAUDIT_LAB_ZFS_SOURCE names: a git
# repository (a folder or an address), of which the newest tag of the line is taken, or a folder with a release that was unpacked.
# Without it "all" is the other lines.
#
# A step whose result exists is skipped; a result appears under its final name only when it is complete. Below the cache,
# ${ZAUDIT_LAB:-~/.cache/zaudit-lab}:
#   qemu/                QEMU of Debian 13, unpacked, not installed (only where this host has no QEMU >= 9)
#   root-LINE/           the system of a guest: kernel, OpenZFS, the tools that zaudit calls, databases, a server of ssh
#   src/zfs-VERSION/     the source of the kernel modules: from the package zfs-dkms of that same root, or the whole release
#   src/libspl-VERSION/  headers of user space that zfs-dkms lacks: what is compiled against libzpool needs them (points/)
#   builder-KERNEL/      compiler, dkms and the kernel headers
#   modules/ZFS-KERNEL/  the kernel modules, built by dkms
#   img/LINE/            what is booted: vmlinuz, initrd.cpio, root.img, versions
# Needs root (chroots, device nodes). ZAUDIT_LAB_MIRROR=URL replaces the Debian mirror of the machine's apt configuration.
set -euo pipefail
umask 022
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB=${ZAUDIT_LAB:-$HOME/.cache/zaudit-lab}
ZFS=zfsutils-linux,zfs-zed,python3-pyzfs
# of a line that is built from source: what its commands need, and what compiles them beside the kernel's own needs
NEEDS=libtirpc3,libblkid1,libuuid1,libudev1,libssl3,zlib1g,python3-cffi,python3-setuptools
COMPILES="autoconf automake libtool gettext g++ uuid-dev libblkid-dev libudev-dev libssl-dev zlib1g-dev libtirpc-dev libffi-dev
 python3-dev python3-cffi python3-setuptools python3-packaging"
TOOLS=python3,python3-pyudev,nvme-cli,smartmontools,hdparm,sg3-utils,fio,sysstat,strace,mdadm
TOOLS+=,cryptsetup-bin,lvm2,systemd-sysv,udev,kmod,procps,fdisk,gdisk,e2fsprogs,dmsetup,xz-utils,zstd,busybox-static,sqlite3
DATABASES="postgresql mariadb-server python3-psycopg python3-pymysql"  # sqlite3 comes with TOOLS
SSH=openssh-server  # for Ansible alone (ansible.py); no guest starts it by itself
# zfs-zed depends on zfs-dkms: the source of the modules arrives with the commands, in the same version
PIN='Package: zfs* libzfs* libzpool* libnvpair* libuutil* python3-pyzfs\nPin: release n=*-backports\nPin-Priority: 900\n'

die() { echo "build.sh: $*" >&2; exit 1; }

check_host() {
    local missing=() tool
    for tool in mmdebstrap mke2fs xz unshare chroot python3 apt-get; do command -v "$tool" >/dev/null || missing+=("$tool"); done
    [ ${#missing[@]} -eq 0 ] || die "missing on this host: ${missing[*]}; apt install mmdebstrap e2fsprogs xz-utils util-linux python3"
    [ "$(id -u)" -eq 0 ] || die "needs root, to make device nodes and chroots: sudo make lab"
    [ "$(uname -m)" = x86_64 ] || die "only on x86_64 hosts"
    [ -n "${ZAUDIT_LAB_MIRROR:-}" ] || grep -qx 'ID=debian' /etc/os-release ||
        die "this host is not Debian: set ZAUDIT_LAB_MIRROR to the URL of a Debian archive"
    unshare --mount true 2>/dev/null || die "this machine does not permit mount namespaces (a container without CAP_SYS_ADMIN?)"
}

# The Debian archive that this machine itself uses; the suites of the guests hang off the same site.
find_mirror() {
    apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
        awk 'NF > 1 && $NF == "main" && $0 !~ /-security/ && !seen++ { print $1 }'
}

# step LABEL FUNCTION ARGS...: run with a log, print the seconds, stop with the end of the log when it fails
step() {
    local label=$1 start=$SECONDS status log; shift
    log=$LAB/log/$label.log
    set +e; (set -e; "$@") >"$log" 2>&1; status=$?; set -e
    [ $status -eq 0 ] || { tail -n 30 "$log" >&2; die "$label failed (exit $status), log: $log"; }
    printf '%-48s %4d s\n' "$label" $((SECONDS - start))
}

# debian DIR SUITE VARIANT PACKAGES [mmdebstrap option...]
debian() {
    local dir=$1 suite=$2 variant=$3 packages=$4 sources; shift 4
    sources=("deb $MIRROR $suite main contrib")
    if [ -n "${BACKPORTS:-}" ]; then sources+=("deb $MIRROR $suite-backports main contrib"); fi
    rm -rf --one-file-system "$dir.part"
    # a mount namespace of its own: nothing stays mounted after an interruption. INITRD=No: update-initramfs does nothing
    INITRD=No unshare --mount mmdebstrap --mode=root --variant="$variant" --format=directory --include="$packages" \
        --skip=check/empty --aptopt='Acquire::Languages "none"' --aptopt='APT::Sandbox::User "root"' \
        --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        "$@" "$suite" "$dir.part" "${sources[@]}"
}

build_qemu() {
    debian "$LAB/qemu" trixie extract qemu-system-x86
    mv "$LAB/qemu.part" "$LAB/qemu"
}

build_root() {
    local line=$1 suite=$2 root=$LAB/root-$1.part source zfs=$ZFS
    if from_source "$line"; then zfs=$NEEDS; fi
    debian "$LAB/root-$line" "$suite" minbase "linux-image-cloud-amd64,$zfs,$TOOLS" \
        --setup-hook="mkdir -p \"\$1/etc/apt/preferences.d\"; printf '$PIN' >\"\$1/etc/apt/preferences.d/lab\""
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
    if ! from_source "$line"; then
        source=$(basename "$root"/usr/src/zfs-*)
        [[ $source == zfs-$line.* ]] || die "Debian now has $source where line $line was"
        rm -rf "$LAB/src/$source"; mkdir -p "$LAB/src"; mv "$root/usr/src/$source" "$LAB/src/"
        rm -rf "$root/var/lib/dkms/zfs"
        echo "${source#zfs-}" >"$root/lab-zfs-version"
    fi
    mv "$root" "$LAB/root-$line"
}

# build_headers LINE VERSION: only of the version that the root has
build_headers() {
    local root=$LAB/root-$1 out=$LAB/src/libspl-$2 work
    work=$(mktemp -d "$root/tmp/headers.XXXX")
    unshare --mount sh -euc '
        mount --rbind /dev "$1/dev"; cp /etc/resolv.conf "$1/etc/resolv.conf"
        chroot "$1" apt-get -o APT::Sandbox::User=root -qq update
        chroot "$1" sh -euc "cd $3; apt-get -o APT::Sandbox::User=root -q download libzfslinux-dev=$2\*"
        rm -rf "$1"/var/lib/apt/lists/*' - "$root" "$2" "${work#"$root"}"
    dpkg-deb -x "$work"/libzfslinux-dev_*.deb "$work"
    rm -rf "$out"; mv "$work/usr/include/libspl" "$out"
    rm -rf "$work"
    [ -d "$out" ]  # where a failure is no end, bash goes on
}

from_source() { [ "$1" = 2.2 ]; }

# available LINE: was it built before, or is there what it is built from?
available() { ! from_source "$1" || [ -e "$LAB/root-$1/lab-zfs-version" ] || [ -n "${ZAUDIT_LAB_ZFS_SOURCE:-}" ]; }

# unpacked: is the source a release as it is published, in place of a git repository?
unpacked() { [ -f "$ZAUDIT_LAB_ZFS_SOURCE/META" ] && [ ! -e "$ZAUDIT_LAB_ZFS_SOURCE/.git" ]; }

# newest_tag LINE: of the releases of a line in the source, zfs-VERSION (zfs-2.2.99 marks where the line began)
newest_tag() {
    local source=$ZAUDIT_LAB_ZFS_SOURCE found
    if unpacked; then  # META of a candidate says "Release: rc1"
        found=$(awk '{ said[$1] = $2 } END { if (said["Release:"] !~ /^rc/) print "zfs-" said["Version:"] }' "$source/META")
    else
        command -v git >/dev/null || die "missing on this host: git, which reads $source"
        found=$(git ls-remote --tags -- "$source" "refs/tags/zfs-$1.*" 2>/dev/null) ||
            die "$source is neither a git repository of OpenZFS (git ls-remote refuses it) nor a folder with a release of it"
    fi
    found=$(sed -nE "/\.99\$/d; s,^(.*refs/tags/)?(zfs-${1/./\\.}\.[0-9]+)\$,\2,p" <<<"$found" | sort -V | tail -n 1)
    [ -n "$found" ] || die "$source has no release of line $1"
    echo "$found"
}

# build_source TAG KERNEL: the release as it was tagged, without its test suite, and with what dkms asks for
build_source() {
    local tag=$1 build=$LAB/builder-$2/build repository=$ZAUDIT_LAB_ZFS_SOURCE
    rm -rf "$build"; mkdir -p "$build" "$LAB/src"
    if unpacked; then
        tar -C "$repository" --exclude=./tests -c . | tar -x --no-same-owner -C "$build"
    else
        if [ ! -d "$repository" ]; then
            repository=$build.git; rm -rf "$repository"
            git clone -q --bare --depth 1 --branch "$tag" -- "$ZAUDIT_LAB_ZFS_SOURCE" "$repository"
        fi
        git -C "$repository" archive "$tag" -- . ':(exclude)tests' | tar -x -C "$build"
        rm -rf "$build.git"
    fi
    grep -qx "Version: *${tag#zfs-}" "$build/META"
    sed -i '\,tests/Makefile.am,d' "$build/Makefile.am"
    sed -i '\,tests/zfs-tests/tests/Makefile,d' "$build/configure.ac"
    chroot "$LAB/builder-$2" sh -euc 'cd /build; ./autogen.sh; scripts/dkms.mkconf -n zfs -v "$1" -f dkms.conf' - "${tag#zfs-}"
    mv "$build" "$LAB/src/$tag"
}

# build_tools LINE TAG KERNEL: the commands, libraries, ZED, udev rules and pyzfs, to where Debian has them
build_tools() {
    local root=$LAB/root-$1 tag=$2 builder=$LAB/builder-$3
    rm -rf "$builder/build"; cp -a "$LAB/src/$tag" "$builder/build"
    unshare --mount sh -euc 'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; exec chroot "$1" sh -euc "$2"' - \
        "$builder" '
        cd /build
        ./configure --with-config=user --prefix=/usr --sysconfdir=/etc --localstatedir=/var --bindir=/usr/bin --sbindir=/sbin \
            --libdir=/lib/x86_64-linux-gnu --with-udevdir=/lib/udev --with-zfsexecdir=/usr/lib/zfs-linux --enable-systemd \
            --with-systemdunitdir=/lib/systemd/system --with-systemdpresetdir=/lib/systemd/system-preset \
            --with-systemdgeneratordir=/lib/systemd/system-generators --enable-pyzfs --with-python=python3 --disable-pam CFLAGS=-O2
        make -s -j"$(nproc)"; make -s install DESTDIR=/build/installed
        cd installed; rm -rf usr/share/man usr/include usr/src
        find . -name "*.a" -delete; mkdir -p usr/sbin usr/lib/python3
        mv usr/lib/python3.*/site-packages usr/lib/python3/dist-packages
        for each in arc_summary arcstat dbufstat zilstat; do mv "usr/bin/$each" usr/sbin/; done; mv sbin/zed usr/sbin/'
    tar -C "$builder/build/installed" -c . | tar -C "$root" -x --keep-directory-symlink
    rm -rf "$builder/build"
    chroot "$root" ldconfig
    chroot "$root" python3 -c 'import libzfs_core'
    { chroot "$root" zfs --version || true; } | grep -F "$tag"  # without a module it ends with 1
    echo "${tag#zfs-}" >"$root/lab-zfs-version"
}

# add CHROOT NAME PACKAGES: a step of its own, so that one package more does not build everything anew
add() {
    # policy-rc.d: no service starts in a chroot
    unshare --mount sh -euc '
        mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"
        cp /etc/resolv.conf "$1/etc/resolv.conf"
        printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"
        export DEBIAN_FRONTEND=noninteractive INITRD=No
        chroot "$1" apt-get -o APT::Sandbox::User=root -qq update
        chroot "$1" apt-get -o APT::Sandbox::User=root install -qy --no-install-recommends $2
        rm -rf "$1/usr/sbin/policy-rc.d" "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/archives/*.deb' - "$LAB/$1" "$3"
    echo "$3" >"$LAB/$1/lab-$2"
}

# has CHROOT NAME PACKAGES: were these added?
has() { [ "$(cat "$LAB/$1/lab-$2" 2>/dev/null)" = "$3" ]; }

build_builder() {
    local kernel=$1 suite=$2
    debian "$LAB/builder-$kernel" "$suite" apt "linux-headers-$kernel,dkms,gcc,make,libc6-dev,file,python3-minimal,kmod,xz-utils,zstd,bc"
    mv "$LAB/builder-$kernel.part" "$LAB/builder-$kernel"
}

# build_modules ZFS KERNEL
build_modules() {
    local zfs=$1 kernel=$2 builder=$LAB/builder-$2 out=$LAB/modules/$1-$2
    rm -rf "$out.part" "$builder/usr/src/zfs-$zfs" "$builder/var/lib/dkms/zfs/$zfs"; mkdir -p "$out.part"
    cp -a "$LAB/src/zfs-$zfs" "$builder/usr/src/"
    unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" dkms build -m zfs -v "$2" -k "$3" -a x86_64' - \
        "$builder" "$zfs" "$kernel" || { tail -n 30 "$builder/var/lib/dkms/zfs/$zfs/build/make.log"; return 1; }
    find "$builder/var/lib/dkms/zfs/$zfs/$kernel/x86_64/module" -name '*.ko*' -exec cp {} "$out.part/" \;
    xz -dq "$out.part"/*.xz 2>/dev/null || true
    ls "$out.part"/zfs.ko
    rm -rf "$builder/var/lib/dkms/zfs/$zfs" "$builder/usr/src/zfs-$zfs"
    mv "$out.part" "$out"
}

build_image() {
    local line=$1 zfs=$2 kernel=$3 root=$LAB/root-$1 out=$LAB/img/$1 folder work file name
    rm -rf "$out.part"; mkdir -p "$out.part"
    folder=$root/lib/modules/$kernel/updates/dkms; rm -rf "$folder"; mkdir -p "$folder"
    cp "$LAB/modules/$zfs-$kernel"/*.ko "$folder/"
    chroot "$root" depmod "$kernel"
    printf '\x07\xba\xb0\x0a' >"$root/etc/hostid"; echo zlab >"$root/etc/hostname"
    # the initrd: busybox, and the modules without which the kernel does not see its root disk
    work=$(mktemp -d); mkdir -p "$work"/{bin,dev,root,proc}
    cp "$root/bin/busybox" "$work/bin/"; install -m755 "$HERE/guest/initrd-init" "$work/init"
    : >"$work/modlist"
    for file in $(for name in virtio_pci virtio_blk virtio_console; do chroot "$root" modprobe -S "$kernel" --show-depends "$name"; done |
        awk '/^insmod/ && !seen[$2]++ { print $2 }'); do
        name=$(basename "${file%%.ko*}").ko
        case $file in *.xz) xz -dc "$root$file" >"$work/$name" ;; *) cp "$root$file" "$work/$name" ;; esac
        echo "$name" >>"$work/modlist"
    done
    python3 "$HERE/cpio.py" "$work" "$out.part/initrd.cpio"; rm -rf "$work"
    cp "$root/boot/vmlinuz-$kernel" "$out.part/vmlinuz"
    truncate -s 2G "$out.part/root.img"
    mke2fs -q -F -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$root" "$out.part/root.img"
    printf 'zfs %s\nkernel %s\n' "$zfs" "$kernel" >"$out.part/versions"
    chmod -R a+rX "$out.part"; rm -rf "$out"; mv "$out.part" "$out"
}

# check_mirror: with apt's own helper, which knows the machine's proxies
check_mirror() {
    local scratch status=0
    scratch=$(mktemp -d)
    /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=2 download-file \
        "$MIRROR/dists/trixie/InRelease" "$scratch/InRelease" >/dev/null 2>&1 || status=1
    rm -rf "$scratch"
    [ $status -eq 0 ] || die "the Debian mirror $MIRROR does not answer"
}

check=
if [ "${1:-}" = --check ]; then check=yes; shift; fi
absent="line 2.2 is not available: no Debian package has it; set ZAUDIT_LAB_ZFS_SOURCE to a git repository of OpenZFS, or to a folder with a release of it"
if [ $# -eq 0 ]; then
    set -- 2.1 2.3 2.4
    if available 2.2; then set -- 2.1 2.2 2.3 2.4; else echo "build.sh: $absent" >&2; fi
fi
for line in "$@"; do
    [[ $line =~ ^2\.[1-4]$ ]] || die "unknown line $line (2.1, 2.2, 2.3, 2.4)"
    available "$line" || die "$absent"
done
check_host
for line in "$@"; do
    if from_source "$line" && [ ! -e "$LAB/root-$line/lab-zfs-version" ]; then newest_tag "$line" >/dev/null; fi
done
MIRROR=${ZAUDIT_LAB_MIRROR:-$(find_mirror)}
[ -n "$MIRROR" ] || die "no Debian mirror in this machine's apt configuration; set ZAUDIT_LAB_MIRROR=URL"
if [ -n "$check" ]; then check_mirror; exit 0; fi
mkdir -p "$LAB/log" "$LAB/img" "$LAB/modules" "$LAB/run"
exec 9>"$LAB/build.lock"
flock -n 9 || die "another build is at work in $LAB"
if [ ! -d "$LAB/qemu" ] && ! (cd "$HERE/../.." && python3 -m tests.lab.machine >/dev/null); then step qemu build_qemu; fi
for line in "$@"; do
    start=$SECONDS BACKPORTS=
    case $line in 2.1 | 2.2) suite=bookworm ;; 2.3) suite=trixie ;; 2.4) suite=trixie BACKPORTS=yes ;; esac
    [ -d "$LAB/root-$line" ] || step "root-$line" build_root "$line" "$suite"
    BACKPORTS=
    kernel=$(basename "$LAB/root-$line"/boot/vmlinuz-*); kernel=${kernel#vmlinuz-}
    if [ ! -e "$LAB/root-$line/lab-zfs-version" ]; then
        tag=$(newest_tag "$line")
        [ -d "$LAB/builder-$kernel" ] || step "builder-$kernel" build_builder "$kernel" "$suite"
        has "builder-$kernel" compiles "$COMPILES" || step "compilers-$kernel" add "builder-$kernel" compiles "$COMPILES"
        [ -d "$LAB/src/$tag" ] || step "source-$tag" build_source "$tag" "$kernel"
        step "tools-$tag" build_tools "$line" "$tag" "$kernel"
    fi
    zfs=$(cat "$LAB/root-$line/lab-zfs-version")
    from_source "$line" || [ -d "$LAB/src/libspl-$zfs" ] || (step "headers-$line" build_headers "$line" "$zfs") ||
        echo "build.sh: without the headers of OpenZFS $zfs make points does not run for line $line" >&2
    if [ ! -d "$LAB/modules/$zfs-$kernel" ]; then
        [ -d "$LAB/builder-$kernel" ] || step "builder-$kernel" build_builder "$kernel" "$suite"
        step "modules-$zfs-$kernel" build_modules "$zfs" "$kernel"
    fi
    for name in databases ssh; do
        case $name in databases) packages=$DATABASES ;; ssh) packages=$SSH ;; esac
        if ! has "root-$line" "$name" "$packages"; then
            rm -f "$LAB/img/$line/versions"
            step "$name-$line" add "root-$line" "$name" "$packages"
        fi
    done
    image=$LAB/img/$line/versions
    if [ ! -e "$image" ] || [ "$HERE/guest/initrd-init" -nt "$image" ]; then step "img-$line" build_image "$line" "$zfs" "$kernel"; fi
    printf '%-48s %4d s\n' "$line: OpenZFS $zfs, kernel $kernel" $((SECONDS - start))
done
