//! The known messages, as the programs write them.
//!
//! Each rule is one message that ends a program. A pattern is anchored to the start of its line;
//! for an exception, the module before its name may be missing. The first rule that fits counts, so
//! narrow rules stand before wide ones.

use super::Class;
use super::advice as say;
use regex::bytes::{Regex, RegexSet};
use std::sync::OnceLock;

/// One message and what it means.
#[derive(Debug)]
pub(super) struct Rule {
    /// `None`: it only reports that something else failed.
    pub(super) class: Option<Class>,
    pattern: &'static str,
    /// The advice; `{}` is the pattern's first group.
    pub(super) advice: &'static str,
    pub(super) transient: bool,
    /// Counts only if nothing else explains the end.
    pub(super) follower: bool,
}

impl Rule {
    const fn new(class: Class, advice: &'static str, pattern: &'static str) -> Self {
        Self {
            class: Some(class),
            pattern,
            advice,
            transient: false,
            follower: false,
        }
    }
    const fn wrapper(pattern: &'static str) -> Self {
        Self {
            class: None,
            pattern,
            advice: "",
            transient: false,
            follower: true,
        }
    }
    const fn transient(mut self) -> Self {
        self.transient = true;
        self
    }
    const fn follower(mut self) -> Self {
        self.follower = true;
        self
    }
}

/// A rule that fits a line, and the name it caught.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) rule: &'static Rule,
    pub(super) name: Vec<u8>,
}

impl Match {
    /// The same name, as a program that could not be started.
    pub(super) fn into_command(self) -> Self {
        static COMMAND: Rule = Rule::new(Class::CommandNotFound, say::COMMAND, "");
        Self {
            rule: &COMMAND,
            ..self
        }
    }
}

