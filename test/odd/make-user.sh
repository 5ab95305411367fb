# Makes units of an account in odd states, in a node that has nothing else to do.
# $1 is the login, whose manager runs. Everything is there when it ends. All names
# hold "odd".
set -eu
login=$1
uid=$(id -u "$login")
home=$(getent passwd "$login" | cut -d : -f 6)
etc=$home/.config/systemd/user
as() { setpriv --reuid "$login" --regid "$login" --init-groups env -i PATH="$PATH" HOME="$home" XDG_RUNTIME_DIR="/run/user/$uid" "$@"; }
systemctl() { as systemctl --user "$@"; }
put() { as mkdir -p "$(dirname "$etc/$1")"; as tee "$etc/$1" > /dev/null; }
service() { name=$1; shift; { echo "[Service]"; printf '%s\n' "$@"; } | put "$name.service"; }
sleeper="ExecStart=/bin/sleep infinity"
nowait() { systemctl "$1" --no-block "$2" || true; }
run() { systemctl "$@" 2> /dev/null || true; }

# at rest
service odd-dead "$sleeper"
service odd-done Type=oneshot ExecStart=/bin/true
service odd-exit Type=oneshot "ExecStart=/bin/sh -c 'exit 3'"
service odd-signal Type=oneshot "ExecStart=/bin/sh -c 'kill -KILL \$\$\$\$'"
service odd-late Type=notify TimeoutStartSec=100ms "$sleeper"
service odd-noexec Type=exec ExecStart=/nope/nothing
service odd-nouser User=nosuchuser "$sleeper"
service odd-limit Restart=always RestartSec=1ms ExecStart=/bin/false
service odd-stopped "$sleeper"
service odd-badpre ExecStartPre=/bin/false "$sleeper"
put odd-condition.service <<< "[Unit]
ConditionPathExists=/nope
[Service]
$sleeper"
put odd-dependency.service <<< "[Unit]
Requires=odd-exit.service
After=odd-exit.service
[Service]
$sleeper"

# what runs, or is about to
service odd-running MemoryAccounting=yes TasksAccounting=yes "$sleeper"
service odd-remain Type=oneshot RemainAfterExit=yes ExecStart=/bin/true
service odd-forking Type=forking GuessMainPID=no "ExecStart=/bin/sh -c 'sleep infinity &'"
service odd-slice Slice=odd-inner.slice "$sleeper"
service odd-talks Type=oneshot "ExecStart=/bin/sh -c 'echo one; echo two; printf \"\\\\377\\\\n\"'"
service odd-activating Type=notify TimeoutStartSec=infinity "$sleeper"
service odd-restarting Restart=always RestartSec=1h ExecStart=/bin/false
service odd-deactivating TimeoutStopSec=infinity "$sleeper" "ExecStop=/bin/sleep infinity"

# what they are loaded from
service odd-gone "$sleeper"
service odd-stale "$sleeper"
service odd-bad Type=simple
service odd-unknown Nonsense=yes "$sleeper"
put odd-broken.service <<< "[Service"
put odd-empty.service < /dev/null
as ln -s /dev/null "$etc/odd-masked.service"
as ln -s /nope/odd-dangling.service "$etc/odd-dangling.service"
service odd-dropins "$sleeper"
put odd-dropins.service.d/20-b.conf <<< "[Service]
Nice=1"
put odd-dropins.service.d/10-a.conf <<< "[Unit]
Description=from a drop-in"
service odd-real "$sleeper"; as ln -s odd-real.service "$etc/odd-nick.service"
put odd-words.service <<< "[Unit]
Description=Größe \"quoted\" 'single' back\\\\slash = a; b 🙂 %n
Documentation=man:sleep(1) https://example.invalid/?a=b&c=d info:x
[Service]
$sleeper"
put odd-wordy.service <<< "[Unit]
Description=$(printf 'x%.0s' $(seq 3000))
[Service]
$sleeper"
put 'odd-a:b_c.d\x2de.service' <<< "[Service]
$sleeper"
mkdir -p /etc/systemd/user; printf '[Service]\n%s\n' "$sleeper" > /etc/systemd/user/odd-vendor.service

# unit files
install="[Install]
WantedBy=default.target"
for n in enabled disabled; do put odd-$n.service <<< "[Service]
$sleeper
$install"; done
put odd-t@.service <<< "[Unit]
Description=instance %i (%I)
[Service]
$sleeper
$install"

# other types
put odd-listening.socket <<< "[Socket]
ListenStream=%t/odd-listening.sock"
service odd-listening "$sleeper"
put odd-nobind.socket <<< "[Socket]
ListenStream=203.0.113.1:9"
service odd-nobind "$sleeper"
put odd-waiting.timer <<< "[Timer]
OnActiveSec=1h
Unit=odd-dead.service"
put odd-elapsed.timer <<< "[Timer]
OnActiveSec=1ms
AccuracySec=1ms
RemainAfterElapse=yes
Unit=odd-done.service"
put odd-bad.timer <<< "[Timer]"
put odd-waiting.path <<< "[Path]
PathExists=/nope
Unit=odd-dead.service"
put odd-up.target <<< "[Unit]
Wants=odd-missing.service odd-missing.socket odd-condition.service
After=odd-missing.service"
put odd-idle.slice <<< "[Slice]"

systemctl daemon-reload
for u in odd-enabled odd-t@two; do systemctl -q enable $u.service; done
run start odd-up.target
up=
for u in done exit signal late noexec nouser limit stopped badpre condition running remain forking slice talks gone stale unknown dropins real words wordy \
	'a:b_c.d\x2de' vendor t@one; do up="$up odd-$u.service"; done
run start $up
for u in dependency bad; do run start odd-$u.service; done
run stop odd-stopped
for u in listening.socket nobind.socket waiting.timer elapsed.timer waiting.path; do run start odd-$u; done
as systemd-run --user -q --unit=odd-transient --description='made on the fly' sleep infinity
for u in activating restarting deactivating; do nowait start odd-$u.service; done
until systemctl -q is-active odd-deactivating; do sleep 0.05; done
nowait stop odd-deactivating.service

# what is changed behind the manager's back
as rm "$etc/odd-gone.service"
systemctl daemon-reload
run start odd-condition # which condition it was is forgotten at a reload
service odd-stale "$sleeper" Nice=1

# until all that ends by itself has ended
settled() {
	systemctl -q is-failed odd-nouser odd-limit odd-late && test "$(systemctl show -P SubState odd-restarting)" = auto-restart &&
		test "$(systemctl show -P SubState odd-elapsed.timer)" = elapsed
}
for i in $(seq 200); do
	if settled; then exit 0; fi
	sleep 0.05
done
echo "the odd units do not come to rest" >&2
systemctl list-units --all '*odd*' >&2
exit 1
