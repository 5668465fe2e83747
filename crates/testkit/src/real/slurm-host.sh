#!/usr/bin/env bash
# What slurm-up.sh runs in namespaces of its own; nobody else calls it.
#
#   keep DIR               the keeper: pid 1 around all hosts, and the switch between them
#   door DIR PORT ADDRESS  leads a port of the machine to an SSH server in the cluster
#   init DIR HOST          pid 1 of a host
#   svc DAEMON             in a host: starts one daemon and waits until it answers

load_conf() {
  DIR=$1
  # shellcheck source=/dev/null
  . "$DIR/conf"
}
# /proc is still the machine's: it says what pid we have there.
note_self() { # FILE
  local line fields
  read -r line < /proc/self/stat
  read -ra fields <<< "${line##*) }"
  echo "${line%% *} ${fields[19]}" > "$1.new" && mv "$1.new" "$1"
}

keep() {
  load_conf "$1"
  ip link add br0 type bridge && ip addr add 10.77.0.1/24 dev br0 && ip link set br0 up && ip link set lo up || exit 1
  # Disks that outlive a power cut of their host.
  mkdir -p "$DIR/disk" && mount -t tmpfs -o size=50%,mode=755 tow-disk "$DIR/disk" || exit 1
  note_self "$DIR/keeper"
  reap
}
reap() { while :; do sleep 86400 & wait $!; done; }      # bash as pid 1 collects every orphan

door() {
  DIR=$1; local keeper
  note_self "$DIR/door.$2"
  read -r keeper _ < "$DIR/keeper"
  exec socat -d -d "TCP-LISTEN:$2,bind=127.0.0.1,reuseaddr,fork,nodelay" "EXEC:nsenter -t $keeper -n socat STDIO TCP\:$3\:22\,nodelay" \
    >/dev/null 2>"$DIR/door.$2.log"
}

# ------------------------------------------------------------------ one host

init() { # runs in fresh net, mount, pid, uts and ipc namespaces
  load_conf "$1"; local host=$2 folder=$DIR/hosts/$2 root i
  root=$folder/root/m
  note_self "$folder/pid"
  hostname "$host"; export HOSTNAME=$host
  mount_root || exit 1
  mount_devices
  mount_rest
  cp -r "$DIR/etc" "$root/run/tow"; cp "$DIR/conf" "$root/run/tow.conf"; cp "${BASH_SOURCE[0]}" "$root/run/slurm-host.sh"
  for ((i = 0; i < 3000; i++)); do [ -e "$folder/plugged" ] && break; sleep 0.01; done      # the network link is put in from outside
  # Enter the new root for good; from here on only its own programs and user names count.
  cd "$root" && mkdir -p .old && pivot_root . .old && cd / && umount -l /.old && rmdir /.old || exit 1
  unset SLURM_CONF; export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LANG=C.UTF-8; hash -r
  make_users
  place_files
  [ "$host" = ctl ] || start sshd
  [ "$host" = bastion ] || start munged
  [ "$host" = ctl ] || answers sshd
  touch /var/log/slurm/up
  case $host in
    ctl) start_control ;;
    c[0-9]*)
      for ((i = 0; i < 1200; i++)); do listens ctl 6817 && break; sleep 0.05; done
      start slurmd ${REBOOTED:+-b}
      ;;
  esac
  reap
}