/// The last line of a traceback, with the rest of its message below.
static EXCEPTION_RULES: [Rule; 51] = [
    // Reports of another process's end.
    Rule::wrapper(r"(?:ChildFailedError|ProcessRaisedException|ProcessExitedException|CalledProcessError|SignalException)\b"),
    Rule::wrapper(r"(?:BrokenPipeError|ConnectionResetError|ConnectionAbortedError|KeyboardInterrupt|SystemExit|RayTaskError|EOFError$|EOFError\n)"),
    Rule::wrapper(r"\w+: Caught \w+ in (?:DataLoader worker process|replica|pin memory thread)"),
    Rule::wrapper(r"(?:Base)?ExceptionGroup: .* \(\d+ sub-exceptions?\)"),
    Rule::wrapper(r"RuntimeError: DataLoader worker \(pid\(s\) [\d, ]+\) exited unexpectedly"),
    // Memory of the GPU.
    Rule::new(Class::GpuOutOfMemory, say::GPU_MEMORY, r"OutOfMemoryError: (?:(?:CUDA|HIP|XPU) out of memory|Allocation on device|Out of memory allocating)"),
    Rule::new(
        Class::GpuOutOfMemory,
        say::GPU_MEMORY,
        r"(?:RuntimeError|AcceleratorError): (?:CUDA|HIP)(?: error:)? (?:out of memory|CUBLAS_STATUS_ALLOC_FAILED)",
    ),
    Rule::new(
        Class::GpuOutOfMemory,
        say::GPU_MEMORY,
        r"(?:XlaRuntimeError|JaxRuntimeError|RuntimeError|ValueError): RESOURCE_EXHAUSTED: (?:Out of memory|Error allocating device buffer|.*[Rr]an out of memory in memory space)",
    ),
    Rule::new(Class::GpuOutOfMemory, say::GPU_MEMORY, r"DistBackendError: NCCL error(?s:.*)\bCuda failure (?:\d+ )?'out of memory'"),
    Rule::new(Class::OutOfMemory, say::MEMORY, r"ResourceExhaustedError(?: \(see above for traceback\))?:(?s:.*)\bOOM when allocating tensor .*device:CPU:"),
    Rule::new(
        Class::GpuOutOfMemory,
        say::GPU_MEMORY,
        r"ResourceExhaustedError(?: \(see above for traceback\))?:(?s:.*)\b(?:OOM when allocating tensor|failed to allocate memory)",
    ),
    // The GPU itself.
    Rule::new(Class::GpuEcc, say::ECC, r"\w+: .*(?:[Uu]ncorrectable ECC error|CUDA_ERROR_ECC_UNCORRECTABLE)").transient(),
    Rule::new(Class::GpuEcc, say::ECC, r"DistBackendError: NCCL error(?s:.*)\bCuda failure .*[Uu]ncorrectable ECC").transient(),
    Rule::new(Class::NoGpu, say::NO_GPU, r"RuntimeError: (?:Found no NVIDIA driver on your system|No (?:CUDA|HIP) GPUs are available)"),
    Rule::new(
        Class::NoGpu,
        say::NO_GPU,
        r"RuntimeError: Attempting to deserialize object on (?:a CUDA device but torch\.cuda\.is_available\(\) is False|CUDA device \d+ but)",
    ),
    Rule::new(Class::NoGpu, say::NO_GPU, r"(?:RuntimeError|AcceleratorError): CUDA error: (?:no CUDA-capable device is detected|invalid device ordinal)"),
    Rule::new(Class::NoGpu, say::CPU_BUILD, r"AssertionError: Torch not compiled with CUDA enabled"),
    Rule::new(
        Class::CudaError,
        say::GPU_BUSY,
        concat!(
            r"(?:RuntimeError|AcceleratorError): CUDA error: (?:CUDA-capable device\(s\) is/are busy|all CUDA-capable devices are busy",
            r"|system not yet init|hardware stack error|Invalid access of peer GPU memory over nvlink)",
        ),
    )
    .transient(),
    Rule::new(Class::CudaError, say::GPU_KERNELS, r"(?:RuntimeError|AcceleratorError): CUDA error: no kernel image is available"),
    Rule::new(Class::CudaError, say::GPU_ASSERT, r"(?:RuntimeError|AcceleratorError): CUDA error: device-side assert triggered"),
    Rule::new(Class::CudaError, say::CUDA, r"(?:RuntimeError|AcceleratorError): (?:(?:CUDA|HIP|CUDA driver) error: |cuDNN error: CUDNN_STATUS_)"),
    Rule::new(Class::CudaError, say::CUDA, r"(?:XlaRuntimeError|JaxRuntimeError): INTERNAL: .*\bCUDA_ERROR_[A-Z_]+"),
    // Ports before ranks: torch's store names both in one exception.
    Rule::new(
        Class::PortInUse,
        say::PORT,
        r"(?:RuntimeError|DistNetworkError): The server socket has failed to listen .*(?:EADDRINUSE|Address already in use)",
    )
    .transient(),
    Rule::new(Class::PortInUse, say::PORT, r"(?:OSError|error): \[Errno (?:98|48)\] ").transient(),
    Rule::new(Class::NcclError, say::RANKS, r"(?:DistBackendError|DistStoreError|DistNetworkError): ").transient().follower(),
    Rule::new(
        Class::NcclError,
        say::RANKS,
        r"RuntimeError: (?:NCCL [Ee]rror|NCCL communicator was aborted|.*Watchdog caught collective operation timeout: WorkNCCL)",
    )
    .transient()
    .follower(),
    Rule::new(Class::NcclError, say::RANKS, r"RuntimeError: \[[^\]]*gloo/transport/[^\]]*\] ").transient().follower(),
    // Memory of the node.
    Rule::new(Class::SharedMemory, say::SHARED_MEMORY, r"RuntimeError: DataLoader worker \(pid \d+\) is killed by signal: Bus error"),
    Rule::new(Class::SharedMemory, say::SHARED_MEMORY, r"RuntimeError: unable to (?:write to file|mmap \d+ bytes from file) </torch_"),
    Rule::new(Class::SharedMemory, say::SHARED_MEMORY, r"OSError: \[Errno 28\] No space left on device: '/dev/shm"),
    Rule::new(Class::Killed, say::KILLED, r"RuntimeError: DataLoader worker \(pid \d+\) is killed by signal: Killed").follower(),
    Rule::new(Class::Segfault, say::SEGFAULT, r"RuntimeError: DataLoader worker \(pid \d+\) is killed by signal: Segmentation fault").follower(),
    Rule::new(Class::OutOfMemory, say::MEMORY, r"(?:_Array|Arrow)?MemoryError(?::|\n|$)"),
    Rule::new(
        Class::OutOfMemory,
        say::MEMORY,
        r"(?:OSError: \[Errno 12\] Cannot allocate memory|RuntimeError: (?:std::bad_alloc|.*DefaultCPUAllocator: (?:can't|not enough)))",
    ),
    // Files.
    Rule::new(
        Class::DiskFull,
        say::DISK,
        r"\w+: (?:\[Errno 28\] No space left on device|\[Errno 122\] Disk quota exceeded|.*\(os error (?:28|122)\)|.*kind: StorageFull)",
    ),
    Rule::new(Class::MissingModule, "", r"ModuleNotFoundError: No module named '([\w.]+)'"),
    Rule::new(Class::MissingLibrary, say::LIBRARY, r"(?:ImportError|OSError): (lib[\w.+-]+): cannot open shared object file"),
    Rule::new(Class::FileNotFound, say::NAMED_FILE, r"FileNotFoundError: \[Errno 2\] No such file or directory: b?['\x22]([^\n]*)['\x22](?:\n|$)"),
    Rule::new(Class::FileNotFound, say::FILE, r"FileNotFoundError(?::|\n|$)"),
    Rule::new(Class::FileNotFound, say::FILE, r"NotFoundError: .*; No such file or directory"),
    Rule::new(Class::PermissionDenied, say::NAMED_PERMISSION, r"PermissionError: \[Errno (?:13|1)\] [^\n]*: '([^\n]*)'(?:\n|$)"),
    Rule::new(Class::PermissionDenied, say::PERMISSION, r"(?:PermissionError(?::|\n|$)|OSError: \[Errno 30\] Read-only file system)"),
    Rule::new(Class::PermissionDenied, say::GATED, r"GatedRepoError: "),
    // The world outside.
    Rule::new(Class::Network, say::HOST_NAME, r"gaierror: \[Errno -(?:2|5)\] "),
    Rule::new(Class::Network, say::NETWORK, r"gaierror: \[Errno -3\] ").transient(),
    Rule::new(
        Class::Network,
        say::NETWORK,
        concat!(
            r"(?:ConnectionError|ProxyError|SSLError|ConnectTimeout|ReadTimeout|MaxRetryError|NewConnectionError",
            r"|NameResolutionError|ConnectTimeoutError|ReadTimeoutError): .*(?:HTTPS?Connection(?:Pool)?\b|Failed to establish)",
        ),
    )
    .transient(),
    Rule::new(Class::Network, say::NETWORK, r"(?:URLError: <urlopen error |ConnectError: )(?:\[Errno (?:-3|101|110|113)\]|timed out)").transient(),
    Rule::new(Class::Network, say::NETWORK, r"(?:ConnectionRefusedError: \[Errno 111\]|OSError: \[Errno (?:101|110|113)\]|TimeoutError: \[Errno 110\])")
        .transient()
        .follower(),
    // Numbers.
    Rule::new(
        Class::NotANumber,
        say::NUMBERS,
        r"FloatingPointError: (?i:.*\bnan\b|.*\binf(?:inity)?\b|.*invalid value|.*overflow|.*divide by zero|.*loss scale)",
    ),
    Rule::new(
        Class::NotANumber,
        say::NUMBERS,
        r"RuntimeError: (?:Function '\w+' returned nan values in its \d+th output|The total norm .*is non-finite, so it cannot be clipped)",
    ),
    Rule::new(Class::NotANumber, say::NUMBERS, NAN_PATTERN),
];

