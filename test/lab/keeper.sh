# The keeper of a lab node: it makes the disk, and holds its mounts for as long as the node exists. Everything that it mounts is seen in its own
# mount namespace only, so all of it is gone when it and the node's PID 1 are.
#   keeper.sh STATE GROUP HOME keep|tied LOWER HOSTNAME MACHINE-ID        see hold.sh
set -eu
state=$1 lower=$5 hostname=$6 machine_id=$7

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

. "$state/hold.sh"