mount_root() {
  mount -t tmpfs -o size=50%,mode=755 "tow-$host" "$folder/root" &&
    mkdir "$folder/root/up" "$folder/root/work" "$root" &&
    mount -t overlay "tow-$host" -o "lowerdir=${ROOT:-/},upperdir=$folder/root/up,workdir=$folder/root/work" "$root" &&
    mount -t proc proc "$root/proc" && mount -t sysfs -o ro sysfs "$root/sys" && mount -t tmpfs -o mode=755 dev "$root/dev" &&
    mount -t tmpfs -o mode=755 run "$root/run"
}
mount_devices() {
  local device i dev=$root/dev
  for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "fuse 10 229"; do
    # shellcheck disable=SC2086
    set -- $device; mknod -m 666 "$dev/$1" c "$2" "$3"
  done
  # Slurm counts GPUs by their devices, and takes no plain file: these are /dev/null in disguise.
  case $host in c[0-9]*) for ((i = 0; i < GPUS; i++)); do mknod -m 666 "$dev/nvidia$i" c 1 3; done ;; esac
  mkdir "$dev/pts" "$dev/shm"; mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$dev/pts"; mount -t tmpfs -o mode=1777 shm "$dev/shm"
  ln -s pts/ptmx "$dev/ptmx"; ln -s /proc/self/fd "$dev/fd"; ln -s fd/0 "$dev/stdin"; ln -s fd/1 "$dev/stdout"; ln -s fd/2 "$dev/stderr"
}
mount_rest() {
  local path kept
  for path in "${EXPOSE[@]}"; do bind "$path" "$folder/root/x$path"; done
  for path in /tmp /root "${HIDE[@]}"; do if [ -d "$root$path" ]; then mount -t tmpfs -o mode=755 hidden "$root$path"; fi; done
  chmod 1777 "$root/tmp"; chmod 700 "$root/root"
  for path in "${EXPOSE[@]}"; do bind "$folder/root/x$path" "$root$path"; done
  bind "$DIR/home" "$root/home"
  if [ "$CGROUP" = 1 ]; then mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"; fi
  # Not sticky: a daemon that drops root could not open its own log again.
  chmod 777 "$folder/log"; bind "$folder/log" "$root/var/log/slurm"
  rm -rf "$root/var/lib/slurm"
  if [ "$host" = ctl ]; then for kept in slurm tow-mysql; do mkdir -p "$DIR/disk/$kept"; bind "$DIR/disk/$kept" "$root/var/lib/$kept"; done; fi
}
bind() { # FROM TO
  if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "${2%/*}"; touch "$2"; fi
  mount --rbind "$1" "$2"
}

make_users() {
  local user id=20001
  for user in $USERS; do
    echo "$user:x:$id:$id::/home/$user:/bin/bash" >> /etc/passwd; echo "$user:x:$id:" >> /etc/group
    echo "$user:*:19000:0:99999:7:::" >> /etc/shadow      # `*` and not `!`: sshd refuses locked accounts
    id=$((id + 1))
  done
}
place_files() {
  local given=/run/tow
  cp $given/hosts /etc/hosts; echo "$host" > /etc/hostname
  rm -rf /etc/slurm /etc/munge /var/lib/munge /var/log/munge /etc/ssh/ssh_host_*
  mkdir -p /etc/slurm /etc/munge /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/lib/munge /var/log/munge /run/munge /run/sshd /run/mysqld
  if [ "$host" != bastion ]; then
    cp $given/slurm/slurm.conf /etc/slurm/; [ "$(slurm_version)" -ge 2108 ] || sed -i '/^AccountingStoreFlags=/d' /etc/slurm/slurm.conf
    cp $given/munge/munge.key /etc/munge/
    chown -R munge: /etc/munge /var/lib/munge /var/log/munge /run/munge
    chmod 700 /etc/munge /var/log/munge; chmod 711 /var/lib/munge; chmod 400 /etc/munge/munge.key
    case $host in c[0-9]* | ctl)
      [ ! -f $given/slurm/gres.conf ] || cp $given/slurm/gres.conf /etc/slurm/
      cgroup_conf > /etc/slurm/cgroup.conf ;;
    esac
  fi
  if [ "$host" = ctl ]; then
    cp $given/slurm/jwt.key /etc/slurm/; chmod 600 /etc/slurm/jwt.key; chown slurm: /etc/slurm/jwt.key /var/lib/slurm /var/lib/slurm/slurmctld
    [ ! -f $given/slurm/slurmdbd.conf ] || install -m 600 -o slurm -g slurm $given/slurm/slurmdbd.conf /etc/slurm/
  fi
  if [ -f "$given/ssh/$host" ]; then install -m 600 "$given/ssh/$host" /etc/ssh/tow_host_key; cp $given/ssh/sshd_config /etc/ssh/sshd_config; fi
  rm -rf $given
}
slurm_version() { # 22.05 -> 2205
  local version; version=$(slurmd -V | grep -oE '[0-9]+\.[0-9]+' | head -n1); echo $((10#${version%.*} * 100 + 10#${version#*.}))
}
cgroup_conf() { # Slurm loads a cgroup plugin even when nothing uses it, and slurmd dies when it finds no mount by itself
  local version; version=$(slurm_version)
  if [ "$CGROUP" = 1 ]; then
    printf 'CgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\nConstrainSwapSpace=no\nConstrainCores=no\nConstrainDevices=no\n'
    [ "$version" -lt 2205 ] || echo IgnoreSystemd=yes
  elif [ "$version" -ge 2311 ]; then echo CgroupPlugin=disabled
  elif [ "$version" -ge 2108 ]; then echo CgroupPlugin=cgroup/v1
  fi
}

# ------------------------------------------------------------------ daemons

start() { # DAEMON [OPTION]... : detached
  local daemon=$1 logs=/var/log/slurm; shift
  case $daemon in
    sshd) # -D: a child of pid 1 that leads its session takes itself for a daemon already and never forks
      setsid /usr/sbin/sshd -D -E $logs/sshd.log </dev/null >/dev/null 2>&1 & ;;
    munged) setsid runuser -u munge -- /usr/sbin/munged </dev/null >>$logs/munged.out 2>&1 ;;
    slurmd | slurmctld | slurmdbd) setsid "/usr/sbin/$daemon" "$@" </dev/null >>"$logs/$daemon.out" 2>&1 ;;
    mariadbd) # 2: no commit waits for a disk, and none is lost when the host loses power
      setsid /usr/sbin/mariadbd --no-defaults --user=mysql --datadir=/var/lib/tow-mysql --socket=/run/mysqld/mysqld.sock \
        --pid-file=/run/mysqld/mysqld.pid --skip-networking --skip-grant-tables --skip-log-bin --performance-schema=OFF \
        --innodb-buffer-pool-size=64M --innodb-log-file-size=32M --innodb-flush-log-at-trx-commit=2 --innodb-lock-wait-timeout=900 \
        --innodb-doublewrite=0 --innodb-use-native-aio=0 --key-buffer-size=1M --table-open-cache=200 --max-connections=50 \
        --log-error=$logs/mariadb.log </dev/null >/dev/null 2>&1 & ;;
    slurmrestd) # refuses to run as root or as SlurmUser
      SLURM_JWT=daemon setsid runuser -u nobody -- /usr/sbin/slurmrestd -a rest_auth/jwt 0.0.0.0:6820 </dev/null >>$logs/slurmrestd.log 2>&1 & ;;
    *) echo "unknown daemon $daemon" >&2; return 1 ;;
  esac
}
answers() { # DAEMON : waits for it
  local i
  for ((i = 0; i < 400; i++)); do
    case $1 in
      sshd) listens localhost 22 ;; slurmctld) listens localhost 6817 ;; slurmd) listens localhost 6818 ;;
      slurmdbd) listens localhost 6819 ;; slurmrestd) listens localhost 6820 ;; munged) munge -n >/dev/null 2>&1 ;;
      mariadbd) mariadb -S /run/mysqld/mysqld.sock -e 'select 1' >/dev/null 2>&1 ;;
    esac && return
    sleep 0.05
  done
  return 1
}
listens() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

