//! Logs that mention failures which did not end the program. Each must stay without a finding.

use crate::why::classify;

#[track_caller]
fn silent(log: &str) {
    assert_eq!(classify(log.as_bytes()), None, "in:\n{log}");
}

const TRACEBACK: &str = "Traceback (most recent call last):\n  File \"/job/train.py\", line 61, in \
    main\n    step(batch)\n";

#[test]
fn a_training_that_went_well() {
    silent(
        "Epoch 1/3\nstep 100 loss=2.310 lr=3.0e-04\nloss_nan_count: 0\nstep 200 loss=nan_safe \
            1.98\nSaved checkpoint to out/step200.pt\n# never out of memory again\nTraining \
                complete.\n",
    );
}

#[test]
fn nothing_at_all() {
    silent("");
    silent("\n\n\r\r\n");
}

#[test]
fn an_installation() {
    silent(
        "Collecting torch==2.4.0\n  Downloading torch-2.4.0-cp311-cp311-manylinux1_x86_64.whl \
            (797.2 MB)\nWARNING: Retrying (Retry(total=4)) after connection broken by \
                'NewConnectionError(\"<pip._vendor.urllib3.connection.HTTPSConnection object>: \
                    Failed to establish a new connection: [Errno 101] Network is unreachable\")': \
                        /simple/torch/\nInstalling collected packages: nvidia-nccl-cu12, \
                            torch\nERROR: pip's dependency resolver does not currently take into \
                                account all the packages that are installed.\nSuccessfully installed nvidia-nccl-cu12-2.20.5 torch-2.4.0\n",
    );
}

#[test]
fn an_installation_that_failed_in_a_build() {
    silent(
        "  error: subprocess-exited-with-error\n  \n  × Getting requirements to build wheel did \
            not run successfully.\n  │ exit code: 1\n  ╰─> [3 lines of output]\n      Traceback \
                (most recent call last):\n        File \"<string>\", line 2, in \
                    <module>\n      ModuleNotFoundError: No module named 'torch'\n      [end of \
                        output]\n",
    );
}

#[test]
fn a_test_report() {
    silent(
        "=================== FAILURES ===================\n__________ test_reads_configuration \
            __________\n\n    def test_reads_configuration():\n>       assert load('a.yaml') == \
                {}\nE       FileNotFoundError: [Errno 2] No such file or directory: \
                    'a.yaml'\n\ntests/test_config.py:9: FileNotFoundError\n=========== short test \
                        summary info ============\nFAILED \
                            tests/test_config.py::test_reads_configuration - FileNotFoundError: \
                                [Errno 2] No such file\n1 failed, 41 passed in 2.13s\n",
    );
}

#[test]
fn progress_bars() {
    let bar = |step: u32| {
        format!(
            "\rEpoch 1: {:3}%|███▎      | {step}/500 [00:10<00:20, 12.3it/s, loss=0.31, nan=0]",
            step / 5
        )
    };
    let bars = (0..500).map(bar).collect::<Vec<_>>().concat();
    silent(&bars);
    silent(&format!(
        "{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n{bars}"
    ));
}

#[test]
fn warnings_that_mention_errors() {
    silent(
        "/usr/lib/python3/site-packages/x.py:31: UserWarning: CUDA initialization: CUDA unknown \
            error - this may be due to an incorrectly set up environment\n  return \
                torch._C._cuda_getDeviceCount() > 0\nWARNING: No such file or directory: cache, \
                    will download\nW0000 tensorflow/core/common_runtime/bfc_allocator.cc:290] \
                        Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.39GiB. The \
                            caller indicates that this is not a failure\nslurmstepd: error: *** \
                                JOB 4711 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
    );
}

#[test]
fn a_search_for_the_words() {
    silent(
        "$ grep -rn 'out of memory' src\nsrc/train.py:12:    # torch.OutOfMemoryError: CUDA out of \
            memory. Tried to allocate\nsrc/train.py:40:        if 'CUDA out of memory' in \
                str(error):\nREADME.md:9:RuntimeError: CUDA error: an illegal memory access was \
                    encountered\ndocs/faq.md:3:ModuleNotFoundError: No module named 'apex'\n",
    );
}

