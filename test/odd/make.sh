# Makes units of all types in odd states, in a node that has nothing else to do.
# Everything is there when it ends. All names hold "odd".
set -eu
etc=/etc/systemd/system
put() { mkdir -p "$(dirname "$etc/$1")"; cat > "$etc/$1"; }
service() { name=$1; shift; { echo "[Service]"; printf '%s\n' "$@"; } | put "$name.service"; }
sleeper="ExecStart=/bin/sleep infinity"
nowait() { systemctl "$1" --no-block "$2" || true; }
run() { systemctl "$@" 2> /dev/null || true; }

# services at rest
service odd-dead "$sleeper"
service odd-loose "$sleeper"
service odd-done Type=oneshot ExecStart=/bin/true
service odd-forgiven Type=oneshot ExecStart=-/bin/false
service odd-seven Type=oneshot SuccessExitStatus=7 "ExecStart=/bin/sh -c 'exit 7'"
service odd-exit Type=oneshot "ExecStart=/bin/sh -c 'exit 3'"
service odd-signal Type=oneshot "ExecStart=/bin/sh -c 'kill -KILL \$\$\$\$'"
service odd-abort Type=oneshot "ExecStart=/bin/sh -c 'kill -ABRT \$\$\$\$'"
service odd-late Type=notify TimeoutStartSec=100ms "$sleeper"
service odd-noexec Type=exec ExecStart=/nope/nothing
service odd-nosimple ExecStart=/nope/nothing
service odd-nouser User=nosuchuser "$sleeper"
service odd-nocwd WorkingDirectory=/nope "$sleeper"
service odd-protocol Type=notify ExecStart=/bin/true
service odd-limit Restart=always RestartSec=1ms ExecStart=/bin/false
service odd-stopped "$sleeper"
service odd-badstop "$sleeper" ExecStop=/bin/false
service odd-badpre ExecStartPre=/bin/false "$sleeper"
service odd-watchdog Type=notify NotifyAccess=all WatchdogSec=100ms 'ExecStart=/bin/sh -c "systemd-notify --ready; exec sleep infinity"'
service odd-maxed RuntimeMaxSec=100ms "$sleeper"
put odd-condition.service <<< "[Unit]
ConditionPathExists=/nope
ConditionPathExists=!/etc
ConditionPathExists=|/etc
[Service]
$sleeper"
put odd-assert.service <<< "[Unit]
AssertPathExists=!/etc
[Service]
$sleeper"
put odd-dependency.service <<< "[Unit]
Requires=odd-exit.service
After=odd-exit.service
[Service]
$sleeper"

# services that run, or are about to
service odd-running MemoryAccounting=yes TasksAccounting=yes CPUAccounting=yes IPAccounting=yes "$sleeper"
service odd-unaccounted MemoryAccounting=no TasksAccounting=no CPUAccounting=no "$sleeper"
service odd-remain Type=oneshot RemainAfterExit=yes ExecStart=/bin/true
service odd-forking Type=forking GuessMainPID=no "ExecStart=/bin/sh -c 'sleep infinity &'"
service odd-user User=nobody "$sleeper"
service odd-dynamic DynamicUser=yes "$sleeper"
service odd-slice Slice=odd-inner.slice "$sleeper"
service odd-notify Type=notify NotifyAccess=all 'ExecStart=/bin/sh -c "systemd-notify --ready --status=fine; exec sleep infinity"'
service odd-again Restart=on-failure RestartSec=1ms RuntimeDirectory=odd RuntimeDirectoryPreserve=yes \
	"ExecStart=/bin/sh -c 'echo >> /run/odd/tries; test \$\$(wc -l < /run/odd/tries) -gt 2 && exec sleep infinity; exit 1'"
service odd-activating Type=notify TimeoutStartSec=infinity "$sleeper"
service odd-long Type=oneshot ExecStart=/bin/sleep\ infinity
service odd-restarting Restart=always RestartSec=1h ExecStart=/bin/false
service odd-deactivating TimeoutStopSec=infinity "$sleeper" "ExecStop=/bin/sleep infinity"
service odd-reloading TimeoutStartSec=infinity "$sleeper" "ExecReload=/bin/sleep infinity"
put odd-waiting.service <<< "[Unit]
After=odd-activating.service
[Service]
$sleeper"

