//! The connection to `tow __site` on a scheduler's host: requests and replies, one at a time.

use super::config::SlurmSettings;
use towline_core::transport::Transport;
use towline_core::{Error, Result};
use towline_wire::line::Line;
use towline_wire::program::OwnProgram;
use towline_wire::site::{SITE_VERB, SiteHello, SiteReply, SiteRequest};

/// How many blobs are sent before the first one is acknowledged: more than the other side leaves
/// unacknowledged.
const UNANSWERED_BLOBS: usize = 8;

#[derive(Debug)]
pub struct Link {
    line: Line,
    pub hello: SiteHello,
}

impl Link {
    /// Opens the connection. Uploads the program if it is missing there, or damaged.
    pub fn open(
        transport: &dyn Transport,
        config: &SlurmSettings,
        program: &OwnProgram,
    ) -> Result<Self> {
        let words: Vec<&str> = [SITE_VERB, &config.stage]
            .into_iter()
            .chain(config.bin.as_deref())
            .collect();
        let (line, hello) = Line::open::<SiteHello>(transport, &config.stage, program, &words)?;
        Ok(Self { line, hello })
    }

    pub(super) const fn is_broken(&self) -> bool {
        self.line.is_broken()
    }

    /// Sends one request and reads its reply.
    pub fn ask(&mut self, request: &SiteRequest) -> Result<SiteReply> {
        self.line.send(request, b"")?;
        match self.line.receive()? {
            SiteReply::Refused(refusal) => Err(refusal.into()),
            reply => Ok(reply),
        }
    }

    /// Uploads many blobs. Sends the next ones while the replies to earlier ones are on their way.
    pub fn keep_all(
        &mut self,
        blobs: impl Iterator<Item = Result<(String, Vec<u8>)>>,
    ) -> Result<()> {
        let mut open = 0;
        for blob in blobs {
            let (blob, bytes) = blob.inspect_err(|_| self.line.give_up())?;
            self.line.send(
                &SiteRequest::Keep {
                    blob,
                    size: bytes.len() as u64,
                },
                &bytes,
            )?;
            open += 1;
            if open >= UNANSWERED_BLOBS {
                self.done()?;
                open -= 1;
            }
        }
        // The other side acknowledges the last blobs when it gets another request.
        self.line
            .send(&SiteRequest::Missing { blobs: Vec::new() }, b"")?;
        for _ in 0..open {
            self.done()?;
        }
        match self.line.receive()? {
            SiteReply::Missing { .. } => Ok(()),
            _ => Err(Error::bug("an answer to another question")),
        }
    }

    fn done(&mut self) -> Result<()> {
        match self.line.receive()? {
            SiteReply::Done => Ok(()),
            SiteReply::Refused(refusal) => {
                // Further replies follow that nobody will read.
                self.line.give_up();
                Err(refusal.into())
            }
            _ => {
                self.line.give_up();
                Err(Error::bug("an answer to another question"))
            }
        }
    }

    /// The bytes that follow a reply.
    pub fn bytes(&mut self, size: u64) -> Result<Vec<u8>> {
        self.line.bytes(size)
    }
}
