# What keepers end with: they hold what they made for as long as the node, or the network, exists, and clear up after it.
#   . hold.sh STATE GROUP HOME keep|tied        HOME: the cgroup that it was made from
state=$1 group=$2 home=$3 life=$4

echo ready
exec > /dev/null
[ "$life" = tied ] || exec sleep infinity

# Our standard input ends when the process that made us is gone, however it went, without having taken us down.
while read -r _; do :; done
echo 1 > "$group/run/cgroup.kill" || true
while grep -q '^populated 1' "$group/run/cgroup.events"; do sleep 0.01; done
for point in root disk; do
  [ ! -e "$state/$point" ] || umount -l "$state/$point"
done
find "$state" -mindepth 1 ! -name node.json -delete
rm -f "$state/node.json"
rmdir "$state"
rmdir "${state%/*}" 2> /dev/null || true
# Out of the cgroup that is to go: to where we were started, or, if that is gone too, to the top.
{ echo $$ > "$home/cgroup.procs"; } 2> /dev/null || echo $$ > "${group%/*/*}/cgroup.procs"
find "$group" -depth -type d -exec rmdir {} +
rmdir "${group%/*}" 2> /dev/null || true
