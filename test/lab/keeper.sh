# The keeper of a lab node: it makes the disk, and holds its mounts and the network namespace for as long as the node exists. Everything that it
# mounts is seen in its own mount namespace only, so all of it is gone when it and the node's PID 1 are.
#   keeper.sh STATE LOWER HOSTNAME MACHINE-ID GROUP HOME keep|tied        HOME: the cgroup that the node was booted from
set -eu
state=$1 lower=$2 hostname=$3 machine_id=$4 group=$5 home=$6 life=$7

mount -t tmpfs -o mode=755 stead-lab "$state/disk"
mkdir "$state/disk/upper" "$state/disk/work"
mount -t overlay -o "lowerdir=$lower,upperdir=$state/disk/upper,workdir=$state/disk/work" stead-lab "$state/root"

# A machine of its own, once: none of the lower machine's own units, SysV scripts, lingering users, mounts, journal or identity.
cd "$state/root"
rm -rf etc/systemd/system/* etc/systemd/user/* etc/rc?.d/* var/lib/systemd/linger/* var/log/journal
mkdir -p var/log/journal etc/systemd/system
: > etc/fstab
rm -f etc/machine-id etc/hostname
echo "$machine_id" > etc/machine-id
echo "$hostname" > etc/hostname
cd /

echo ready
exec > /dev/null
[ "$life" = tied ] || exec sleep infinity

# Our standard input ends when the process that booted us is gone, however it went, without having taken the node down.
while read -r _; do :; done
echo 1 > "$group/run/cgroup.kill" || true
while grep -q '^populated 1' "$group/run/cgroup.events"; do sleep 0.01; done
umount -l "$state/root" "$state/disk"
rmdir "$state/root" "$state/disk"
find "$state" -mindepth 1 ! -name node.json -delete
rm -f "$state/node.json"
rmdir "$state"
rmdir "${state%/*}" 2> /dev/null || true
# Out of the cgroup that is to go: to where we were started, or, if that is gone too, to the top.
{ echo $$ > "$home/cgroup.procs"; } 2> /dev/null || echo $$ > "${group%/*/*}/cgroup.procs"
find "$group" -depth -type d -exec rmdir {} +
rmdir "${group%/*}" 2> /dev/null || true
