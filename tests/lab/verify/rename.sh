# A user with rename, mount, create and userprop, and without destroy, gives name and mark of what a run has made to a dataset of
# somebody else; then `zaudit clean`, or the end of the run. The other dataset is still there, what was made is not.
. /lab/state.sh
. /lab/unpack.sh
echo evil:x:5000:5000::/:/bin/sh >>/etc/passwd; echo evil:x:5000: >>/etc/group
zpool create tank mirror $N0 $N1 log mirror $N2 $N3
zfs create -s -V 512m tank/vol; zfs create -V 16m tank/victim-vol
udevadm settle; dd if=/dev/urandom of=/dev/zvol/tank/victim-vol bs=1M count=16 conv=fsync status=none
zfs allow evil rename,mount,create,userprop tank
evil() { setpriv --reuid=5000 --regid=5000 --clear-groups "$@"; }
guid() { zfs get -Hp -o value guid "$1" 2>/dev/null; }
named() { zfs get -Hp -r -t filesystem,volume -o name,value guid tank | grep "	$1\$" | cut -f1; }
scratch() { zfs list -H -o name -t filesystem,volume | grep "zaudit-"; }
steps=0 bad=0
# is WHAT IS WANTED
is() { steps=$((steps + 1)); [ "$2" = "$3" ] && echo "  $1: $2" || { echo "  WRONG: $1: '$2', not '$3'"; bad=$((bad + 1)); }; }
# begin TARGET: a run, until fio writes; $run, $name and $made (its GUID)
begin() {
    zaudit verify "$1" --quick -o /tmp/report 2>/tmp/said & run=$!
    while kill -0 $run 2>/dev/null && ! { [ -n "$(scratch)" ] && pgrep -x fio >/dev/null; }; do sleep 0.5; done
    name=$(scratch) made=$(guid "$name")
}
killed() { sleep 3; kill -9 $run; wait $run 2>/dev/null; sleep 0.5; }
# swap VICTIM: its name and mark; that it worked
swap() {
    victim=$(guid "$1")
    evil zfs destroy "$1" 2>/dev/null; is "the user cannot destroy it" "$(guid "$1")" "$victim"
    evil zfs rename -u "$name" "${name%/*}/away" 2>/dev/null || evil zfs rename "$name" "${name%/*}/away"
    evil zfs rename -u "$1" "$name" 2>/dev/null || evil zfs rename "$1" "$name"
    evil zfs set "zaudit:scratch=${name##*-}" "$name"
    is "the name is another's now" "$(guid "$name")" "$victim"
    is "and so is the mark" "$(zfs get -H -o value,source zaudit:scratch "$name")" "${name##*-}	local"
}
# after VICTIM
after() {
    is "the other dataset is there" "$(guid "$name")" "$victim"
    is "what was made is not" "$(named "$made")" ""
    is "nothing is on record" "$(ls -A /var/lib/zaudit)" ""
    zfs inherit zaudit:scratch "$name"; zfs rename "$name" "$1"
}
sum=$(sha256sum </dev/zvol/tank/victim-vol)

echo "tank/vol, killed"
begin tank/vol; killed; swap tank/victim-vol
zaudit clean >/tmp/clean 2>&1; is "zaudit clean ends with" $? 0; cat /tmp/clean
after tank/victim-vol

echo "tank/vol, while it runs"
begin tank/vol; swap tank/victim-vol; wait $run; echo "  exit code $?: $(tail -1 /tmp/said)"
after tank/victim-vol
udevadm settle; is "nothing was written to the other volume" "$(sha256sum </dev/zvol/tank/victim-vol)" "$sum"

echo "tank/vol, killed, recorded by an earlier zaudit"
begin tank/vol; killed
sed -i 's/, "guid": "[0-9]*"//' /var/lib/zaudit/place-*.json; is "no GUID is recorded" "$(grep -c guid /var/lib/zaudit/place-*.json)" 0
zaudit clean >/tmp/clean 2>&1; is "zaudit clean ends with" $? 1; cat /tmp/clean
is "it is left alone" "$(guid "$name")" "$made"
is "what to do is said" "$(grep -c "zfs destroy $name\$" /tmp/clean)" 1
zfs destroy "$name"; zaudit clean >/tmp/clean 2>&1; is "then zaudit clean ends with" $? 0
is "nothing is on record" "$(ls -A /var/lib/zaudit)" ""

echo "tank/vol, nobody in the way"
begin tank/vol; wait $run; echo "  exit code $?: $(tail -1 /tmp/said)"
is "something was made" "${made:+yes}" yes
is "it is not there" "$(named "$made")$(scratch)" ""
is "nothing is on record" "$(ls -A /var/lib/zaudit)" ""
echo "rename: $bad of $steps were wrong"
exit $bad
