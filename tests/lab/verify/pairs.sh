# Sourced by ratio.sh and turns.sh: the same job with bare fio and through zaudit, and the files that pairs.py compares.
. /lab/state.sh
. /lab/unpack.sh
zpool create tank mirror $N0 $N1 log mirror $N2 $N3
zfs create tank/db

# fio SECONDS [option...]: the job of the log as bare fio runs it, in /tank/db/bare
bare() {
    local seconds=$1; shift
    (cd /tank/db/bare && ZAUDIT_DIRECTORY=. ZAUDIT_RUNTIME=$seconds ZAUDIT_SIZE=64m fio --thread --section=log --eta=never "$@" job.fio)
}

# laid: its files, written to for two seconds as zaudit does before it measures
laid() {
    mkdir /tank/db/bare
    cp /z/auditor/verify/profiles/postgres.fio /tank/db/bare/job.fio
    bare 2 >/dev/null
}

through() { zaudit verify tank/db --quick --format json -o "/lab/out/zaudit-$1.json" 2>/dev/null; }
measured() { bare 36 --output-format=json+ >"/lab/out/bare-$1.json"; }
