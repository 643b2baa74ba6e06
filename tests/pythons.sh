#!/usr/bin/env bash
# pythons.sh [MINOR...]: the quick tests with each Python 3.MINOR (11 12 13 14 when none is named) that is found on this machine:
# on the PATH, or among those of pyenv or uv. Each gets an environment of its own below build/pythons. With --debian a Python that
# is not found is taken from Debian's packages, into a folder that is thrown away (root, mmdebstrap). What is not run is named.
# The exit code is 1 where tests fail, and 77 where fewer than two Pythons were there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
declare -A SUITES=([11]=bookworm [13]=trixie [14]=forky)  # the release of Debian whose python3 it is
PACKAGES=python3,python3-pytest,python3-pytest-xdist,python3-hypothesis,python3-jsonschema,python3-click,python3-rich,python3-pyudev
QUICK=(-m pytest -n auto --dist loadfile -m "not slow and not lab" -p no:cacheprovider)

found() {
    local each
    for each in "python3.$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"3.$1".*/bin/python3 \
        "$(command -v uv >/dev/null && uv python find --offline "3.$1" 2>/dev/null || true)" python3; do
        command -v "$each" >/dev/null && "$each" -c "import sys, venv; sys.exit(sys.version_info[:2] != (3, $1))" 2>/dev/null &&
            { command -v "$each"; return; }
    done
    return 1
}

# with an interpreter: the packages that setup.cfg asks for
tested() {
    local minor=$1 python=$2 home=build/pythons/3.$1
    [ -x "$home/bin/python" ] || "$python" -m venv "$home"
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[test]'
    "$home/bin/python" "${QUICK[@]}"
}

# with Debian's: its own packages, none of ours; the tree is bound into the folder and left alone
debian_tested() {
    local suite=${SUITES[$1]:-} mirror root
    [ -n "$suite" ] && [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null || return 77
    mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' 'Created-By: Packages' | awk '$2 == "main" && !/-security/ && !n++ { print $1 }')
    root=$(mktemp -d)
    unshare --mount bash -euc '
        mmdebstrap --mode=root --variant=minbase --include="$2" --aptopt="Acquire::Languages \"none\"" "$3" "$1" "deb $4 $3 main" >"$1.log" 2>&1 || exit 77
        mkdir "$1/src" && mount --bind "$PWD" "$1/src" && mount -t proc proc "$1/proc" && mount -t sysfs -o ro sys "$1/sys" && mount -t tmpfs tmp "$1/tmp"
        mount --bind /dev "$1/dev"
        root=$1; shift 4; exec chroot "$root" env -C /src python3 "$@"' bash "$root" "$PACKAGES" "$suite" "$mirror" "${QUICK[@]}" || status=$?
    rm -rf --one-file-system "$root" "$root.log"
    return ${status:-0}
}

debian=
[ "${1:-}" != --debian ] || { debian=yes; shift; }
ran=0 failed=0
for minor in "${@:-11 12 13 14}"; do for minor in $minor; do
    status=0
    if python=$(found "$minor"); then
        echo "== Python 3.$minor: $python"
        tested "$minor" "$python" || status=$?
    elif [ -n "$debian" ]; then
        echo "== Python 3.$minor of Debian"
        debian_tested "$minor" || status=$?
    else
        status=77
    fi
    case $status in
        0) ran=$((ran + 1)) ;;
        77) echo "NOT RUN: no Python 3.$minor here" ;;
        *) failed=1; echo "FAILED with Python 3.$minor" ;;
    esac
done; done
[ $failed -eq 0 ] || exit 1
[ $ran -ge 2 ] || exit 77
