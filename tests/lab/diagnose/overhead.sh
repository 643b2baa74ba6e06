# A load alone, one that is counted by the kernel's probes alone (zaudit is stopped), and one that zaudit diagnose looks at, in
# turns, so that none always comes first; then what the probes add to a sync that does nothing.
. /lab/state.sh
. /lab/unpack.sh
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
zpool create -f tank mirror $N0 $N1 log mirror $N2 $N3
zfs create tank/db
zfs create -o sync=disabled tank/none

commits() { python3 /lab/load.py /tank/db/log fsync 0.005 8192 1 300 >"/lab/out/$1.json"; }
nothing() { python3 /lab/load.py /tank/none/log dsync 0 512 1 3000 >"/lab/out/$1.json"; }
ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }

# --seconds is longer than any load
begin() {
    zaudit diagnose tank --seconds 3600 >"/lab/out/report-$1" 2>&1 &
    looking=$!
    until grep -q hist: /sys/kernel/tracing/instances/*/events/synthetic/zaudit_*/trigger 2>/dev/null; do sleep 0.5; done
    sleep 3
}

end() { kill -INT $looking; wait $looking; }

# looked NUMBER: with what zaudit itself took of the CPUs meanwhile
looked() {
    local began before
    began=$(date +%s%N) before=$(ticks $looking)
    commits "looked-$1"
    echo "$(($(ticks $looking) - before)) $(getconf CLK_TCK) $(($(date +%s%N) - began))" >"/lab/out/cpu-$1"
}

# probed COMMAND NAME: zaudit is stopped, its probes count on
probed() {
    kill -STOP $looking
    "$1" "$2"
    kill -CONT $looking
    sleep 3
}

commits warm
for i in $(seq 10); do
    if [ $((i % 2)) = 0 ]; then begin $i; looked $i; probed commits probes-$i; end; fi
    sleep 3
    commits "alone-$i"
    if [ $((i % 2)) = 1 ]; then begin $i; probed commits probes-$i; looked $i; end; fi
done
for i in $(seq 3); do
    nothing "nothing-alone-$i"
    begin "n$i"
    probed nothing "nothing-probes-$i"
    end
done
python3 /lab/overhead.py /lab/out
