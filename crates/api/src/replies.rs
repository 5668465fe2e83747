//! Where the replies to a call go.

use crate::cancel::Cancel;
use towline_wire::api::envelope::Reply;

/// The caller, as the work of a call sees it.
pub trait Caller {
    /// Passes on a reply. `false` if nobody reads it any more.
    fn reply(&mut self, reply: Reply) -> bool;

    /// Becomes readable when the caller no longer wants the answer.
    fn cancel(&self) -> &Cancel;
}