#[test]
fn exceptions_named_without_a_traceback() {
    silent("ModuleNotFoundError: No module named 'apex'\n");
    silent(
        "optional speed-ups are off:\nModuleNotFoundError: No module named 'apex'\nOSError: [Errno \
            28] No space left on device\nexit\n",
    );
}

#[test]
fn nccl_at_work() {
    silent(
        "n1:4711:4711 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nn1:4711:4711 [0] NCCL INFO \
            NET/Plugin: Could not find: libnccl-net.so. Using internal network \
                plugin.\nn1:4711:4811 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to \
                    22.\nn1:4711:4811 [0] NCCL INFO Connected all rings\n[rank0]:[W1012 \
                        12:00:00.123456789 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process \
                            group has NOT been destroyed before we destruct ProcessGroupNCCL.\n",
    );
}

#[test]
fn nanometres() {
    silent(
        "wavelength: 532 nanometers\nnan_to_num applied to 3 channels\nnan: not a unit\nthe film \
            is 40 nm thick, nanmean 12.3, nanstd 0.4\nvalues: [nan, 1.0, inf]\n",
    );
}

#[test]
fn a_wrong_option() {
    silent(
        "usage: train.py [-h] [--learning-rate LEARNING_RATE] [--on-nan {stop,skip}]\ntrain.py: \
            error: unrecognized arguments: --lerning-rate 0.1\n",
    );
    silent(
        "usage: train.py [-h] --data DATA\ntrain.py: error: argument --data: file not found: \
            /data/x\n",
    );
}

#[test]
fn an_assertion_of_the_users() {
    silent(&format!(
        "{TRACEBACK}AssertionError: expected 10 classes, got 12\n"
    ));
    silent(&format!("{TRACEBACK}KeyError: 'nan'\n"));
    silent(&format!(
        "{TRACEBACK}ValueError: unknown unit: nanometer, value = 3\n"
    ));
    silent(&format!(
        "{TRACEBACK}RuntimeError: the plan would run out of memory\n"
    ));
}

#[test]
fn caught_and_gone_on() {
    let caught =
        format!("{TRACEBACK}FileNotFoundError: [Errno 2] No such file or directory: 'cache'\n");
    silent(&format!("{caught}no cache, will download\n"));
    silent(&format!(
        "{caught}attempt 1 failed, retrying in 5 s\nattempt 2 succeeded\n"
    ));
    silent(&format!("{caught}Epoch 1, step 100, loss 2.3\n"));
    silent(&format!(
        "{caught}building the cache\n{TRACEBACK}AssertionError: expected 10 classes\n"
    ));
    silent(&format!("{caught}{}", "row written\n".repeat(60)));
}

#[test]
fn ignored_by_python_itself() {
    silent(&format!(
        "Exception ignored in: <function Pool.__del__ at 0x7f00>\n{TRACEBACK}OSError: [Errno 28] No \
            space left on device\n"
    ));
    silent(&format!(
        "--- Logging error ---\n{TRACEBACK}OSError: [Errno 28] No space left on device\nCall \
            stack:\n  File \"/job/train.py\", line 3, in <module>\n    log.info('x')\nMessage: \
                'x'\nArguments: ()\n"
    ));
}

#[test]
fn a_script_that_goes_on() {
    silent(
        "job.sh: line 2: module: command not found\njob.sh: line 3: nvidia-smi: command not \
            found\nloading the model\nthe evaluation server said no\n",
    );
    silent(&format!(
        "job.sh: line 2: module: command not found\nloading\n{TRACEBACK}AssertionError: expected 10 \
            classes\n"
    ));
    silent(
        "worker 3: Killed the stale lock\nKilled 3 stale workers\nSegmentation fault rate of the \
            images: 0.1\nSegmentation faults: none\nbye\n",
    );
}
