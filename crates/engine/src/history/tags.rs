//! Tags, which a run can get and lose at any time.

use super::Batch;
use rusqlite::{OptionalExtension, params};
use towline_core::event::RunEvent;
use towline_core::time::Moment;
use towline_core::{Result, RunId};

impl Batch<'_> {
    /// Adds tags to a run and removes others. Returns the number of the event and all tags; `None`
    /// if nothing changes, or there is no such run.
    pub fn tag(
        &self,
        run: &RunId,
        add: &[String],
        remove: &[String],
        at: Moment,
    ) -> Result<Option<(i64, Vec<String>)>> {
        self.try_tag(run, add, remove, at)
            .map_err(|error| self.error(&error))
    }

    fn try_tag(
        &self,
        run: &RunId,
        add: &[String],
        remove: &[String],
        at: Moment,
    ) -> rusqlite::Result<Option<(i64, Vec<String>)>> {
        let connection = self.connection();
        let found: Option<(i64, String)> = connection
            .prepare_cached("SELECT sequence, tags FROM runs WHERE id=?1")?
            .query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((key, stored)) = found else {
            return Ok(None);
        };
        let before: Vec<String> = serde_json::from_str(&stored).unwrap_or_default();
        let mut tags = before.clone();
        tags.retain(|tag| !remove.contains(tag));
        for tag in add {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        if tags == before {
            return Ok(None);
        }
        let json = serde_json::to_string(&tags).expect("tags serialise");
        connection
            .prepare_cached("UPDATE runs SET tags=?2 WHERE sequence=?1")?
            .execute(params![key, json])?;
        let event = RunEvent::Tagged { tags: tags.clone() };
        let sequence = self.insert_event(key, &event, at)?;
        Ok(Some((sequence, tags)))
    }
}
