# The same job with bare fio and through zaudit, in turns and in the order A B B A, so that neither always comes first: the files
# that fio wrote, for pairs.py. PAIRS: how many.
. /lab/state.sh
. /lab/unpack.sh
zpool create tank mirror $N0 $N1 log mirror $N2 $N3
zfs create tank/db

bare() {
    mkdir /tank/db/bare
    cp /z/auditor/verify/profiles/postgres.fio /tank/db/bare/job.fio
    (cd /tank/db/bare && ZAUDIT_DIRECTORY=. ZAUDIT_RUNTIME=2 ZAUDIT_SIZE=64m fio --thread --section=log job.fio >/dev/null
     sleep 5
     ZAUDIT_DIRECTORY=. ZAUDIT_RUNTIME=36 ZAUDIT_SIZE=64m fio --thread --section=log --output-format=json+ --eta=never job.fio >/lab/out/bare-$1.json)
    rm -r /tank/db/bare
}

through() { zaudit verify tank/db --quick --format json -o /lab/out/zaudit-$1.json 2>/dev/null; }

for i in $(seq "${PAIRS:-6}"); do
    if [ $((i % 2)) = 1 ]; then bare $i; through $i; else through $i; bare $i; fi
done
python3 /lab/pairs.py /lab/out
