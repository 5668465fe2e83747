//! What each kind of cluster offers, in words: its capabilities, and how it does what every kind
//! does. `cargo xtask generate` makes the table of the reference from it.

use towline_core::cluster::Caps;

/// One kind of cluster, for people.
#[derive(Debug)]
pub struct Kind {
    pub title: &'static str,
    /// Its flavours and what each can do. A kind without flavours has one, without a name.
    pub flavours: Vec<(&'static str, Caps)>,
    pub how: How,
}

/// How a kind does what every kind does. A phrase each.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// What a sweep is there.
    pub sweep: &'static str,
    /// Who starts the next attempt, and keeps time limits.
    pub retry: &'static str,
    /// What a tier becomes.
    pub tier: &'static str,
    /// What `why` says about a run that waits.
    pub waiting: &'static str,
    /// Where a shell can be opened.
    pub shell: &'static str,
    /// Which ports can be reached.
    pub port: &'static str,
    /// What runs an image.
    pub image: &'static str,
    /// How secrets reach a run.
    pub secret: &'static str,
}
