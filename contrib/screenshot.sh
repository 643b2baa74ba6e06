#!/bin/sh
# Makes docs/report.png: the HTML report of a recorded host, as a browser shows it. Needs Chromium and pngquant.
#   contrib/screenshot.sh [PYTHON]
set -eu
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m auditor check --replay fixtures/hosts/2.3-sync-disabled-local.zaudit --format html \
    -o "$folder/report.html" --quiet || [ $? -ge 10 ]
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
    --window-size=1000,760 --user-data-dir="$folder/profile" --screenshot="$folder/report.png" "file://$folder/report.html"
pngquant --strip --nofs --speed 1 --force --output docs/report.png 128 "$folder/report.png"
