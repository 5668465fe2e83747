#!/usr/bin/env bash
# Some variables are for slurm-files.sh, and some functions are called by `until_true`:
# shellcheck disable=SC2034,SC2317
#
# A real Slurm cluster of several hosts on one Linux machine: no systemd, no container engine, nothing on the machine's
# own network but two loopback ports, nothing in its own users, mounts, /etc, /run or /var.
#
#   slurm-up.sh check [OPTION]...                what is missing here to start with these options; changes nothing
#   slurm-up.sh start DIR [OPTION]...            returns when it is ready, and leaves it running
#   slurm-up.sh run   DIR [OPTION]...            writes `ready PORT`, lives until its standard input ends, removes DIR
#   slurm-up.sh stop  DIR [--wipe]               ends everything of it (and removes DIR)
#   slurm-up.sh sweep PARENT                     removes what killed `run`s left: PARENT/tow-slurm-* that nobody holds
#   slurm-up.sh status DIR
#   slurm-up.sh exec DIR HOST [-u USER] -- COMMAND...
#   slurm-up.sh node-kill | node-start DIR HOST  power cut, and power on again (see below)
#   slurm-up.sh svc-kill | svc-start DIR HOST DAEMON
#                                                SIGKILL, and start again: slurmctld slurmd slurmdbd munged mariadbd sshd slurmrestd
#   slurm-up.sh net-cut | net-heal DIR HOST      the host's network link
#   slurm-up.sh ssh-drop DIR                     cuts every client connection that is open now
#
#   --nodes N (3)   --gpus G (4) and --cpus C (8) of each   --port P (two free ones are found)
#   --users A,B,C (alice,bob,carol)   --no-acct   --no-rest   --cgroup
#   --hide PATH, --expose PATH: of this machine, in all hosts; may be repeated
#   --conf KEY=VALUE: a line of slurm.conf, in place of the one below; may be repeated
#   --slurmd-timeout S (10)   --root ROOTFS
#
# A host is a set of namespaces (net, mount, pid, uts, ipc) with its own name, address, /tmp, /run, /dev and a throw-away
# copy-on-write root over this machine's packages, or over ROOTFS: another Debian release is another Slurm.
#
#   you --127.0.0.1:P----> bastion --+-- login      (Slurm's commands, sshd)
#   you --127.0.0.1:P+1----------------> login      (the same host without a bastion)
#                                    +-- ctl        (slurmctld, slurmdbd, mariadb, slurmrestd)
#                                    +-- c1..cN     (slurmd, sshd, G fake GPUs each)
#   /home is one shared folder (DIR/home) on all of them.      ssh -F DIR/ssh/config login|bastion|c1|direct
#
# All of it hangs on one process, the keeper: pid 1 of a pid namespace around the hosts, which also holds the network they
# share. When that one dies, the kernel ends all the others. Whatever lives of a cluster holds the lock DIR/lock.
# A host that is switched on again has an empty disk; only ctl keeps the state of Slurm and the database.
#
# Needs root, and here: openssh-client iproute2 socat util-linux procps; here or in ROOTFS: slurmctld slurmd slurm-client
# munge openssh-server procps, with accounting slurmdbd slurm-wlm-mysql-plugin mariadb-server, for REST slurmrestd
# slurm-wlm-jwt-plugin. Environment: CRED_EXPIRE (10 s), SCHEDPARAMS (values of low latency).
set -euo pipefail
umask 022

