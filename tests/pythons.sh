#!/usr/bin/env bash
# pythons.sh [MINOR...]: the quick tests with each Python 3.MINOR (11 12 13 14 when none is named) that is found on this machine:
# on the PATH, or among those of pyenv or uv. Each has its environment below build/pythons. What is not run is named.
# Exit code 1 where tests fail, 77 where none ran. Debian's own Pythons: tests/newcomer.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8
unset PYTHONDONTWRITEBYTECODE  # or each test that starts zaudit compiles all of it
QUICK=(-m pytest -n auto --dist loadfile --hypothesis-profile=brief -m "not slow and not lab" -p no:cacheprovider)

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
[ $failed -eq 0 ] || exit 1
[ $ran -gt 0 ] || exit 77