# what they are loaded from
service odd-masked-running "$sleeper"
service odd-gone "$sleeper"
service odd-stale "$sleeper"
service odd-bad Type=simple
service odd-badtype Type=nonsense "$sleeper"
service odd-unknown Nonsense=yes "$sleeper"
put odd-broken.service <<< "[Service"
put odd-empty.service < /dev/null
ln -s /dev/null $etc/odd-masked.service
mkdir -p /run/systemd/system; ln -s /dev/null /run/systemd/system/odd-masked-runtime.service
ln -s /nope/odd-dangling.service $etc/odd-dangling.service
service odd-dropins "$sleeper"
put odd-dropins.service.d/20-b.conf <<< "[Service]
Nice=1"
put odd-dropins.service.d/10-a.conf <<< "[Unit]
Description=from a drop-in"
put odd-.service.d/50-all.conf <<< "[Service]
Environment=ODD=1"
service odd-real "$sleeper"; ln -s odd-real.service $etc/odd-nick.service; ln -s odd-real.service $etc/odd-other.service
put odd-words.service <<< "[Unit]
Description=Größe \"quoted\" 'single' back\\\\slash = a; b 🙂 %n
Documentation=man:sleep(1) https://example.invalid/?a=b&c=d file:/etc/fstab info:x
[Service]
$sleeper"
put odd-wordy.service <<< "[Unit]
Description=$(printf 'x%.0s' $(seq 3000))
[Service]
$sleeper"
put odd-silent.service <<< "[Unit]
Description=
[Service]
$sleeper"
put 'odd-a:b_c.d\x2de.service' <<< "[Service]
$sleeper"

# unit files
install="[Install]
WantedBy=multi-user.target"
for n in enabled disabled runtime; do put odd-$n.service <<< "[Service]
$sleeper
$install"; done
put odd-indirect.service <<< "[Service]
$sleeper
[Install]
Also=odd-enabled.service"
put odd-default@.service <<< "[Service]
$sleeper
$install
DefaultInstance=this"
put odd-t@.service <<< "[Unit]
Description=instance %i (%I)
[Service]
$sleeper
$install"
mkdir -p /opt/odd; for n in linked linked-on; do printf '[Service]\n%s\n%s\n' "$sleeper" "$install" > /opt/odd/odd-$n.service; done
mkdir -p /usr/lib/systemd/system-preset /etc/systemd/system-preset
cat > /etc/systemd/system-preset/10-odd.preset <<< "disable odd-disabled.service
# a comment
enable odd-default@.service one two
disable odd-t@*
disable odd-[r]*.service"
cat > /usr/lib/systemd/system-preset/10-odd.preset <<< "disable odd-*"
mkdir -p /etc/systemd/system-generators
cat > /etc/systemd/system-generators/odd <<< "#!/bin/sh
printf '[Unit]\nSourcePath=/etc/odd\n[Service]\n$sleeper\n' > \"\$1/odd-generated.service\""
chmod +x /etc/systemd/system-generators/odd

# other types
put odd-listening.socket <<< "[Socket]
ListenStream=/run/odd-listening.sock"
service odd-listening "$sleeper"
put odd-accept.socket <<< "[Socket]
ListenStream=/run/odd-accept.sock
Accept=yes"
service odd-accept@ "$sleeper"
put odd-triggered.socket <<< "[Socket]
ListenFIFO=/run/odd-triggered.fifo"
service odd-triggered "$sleeper"
put odd-nobind.socket <<< "[Socket]
ListenStream=203.0.113.1:9"
service odd-nobind "$sleeper"
put odd-nothing.socket <<< "[Socket]"
put odd-lonely.socket <<< "[Socket]
ListenStream=/run/odd-lonely.sock"
put odd-waiting.timer <<< "[Timer]
OnActiveSec=1h
Unit=odd-dead.service"
put odd-calendar.timer <<< "[Timer]
OnCalendar=*-*-* 04:05:06
Persistent=yes
Unit=odd-dead.service"
put odd-elapsed.timer <<< "[Timer]
OnActiveSec=1ms
AccuracySec=1ms
RemainAfterElapse=yes
Unit=odd-done.service"
put odd-done.timer <<< "[Timer]
OnCalendar=hourly"
put odd-lost.timer <<< "[Timer]
OnCalendar=hourly"
put odd-bad.timer <<< "[Timer]"
put odd-dead.timer <<< "[Timer]
OnCalendar=daily"
put odd-waiting.path <<< "[Path]
PathExists=/nope
Unit=odd-dead.service"
put odd-running.path <<< "[Path]
PathExists=/etc
Unit=odd-running.service"
put odd-dead.path <<< "[Path]
PathChanged=/etc"
put odd-bad.path <<< "[Path]
Unit=odd-dead.service"
put odd-up.target <<< "[Unit]
Description=wants what there is not
Wants=odd-missing.service odd-missing.socket odd-missing.mount odd-condition.service odd-assert.service dev-odd0.device
After=odd-missing.service"
put odd-down.target <<< "[Unit]
Wants=odd-up.target"
put odd-conflict.target <<< "[Unit]
Conflicts=odd-loose.service
RefuseManualStop=yes"
put odd.slice <<< "[Slice]
MemoryMax=100M
CPUQuota=50%"
put odd-idle.slice <<< "[Slice]"
put run-odd.mount <<< "[Mount]
What=tmpfs
Where=/run/odd
Type=tmpfs"
put run-oddbad.mount <<< "[Mount]
What=nope
Where=/run/oddbad
Type=nosuchtype"
put run-odddead.mount <<< "[Mount]
What=tmpfs
Where=/run/odddead"
put run-oddwrong.mount <<< "[Mount]
What=tmpfs
Where=/run/elsewhere"
put run-oddauto.automount <<< "[Automount]
Where=/run/oddauto"
put run-oddauto.mount <<< "[Mount]
What=tmpfs
Where=/run/oddauto
Type=tmpfs"
put run-odddead.automount <<< "[Automount]
Where=/run/odddead"
put odd-file.swap <<< "[Swap]
What=/odd/file"
put run-oddswap.swap <<< "[Swap]
What=/run/oddswap"
put dev-odd1.swap <<< "[Swap]
What=/dev/odd1"
put odd-missing-parts.service <<< "[Unit]
Requires=odd-missing.target
[Service]
$sleeper"

