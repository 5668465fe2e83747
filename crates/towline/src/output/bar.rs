//! The progress bar of a transfer: one line on stderr, if that is a terminal.

use crate::output;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use towline_core::quantity::Size;
use towline_core::time::human_millis;
use towline_io::transfer::progress::{Glance, Progress};
use towline_wire::api::envelope::Progress as Reported;

const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Draws while `act` runs, if stderr is a terminal.
pub(crate) async fn with_bar<T>(
    name: &str,
    progress: Arc<Progress>,
    act: impl Future<Output = T>,
) -> T {
    let for_program = output::progress_is_json();
    if !for_program && !std::io::stderr().is_terminal() {
        return act.await;
    }
    let begun = Instant::now();
    let drawing = async {
        let mut tick = tokio::time::interval(REDRAW_INTERVAL);
        tick.tick().await;
        loop {
            tick.tick().await;
            let (glance, elapsed) = (progress.glance(), begun.elapsed());
            if for_program {
                output::progress_json(reported(name, &glance));
            } else {
                output::redraw(&line(&glance, elapsed));
            }
        }
    };
    let result = tokio::select! {
        result = act => result,
        () = drawing => unreachable!("it draws for ever"),
    };
    if for_program {
        output::progress_json(reported(name, &progress.glance()));
    } else {
        output::redraw("");
    }
    result
}

/// The same for a program.
pub(crate) fn reported(name: &str, glance: &Glance) -> Reported {
    Reported {
        text: name.to_owned(),
        files: glance.done,
        bytes: glance.done_bytes,
        of_files: glance.found,
        of_bytes: glance.found_bytes,
        is_total_known: glance.all_found,
    }
}

pub(crate) fn line(glance: &Glance, elapsed: Duration) -> String {
    let more = if glance.all_found { "" } else { "+" };
    let rate = Size(glance.rate(elapsed));
    let left = glance
        .left(elapsed)
        .map(|left| {
            format!(
                ", {} left",
                human_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
            )
        })
        .unwrap_or_default();
    format!(
        "{} of {}{more} files, {} of {}{more}, {rate}/s{left}",
        glance.done,
        glance.found,
        Size(glance.done_bytes),
        Size(glance.found_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long() {
        let glance = Glance {
            found: 10,
            found_bytes: 4 << 20,
            done: 3,
            done_bytes: 1 << 20,
            all_found: true,
        };
        assert_eq!(
            line(&glance, Duration::from_secs(1)),
            "3 of 10 files, 1M of 4M, 1M/s, 3.0s left"
        );
        assert_eq!(
            line(
                &Glance {
                    all_found: false,
                    ..glance
                },
                Duration::from_secs(1)
            ),
            "3 of 10+ files, 1M of 4M+, 1M/s"
        );
    }
}
