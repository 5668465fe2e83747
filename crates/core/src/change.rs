//! Changes of a run that waits: `tow hold`, `tow resume`, `tow edit`.

use crate::job::{Resources, Tier};
use crate::quantity::Span;
use crate::resolve::{Resolved, Shape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of a run that waits in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It does not start until it is resumed.
    Hold,
    Resume,
    Edit(Box<Edit>),
}

impl Change {
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Resume => "resume",
            Self::Edit(_) => "edit",
        }
    }
}

/// What `tow edit` changes. Everything else stays as the job says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    /// Its new tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Its new time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Its new size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
}

impl Edit {
    /// This edit after an earlier one.
    #[must_use]
    pub fn over(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else {
            return self.clone();
        };
        Self {
            tier: self.tier.or(earlier.tier),
            time: self.time.or(earlier.time),
            shape: self.shape.clone().or_else(|| earlier.shape.clone()),
        }
    }

    /// Applies it to a plan.
    pub fn apply(&self, resolved: &mut Resolved) {
        if let Some(tier) = self.tier {
            resolved.tier = tier;
        }
        if self.time.is_some() {
            resolved.time = self.time;
        }
        if let Some(shape) = &self.shape {
            resolved.shape = shape.clone();
        }
    }

    /// Applies it to what a job asks for, so that a repetition has it too.
    pub fn apply_to(&self, resources: &mut Resources) {
        if self.tier.is_some() {
            resources.tier = self.tier;
        }
        if self.time.is_some() {
            resources.time = self.time;
        }
        if let Some(shape) = &self.shape {
            resources.nodes = Some(shape.nodes);
            resources.gpus_per_node = Some(shape.gpus_per_node);
            resources.cpus_per_node = shape.cpus_per_node;
            resources.memory = shape.memory;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_edit_leaves_what_it_does_not_name() {
        let first = Edit {
            tier: Some(Tier::Basic),
            time: Some(Span(60)),
            shape: None,
        };
        let second = Edit {
            time: Some(Span(120)),
            ..Edit::default()
        };
        let both = second.over(Some(&first));
        assert_eq!((both.tier, both.time), (Some(Tier::Basic), Some(Span(120))));
        assert_eq!(second.over(None), second);
    }
}
