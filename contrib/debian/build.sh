#!/bin/sh
# The Debian package of what is committed, into a folder: contrib/debian/build.sh /tmp/packages
# It needs debhelper and what contrib/debian/control names. The same commit gives the same bytes.
set -eu
cd "$(dirname "$0")/../.."
out=$(mkdir -p "$1" && cd "$1" && pwd)
version=$(sed -n '1s/.*(\(.*\)-.*/\1/p' contrib/debian/changelog)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive --format=tar --prefix="zaudit-$version/" HEAD | gzip -9n >"$work/zaudit_$version.orig.tar.gz"
tar -C "$work" -xf "$work/zaudit_$version.orig.tar.gz"
cp -r "$work/zaudit-$version/contrib/debian" "$work/zaudit-$version/debian"
rm "$work/zaudit-$version"/debian/*.sh
(cd "$work/zaudit-$version" && dpkg-buildpackage --no-sign)
mv "$work"/zaudit_* "$out/"
ls -l "$out"
