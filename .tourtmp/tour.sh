r() { local s=""; for w in "$@"; do case "$w" in *[\ \$\{\(\;\&\|\<\>\*]*) s="$s '$w'";; *) s="$s $w";; esac; done; echo "\$$s"; "$@"; local c=$?; [ $c = 0 ] || echo "[exit $c]"; }
hostname box; cd /home/ann/vision
cat > train.py <<'P'
import argparse, time
args = argparse.ArgumentParser()
args.add_argument("--lr", default="0.1"); args.add_argument("--seed", default="1"); args.add_argument("--steps", type=int, default=3)
args = args.parse_args()
for step in range(args.steps):
    print(f"step {step} lr {args.lr} loss {1 / (step + 1):.3f}")
    time.sleep(1)
P
echo 'import sklearnx.metrics' > eval.py
cat > ckpt.py <<'P'
import os, signal, sys, time
start = int(open("step").read()) if os.path.exists("step") else 0
def save(*_):
    open("step", "w").write(str(step)); print(f"saved at step {step}"); sys.exit(0)
signal.signal(signal.SIGTERM, save)
print(f"attempt {os.environ['TOW_ATTEMPT']} begins at step {start}")
for step in range(start, 60):
    time.sleep(0.1)
print("done")
P
cat > job.yaml <<'P'
name: vit-${{lr}}
experiment: ablation
tags: [vit]
resources: {gpus_per_node: 1, cpus_per_node: 4, memory: 16G, time: 2h}
environment:
  setup: [python --version]
  env: {NCCL_DEBUG: WARN}
retry: {when: [node_failed]}
sweep: {lr: [0.1, 0.010], seed: 1-2}
script: |
  echo "GPU $CUDA_VISIBLE_DEVICES"
  python train.py --lr ${{lr}} --seed ${{seed}}
P
echo "#### A"
r tow run echo hello
r tow run -n 1 nvidia-smi -L
r tow submit -n 1 python train.py --lr 0.1
sleep 0.5
r tow ps
r tow logs -f @
echo "#### why"
r tow submit python eval.py
r tow wait @
r tow why @
sed -i 's/sklearnx.metrics/sys/' eval.py
r tow resubmit @
r tow wait @
echo "#### sweep"
r tow submit -n 1 --sweep lr=0.1,0.01 --sweep seed=1-2 python train.py --lr '${{lr}}' --seed '${{seed}}' --steps 60
sleep 0.7
S=$(tow ps -l 1 --json | python -c 'import json,sys; print(json.load(sys.stdin)["runs"][0]["sweep"])')
r tow ps @
r tow nodes
r tow why ${S: -5}-3
r tow abort @
sleep 0.3
r tow ps @
echo "#### job"
r tow submit -f job.yaml --dry-run
r tow submit -f job.yaml
r tow wait @
r tow ps @
S=$(tow ps -l 1 --json | python -c 'import json,sys; print(json.load(sys.stdin)["runs"][0]["sweep"])')
r tow logs ${S: -5}-2
r tow logs ${S: -5}-2 --setup
r tow show ${S: -5}-2
r tow diff ${S: -5}-2 ${S: -5}-3
echo "#### tiers"
r tow submit --tier basic -n 1 python ckpt.py
B=$(tow ps -l 1 --json | python -c 'import json,sys; print(json.load(sys.stdin)["runs"][0]["id"])')
sleep 2
r tow submit -n 1 --name urgent sleep 3
sleep 1
r tow ps -l 2
r tow why ${B: -5}
r tow wait ${B: -5}
r tow logs ${B: -5}
r tow show ${B: -5}
echo "#### hold"
r tow run --hold-on-failure 10m python -c 'raise SystemExit(4)' &
H=$!; sleep 1.5; r tow ps -l 1; r tow why @; r tow abort @; wait $H
echo "#### time, memory"
r tow run --time 1s sleep 30
r tow run --memory 64M python -c 'x = bytearray(300 << 20)'
r tow why @
r tow run python -c 'import torch; torch.empty(1, device="cuda")'
r tow why @
echo "#### query get diff"
r tow query @
r tow history -l 3
r tow daemon status
r tow doctor
r tow clusters
r tow daemon stop
