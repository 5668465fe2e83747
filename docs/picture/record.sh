#!/usr/bin/env bash
# Records the session of the README's picture, docs/picture/session.ansi: this machine and two real Slurm clusters, of
# which colleagues hold the first. Needs root, `cargo xtask install` and `cargo build --release`. Then: cargo xtask picture
set -euo pipefail
cd "$(dirname "$0")/../.."
up=$PWD/crates/testkit/src/real/slurm-up.sh
transcript=$PWD/docs/picture/session.ansi
place=$(mktemp -d /tmp/tow-picture.XXXXXX)

leave() {
  tow daemon stop > /dev/null 2>&1 || true
  for name in lab east; do
    bash "$up" stop "$place/$name" --wipe > /dev/null 2>&1 || true
  done
  rm -rf "$place"
}
trap leave EXIT

mkdir -p "$place"/{bin,state,config/towline,vision}
ln -s "$PWD/target/x86_64-unknown-linux-gnu/release/tow" "$place/bin/tow"
export PATH=$place/bin:$PATH XDG_STATE_HOME=$place/state XDG_CONFIG_HOME=$place/config TERM=xterm-256color
for name in lab east; do
  mkdir "$place/$name"
  bash "$up" start "$place/$name" --nodes 2 --gpus 4 --cpus 8 --users ann,bob --no-rest > /dev/null 2>&1
done
cat > "$place/config/towline/config.yaml" << YAML
clusters:
  lab: {kind: slurm, host: login, ssh_config: $place/lab/ssh/config}
  east: {kind: slurm, host: login, ssh_config: $place/east/ssh/config}
YAML
cat > "$place/vision/train.py" << 'PYTHON'
import os, socket
rank, world = os.environ["RANK"], os.environ["WORLD_SIZE"]
gpus = os.environ.get("CUDA_VISIBLE_DEVICES") or "none"
print(f"rank {rank} of {world} on {socket.gethostname()}, GPUs {gpus}", flush=True)
for step in range(1, 4):
    print(f"step {step} loss {1 / (step + 1):.3f}", flush=True)
PYTHON
cd "$place/vision"

# Colleagues hold the GPUs of the first cluster.
bash "$up" exec "$place/lab" login -u bob -- \
  sbatch --nodes 2 --gres gpu:4 --time 4:00:00 --job-name pretrain --wrap 'sleep 3600' > /dev/null

: > "$transcript"
typed() {
  printf '$ %s\n' "$1" >> "$transcript"
  script -qec "stty columns 115; $1" /dev/null < /dev/null | tr -d '\r' >> "$transcript"
}
# The clusters are known before, as on any day but the first.
tow nodes -c lab > /dev/null
tow nodes -c east > /dev/null

typed 'tow run python3 train.py                        # on this machine'
typed 'tow submit -c lab -n 8 python3 train.py         # the same on Slurm: 8 GPUs, two nodes'
until tow why @ 2> /dev/null | grep -q 'expected to start'; do sleep 1; done
typed 'tow why @                                       # somebody else has them'
typed 'tow resubmit @ --to east                        # the same code, on another cluster'
typed 'tow logs -f --rank all @'
tow wait @ > /dev/null 2>&1
typed 'tow ps'
