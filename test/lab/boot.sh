# One boot of a lab node. It runs as PID 1 of new pid, uts, ipc and network namespaces, in a copy of the keeper's mount namespace, and becomes
# systemd.
#   boot.sh ROOT      ROOT: where the disk is mounted; it begins when its standard input ends
set -eu
root=$1

while read -r _; do :; done
exec < /dev/null

mount -t proc proc "$root/proc"
for p in sys sysrq-trigger; do
  [ -e "$root/proc/$p" ] || continue
  mount --bind "$root/proc/$p" "$root/proc/$p"
  mount -o remount,ro,bind "$root/proc/$p"
done
# Read-only /sys is how systemd knows that the devices are not its own (systemd.io/CONTAINER_INTERFACE).
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
# Every boot has an id of its own, as on a machine with a kernel of its own.
cat "$root/proc/sys/kernel/random/uuid" > "$root/run/boot-id"
mount --bind "$root/run/boot-id" "$root/proc/sys/kernel/random/boot_id"
mount -o remount,ro,bind "$root/proc/sys/kernel/random/boot_id"
rm "$root/run/boot-id"
mkdir "$root/dev/pts" "$root/dev/shm"
for d in null zero full random urandom tty; do
  : > "$root/dev/$d"
  mount --bind "/dev/$d" "$root/dev/$d"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"

# What would act on this machine's devices, kernel and boot loader is masked in /run, so that the disk stays as it was.
mkdir -p "$root/run/systemd/system"
for u in systemd-sysctl.service systemd-modules-load.service modprobe@.service systemd-udevd.service systemd-hwdb-update.service \
  systemd-remount-fs.service systemd-random-seed.service \
  sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount; do
  ln -s /dev/null "$root/run/systemd/system/$u"
done

# The generators of the machine below make nothing that a node needs, and take most of the time of each reload; a test's own ones in /etc run.
for kind in system-generators user-generators user-environment-generators; do
  mkdir "$root/run/systemd/$kind"
  for g in "$root/usr/lib/systemd/$kind"/* "$root/lib/systemd/$kind"/*; do
    case $g in *'*' | */30-systemd-environment-d-generator) ;; *) ln -sf /dev/null "$root/run/systemd/$kind/${g##*/}" ;; esac
  done
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
