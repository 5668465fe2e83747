//! Where things are on the screen. The view draws there, and the model knows what a click meant.

use ratatui::layout::{Rect, Size};

/// A smaller screen shows nothing but what it needs.
pub(crate) const MIN_SIZE: Size = Size {
    width: 60,
    height: 15,
};
/// The rows of the list, at least, and the lines of the log.
const MIN_PART_ROWS: u16 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Areas {
    pub(crate) counts: Rect,
    pub(crate) gpus: Rect,
    pub(crate) head: Rect,
    pub(crate) rows: Rect,
    pub(crate) log_title: Rect,
    pub(crate) log: Rect,
    pub(crate) foot: Rect,
}

pub(crate) const fn is_enough(size: Size) -> bool {
    size.width >= MIN_SIZE.width && size.height >= MIN_SIZE.height
}

impl Areas {
    /// The list above the log. A short list leaves its rows to the log.
    pub(crate) fn of_list(size: Size, runs: u64) -> Self {
        let mut from_top = Stack::new(size);
        let mut areas = Self {
            counts: from_top.next(1),
            gpus: from_top.next(1),
            head: from_top.next(1),
            ..Self::default()
        };
        let left = from_top.left().saturating_sub(2);
        let share = (left * 11 / 20).max(MIN_PART_ROWS);
        let runs = u16::try_from(runs).unwrap_or(u16::MAX);
        areas.rows = from_top.next(share.min(runs.max(MIN_PART_ROWS)));
        areas.log_title = from_top.next(1);
        areas.log = from_top.next(from_top.left().saturating_sub(1));
        areas.foot = from_top.next(1);
        areas
    }

    /// The log alone.
    pub(crate) fn of_log(size: Size) -> Self {
        let mut from_top = Stack::new(size);
        Self {
            log_title: from_top.next(1),
            log: from_top.next(from_top.left().saturating_sub(1)),
            foot: from_top.next(1),
            ..Self::default()
        }
    }
}

/// A box in the middle of the screen, not larger than the screen.
pub(crate) fn middle(size: Size, width: u16, height: u16) -> Rect {
    let width = width.min(size.width);
    let height = height.min(size.height);
    Rect {
        x: (size.width - width) / 2,
        y: (size.height - height) / 2,
        width,
        height,
    }
}

struct Stack {
    size: Size,
    next: u16,
}

impl Stack {
    const fn new(size: Size) -> Self {
        Self { size, next: 0 }
    }

    fn left(&self) -> u16 {
        self.size.height.saturating_sub(self.next)
    }

    fn next(&mut self, height: u16) -> Rect {
        let height = height.min(self.left());
        let area = Rect {
            x: 0,
            y: self.next,
            width: self.size.width,
            height,
        };
        self.next += height;
        area
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_area_leaves_the_screen_or_covers_another(
            width in 0..300_u16, height in 0..120_u16, runs in 0..1000_u64
        ) {
            let size = Size { width, height };
            for areas in [Areas::of_list(size, runs), Areas::of_log(size)] {
                let Areas { counts, gpus, head, rows, log_title, log, foot } = areas;
                let all = [counts, gpus, head, rows, log_title, log, foot];
                let taken: u32 = all.iter().map(|area| area.area()).sum();
                prop_assert!(taken <= u32::from(width) * u32::from(height));
                for (number, area) in all.iter().enumerate() {
                    prop_assert!(area.bottom() <= height && area.right() <= width);
                    let others = all[number + 1..].iter();
                    prop_assert!(others.clone().all(|other| !area.intersects(*other)));
                }
            }
            if is_enough(size) {
                prop_assert!(Areas::of_list(size, runs).log.height >= MIN_PART_ROWS);
            }
        }
    }
}
