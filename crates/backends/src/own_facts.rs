//! Facts of one kind of cluster, inside the facts that every kind has.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use towline_core::cluster::Facts;
use towline_core::{Error, Result};

/// Facts that only one kind of cluster has, beside its nodes.
pub trait OwnFacts: Serialize + DeserializeOwned {
    /// The nodes and notes that every kind has.
    fn common(&mut self) -> &mut Facts;

    fn into_facts(mut self) -> Facts {
        let facts = std::mem::take(self.common());
        let mut own = serde_json::to_value(&self).unwrap_or_default();
        if let Some(own) = own.as_object_mut() {
            own.remove("facts");
        }
        Facts { own, ..facts }
    }

    fn from_facts(facts: &Facts) -> Result<Self> {
        let mut own: Self = serde_json::from_value(facts.own.clone()).map_err(|error| {
            Error::bug("these are facts of another kind of cluster").source_error(error)
        })?;
        *own.common() = Facts {
            own: Value::Null,
            ..facts.clone()
        };
        Ok(own)
    }
}
