//! One message of each kind, as the programs write them, and how several are weighed.

use super::{Class, Finding, LogError, classify, read, root_cause};
use proptest::prelude::*;

const TRACEBACK: &str = "Traceback (most recent call last):\n  File \"/job/train.py\", line 88, in \
    <module>\n    main()\n  File \"/job/train.py\", line 61, in main\n    step(batch)\n";

fn traceback(exception: &str) -> String {
    format!("epoch 1 step 10 loss 2.31\n{TRACEBACK}{exception}\n")
}

/// The same as torch prints it for one rank.
fn of_rank(rank: u32, exception: &str) -> String {
    let text = format!("{TRACEBACK}{exception}");
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("[rank{rank}]: {line}\n"))
        .collect();
    lines.concat()
}

fn found(log: &str) -> Finding {
    classify(log.as_bytes()).unwrap_or_else(|| panic!("no finding in:\n{log}"))
}

#[track_caller]
fn expect(log: &str, class: Class, transient: bool) -> Finding {
    let finding = found(log);
    assert_eq!(
        (finding.class, finding.transient),
        (class, transient),
        "{finding:?}"
    );
    assert!(
        log.contains(&finding.evidence),
        "evidence is not in the log: {finding:?}"
    );
    assert!(
        !finding.next_step.is_empty() && !finding.next_step.contains("{}"),
        "{finding:?}"
    );
    finding
}

