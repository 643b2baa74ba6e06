# Bare fio beside zaudit's fio: the same job at the same time on the same pool, so that whatever slows the machine down slows
# both. zaudit calls that foreign load, and reports what it measured all the same.
. /lab/pairs.sh
for i in $(seq 6); do
    laid
    through $i &
    until pgrep -f 'status-interva[l]=1' >/dev/null; do kill -0 $! || exit 1; sleep 0.3; done
    measured $i
    wait
    rm -r /tank/db/bare
done
python3 /lab/pairs.py ratio /lab/out
