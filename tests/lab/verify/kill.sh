# Ten verifications, each killed with SIGKILL at a random moment; then `zaudit clean`. Prints one line each and a last one.
. /lab/state.sh
. /lab/unpack.sh
zpool create tank mirror $N0 $N1 log mirror $N2 $N3
zfs create tank/db; chown 5000:5000 /tank/db
zfs create -s -V 512m tank/vol
RANDOM=7 bad=0
for i in $(seq 10); do
    target=tank/db; [ $((i % 3)) = 0 ] && target=tank/vol
    zaudit verify $target --quick -o /tmp/report 2>/dev/null &
    moment=$((RANDOM % 400 + 80)); sleep "$((moment / 10)).$((moment % 10))"
    kill -9 $! 2>/dev/null; wait $! 2>/dev/null
    left=$( { ls -A /tank/db | grep '^\.zaudit'; zfs list -H -o name | grep zaudit-; } | tr '\n' ' ')
    sleep 0.5; running=$(pgrep -x fio | wc -l)
    zaudit clean >/tmp/clean 2>&1; code=$?
    after=$( { ls -A /tank/db; zfs list -H -o name | grep zaudit-; ls -A /var/lib/zaudit; } | tr '\n' ' ')
    echo "$i $target killed after $moment/10 s: left '$left', fio running $running, clean exit $code, after it '$after'"
    [ "$code" = 0 ] && [ -z "$after" ] && [ "$running" = 0 ] || bad=$((bad + 1))
done
for number in INT TERM; do
    # by way of python: bash has SIGINT ignored in what it starts in the background
    python3 -c "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); os.execvp('zaudit', 'zaudit verify tank/db --quick -o /tmp/report'.split())" 2>/tmp/said & pid=$!
    sleep 20; kill -$number $pid; wait $pid; code=$?
    after=$( { ls -A /tank/db; ls -A /var/lib/zaudit; pgrep -x fio; } | tr '\n' ' ')
    echo "SIG$number: exit $code, $(tail -1 /tmp/said), left '$after'"
    [ -z "$after" ] || bad=$((bad + 1))
done
echo "kill: 10 times SIGKILL, SIGINT and SIGTERM; $bad of 12 left something"
exit $bad