/// Checks that people and libraries write: a value that *is* or *contains* NaN.
const NAN_PATTERN: &str = concat!(
    r"(?:ValueError|RuntimeError|ArithmeticError|AssertionError|Exception): (?i:.*\bcontains? (?:\w+ (?:or )?)?(?:nan|infinity)s?\b",
    r"|.*\b(?:loss|gradients?|grad_norm|norm|outputs?|logits|values?|rewards?) (?:is|are|was|were|became|has become|=|==) ?(?:nan|inf|infinite|non-finite|not finite)\b",
    r"|.*\b(?:nan|non-finite) (?:loss|values?|gradients?|norm|detected|encountered|found|in)\b",
    r"|.*\b(?:detected|encountered|found|got) (?:a )?(?:nan|non-finite)\b|cannot convert float (?:nan|infinity) to integer",
    r"|Expected parameter \w+ (?s:.*)but found invalid values:(?s:.*)\bnan\b)",
);

/// Messages outside tracebacks after which a program ends, wherever they stand.
static ANYWHERE_RULES: [Rule; 13] = [
    Rule::new(Class::OutOfMemory, say::MEMORY, r"(?:slurmstepd:|\[[\dT:.-]+\]) error: Detected \d+ oom[-_]kill event"),
    Rule::new(Class::OutOfMemory, say::MEMORY, r"slurmstepd: error: .*exceeded memory limit \(.*being killed"),
    Rule::new(Class::OutOfMemory, say::MEMORY, r"srun: error: [^:]+: tasks? [\d,-]+: Out Of Memory"),
    Rule::new(Class::OutOfMemory, say::MEMORY, r"(?:terminate called after throwing an instance of 'std::bad_alloc'|\s+what\(\):\s+std::bad_alloc)").follower(),
    Rule::new(Class::GpuOutOfMemory, say::GPU_MEMORY, r"\s+what\(\):\s+CUDA (?:error: )?out of memory").follower(),
    Rule::new(Class::GpuEcc, say::ECC, r"\s+what\(\):\s+(?:\[.*exception: )?CUDA error: [Uu]ncorrectable ECC error").transient().follower(),
    Rule::new(Class::CudaError, say::CUDA, r"\s+what\(\):\s+(?:\[.*exception: )?CUDA error: ").follower(),
    Rule::new(
        Class::NcclError,
        say::RANKS,
        r"(?:\[E[^\]]*ProcessGroupNCCL\.cpp:\d+\] |\s+what\(\):\s+).*Watchdog caught collective operation timeout: WorkNCCL\(",
    )
    .transient()
    .follower(),
    Rule::new(
        Class::SharedMemory,
        say::SHARED_MEMORY,
        r"ERROR: Unexpected bus error encountered in worker\. This might be caused by insufficient shared memory",
    ),
    Rule::new(
        Class::Segfault,
        say::SEGFAULT,
        r"(?:Fatal Python error: Segmentation fault|!!!!!!! Segfault encountered !!!!!!!|\[\S+:\d+:\d+:\d+\] Caught signal 11 \(Segmentation fault)",
    )
    .follower(),
    Rule::new(
        Class::Segfault,
        say::SEGFAULT,
        concat!(
            r"(?:\s+traceback : Signal 11 \(SIGSEGV\) received by PID \d+|srun: error: [^:]+: tasks? [\d,-]+: Segmentation fault",
            r"|mpirun noticed that process rank .*exited on signal 11)",
        ),
    )
    .follower(),
    Rule::new(Class::Killed, say::KILLED, r"(?:\s+traceback : Signal 9 \(SIGKILL\) received by PID \d+|srun: error: [^:]+: tasks? [\d,-]+: Killed)").follower(),
    Rule::new(Class::PortInUse, say::PORT, r"ERROR:\s+\[Errno 98\] error while attempting to bind on address").transient(),
];

