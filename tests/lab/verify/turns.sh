# Bare fio and zaudit in turns, each alone on the pool, in the order A B B A, so that neither always comes first.
. /lab/pairs.sh
for i in $(seq 6); do
    if [ $((i % 2)) = 0 ]; then through $i; fi
    laid
    sleep 5
    measured $i
    rm -r /tank/db/bare
    if [ $((i % 2)) = 1 ]; then through $i; fi
done
python3 /lab/pairs.py turns /lab/out
