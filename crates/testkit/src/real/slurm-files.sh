# shellcheck shell=bash
# The files that hosts and users of a cluster are given. Part of slurm-up.sh, which sets all that is used here.

write_files() {
  local etc=$DIR/etc
  mkdir -p "$etc/slurm" "$etc/munge" "$etc/ssh" "$DIR/ssh" "$DIR/home" "$DIR/hosts"
  local host; { echo "127.0.0.1 localhost"; for host in $(all_hosts); do echo "$(addr_of "$host") $host"; done; } > "$etc/hosts"
  write_keys
  write_homes
  write_ssh_config > "$DIR/ssh/config"
  write_sshd_config > "$etc/ssh/sshd_config"
  head -c 128 /dev/urandom > "$etc/munge/munge.key"
  head -c 32 /dev/urandom > "$etc/slurm/jwt.key"
  if [ "$GPUS" -gt 0 ]; then echo "Name=gpu Type=h200 File=/dev/nvidia[0-$((GPUS - 1))]" > "$etc/slurm/gres.conf"; fi
  { write_slurm_conf; write_nodes; } > "$etc/slurm/slurm.conf"
  if [ "$ACCT" = 1 ]; then write_slurmdbd_conf > "$etc/slurm/slurmdbd.conf"; fi
  local line
  for line in "${CONF[@]}"; do
    # Slurm's commands complain about a key that comes twice, each time they are called.
    case $line in NodeName=* | PartitionName=*) ;; *) sed -i "/^${line%%=*}=/Id" "$etc/slurm/slurm.conf" ;; esac
    echo "$line" >> "$etc/slurm/slurm.conf"
  done
}

# One client key for all users, one host key for each host.
write_keys() {
  local host key
  ssh-keygen -q -t ed25519 -N '' -C tow-test -f "$DIR/ssh/id_ed25519"
  for host in bastion login $(node_names); do
    ssh-keygen -q -t ed25519 -N '' -C "$host" -f "$DIR/etc/ssh/$host"
    key=$(cut -d' ' -f1,2 "$DIR/etc/ssh/$host.pub")
    case $host in
      bastion) echo "[127.0.0.1]:$PORT,bastion,$(addr_of bastion) $key" ;;
      login) echo "[127.0.0.1]:$((PORT + 1)),login,$(addr_of login) $key" ;;
      *) echo "$host,$(addr_of "$host") $key" ;;
    esac
  done > "$DIR/ssh/known_hosts"
}

write_homes() {
  local user id=20001
  for user in $USERS; do
    mkdir -p "$DIR/home/$user/.ssh"
    cp "$DIR/ssh/id_ed25519.pub" "$DIR/home/$user/.ssh/authorized_keys"
    chmod 700 "$DIR/home/$user" "$DIR/home/$user/.ssh"; chmod 600 "$DIR/home/$user/.ssh/authorized_keys"
    chown -R "$id:$id" "$DIR/home/$user"; id=$((id + 1))
  done
}

write_ssh_config() {
  cat <<X
Host *
  User ${USERS%% *}
  IdentityFile "$DIR/ssh/id_ed25519"
  IdentitiesOnly yes
  UserKnownHostsFile "$DIR/ssh/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
Host bastion
  HostName 127.0.0.1
  Port $PORT
Host direct
  HostName 127.0.0.1
  Port $((PORT + 1))
Host login $(node_names | tr '\n' ' ')
  ProxyJump bastion
X
}

write_sshd_config() {
  cat <<X
HostKey /etc/ssh/tow_host_key
PidFile /run/sshd.pid
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AuthorizedKeysFile .ssh/authorized_keys
AllowTcpForwarding yes
AllowStreamLocalForwarding yes
UseDNS no
PrintMotd no
Subsystem sftp internal-sftp
X
}

write_slurm_conf() {
  local proctrack=proctrack/linuxproc task=task/none gather=jobacct_gather/linux
  if [ "$CGROUP" = 1 ]; then proctrack=proctrack/cgroup task=task/cgroup gather=jobacct_gather/cgroup; fi
  cat <<X
ClusterName=towtest
SlurmctldHost=ctl($(addr_of ctl))
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=cred_expire=$CRED_EXPIRE
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=$proctrack
TaskPlugin=$task
JobAcctGatherType=$gather
JobAcctGatherFrequency=task=5
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=256
SlurmdParameters=config_overrides
GresTypes=gpu
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout=$SLURMD_TIMEOUT
SlurmctldTimeout=10
MessageTimeout=10
BatchStartTimeout=10
KillWait=5
MinJobAge=300
InactiveLimit=0
JobRequeue=1
MaxJobCount=20000
MaxArraySize=10001
PriorityType=priority/multifactor
PriorityWeightQOS=100000
PriorityWeightPartition=10000
PriorityWeightAge=100
PreemptMode=REQUEUE
LaunchParameters=use_interactive_step
SchedulerType=sched/backfill
SchedulerParameters=$SCHEDPARAMS
X
  if [ "$REST" = 1 ]; then write_jwt; fi
  if [ "$ACCT" = 1 ]; then
    cat <<X
PreemptType=preempt/qos
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=ctl
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_script,job_env,job_comment
X
  else
    cat <<X
PreemptType=preempt/partition_prio
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=/var/log/slurm/jobcomp.log
X
  fi
}
write_jwt() { printf 'AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/etc/slurm/jwt.key\n'; }

write_nodes() {
  local host gres="" all="Nodes=c[1-$NODES]" times="MaxTime=7-0 DefaultTime=60"
  if [ "$GPUS" -gt 0 ]; then gres=" Gres=gpu:h200:$GPUS"; fi
  for host in $(node_names); do
    echo "NodeName=$host NodeAddr=$(addr_of "$host") CPUs=$CPUS RealMemory=$((CPUS * 512))$gres State=UNKNOWN"
  done
  if [ "$ACCT" = 1 ]; then
    cat <<X
PartitionName=main  $all Default=YES $times State=UP
PartitionName=debug Nodes=c1 MaxTime=30 DefaultTime=5 PriorityJobFactor=10 State=UP
X
  else
    cat <<X
PartitionName=standard $all Default=YES $times PriorityTier=20 PreemptMode=REQUEUE State=UP
PartitionName=premium  $all $times PriorityTier=30 PreemptMode=OFF State=UP
PartitionName=basic    $all $times PriorityTier=10 PreemptMode=REQUEUE State=UP
X
  fi
}

write_slurmdbd_conf() {
  cat <<X
AuthType=auth/munge
DbdHost=ctl
SlurmUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct
X
  if [ "$REST" = 1 ]; then write_jwt; fi
}
