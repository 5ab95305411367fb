# One boot of a lab node. It runs as PID 1 of new pid, uts, ipc and network namespaces, in a copy of the keeper's mount namespace, and becomes
# systemd.
#   boot.sh ROOT      ROOT: where the disk is mounted; it begins when its standard input ends
set -eu
root=$1

while read -r _; do :; done
exec < /dev/null

# Few programs are started here: each takes some milliseconds of a processor, of which many nodes boot at once.
at=${root// /\\040}
mounts() { # those of the fstab(5) that is its input
  local table
  IFS= read -r -d "" table || true
  printf %s "$table" > "${root%/*}/fstab"
  mount --all --fstab "${root%/*}/fstab"
}
mount -t proc proc "$root/proc"
sysrq=
[ ! -e "$root/proc/sysrq-trigger" ] || sysrq="$at/proc/sysrq-trigger $at/proc/sysrq-trigger none bind,ro"
# Every boot has an id of its own, as on a machine with a kernel of its own.
read -r id < "$root/proc/sys/kernel/random/uuid"
# Read-only /sys is how systemd knows that the devices are not its own (systemd.io/CONTAINER_INTERFACE).
mounts << FSTAB
$at/proc/sys $at/proc/sys none bind,ro
$sysrq
sysfs $at/sys sysfs ro
cgroup2 $at/sys/fs/cgroup cgroup2 defaults
tmpfs $at/run tmpfs mode=755
tmpfs $at/tmp tmpfs mode=1777
tmpfs $at/dev tmpfs mode=755
FSTAB
echo "$id" > "$root/run/boot-id"
mkdir "$root/dev/pts" "$root/dev/shm" "$root/run/systemd" "$root/run/systemd/system" \
  "$root"/run/systemd/{system-generators,user-generators,user-environment-generators}
for d in null zero full random urandom tty; do
  : > "$root/dev/$d"
done
mounts << FSTAB
$at/run/boot-id $at/proc/sys/kernel/random/boot_id none bind,ro
/dev/null $at/dev/null none bind
/dev/zero $at/dev/zero none bind
/dev/full $at/dev/full none bind
/dev/random $at/dev/random none bind
/dev/urandom $at/dev/urandom none bind
/dev/tty $at/dev/tty none bind
devpts $at/dev/pts devpts newinstance,ptmxmode=0666,mode=620
FSTAB
rm "$root/run/boot-id"
ln -s pts/ptmx "$root/dev/ptmx" # systemd makes the other links of /dev

# What would act on this machine's devices, kernel and boot loader is masked in /run, by empty files, so that the disk stays as it was; and what
# finds everything done already, or is for what nobody looks at.
for u in systemd-sysctl.service systemd-modules-load.service modprobe@.service systemd-udevd.service systemd-hwdb-update.service \
  systemd-remount-fs.service systemd-random-seed.service \
  systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-sysusers.service systemd-tmpfiles-setup-dev.service \
  sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount; do
  : > "$root/run/systemd/system/$u"
done

# So are the generators of the machine below: they make nothing that a node needs, and take most of the time of each reload. Those of a test run.
for g in "$root"/{usr/,}lib/systemd/{system-generators,user-generators,user-environment-generators}/*; do
  kind=${g%/*}
  [ ! -e "$g" ] || : > "$root/run/systemd/${kind##*/}/${g##*/}"
done

# pivot_root(2), NOTES: the old root lands on top of the new one and is taken away; no folder is needed for it.
cd "$root"
pivot_root . .
hash -r # where /bin and /usr/bin are two folders, programs are not where they were
umount -l .
cd /
# Without this, units with a mount namespace of their own see nothing that is mounted later.
mount --make-rshared /
exec env -i container=lab LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=multi-user.target --log-target=journal --show-status=no