SELF=$(readlink -f "${BASH_SOURCE[0]}")
HERE=${SELF%/*}
NET=10.77.0
say() { printf '[slurm-up] %s\n' "$*" >&2; }
# 125: it is this script that failed, and not the command that it was to run in a host.
die() { say "error: $*"; exit 125; }

# shellcheck source=/dev/null
. "$HERE/slurm-files.sh"

# A pid is only ours while its start time is the one that was written down.
live_pid() { # FILE -> the pid, if that very process lives
  local pid started line fields
  { read -r pid started < "$1"; } 2>/dev/null || return 1
  { read -r line < "/proc/$pid/stat"; } 2>/dev/null || return 1
  read -ra fields <<< "${line##*) }"
  [ "${fields[19]}" = "$started" ] && [ "${fields[0]}" != Z ] && [ "${fields[0]}" != X ] && echo "$pid"
}
until_true() { # SECONDS COMMAND...
  local end=$((SECONDS + $1 + 1)); shift
  until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.02; done
}
keeper() { live_pid "$DIR/keeper" || die "the cluster in $DIR is not running"; }
in_keeper() { # starts a process that lives with the cluster; its own pid is for itself to tell
  local pid; pid=$(keeper)
  nsenter -t "$pid" -m -p -- setsid --fork "$@" </dev/null
}
in_switch() { local pid; pid=$(keeper); nsenter -t "$pid" -n "$@"; }
in_host() { # HOST COMMAND... : as root
  local host=$1 pid; shift
  pid=$(live_pid "$DIR/hosts/$host/pid") || die "host $host is not running"
  nsenter -t "$pid" -m -u -i -n -p -- "$@"
}

load_conf() {
  DIR=$(readlink -f "$1"); [ -f "$DIR/conf" ] || die "$DIR holds no cluster"
  # shellcheck source=/dev/null
  . "$DIR/conf"
}
save_conf() {
  local name
  {
    for name in NODES GPUS CPUS PORT ACCT REST CGROUP ROOT USERS SLURMD_TIMEOUT CRED_EXPIRE SCHEDPARAMS; do printf '%s=%q\n' "$name" "${!name}"; done
    printf 'HIDE=(%s)\nEXPOSE=(%s)\n' "${HIDE[*]@Q}" "${EXPOSE[*]@Q}"
  } > "$DIR/conf.new"
  mv "$DIR/conf.new" "$DIR/conf"
}
node_names() { local i; for ((i = 1; i <= NODES; i++)); do echo "c$i"; done; }
all_hosts() { echo ctl; echo login; echo bastion; node_names; }
addr_of() { case $1 in bastion) echo $NET.2 ;; login) echo $NET.3 ;; ctl) echo $NET.4 ;; c[0-9]*) echo $NET.$((100 + ${1#c})) ;; *) die "no host $1" ;; esac }

parse() {
  NODES=3 GPUS=4 CPUS=8 PORT="" ACCT=1 REST=1 CGROUP=0 ROOT="" USERS="alice bob carol" SLURMD_TIMEOUT=${SLURMD_TIMEOUT:-10}
  HIDE=() EXPOSE=() CONF=()
  CRED_EXPIRE=${CRED_EXPIRE:-10}     # a requeued job waits this long and 1 s before it may start again (Slurm's default: 120)
  SCHEDPARAMS=${SCHEDPARAMS:-bf_interval=2,batch_sched_delay=0,sched_min_interval=0}
  while [ $# -gt 0 ]; do
    case $1 in
      --no-acct) ACCT=0; shift; continue ;;
      --no-rest) REST=0; shift; continue ;;
      --cgroup) CGROUP=1; shift; continue ;;
    esac
    [ $# -ge 2 ] || die "$1 is no option, or its value is missing"
    case $1 in
      --nodes) NODES=$2 ;; --gpus) GPUS=$2 ;; --cpus) CPUS=$2 ;; --port) PORT=$2 ;; --slurmd-timeout) SLURMD_TIMEOUT=$2 ;;
      --users) USERS=${2//,/ } ;; --hide) HIDE+=("$2") ;; --expose) EXPOSE+=("$2") ;; --conf) CONF+=("$2") ;;
      --root) ROOT=$(readlink -f "$2") || die "$2 is not there" ;;
      *) die "unknown option $1" ;;
    esac
    shift 2
  done
  if [ "$NODES" -lt 1 ] || [ "$NODES" -gt 150 ]; then die "1 to 150 nodes, not $NODES"; fi
  # What the machine has must not look as if the cluster had it too; another root has nothing of it anyway.
  if [ -n "$ROOT" ]; then HIDE=(); else HIDE=(/mnt /srv /opt "${HIDE[@]}"); fi
  [ -x "$ROOT/usr/sbin/slurmrestd" ] || REST=0
}

check() {
  local program missing=""
  [ "$(id -u)" = 0 ] || die "must be root"
  for program in ssh-keygen ip socat nsenter unshare flock pgrep; do command -v $program >/dev/null || missing+=" $program"; done
  for program in sbin/slurmctld sbin/slurmd bin/sinfo sbin/munged sbin/sshd bin/pkill; do [ -x "$ROOT/usr/$program" ] || missing+=" $program"; done
  [ "$ACCT" = 0 ] || for program in sbin/slurmdbd sbin/mariadbd bin/mariadb-install-db; do [ -x "$ROOT/usr/$program" ] || missing+=" $program"; done
  [ -z "$missing" ] || die "not installed${ROOT:+ in $ROOT}:$missing"
  case $ROOT in *[:,\\]*) die "overlayfs cannot take the path $ROOT" ;; esac
  # shellcheck disable=SC2016
  unshare --net --mount --pid --uts --ipc --fork sh -ec '
    ip link add br0 type bridge; ip link add one type veth peer name two
    mount -t tmpfs none /mnt; mkdir /mnt/up /mnt/work /mnt/all
    mount -t overlay none -o "lowerdir=${1:-/},upperdir=/mnt/up,workdir=/mnt/work" /mnt/all' sh "$ROOT" 2>&1 | sed 's/^/[slurm-up] /' >&2 ||
    die "this machine gives no namespaces, network links or overlays to us"
}

# ------------------------------------------------------------------ start and end

# Holds DIR from here on, with all that is started. What an earlier cluster left there goes.
claim() {
  mkdir -p "$1"; DIR=$(readlink -f "$1")
  local used=0; [ ! -f "$DIR/lock" ] || used=1
  exec 8>"$DIR/lock"
  flock -n 8 || die "$DIR holds a cluster that is running; stop it first"
  if [ $used = 1 ]; then find "$DIR" -xdev -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf --one-file-system {} +; fi
  [ "$CGROUP" = 0 ] || claim_groups
  save_conf
}
# Nodes of all clusters have the same names, and Slurm names its control groups after them: one cluster at a time.
claim_groups() {
  exec 9>/run/lock/tow-slurm-cgroup
  flock -w 300 9 || die "another cluster with --cgroup has been running for five minutes"
  remove_groups
}
remove_groups() { find /sys/fs/cgroup -depth -type d -path '*/slurm_c[0-9]*' -exec rmdir {} + 2>/dev/null || :; }

# Words that the keeper is started by: none, or those that make it die with us.
bring_up() {
  local begun=$EPOCHREALTIME host
  "$@" setsid unshare --net --mount --pid --fork --kill-child bash "$HERE/slurm-host.sh" keep "$DIR" </dev/null >"$DIR/keeper.log" 2>&1 &
  until_true 10 test -s "$DIR/keeper" || die "no keeper: $(cat "$DIR/keeper.log")"
  open_doors
  save_conf
  write_files
  if [ -n "${SUDO_UID:-}" ]; then chown -R "$SUDO_UID" "$DIR/ssh"; fi      # tests that run without root may use the key
  for host in $(all_hosts); do boot_host "$host"; done
  for host in $(all_hosts); do plug_host "$host"; done
  until_true 90 is_ready || die "not ready after 90 s: $(tell_logs)"
  say "ready after $(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }') s: ssh -F $DIR/ssh/config login sinfo"
}
open_doors() {
  if [ -n "$PORT" ]; then
    if open_door "$PORT" $NET.2 && open_door $((PORT + 1)) $NET.3; then return; fi
    die "port $PORT or $((PORT + 1)) of 127.0.0.1 is taken: give another --port, or none"
  fi
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    PORT=$((12000 + RANDOM % 4000 * 2))      # below the ports that the kernel hands out to clients
    if open_door $PORT $NET.2; then
      open_door $((PORT + 1)) $NET.3 && return
      close_door $PORT
    fi
  done
  die "no two free ports"
}
open_door() { # PORT ADDRESS : 127.0.0.1:PORT of this machine leads to ADDRESS:22 in the cluster's network; false if the port is taken
  in_keeper bash "$HERE/slurm-host.sh" door "$DIR" "$1" "$2"
  until_true 10 grep -qsE 'listening on|already in use' "$DIR/door.$1.log" || die "socat does not start: $(cat "$DIR/door.$1.log")"
  grep -q 'listening on' "$DIR/door.$1.log" || { rm -f "$DIR/door.$1" "$DIR/door.$1.log"; return 1; }
}
close_door() { local pid; pid=$(live_pid "$DIR/door.$1") && kill "$pid"; rm -f "$DIR/door.$1" "$DIR/door.$1.log"; }

boot_host() { # HOST [1 when it is switched on again]
  local folder=$DIR/hosts/$1
  mkdir -p "$folder/root" "$folder/log"; rm -f "$folder/pid" "$folder/plugged" "$folder/log/up"
  REBOOTED=${2:-} in_keeper unshare --net --mount --pid --uts --ipc --fork --kill-child bash "$HERE/slurm-host.sh" init "$DIR" "$1" \
    >>"$folder/log/init.log" 2>&1
}
plug_host() { # waits for the host's pid, then gives it a network link
  local host=$1 addr pid; addr=$(addr_of "$1")
  until_true 20 test -s "$DIR/hosts/$host/pid" || :
  pid=$(live_pid "$DIR/hosts/$host/pid") || die "host $host does not start: $(tail -n 3 "$DIR/hosts/$host/log/init.log")"
  in_switch ip link add "v-$host" type veth peer name eth0 netns "$pid"
  in_switch ip link set "v-$host" master br0 up
  # quickack: Slurm's database protocol writes each message in two parts without TCP_NODELAY: 88 ms of delayed
  # acknowledgement a call, unless they are immediate.
  nsenter -t "$pid" -n ip -b - <<X
link set lo up
link set eth0 address $(printf '02:77:00:00:00:%02x' "${addr##*.}")
addr add $addr/24 dev eth0
link set eth0 up
route change $NET.0/24 dev eth0 proto kernel scope link src $addr quickack 1
route replace local $addr dev eth0 table local proto kernel scope host src $addr quickack 1
X
  touch "$DIR/hosts/$host/plugged"
}
is_ready() { # all nodes can take jobs, both doors lead to an SSH server
  local many
  keeper >/dev/null
  many=$(in_host login timeout 3 sinfo -h -N -o '%N %t' 2>/dev/null | awk '$2 ~ /^(idle|mix|alloc)$/ { print $1 }' | sort -u | wc -l) || return 1
  [ "$many" = "$NODES" ] && speaks_ssh "$PORT" && speaks_ssh $((PORT + 1))
}
speaks_ssh() { (exec 3<>"/dev/tcp/127.0.0.1/$1" && read -rt 3 line <&3 && [[ $line == SSH-* ]]) 2>/dev/null; }
tell_logs() { local log; for log in "$DIR"/hosts/*/log/*; do if [ -s "$log" ]; then printf '\n--- %s\n' "${log#"$DIR/hosts/"}"; tail -n 5 "$log"; fi; done; }

# Everything of it has ended when this returns; what it wrote stays.
end_all() {
  local pid
  if pid=$(live_pid "$DIR/keeper"); then kill -9 "$pid"; fi
  exec 8>&-
  # The keeper is gone when all below it are; whoever else lives of it has the lock.
  flock -w 20 "$DIR/lock" true || die "something of the cluster in $DIR does not end"
  if [ "$CGROUP" = 1 ]; then remove_groups; fi
  rm -f "$DIR/conf" "$DIR/keeper"
}
wipe() { rm -rf --one-file-system "$DIR"; }

cmd_check() { parse "$@"; check; }
cmd_start() {
  local dir=${1:?DIR}; shift; parse "$@"; check; claim "$dir"
  trap 'end_all' EXIT
  bring_up
  trap - EXIT
}
cmd_run() {
  local dir=${1:?DIR}; shift; parse "$@"; check; cmd_sweep "$(dirname "$dir")"; claim "$dir"
  trap 'end_all; wipe' EXIT
  trap 'exit 0' TERM INT HUP
  bring_up setpriv --pdeathsig KILL --
  exec 8>&- 9>&-      # held by the cluster itself from here on
  echo "ready $PORT"
  exec >/dev/null
  while read -r _; do :; done
}
cmd_stop() {
  local dir=${1:?DIR}
  if [ -f "$dir/conf" ]; then load_conf "$dir"; end_all; say stopped; else say "nothing runs in $dir"; fi
  if [ "${2:-}" = --wipe ] && [ -f "$dir/lock" ]; then DIR=$dir; wipe; fi
}
cmd_sweep() {
  local left
  for left in "${1:?PARENT}"/tow-slurm-*; do
    if [ -f "$left/conf" ] && [ -f "$left/lock" ]; then flock -n "$left/lock" rm -rf --one-file-system "$left" || :; fi
  done
}

# ------------------------------------------------------------------ with one that runs

cmd_status() {
  load_conf "$1"; local host pid
  for host in $(all_hosts); do if pid=$(live_pid "$DIR/hosts/$host/pid"); then echo "$host up pid $pid $(addr_of "$host")"; else echo "$host DOWN"; fi; done
  in_host login timeout 5 sinfo -N -o '%N %P %t %C %G %E' || :
}
cmd_exec() {
  load_conf "$1"; local host=$2 user=root; shift 2
  [ "${1:-}" != -u ] || { user=$2; shift 2; }
  [ "${1:-}" != -- ] || shift
  local common=(env -i TERM="${TERM:-dumb}" LANG=C.UTF-8)
  if [ "$user" = root ]; then in_host "$host" "${common[@]}" PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; return; fi
  # shellcheck disable=SC2016
  in_host "$host" "${common[@]}" PATH=/usr/local/bin:/usr/bin:/bin HOME="/home/$user" USER="$user" LOGNAME="$user" \
    setpriv --reuid "$user" --regid "$user" --init-groups sh -c 'cd; exec "$@"' sh "$@"
}
cmd_node_kill() {
  load_conf "$1"; local pid; pid=$(live_pid "$DIR/hosts/$2/pid") || die "$2 is down already"
  in_switch ip link set "v-$2" down      # a host without power says goodbye to nobody
  kill -9 "$pid"
  until_true 20 host_is_down "$2" || die "$2 does not die"
}
host_is_down() { ! live_pid "$DIR/hosts/$1/pid" >/dev/null; }
cmd_node_start() {
  load_conf "$1"; host_is_down "$2" || die "$2 is up"
  addr_of "$2" >/dev/null
  in_switch ip link del "v-$2" 2>/dev/null || :
  boot_host "$2" 1; plug_host "$2"
  until_true 20 test -e "$DIR/hosts/$2/log/up" || die "$2 does not come up: $(tail -n 3 "$DIR/hosts/$2/log/init.log")"
}
cmd_svc_kill() { # inside the host's own pid namespace: sees nothing else
  load_conf "$1"; in_host "$2" pkill -9 -x "$3" || die "no $3 runs on $2"
  until_true 10 svc_is_down "$2" "$3" || die "$3 on $2 does not die"
}
svc_is_down() { ! in_host "$1" pgrep -x "$2" >/dev/null; }
cmd_svc_start() { load_conf "$1"; in_host "$2" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /run/slurm-host.sh svc "$3" || die "$3 on $2 does not start"; }
cmd_net_cut() { load_conf "$1"; in_switch ip link set "v-$2" down; }
cmd_net_heal() { load_conf "$1"; in_switch ip link set "v-$2" up; }
cmd_ssh_drop() {
  load_conf "$1"; local door pid
  for door in "$DIR/door.$PORT" "$DIR/door.$((PORT + 1))"; do if pid=$(live_pid "$door"); then pkill -9 -P "$pid" || :; fi; done
}

main() {
  local command=${1:-}; [ $# -eq 0 ] || shift
  case $command in
    check) cmd_check "$@" ;; start) cmd_start "$@" ;; run) cmd_run "$@" ;; stop) cmd_stop "$@" ;; sweep) cmd_sweep "$@" ;;
    status) cmd_status "$@" ;; exec) cmd_exec "$@" ;; node-kill) cmd_node_kill "$@" ;; node-start) cmd_node_start "$@" ;;
    svc-kill) cmd_svc_kill "$@" ;; svc-start) cmd_svc_start "$@" ;; net-cut) cmd_net_cut "$@" ;; net-heal) cmd_net_heal "$@" ;; ssh-drop) cmd_ssh_drop "$@" ;;
    *) sed -n '5,/^set -/{/^#/s/^# \{0,1\}//p}' "$SELF"; exit 2 ;;
  esac
}
main "$@"; exit $?
