//! The interface for programs and pages: calls, and one stream of events that can be taken up again
//! where it ended. The same code answers on standard input and output ([`stdio`]) and over HTTP on
//! loopback ([`http`]).
//!
//! What only reads the history and the logs is answered here. A verb is answered by
//! [`session::Verbs`], which the program provides. Nothing here changes a run.

pub mod cancel;
pub mod feed;
pub mod http;
pub mod logs;
pub mod replies;
pub mod runs;
pub mod session;
pub mod stdio;