start_control() {
  if [ "$ACCT" = 1 ]; then
    local known=1 logs=/var/log/slurm
    touch $logs/mariadb.log; chown mysql: /run/mysqld /var/lib/tow-mysql $logs/mariadb.log
    if [ ! -d /var/lib/tow-mysql/mysql ]; then
      known=0
      mariadb-install-db --no-defaults --user=mysql --datadir=/var/lib/tow-mysql --auth-root-authentication-method=socket --skip-test-db \
        --innodb-log-file-size=32M --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 >$logs/mariadb-install.log 2>&1
    fi
    start mariadbd
    answers mariadbd; mariadb -S /run/mysqld/mysqld.sock -e 'create database if not exists slurm_acct'
    start slurmdbd
    answers slurmdbd
    [ $known = 1 ] || make_accounts >$logs/sacctmgr.log 2>&1
  fi
  start slurmctld
  [ "$REST" = 0 ] || start slurmrestd
}
make_accounts() { # two sessions: one session never sees the QOS that it has just added
  sacctmgr -i <<X
add cluster towtest
add qos basic Priority=10 PreemptMode=requeue
add qos standard Priority=100 PreemptMode=requeue
add qos premium Priority=1000
X
  sacctmgr -i <<X
modify qos standard set Preempt=basic
modify qos premium set Preempt=basic,standard
add account lab Description=lab Organization=lab QOS=basic,standard,premium DefaultQOS=standard
add user ${USERS// /,} Account=lab
X
}

main() {
  case $1 in
    keep) keep "$2" ;;
    door) door "$2" "$3" "$4" ;;
    init) init "$2" "$3" ;;
    svc) load_conf_here; start "$2" && answers "$2" ;;
  esac
}
load_conf_here() {
  # shellcheck source=/dev/null
  . /run/tow.conf
}
main "$@"; exit $?
