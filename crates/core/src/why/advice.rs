//! Advice for each failure, one sentence each. `{}` is the name that the log gives.

pub(super) const MEMORY: &str = "ask for more memory with `resources.memory`, or load less at once \
    (fewer data workers, smaller batches)";
pub(super) const GPU_MEMORY: &str = "make the batch or the sequence smaller, turn on gradient \
    checkpointing, or take a GPU with more memory";
pub(super) const SHARED_MEMORY: &str =
    "use fewer data workers, or give the container a larger `/dev/shm`";
pub(super) const KILLED: &str =
    "check whether the node ran out of memory and, if so, ask for more with `resources.memory`";
pub(super) const LIBRARY: &str =
    "install the package that brings `{}` in `environment.setup`, or take an image that has it";
pub(super) const NAMED_FILE: &str = "check that `{}` exists on the node: that it is under \
    `code.root` and not ignored, or comes in by `io`";
pub(super) const FILE: &str = "check that the file exists on the node: that it is under \
    `code.root` and not ignored, or comes in by `io`";
pub(super) const NAMED_PERMISSION: &str =
    "make `{}` accessible to the user of the job, or write somewhere else";
pub(super) const PERMISSION: &str =
    "make the path accessible to the user of the job, or write somewhere else";
pub(super) const GATED: &str =
    "accept the model's licence on its page and name `HF_TOKEN` in `environment.secrets`";
pub(super) const DISK: &str =
    "free space or raise the quota where the job writes, or write somewhere else";
pub(super) const ECC: &str =
    "try again on another node, and report this one: its GPU memory is failing";
pub(super) const NO_GPU: &str =
    "ask for as many GPUs as the program uses with `resources.gpus_per_node`";
pub(super) const CPU_BUILD: &str =
    "install a build of PyTorch with CUDA in `environment.setup`, or take an image that has one";
pub(super) const GPU_BUSY: &str =
    "try again, on another node if it stays: something else holds the GPU or the node is not ready";
pub(super) const GPU_KERNELS: &str =
    "install a build of the library that supports this kind of GPU, or take another kind of GPU";
pub(super) const GPU_ASSERT: &str = "look for an index or a label out of range; \
    `CUDA_LAUNCH_BLOCKING=1` in `environment.env` shows where";
pub(super) const CUDA: &str =
    "run again with `CUDA_LAUNCH_BLOCKING=1` in `environment.env` to see which call failed";
pub(super) const RANKS: &str =
    "look at the other ranks' logs for an earlier failure; if there is none, try again";
pub(super) const PORT: &str =
    "try again, or choose another port: something else on the node has this one";
pub(super) const HOST_NAME: &str = "check the host's name, and whether the node may look it up";
pub(super) const NETWORK: &str =
    "try again; if it stays, check whether the node may reach that host";
pub(super) const NUMBERS: &str =
    "lower the learning rate or clip gradients, and check the input for NaN";
pub(super) const COMMAND: &str =
    "install `{}` in `environment.setup`, take an image that has it, or correct the name";
pub(super) const SEGFAULT: &str = "run again with `PYTHONFAULTHANDLER=1` in `environment.env` to \
    see where it crashed, and suspect compiled packages that do not fit together";