/// Complaints that end a program only at its very end, because a script may go on after them. After
/// a traceback, they follow from it.
static LAST_LINE_RULES: [Rule; 15] = [
    Rule::new(
        Class::CommandNotFound,
        say::COMMAND,
        r"[^\s:]+: (?:line \d+: )?([^\s:]+): command not found$",
    ),
    Rule::new(
        Class::CommandNotFound,
        say::COMMAND,
        r"(?:[^\s:]*sh|[^\s:]*/[^\s:]*): (?:(?:line )?\d+: )?(?:exec: )?([^\s:/]+): not found$",
    ),
    Rule::new(
        Class::CommandNotFound,
        say::COMMAND,
        r"(?:/usr/bin/)?env: (?:'|\xe2\x80\x98)?([^\s:'\xe2]+)(?:'|\xe2\x80\x99)?: No such file or directory$",
    ),
    Rule::new(
        Class::CommandNotFound,
        say::COMMAND,
        r#".*exec: "([^"]+)": executable file not found in \$PATH"#,
    ),
    Rule::new(
        Class::CommandNotFound,
        say::COMMAND,
        r"slurmstepd: error: execve\(\): ([^\s:]+): No such file or directory",
    ),
    Rule::new(
        Class::MissingModule,
        "",
        r"\S*python[\d.]*: (?:No module named |.*\(ModuleNotFoundError: No module named )'?([\w.]+)'?\)?$",
    ),
    Rule::new(
        Class::FileNotFound,
        say::NAMED_FILE,
        r"\S*python[\d.]*: can't open file '([^']*)': \[Errno 2\]",
    ),
    Rule::new(
        Class::FileNotFound,
        say::NAMED_FILE,
        r"(?:\S*(?:bash|sh)): (?:line \d+: |\d+: )?(?:cd: |can't cd to |cannot open )?(/?[^\s:]+)(?:: No such file or directory|: No such file|: not found)$",
    ),
    Rule::new(
        Class::FileNotFound,
        say::FILE,
        r"(?:cp|mv|cat|ls|mkdir|tar|ln|touch|head|tail|chmod|unzip): .*: No such file or directory$",
    ),
    Rule::new(
        Class::PermissionDenied,
        say::NAMED_PERMISSION,
        r"(?:\S*(?:bash|sh)): (?:line \d+: |\d+: )?(?:cannot (?:create|open) )?([^\s:]+): Permission denied$",
    ),
    Rule::new(
        Class::PermissionDenied,
        say::PERMISSION,
        r"(?:cp|mv|cat|ls|mkdir|tar|ln|touch|head|tail|chmod|unzip): .*: Permission denied$",
    ),
    Rule::new(
        Class::DiskFull,
        say::DISK,
        r"(?:\S*(?:bash|sh)|cp|mv|cat|mkdir|tar|touch|tee|dd|rsync|unzip|pip|ERROR): .*(?:No space left on device|Disk quota exceeded)",
    ),
    Rule::new(
        Class::OutOfMemory,
        say::MEMORY,
        r"(?:memory allocation of \d+ bytes failed|\S*(?:bash|sh): (?:line \d+: )?fork: Cannot allocate memory)",
    ),
    Rule::new(
        Class::Segfault,
        say::SEGFAULT,
        r"(?:[^\s:]+: (?:line \d+: +)?\d+ )?Segmentation fault(?: +\(core dumped\).*|  .*)?$",
    ),
    Rule::new(
        Class::Killed,
        say::KILLED,
        r"(?:[^\s:]+: (?:line \d+: +)?\d+ Killed(?:  .*)?|Killed)$",
    ),
];

