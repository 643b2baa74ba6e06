#!/usr/bin/env bash
# pythons.sh [--debian] [MINOR...]: the quick tests with each Python 3.MINOR (11 12 13 14 when none is named) that is found on this
# machine: on the PATH, or among those of pyenv or uv. Each has an environment of its own below build/pythons. --debian: where
# none of them is found, one is taken from Debian's packages into a folder that is thrown away (root, mmdebstrap).
# What is not run is named. Exit code 1 where tests fail, 77 where none ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8
unset PYTHONDONTWRITEBYTECODE  # or each test that starts zaudit compiles all of it
SUITES="trixie:13 forky:14 bookworm:11"  # releases of Debian, and whose python3 they have
PACKAGES=python3,python3-pytest,python3-pytest-xdist,python3-hypothesis,python3-jsonschema,python3-click,python3-rich
PACKAGES+=,python3-pyudev,python3-setuptools,git,make,procps,util-linux
QUICK=(-m pytest -n auto --dist loadfile --hypothesis-profile=brief -m "not slow and not lab" -p no:cacheprovider)

debian=
[ "${1:-}" != --debian ] || { debian=yes; shift; }
[ $# -gt 0 ] || set -- 11 12 13 14

found() { # MINOR: the path of an interpreter that can make environments
    local each
    for each in "python3.$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"3.$1".*/bin/python3 python3 \
        "$(uv python find --offline "3.$1" 2>/dev/null || true)"; do
        if [ -n "$each" ] && "$each" -c "import sys, ensurepip; sys.exit(sys.version_info[:2] != (3, $1))" 2>/dev/null; then
            command -v "$each"
            return
        fi
    done
    return 1
}

tested() { # MINOR PYTHON: with the packages that setup.cfg asks for
    local home=build/pythons/3.$1
    [ -x "$home/bin/python" ] || "$2" -m venv "$home"
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[test]'
    "$home/bin/python" "${QUICK[@]}"
}

debian_tested() { # MINOR SUITE: with Debian's own packages, and this folder bound into its tree; 77: it cannot be had
    local mirror root status=0
    [ "$(id -u)" = 0 ] && command -v mmdebstrap unshare >/dev/null || return 77
    mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' 'Created-By: Packages' |
        awk '$2 == "main" && !/-security/ && !seen++ { print $1 }')
    root=$(mktemp -d)
    # shellcheck disable=SC2016 # of the inner shell
    unshare --mount bash -eu -c '
        root=$1 minor=$2 suite=$3 mirror=$4 packages=$5; shift 5
        mmdebstrap --mode=root --variant=minbase --include="$packages" --aptopt="Acquire::Languages \"none\"" \
            --aptopt="APT::Sandbox::User \"root\"" "$suite" "$root" "deb $mirror $suite main" >"$root.log" 2>&1 || exit 77
        chroot "$root" python3 -c "import sys; sys.exit(sys.version_info[:2] != (3, $minor))" || exit 77
        mkdir "$root/src"
        mount --bind "$PWD" "$root/src"; mount --rbind /dev "$root/dev"
        mount -t proc proc "$root/proc"; mount -t sysfs -o ro sysfs "$root/sys"; mount -t tmpfs tmpfs "$root/tmp"
        exec chroot "$root" env -C /src "$@"' bash "$root" "$1" "$2" "$mirror" "$PACKAGES" python3 "${QUICK[@]}" || status=$?
    [ $status -ne 77 ] || tail -n 3 "$root.log" >&2
    rm -rf --one-file-system "$root" "$root.log"
    return $status
}

ran=0 failed=0
one() { # LABEL COMMAND...: counted
    local status=0
    echo "== $1"
    "${@:2}" || status=$?
    case $status in
        0) ran=$((ran + 1)) ;;
        77) echo "NOT RUN: $1 cannot be had here" ;;
        *) failed=1; echo "FAILED: $1" ;;
    esac
}

for minor in "$@"; do
    if python=$(found "$minor"); then
        one "Python 3.$minor, $python" tested "$minor" "$python"
    else
        echo "NOT RUN: no Python 3.$minor here"
    fi
done
for each in $SUITES; do
    [ -n "$debian" ] && [ $ran -eq 0 ] && [ $failed -eq 0 ] || break
    case " $* " in *" ${each#*:} "*) one "Python 3.${each#*:} of Debian ${each%:*}" debian_tested "${each#*:}" "${each%:*}" ;; esac
done
[ $failed -eq 0 ] || exit 1
[ $ran -gt 0 ] || exit 77
