//! The finding among several messages.

mod any_bytes;
mod errors;
mod errors_chained;
mod messages;
mod programs;
mod unrelated;

use super::{Class, Finding, classify, read, root_cause};

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

/// No assertion on time, but a step that is not linear would make this test slow.
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

#[test]
fn a_failure_that_follows_from_another_ranks_below_it() {
    let levels = [
        Class::OutOfMemory,
        Class::CudaError,
        Class::Network,
        Class::Segfault,
        Class::Killed,
        Class::NcclError,
    ];
    assert_eq!(levels.map(Class::consequence_level), [0, 1, 1, 2, 3, 4]);
    assert!(Class::MissingModule.is_often_caught());
    assert!(!Class::OutOfMemory.is_often_caught());
}