/// A table with its patterns compiled: all at once to see whether any fits, then the one for its
/// name.
struct Compiled {
    rules: &'static [Rule],
    set: RegexSet,
    each: Vec<Regex>,
}

impl Compiled {
    fn new(rules: &'static [Rule], start: &str) -> Self {
        let patterns: Vec<String> = rules
            .iter()
            .map(|rule| format!("(?-u){start}(?:{})", rule.pattern))
            .collect();
        let each = patterns
            .iter()
            .map(|pattern| Regex::new(pattern).expect("our own pattern"))
            .collect();
        Self {
            rules,
            set: RegexSet::new(&patterns).expect("our own patterns"),
            each,
        }
    }

    fn first(&self, text: &[u8]) -> Option<Match> {
        let which = self.set.matches(text).iter().next()?;
        let name = self.each[which]
            .captures(text)
            .and_then(|found| Some(found.get(1)?.as_bytes().to_vec()));
        Some(Match {
            rule: &self.rules[which],
            name: name.unwrap_or_default(),
        })
    }
}

/// The rule for the end of a traceback.
pub(super) fn exception(message: &[u8]) -> Option<Match> {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED
        .get_or_init(|| Compiled::new(&EXCEPTION_RULES, r"^(?:[\w.]+\.)?"))
        .first(message)
}

/// The rule for a line that counts wherever it stands.
pub(super) fn anywhere(line: &[u8]) -> Option<Match> {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED
        .get_or_init(|| Compiled::new(&ANYWHERE_RULES, "^"))
        .first(line)
}

/// The rule for a line that counts only at the end of the log.
pub(super) fn at_end(line: &[u8]) -> Option<Match> {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED
        .get_or_init(|| Compiled::new(&LAST_LINE_RULES, "^"))
        .first(line)
}
