# The same job with bare fio and through zaudit, in turns: medians of five pairs of p50 and of the mean.
. /lab/state.sh
. /lab/unpack.sh
zpool create tank mirror $N0 $N1 log mirror $N2 $N3
zfs create tank/db
for i in $(seq 5); do
    mkdir /tank/db/bare
    cp /z/auditor/verify/profiles/postgres.fio /tank/db/bare/job.fio
    (cd /tank/db/bare && ZAUDIT_DIRECTORY=. ZAUDIT_RUNTIME=2 ZAUDIT_SIZE=64m fio --thread --section=log job.fio >/dev/null
     sleep 5
     ZAUDIT_DIRECTORY=. ZAUDIT_RUNTIME=36 ZAUDIT_SIZE=64m fio --thread --section=log --output-format=json+ --eta=never job.fio >/lab/out/bare-$i.json)
    rm -r /tank/db/bare
    zaudit verify tank/db --quick --format json -o /lab/out/zaudit-$i.json 2>/dev/null
done
python3 - <<'P'
import json, statistics
def of(bins):
    bins = {int(ns): n for ns, n in bins.items()}
    total, seen = sum(bins.values()), 0
    mean = sum(ns * n for ns, n in bins.items()) / total
    for ns in sorted(bins):
        seen += bins[ns]
        if seen >= total / 2:
            return ns, mean
pairs = []
for i in range(1, 6):
    bare = of(json.load(open(f"/lab/out/bare-{i}.json"))["jobs"][0]["sync"]["lat_ns"]["bins"])
    runs = json.load(open(f"/lab/out/zaudit-{i}.json"))["verification"]["runs"]
    ours = of(next(run for run in runs if run["purpose"] == "log")["jobs"][0]["latency"])
    pairs.append((ours[0] / bare[0], ours[1] / bare[1]))
    print(f"pair {i}: p50 bare {bare[0] / 1e6:.3f} ms, zaudit {ours[0] / 1e6:.3f} ms; mean {bare[1] / 1e6:.3f}, {ours[1] / 1e6:.3f}")
for what, number in (("p50", 0), ("mean", 1)):
    print(f"median ratio of the {what}: {statistics.median(pair[number] for pair in pairs):.3f}")
P
