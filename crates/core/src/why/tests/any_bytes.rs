//! Any bytes can be read, and what is shown of them is clean.

use crate::why::{LogError, classify, read};
use proptest::prelude::*;

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
