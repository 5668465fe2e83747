//! Real services and real clients on loopback, installed by `cargo xtask test`: Microsoft's blob
//! service and client, an S3 server and Amazon's client, a proxy that injects faults, and a Slurm
//! cluster. Nothing here uses the program's own code for stores, so that it can judge it.

mod account;
mod azurite;
mod browser;
mod certificate;
mod client;
mod fault;
pub mod http;
mod parts;
mod proxy;
mod s3;
mod server;
pub mod slurm;
mod sshd;

pub use account::Account;
pub use azurite::Azurite;
pub use browser::Page;
pub(crate) use certificate::Certificate;
pub use client::{BlobClient, ObjectClient, Said, python};
pub use fault::{Fault, Rule};
pub use parts::file as part;
pub use proxy::{FaultProxy, Seen};
pub use s3::S3Server;
pub use slurm::Slurm;
pub use sshd::{PASSPHRASE, Sshd};
