#!/usr/bin/env bash
# On a machine with a real NVIDIA GPU and PyTorch: what tests elsewhere can only play.
#   crates/towline/tests/gpu/run.sh PATH-TO-TOW
set -uo pipefail
tow=$(readlink -f "${1:-target/x86_64-unknown-linux-gnu/release/tow}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
export HOME=$work/home XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config
mkdir -p "$HOME" "$work/project"
cd "$work/project" || exit 1
failed=0
check() { if eval "$2"; then echo "ok    $1"; else echo "WRONG $1"; failed=1; fi; }
trap '"$tow" daemon stop >/dev/null; rm -rf "$work"' EXIT
"$tow" --version

"$tow" nodes | tee nodes.txt
check "tow nodes shows the GPU" "grep -q 'NVIDIA' nodes.txt && grep -q free nodes.txt"

"$tow" run -n 1 --launch 2 python3 "$here/train.py" | tee train.txt
check "two ranks train on it over gloo and end 0" "[ ${PIPESTATUS[0]} = 0 ] && [ \$(grep -c 'loss' train.txt) = 2 ]"

stamp='python3 -c "import time; print(time.time()); time.sleep(2); print(time.time())"'
one=$("$tow" submit -n 1 "$stamp" 2>/dev/null); two=$("$tow" submit -n 1 "$stamp" 2>/dev/null)
sleep 1
"$tow" ps | head -3; "$tow" why "$two"
"$tow" wait "$one" "$two" >/dev/null
end_one=$("$tow" logs "$one" | tail -1); start_two=$("$tow" logs "$two" | head -1)
check "two 1-GPU runs queue one behind the other" "python3 -c 'import sys; sys.exit(not $start_two >= $end_one)'"

python3 -c 'import torch, time; x = torch.zeros(20 << 28, device="cuda"); print("up", flush=True); time.sleep(600)' > other.txt & other=$!
until grep -q up other.txt 2>/dev/null; do sleep 0.2; done
"$tow" nodes | tee nodes.txt
check "a GPU that others keep busy is shown" "grep -q 'others:' nodes.txt"
waiting=$("$tow" submit -n 1 true 2>/dev/null)
sleep 1; "$tow" why "$waiting" | tee why.txt
check "and passed over" "grep -q 'busy by others' why.txt"
kill -9 $other; wait $other 2>/dev/null
check "until it is free" "\"$tow\" wait $waiting --timeout 60s >/dev/null"

why() { # NAME EXPECTED-CAUSE PYTHON [options…]
  local name=$1 cause=$2 code=$3; shift 3
  printf '%s\n' "$code" > "$name.py"
  "$tow" run -n 1 --time 2m "$@" python3 "$name.py" > "$name.log" 2>&1
  "$tow" why @ --json > "$name.json"
  check "why: $name is $cause" "grep -q '\"cause\":\"$cause\"' $name.json" || true
  grep -q "\"cause\":\"$cause\"" "$name.json" || { cat "$name.json"; tail -25 "$name.log"; }
}
why cuda_memory gpu_out_of_memory 'import torch; x = [torch.empty(1 << 33, device="cuda") for _ in range(64)]'
why cuda_assert cuda_error 'import torch; e = torch.nn.Embedding(4, 4).cuda(); print(e(torch.tensor([9]).cuda()).sum().item())'
why nccl_duplicate nccl_error 'import os, torch, torch.distributed as d; d.init_process_group("nccl"); t = torch.ones(1, device="cuda:0"); d.all_reduce(t); print(t)' --launch 2
why anomaly not_a_number 'import torch; torch.autograd.set_detect_anomaly(True); x = torch.zeros(1, requires_grad=True, device="cuda"); (torch.sqrt(x) * 0).backward()'
why device_missing no_gpu 'import os; os.environ["CUDA_VISIBLE_DEVICES"] = ""; import torch; torch.ones(1).cuda()'
exit $failed