#[test]
fn exceptions() {
    use Class as C;
    let cases = [
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
    for (exception, class, transient) in cases {
        expect(&traceback(exception), class, transient);
    }
}

#[test]
fn messages_outside_python() {
    use Class as C;
    let cases = [
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
    for (log, class, transient) in cases {
        expect(&format!("starting\n{log}\n"), class, transient);
    }
}

#[test]
fn advice_names_the_package() {
    let step = |module: &str| {
        found(&traceback(&format!(
            "ModuleNotFoundError: No module named '{module}'"
        )))
        .next_step
    };
    assert_eq!(
        step("einops"),
        "install it: add `pip install einops` to `environment.setup`"
    );
    assert!(step("yaml").contains("pip install pyyaml"));
    assert!(step("google.protobuf").contains("`google.protobuf`"));
    assert!(
        !step("utils.data").contains("pip"),
        "one's own module is not on the index"
    );
}

#[test]
fn a_program_python_cannot_start_is_a_command() {
    let log = "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/subprocess.py\", \
        line 1950, in _execute_child\n    raise child_exception_type(errno_num, err_msg, \
            err_filename)\nFileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'\n";
    assert!(
        expect(log, Class::CommandNotFound, false)
            .next_step
            .contains("`ffmpeg`")
    );
}

#[test]
fn colours_bars_ranks_and_boxes_do_not_hide_it() {
    let exception = "ModuleNotFoundError: No module named 'einops'";
    expect(&of_rank(3, exception), Class::MissingModule, false);
    let coloured = format!("\x1b[31m{TRACEBACK}\x1b[0m\x1b[1;31m{exception}\x1b[0m\r\n");
    assert_eq!(found(&coloured).evidence, exception);
    let bar = "\r  5%|▌         | 5/100 [00:00<00:03, 30.1it/s]";
    expect(
        &format!("{bar}{bar}{TRACEBACK}{exception}\n{bar}\n"),
        Class::MissingModule,
        false,
    );
    let boxed = format!(
        "╭──────── Traceback (most recent call last) ────────╮\n│ /job/train.py:3 in \
            <module>      │\n╰───────────────────╯\n{exception}\n"
    );
    expect(&boxed, Class::MissingModule, false);
    let without_header = &TRACEBACK[TRACEBACK.find("  File").expect("a call")..];
    expect(
        &format!("{without_header}{exception}"),
        Class::MissingModule,
        false,
    );
}

#[test]
fn the_first_of_a_chain_is_the_cause() {
    let links = [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ];
    for link in links {
        let log = format!(
            "{TRACEBACK}FileNotFoundError: [Errno 2] No such file or directory: \
                'a.yaml'\n\n{link}\n\n{TRACEBACK}RuntimeError: cannot load the configuration\n"
        );
        expect(&log, Class::FileNotFound, false);
        let log = format!(
            "{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 \
                GiB\n\n{link}\n\n{TRACEBACK}OSError: [Errno 28] No space left on device\n"
        );
        expect(&log, Class::GpuOutOfMemory, false);
    }
}

#[test]
fn a_fallback_that_fails_is_the_cause() {
    let deeper = format!("{TRACEBACK}  File \"/job/model.py\", line 9, in forward\n    x @ w\n");
    let caught = format!(
        "{TRACEBACK}FileNotFoundError: [Errno 2] No such file or directory: 'cache'\n\nDuring handling \
            of the above exception, another exception occurred:\n\n{deeper}"
    );
    expect(
        &format!(
            "{caught}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        ),
        Class::GpuOutOfMemory,
        false,
    );
    assert_eq!(
        classify(format!("{caught}AssertionError: shapes differ\n").as_bytes()),
        None
    );
}

#[test]
fn a_workers_own_traceback_is_the_cause() {
    let worker = format!(
        "{TRACEBACK}RuntimeError: Caught FileNotFoundError in DataLoader worker process 0.\nOriginal \
            {TRACEBACK}FileNotFoundError: [Errno 2] No such file or directory: 'img.png'\n"
    );
    expect(&worker, Class::FileNotFound, false);
    let spawned = format!(
        "{TRACEBACK}torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated \
            with the following error:\n{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to \
                allocate 2.00 GiB\n"
    );
    expect(&spawned, Class::GpuOutOfMemory, false);
}

#[test]
fn launchers_and_peers_follow() {
    let memory = of_rank(
        1,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    );
    let peer = of_rank(
        0,
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or \
            there was a network error",
    );
    let launcher = format!(
        "E1012 12:00:00.123000 4711 torch/distributed/elastic/multiprocessing/api.py:869] failed \
            (exitcode: 1) local_rank: \
                1\n{TRACEBACK}torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\ntrain.py FAILED\n------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2025-10-12_12:00:00\n"
    );
    expect(
        &format!("{peer}{memory}{launcher}"),
        Class::GpuOutOfMemory,
        false,
    );
    expect(
        &format!("{memory}{peer}{launcher}"),
        Class::GpuOutOfMemory,
        false,
    );
    let assertion = of_rank(1, "AssertionError: wrong shape");
    assert_eq!(
        classify(format!("{assertion}{peer}{launcher}").as_bytes()),
        None,
        "the cause is not one we know"
    );
    expect(
        &format!("{launcher}wandb:     loss 0.3\nSegmentation fault (core dumped)\n"),
        Class::Segfault,
        false,
    );
}

#[test]
fn interleaved_ranks_are_told_apart() {
    let one = of_rank(
        0,
        "FileNotFoundError: [Errno 2] No such file or directory: 'a'",
    );
    let two = of_rank(
        1,
        "FileNotFoundError: [Errno 2] No such file or directory: 'b'",
    );
    let mixed = one
        .lines()
        .zip(two.lines())
        .flat_map(|(one, two)| [one, "\n", two, "\n"])
        .collect::<String>();
    assert!(
        expect(&mixed, Class::FileNotFound, false)
            .next_step
            .contains("`a`")
    );
}

#[test]
fn the_last_of_several_complaints_ended_the_script() {
    let log =
        "job.sh: line 1: module: command not found\njob.sh: line 2: pyhton: command not found\n";
    assert!(
        expect(log, Class::CommandNotFound, false)
            .next_step
            .contains("`pyhton`")
    );
    let log = format!(
        "{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\ncp: cannot \
            stat 'out': No such file or directory\n"
    );
    expect(&log, Class::GpuOutOfMemory, false);
}

#[test]
fn long_and_late() {
    let mut log = vec![b'x'; 3 << 20];
    log.extend_from_slice(traceback("MemoryError").as_bytes());
    assert_eq!(
        classify(&log).map(|finding| finding.class),
        Some(Class::OutOfMemory)
    );
    assert_eq!(classify(&log[..3 << 20]), None);
    log.extend_from_slice(
        traceback(&format!("ValueError: {} contains NaN", "y".repeat(600))).as_bytes(),
    );
    let finding = classify(&log).expect("a finding");
    assert_eq!(
        (finding.class, finding.evidence.chars().count()),
        (Class::NotANumber, 300)
    );
    log.extend(std::iter::repeat_n(&b"filler\n"[..], 60_000).flatten());
    assert_eq!(classify(&log), None);
}

/// No assertion on time; a step that is not linear would be felt here.
#[test]
fn tails_that_repeat_one_thing() {
    let ranks =
        |at: usize| format!("[rank{at}]: Traceback (most recent call last):\n[rank{at}]: x\n");
    let things: [&dyn Fn(usize) -> String; 14] = [
        &ranks,
        &|_| format!("{TRACEBACK}MemoryError\nDuring handling of the above exception\n"),
        &|_| "Traceback (most recent call last):\nx\n".to_owned(),
        &|_| "  File \"x\", line 1, in f\n".to_owned(),
        &|_| "\x1b[\x1b]\x1b".to_owned(),
        &|_| "\n".to_owned(),
        &|_| "a: line 1: b: command not found\n".to_owned(),
        &|_| "Fatal Python error: x\nCurrent thread (most recent call first):\n".to_owned(),
        &|_| "panic: x\ngoroutine 1\n".to_owned(),
        &|_| "Exception in thread \"main\" x\n\tat a\n".to_owned(),
        &|_| "usage: a\na: error: b\n".to_owned(),
        &|_| {
            "  + Exception Group Traceback (most recent call last):\n  | \n  +-+--- 1 ---\n    | \
                x\n"
            .to_owned()
        },
        &|_| "Root Cause (first observed failure):\n".to_owned(),
        &|_| "\u{1b}[31mError: x\n".to_owned(),
    ];
    for thing in things {
        let tail: Vec<u8> = (0..)
            .flat_map(|at| thing(at).into_bytes())
            .take(300 * 1024)
            .collect();
        let _ = read(&tail);
    }
}

#[test]
fn words_are_those_of_json() {
    for class in [
        Class::GpuOutOfMemory,
        Class::NotANumber,
        Class::NcclError,
        Class::PortInUse,
    ] {
        assert_eq!(serde_json::to_value(class).expect("a word"), class.word());
        assert!(!class.title().is_empty());
    }
}

#[test]
fn the_root_of_several_ranks() {
    let nccl =
        read(traceback("torch.distributed.DistBackendError: NCCL error in: x.cpp:1").as_bytes());
    let memory = read(
        traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
            .as_bytes(),
    );
    let killed = read(b"Killed\n");
    assert_eq!(root_cause(&[]), None);
    let all = [
        (3, nccl.clone()),
        (2, killed.clone()),
        (1, memory.clone()),
        (0, memory),
    ];
    assert_eq!(
        root_cause(&all)
            .map(|(rank, reading)| (*rank, reading.finding.as_ref().map(|finding| finding.class))),
        Some((1, Some(Class::GpuOutOfMemory)))
    );
    assert_eq!(
        root_cause(&[(3, nccl), (2, killed)]).map(|(rank, _)| *rank),
        Some(2)
    );
}

/// Bytes made of pieces that matter to the parser, and of anything.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"Traceback (most recent call last):",
        b"\n",
        b"\r",
        b"  File \"x\", line 1, in f\n",
        b"[rank1]: ",
        b"\x1b[3",
        b"\x1b]",
        b"MemoryError\n",
        b"Killed\n",
        b"During handling of the above exception",
        b"FileNotFoundError: [Errno 2] No such file or directory: '",
        "│ ".as_bytes(),
        "│ ❱ 3 ".as_bytes(),
        b"\n  + Exception Group Traceback (most recent call last):\n",
        b"\n  | ",
        b"\n  +-+---------------- 1 ----------------\n",
        b"\n  File \"x\", line 1\n    y\nSyntaxError: z\n",
        b"KeyError: 'x'\n",
        b"\nusage: a\na: error: b\n",
        b"\nFatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call \
            first):\n  File \"x\", line 1 in f\n",
        b"\npanic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/x.go:7 +0x1d\n",
        b"\nthread 'main' panicked at a.rs:1:2:\n",
        b"\nException in thread \"main\" x\n\tat a.b(C.java:3)\nCaused by: y\n",
        b"\nRoot Cause (first observed failure):\n  rank      : 3 (local_rank: 1)\n  exitcode  : 1 \
            (pid: 4)\n  traceback : Traceback (most recent call last):\n",
        b"\nError: x\n    at f (/a/x.js:1:2)\n",
        b"\nERROR: x\nStacktrace:\n @ Main /a.jl:3\n",
        b"\nError in f : x\nExecution halted\n",
        b"\nFAILED a::b - c\n1 failed in 1.0s\n",
        b"\na.sh: line 3: x\n",
        b"\na.c:3: error: x\n",
        "\u{202e}\u{200b}".as_bytes(),
        b"Original ",
        b"\xff\x00",
    ];
    let piece = prop_oneof![
        prop::sample::select(known).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..12)
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Every text of an error that is shown.
fn texts(error: &LogError) -> Vec<&String> {
    let place = error.place.iter().flat_map(|place| {
        std::iter::once(&place.file)
            .chain(&place.function)
            .chain(&place.source)
    });
    std::iter::once(&error.message)
        .chain(&error.more)
        .chain(&error.ended_as)
        .chain(place)
        .collect()
}

proptest! {
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_pieces_are_taken(bytes in pieces()) {
        let reading = read(&bytes);
        prop_assert_eq!(&reading.finding, &classify(&bytes));
        if let Some(finding) = &reading.finding {
            prop_assert!(finding.evidence.chars().count() <= 300);
        }
        let shown: Vec<&String> = reading.error.iter().flat_map(texts).chain(&reading.last_lines).collect();
        prop_assert!(shown.len() <= 12, "{} lines", shown.len());
        for text in shown {
            prop_assert!(text.chars().count() <= 300 && !text.contains(char::is_control), "{:?}", text);
        }
    }
}

#[test]
fn last_lines_are_clean_and_few() {
    let log = b"one\n\x1b[31mtwo\x1b[0m\n\n10%\r20%\rthree\x07\n\n";
    assert_eq!(super::last_lines(log, 3), ["10%", "20%", "three"]);
    assert_eq!(
        super::last_lines(log, 9),
        ["one", "two", "10%", "20%", "three"]
    );
    assert!(super::last_lines(b"\n \n", 3).is_empty());
}
