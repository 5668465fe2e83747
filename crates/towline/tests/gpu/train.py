"""Two ranks share one GPU: data-parallel training over gloo, started by `tow run`."""

import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
assert (rank, world) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
device = torch.device("cuda", 0)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).to(device)
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(rank + 1)
inputs = torch.randn(2048, 64, device=device)
targets = inputs.sum(dim=1, keepdim=True)
first = last = None
for step in range(60):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimiser.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        gradient = parameter.grad.cpu()
        dist.all_reduce(gradient)
        parameter.grad.copy_(gradient / world)
    optimiser.step()
    mean = loss.detach().cpu()
    dist.all_reduce(mean)
    last = mean.item() / world
    first = first if first is not None else last
print(f"rank {rank} of {world} on {torch.cuda.get_device_name(device)}: loss {first:.3f} -> {last:.3f}")
assert last < first / 2, "it learned nothing"
dist.destroy_process_group()