systemctl daemon-reload
for u in odd-enabled odd-default@ odd-t@two odd-linked-on; do
	case $u in *linked*) systemctl -q enable /opt/odd/$u.service ;; *) systemctl -q enable $u.service ;; esac
done
systemctl -q enable --runtime odd-runtime.service
systemctl -q link /opt/odd/odd-linked.service
run start odd-up.target odd-conflict.target odd.slice run-odd.mount
up=
for u in done forgiven seven exit signal abort late noexec nosimple nouser nocwd protocol limit stopped badstop badpre watchdog maxed condition assert \
	running unaccounted remain forking user dynamic slice notify again masked-running gone stale unknown dropins real words wordy silent \
	'a:b_c.d\x2de' enabled t@one 't@a\x2db' linked generated; do up="$up odd-$u.service"; done
run start $up
for u in dependency missing-parts bad; do run start odd-$u.service; done
run stop odd-stopped odd-badstop
up=
for u in listening.socket accept.socket triggered.socket nobind.socket lonely.socket waiting.timer calendar.timer elapsed.timer done.timer lost.timer \
	waiting.path running.path; do up="$up odd-$u"; done
for u in $up odd-file.swap run-oddbad.mount run-oddauto.automount run-oddswap.swap; do run start $u; done
nowait start dev-odd1.swap
echo x > /run/odd-triggered.fifo
systemd-run -q --unit=odd-transient --description='made on the fly' -p MemoryMax=50M sleep infinity
systemd-run -q --unit=odd-scope --scope sleep infinity < /dev/null > /dev/null 2>&1 &
systemd-run -q --unit=odd-hourly --on-calendar=hourly --timer-property=AccuracySec=1h true
mkdir -p /run/oddhand; mount -t tmpfs odd /run/oddhand
for u in activating long restarting deactivating reloading; do nowait start odd-$u.service; done
until systemctl -q is-active odd-reloading odd-deactivating; do sleep 0.05; done
nowait start odd-waiting.service
nowait reload odd-reloading.service
nowait stop odd-deactivating.service

# what is changed behind the manager's back
rm $etc/odd-masked-running.service; ln -s /dev/null $etc/odd-masked-running.service
rm $etc/odd-gone.service
systemctl daemon-reload
run start odd-condition odd-assert # which condition it was is forgotten at a reload
printf '[Service]\n%s\nNice=1\n' "$sleeper" > $etc/odd-stale.service

# until all that ends by itself has ended
settled() {
	systemctl -q is-failed odd-watchdog odd-maxed odd-nosimple odd-nouser odd-nocwd odd-limit && systemctl -q is-active odd-again odd-scope.scope &&
		test "$(systemctl show -P SubState odd-restarting)" = auto-restart && test "$(systemctl show -P SubState odd-elapsed.timer)" = elapsed &&
		test "$(systemctl show -P SubState run-oddhand.mount)" = mounted && systemctl -q is-active odd-triggered
}
for i in $(seq 200); do
	if settled; then exit 0; fi
	sleep 0.05
done
echo "the odd units do not come to rest" >&2
systemctl list-units --all '*odd*' >&2
exit 1
