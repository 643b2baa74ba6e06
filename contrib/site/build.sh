#!/bin/sh
# The site of the documents, into a folder; a link that leads nowhere is an error: contrib/site/build.sh PYTHON FOLDER
set -eu
cd "$(dirname "$0")/../.."
out=$(mkdir -p "$2" && cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp contrib/site/mkdocs.yml "$work/"
mkdir "$work/pages"
cp --parents ./*.md LICENSE docs/*.md docs/*.png docs/upstream/*.md tests/lab/*.md tests/lab/*/*.md tests/lab/scenarios/*.toml tests/incidents/incidents.toml "$work/pages/"
"$1" -m tests.rule_pages "$work/pages"
"$1" -m tests.durability_page "$work/pages"
# not --quiet: what is not logged is not counted by --strict
"$1" -m mkdocs build --strict --config-file "$work/mkdocs.yml" --site-dir "$out" >"$work/log" 2>&1 || {
    grep -v INFO "$work/log" >&2
    exit 1
}
flat=$(grep -LPz '</li>\n</ul>\n</li>' "$out"/docs/rules/*-*.html || true)  # their sources are a list in a list
[ -z "$flat" ] || { echo "flat lists: $flat" >&2; exit 1; }
echo "$out: $(find "$out" -name '*.html' | wc -l) pages"
