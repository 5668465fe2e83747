//! Brings records of active runs up to date, for verbs.

use crate::context::Context;
use towline_core::Result;
use towline_core::record::RunRecord;
use towline_engine::history::History;

/// Brings records of active runs up to date.
pub(crate) fn freshen(
    context: &Context,
    history: &History,
    records: &mut [RunRecord],
) -> Result<()> {
    freshen_each(context, history, records.iter_mut())
}

/// The same for records that are not in one slice.
pub(crate) fn freshen_each<'r>(
    context: &Context,
    history: &History,
    records: impl Iterator<Item = &'r mut RunRecord>,
) -> Result<()> {
    towline_api::runs::fresh::freshen(context.state()?, history, records)
}
