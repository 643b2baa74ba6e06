# A load alone, and one that zaudit diagnose looks at, in turns: A B B A, so that neither always comes first.
. /lab/state.sh
. /lab/unpack.sh
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
zpool create -f tank mirror $N0 $N1 log mirror $N2 $N3
zfs create tank/db

commits() { python3 /lab/load.py /tank/db/log fsync 0.005 8192 1 400 >"/lab/out/$1.json"; }

# looked NUMBER: zaudit clean removes nothing that lives; --seconds is longer than any load
looked() {
    zaudit diagnose tank --seconds 900 >"/lab/out/report-$1" 2>&1 &
    until grep -q hist: /sys/kernel/tracing/instances/*/events/synthetic/zaudit_*/trigger 2>/dev/null; do sleep 0.5; done
    sleep 3
    commits "looked-$1"
    kill -INT $!; wait $!
}

commits warm
for i in $(seq 10); do
    if [ $((i % 2)) = 0 ]; then looked $i; fi
    sleep 3
    commits "alone-$i"
    if [ $((i % 2)) = 1 ]; then looked $i; fi
done
python3 /lab/overhead.py /lab/out
