//! One message of each kind, as the programs write them.

use super::{expect, traceback};
use crate::why::Class as C;

/// The message, its class, and whether trying again can help.
type Case = (&'static str, C, bool);

/// Last lines of Python tracebacks.
const EXCEPTIONS: [Case; 43] = [
    ("MemoryError", C::OutOfMemory, false),
    (
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array \
                with shape (1000000, 1000000) and data type float64",
        C::OutOfMemory,
        false,
    ),
    (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: \
                can't allocate memory: you tried to allocate 4000000000000 bytes. Error code 12 \
                    (Cannot allocate memory)",
        C::OutOfMemory,
        false,
    ),
    (
        "OSError: [Errno 12] Cannot allocate memory",
        C::OutOfMemory,
        false,
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a \
                total capacity of 79.15 GiB of which 1.2 GiB is free.",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; \
                15.78 GiB total capacity)",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously \
                reported at some other API call.",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying \
                to allocate 8589934592 bytes.",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 \
                bytes.",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution \
                error:\n\nDetected at node 'model/conv/Conv2D'\nOOM when allocating tensor with \
                    shape[64,2016,9,9] and type float on \
                        /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "torch.distributed.DistBackendError: NCCL error in: \
                ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled cuda error, \
                    NCCL version 2.20.5\nncclUnhandledCudaError: Call to CUDA function \
                        failed.\nLast error:\nCuda failure 2 'out of memory'",
        C::GpuOutOfMemory,
        false,
    ),
    (
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is \
                possible that dataloader's workers are out of shared memory.",
        C::SharedMemory,
        false,
    ),
    (
        "RuntimeError: unable to write to file </torch_4711_123_0>: No space left on device \
                (28)",
        C::SharedMemory,
        false,
    ),
    (
        "ModuleNotFoundError: No module named 'flash_attn'",
        C::MissingModule,
        false,
    ),
    (
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
        C::MissingLibrary,
        false,
    ),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'",
        C::FileNotFound,
        false,
    ),
    (
        "FileNotFoundError: Couldn't find any data file at /job/glue.",
        C::FileNotFound,
        false,
    ),
    (
        "PermissionError: [Errno 13] Permission denied: '/shared/out/model.pt'",
        C::PermissionDenied,
        false,
    ),
    (
        "OSError: [Errno 30] Read-only file system: '/opt/cache'",
        C::PermissionDenied,
        false,
    ),
    (
        "OSError: [Errno 28] No space left on device",
        C::DiskFull,
        false,
    ),
    (
        "OSError: [Errno 122] Disk quota exceeded: '/home/me/ckpt.pt'",
        C::DiskFull,
        false,
    ),
    (
        "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left \
                on device (os error 28)",
        C::DiskFull,
        false,
    ),
    (
        "RuntimeError: CUDA error: an illegal memory access was encountered\nCompile with \
                `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        C::CudaError,
        false,
    ),
    (
        "torch.AcceleratorError: CUDA error: device-side assert triggered",
        C::CudaError,
        false,
    ),
    (
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        C::CudaError,
        false,
    ),
    (
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
        C::CudaError,
        true,
    ),
    (
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an \
                NVIDIA GPU",
        C::NoGpu,
        false,
    ),
    ("RuntimeError: No CUDA GPUs are available", C::NoGpu, false),
    (
        "RuntimeError: CUDA error: invalid device ordinal",
        C::NoGpu,
        false,
    ),
    (
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        C::GpuEcc,
        true,
    ),
    (
        "torch.distributed.DistBackendError: NCCL error in: \
                /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled system \
                    error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2",
        C::NcclError,
        true,
    ),
    (
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed \
                by peer [10.0.0.2]:41234",
        C::NcclError,
        true,
    ),
    (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any \
                local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, \
                    message: address already in use",
        C::PortInUse,
        true,
    ),
    (
        "OSError: [Errno 98] Address already in use",
        C::PortInUse,
        true,
    ),
    (
        "requests.exceptions.ConnectionError: \
                (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries \
                    exceeded with url: /x\"), '(Request ID: 1)')",
        C::Network,
        true,
    ),
    (
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably \
                exploding.",
        C::NotANumber,
        false,
    ),
    (
        "FloatingPointError: invalid value encountered in log",
        C::NotANumber,
        false,
    ),
    (
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
        C::NotANumber,
        false,
    ),
    ("ValueError: Input X contains NaN.", C::NotANumber, false),
    (
        "ValueError: array must not contain infs or NaNs",
        C::NotANumber,
        false,
    ),
    (
        "AssertionError: loss is nan at step 1200",
        C::NotANumber,
        false,
    ),
    (
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ",
        C::Killed,
        false,
    ),
];

/// Messages of shells, schedulers and libraries.
const MESSAGES_OUTSIDE_PYTHON: [Case; 18] = [
    (
        "bash: line 1: trian: command not found",
        C::CommandNotFound,
        false,
    ),
    (
        "/tmp/job.sh: line 7: nvcc: command not found\nsrun: error: n1: task 0: Exited with \
                exit code 127",
        C::CommandNotFound,
        false,
    ),
    ("sh: 1: trian: not found", C::CommandNotFound, false),
    (
        "slurmstepd: error: execve(): trian: No such file or directory",
        C::CommandNotFound,
        false,
    ),
    (
        "/usr/bin/python3: No module named torch",
        C::MissingModule,
        false,
    ),
    (
        "python: can't open file '/job/trian.py': [Errno 2] No such file or directory",
        C::FileNotFound,
        false,
    ),
    (
        "bash: line 2: ./run: Permission denied",
        C::PermissionDenied,
        false,
    ),
    (
        "cp: error writing '/scratch/x': No space left on device",
        C::DiskFull,
        false,
    ),
    ("Segmentation fault (core dumped)", C::Segfault, false),
    (
        "/tmp/job.sh: line 3:  4711 Segmentation fault      (core dumped) python train.py",
        C::Segfault,
        false,
    ),
    ("Killed", C::Killed, false),
    (
        "/tmp/job.sh: line 3:  4711 Killed                  python train.py",
        C::Killed,
        false,
    ),
    (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks \
                have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory",
        C::OutOfMemory,
        false,
    ),
    (
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.batch cgroup.",
        C::OutOfMemory,
        false,
    ),
    (
        "terminate called after throwing an instance of \
                'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)",
        C::OutOfMemory,
        false,
    ),
    (
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: \
                an illegal memory access was encountered\nframe #0: \
                    c10::Error::Error(c10::SourceLocation) + 0x96",
        C::CudaError,
        false,
    ),
    (
        "[rank3]:[E1012 12:00:00.123456789 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught \
                collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=1, \
                    NumelOut=1, Timeout(ms)=600000) ran for 600011 milliseconds before timing out.",
        C::NcclError,
        true,
    ),
    (
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): \
                address already in use",
        C::PortInUse,
        true,
    ),
];

#[test]
fn exceptions() {
    for (exception, class, transient) in EXCEPTIONS {
        expect(&traceback(exception), class, transient);
    }
}

#[test]
fn messages_outside_python() {
    for (log, class, transient) in MESSAGES_OUTSIDE_PYTHON {
        expect(&format!("starting\n{log}\n"), class, transient);
    }
}
