# The keeper of a lab network: a bridge in a network namespace of its own, which nothing leads out of.
#   net.sh STATE GROUP HOME keep|tied ADDRESS/BITS        see hold.sh
set -eu
state=$1 address=$5

mount -t proc proc /proc # in a lab node, the one that is there cannot be written to
sysctl() { echo "$2" > "/proc/sys/net/$1"; }
# No other protocol speaks up by itself, and nothing is passed on between networks.
sysctl ipv6/conf/all/disable_ipv6 1 2> /dev/null || true
sysctl ipv6/conf/default/disable_ipv6 1 2> /dev/null || true
ip link set lo up
ip link add switch type bridge forward_delay 0 mcast_snooping 0
ip address add "$address" dev switch
ip link set switch up
. "$state/hold.sh"
