//! The site: `tow` on a scheduler's host. It takes submissions, reads records and logs, queries the
//! scheduler, and settles runs that died without an end record. It lives as long as its connection.
//! It stores everything in the stage folder, so any number of sites may work at once.

mod change;
mod commands;
mod content;
mod environment;
mod facts;
mod files;
mod observe;
mod removed_code;
mod settle;
mod submit;
mod tidy;

use commands::Commands;
use std::fs;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_core::transport::Transport;
use towline_core::{Error, Result};
use towline_wire::frame;
use towline_wire::heartbeat::HeartbeatOutput;
use towline_wire::line::GREETING;
use towline_wire::site::{SITE_PROTOCOL, SiteHello, SiteReply, SiteRequest};
use towline_wire::stage::StageFolder;

/// Serves requests on stdin until it ends. `here` is this machine, for the scheduler's commands;
/// `bin` is the folder that has them, if the user names one.
pub fn site_main(stage: &Path, bin: Option<&str>, here: Arc<dyn Transport>) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(256 << 10, io::stdout());
    let mut input = BufReader::with_capacity(256 << 10, io::stdin().lock());
    output.write_all(GREETING)?;
    output.flush()?;
    let output = HeartbeatOutput::new(output);
    let mut site = Site::open(stage, bin, here)?;
    let hello = site.hello()?;
    output.say(|output| frame::write(output, &hello))?;
    let mut keeping = content::Keeping::default();
    while let Some(request) = frame::read_exactly::<SiteRequest>(&mut input)? {
        if let SiteRequest::Keep { blob, size } = request {
            let bytes = content::receive(&mut input, size)?;
            let replies = keeping.keep(&site.stage, &blob, bytes);
            output.say(|output| {
                replies
                    .iter()
                    .try_for_each(|reply| frame::write(output, reply))
            })?;
            continue;
        }
        let kept = keeping.finish();
        let (reply, body) = site.answer(request).unwrap_or_else(|error| {
            (
                SiteReply::Refused(towline_wire::daemon::Refusal::from(&error)),
                Vec::new(),
            )
        });
        output.say(|output| {
            kept.iter()
                .chain([&reply])
                .try_for_each(|reply| frame::write(output, reply))?;
            output.write_all(&body)
        })?;
    }
    Ok(())
}

struct Site {
    stage: StageFolder,
    user: String,
    /// BLAKE3 of the bytes of this program.
    program: String,
    slurm: Commands,
    observed: observe::Memory,
}

type Answer = (SiteReply, Vec<u8>);

impl Site {
    fn open(stage: &Path, bin: Option<&str>, here: Arc<dyn Transport>) -> io::Result<Self> {
        let root = if stage.is_absolute() {
            stage.to_owned()
        } else {
            std::env::current_dir()?.join(stage)
        };
        let make = |folder: PathBuf| {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
        };
        let stage = StageFolder::new(root);
        for folder in [
            stage.root().to_owned(),
            stage.submissions(),
            stage.runs(),
            stage.snapshots(),
        ] {
            make(folder)?;
        }
        // By its real path, because the nodes get that.
        let stage = StageFolder::new(stage.root().canonicalize()?);
        let user = towline_host::surroundings::user();
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let environment = environment::find(&stage, bin, here.as_ref());
        let program =
            towline_snapshot::digest::Digest::of(&fs::read("/proc/self/exe")?).to_string();
        Ok(Self {
            stage,
            user,
            program,
            slurm: Commands::new(here, host, environment),
            observed: observe::Memory::default(),
        })
    }

    /// Stores this program under the name that scripts start it by, because somebody may have
    /// removed the stage folder since the start.
    fn keep_program(&self) -> Result<()> {
        let place = self.stage.program(&self.program);
        if place.exists() {
            return Ok(());
        }
        let part = place.with_file_name(format!(".tow-{}", std::process::id()));
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(place.parent().unwrap_or(&place));
        let put = made
            .and_then(|()| fs::copy("/proc/self/exe", &part))
            .and_then(|_| fs::set_permissions(&part, fs::Permissions::from_mode(0o700)));
        put.and_then(|()| fs::rename(&part, &place))
            .map_err(|error| failed(&place, error))
    }

    fn hello(&self) -> io::Result<SiteHello> {
        let space = rustix::fs::statvfs(self.stage.root())?;
        Ok(SiteHello {
            protocol: SITE_PROTOCOL,
            version: towline_wire::version::version().to_owned(),
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            user: self.user.clone(),
            stage: self.stage.root().to_string_lossy().into_owned(),
            free: space.f_bavail.saturating_mul(space.f_frsize),
            program: self.program.clone(),
        })
    }

    fn answer(&mut self, request: SiteRequest) -> Result<Answer> {
        let plain = |reply: SiteReply| Ok((reply, Vec::new()));
        match request {
            SiteRequest::Probe => plain(SiteReply::Facts(Box::new(self.facts()?))),
            SiteRequest::Missing { blobs } => plain(SiteReply::Missing {
                blobs: content::missing(&self.stage, blobs)?,
            }),
            SiteRequest::Keep { .. } => {
                Err(Error::bug("a blob is kept before anything is answered"))
            }
            SiteRequest::Submit(sent) => plain(SiteReply::Submitted {
                job: self.submit(*sent)?,
            }),
            SiteRequest::Observe { runs, ask } => {
                plain(SiteReply::Observed(self.observe(&runs, ask)?))
            }
            SiteRequest::Cancel { runs } => {
                self.cancel(&runs)?;
                plain(SiteReply::Done)
            }
            SiteRequest::Change { runs, change } => plain(SiteReply::Changed {
                refused: self.change(&runs, &change)?,
            }),
            SiteRequest::Explain { run } => plain(SiteReply::Explained(self.explain(&run)?)),
            SiteRequest::Logs { run } => plain(SiteReply::Logs(files::logs(&self.stage, &run)?)),
            SiteRequest::Log {
                run,
                attempt,
                source,
                offset,
                most,
            } => Ok(files::log(
                &self.stage,
                &run,
                attempt,
                source,
                offset,
                most,
            )?),
            SiteRequest::List { run, path } => {
                plain(SiteReply::Listed(files::list(&self.stage, &run, &path)?))
            }
            SiteRequest::Read {
                run,
                path,
                offset,
                most,
            } => Ok(files::read(&self.stage, &run, &path, offset, most)?),
            SiteRequest::Forget { runs } => {
                self.forget(&runs)?;
                plain(SiteReply::Done)
            }
            SiteRequest::Known => plain(SiteReply::Known(self.known()?)),
            SiteRequest::Plan { submission } => {
                let order = towline_runner::far::records::order(&self.stage, &submission).ok();
                plain(SiteReply::Plan(order.map(|order| Box::new(order.plan))))
            }
        }
    }
}

/// The error about a file or folder there.
fn failed(path: &Path, error: io::Error) -> Error {
    let full = matches!(
        error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error),
        Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)
    );
    let shown = path.display();
    if full {
        return Error::no_room(format!("there is no room left for {shown}"))
            .hint(
                "remove something there (`quota` tells), or name another folder as `stage` of \
                the cluster",
            )
            .hint("`tow prune` drops old runs and their folders");
    }
    Error::from_io(format!("{shown} cannot be used"), error)
}
