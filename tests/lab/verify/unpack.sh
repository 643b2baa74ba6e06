# zaudit out of its archive: in software emulation half of a run from the archive is Python compiling.
mkdir -p /z && cd /z && python3 -c "import zipfile; zipfile.ZipFile('/lab/zaudit.pyz').extractall('/z')"
python3 -m compileall -q -j2 /z >/dev/null 2>&1
cd /lab && mkdir -p out
printf '#!/bin/sh\nPYTHONPATH=/z exec python3 -m auditor "$@"\n' >/usr/bin/zaudit
chmod +x /usr/bin/zaudit
