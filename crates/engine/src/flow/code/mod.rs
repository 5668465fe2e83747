//! The code of a job: its place, its survey, and its snapshot.

mod ahead;
mod choose;
mod place;
mod survey;
mod take;
mod withheld;

pub use choose::check_kept;
pub(super) use choose::choose_code;
pub use place::{CodePlace, code_place, stays, too_wide};
pub use survey::{Survey, Wish, survey};
pub use take::{LocalStore, local_store, open_lock, take, take_ahead, take_here};
