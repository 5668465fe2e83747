//! A folder behind ssh as a datastore. This program is brought to the host and serves the folder
//! there, over sessions of the ssh connection. The host needs only `sh` and `sshd`.

mod call;
#[cfg(test)]
mod golden_tests;
mod serve;

pub use call::FOLDER_VERB;
pub use serve::folder_main;

use crate::data::{Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums};
use async_trait::async_trait;
use bytes::Bytes;
use call::{Answer, Call, FolderHello};
use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use towline_core::transport::Transport;
use towline_core::{Error, Result};
use towline_wire::line::Line;
use towline_wire::program::OwnProgram;

/// Calls at once. Each call has a session of its own, and one ssh connection carries only so many.
const MAX_SESSIONS: usize = 4;

/// How the host is reached, and the program that is brought there.
#[derive(Debug, Clone)]
pub struct Route {
    pub transport: Arc<dyn Transport>,
    pub program: OwnProgram,
    /// The folder that the program is brought to.
    pub stage: String,
}

#[derive(Debug)]
pub struct FarFolder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    host: String,
    path: String,
    route: Route,
    idle: Mutex<Vec<Line>>,
    /// Uploads in blocks share one process, because it holds the file that is being written.
    uploads: Mutex<Option<Line>>,
    turns: Semaphore,
}

impl FarFolder {
    pub fn new(name: &str, host: &str, path: &str, route: Route) -> Self {
        let (name, host, path) = (name.to_owned(), host.to_owned(), path.to_owned());
        Self {
            inner: Arc::new(Inner {
                name,
                host,
                path,
                route,
                idle: Mutex::default(),
                uploads: Mutex::default(),
                turns: Semaphore::new(MAX_SESSIONS),
            }),
        }
    }

    async fn ask(&self, call: Call, body: Bytes) -> Result<(Answer, Bytes)> {
        let _turn = self
            .inner
            .turns
            .acquire()
            .await
            .map_err(|error| Error::bug("the turns are over").source_error(error))?;
        let inner = self.inner.clone();
        let asked = tokio::task::spawn_blocking(move || inner.ask(&call, &body)).await;
        asked.map_err(|error| Error::bug("a call broke down").source_error(error))?
    }

    async fn ask_without_body(&self, call: Call) -> Result<Answer> {
        self.ask(call, Bytes::new()).await.map(|(answer, _)| answer)
    }
}

impl Inner {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Line>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> Result<Line> {
        if let Some(line) = self.idle().pop() {
            return Ok(line);
        }
        self.route.transport.connect(false)?;
        let words = [FOLDER_VERB, &self.name, &self.path];
        let (line, hello) = Line::open::<FolderHello>(
            self.route.transport.as_ref(),
            &self.route.stage,
            &self.route.program,
            &words,
        )?;
        match hello.refused {
            Some(refusal) => Err(refusal.into()),
            None => Ok(line),
        }
    }

    /// Sends a call to the one process of uploads. If its session is cut, the process is gone; the
    /// next upload goes on with what is on the far disk.
    fn upload(&self, call: &Call, body: &[u8]) -> Result<(Answer, Bytes)> {
        let mut held = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match &mut *held {
            Some(line) => line,
            none => none.insert(self.line()?),
        };
        let answer = converse(line, call, body);
        if line.is_broken() {
            *held = None;
        }
        answer
    }

    /// A session that was cut is opened anew once, because these calls may be repeated.
    fn ask(&self, call: &Call, body: &[u8]) -> Result<(Answer, Bytes)> {
        if call.is_of_an_upload() {
            return self.upload(call, body);
        }
        let mut line = self.line()?;
        let mut answer = converse(&mut line, call, body);
        if line.is_broken() {
            line = self.line()?;
            answer = converse(&mut line, call, body);
        }
        if !line.is_broken() {
            self.idle().push(line);
        }
        answer
    }
}

fn converse(line: &mut Line, call: &Call, body: &[u8]) -> Result<(Answer, Bytes)> {
    line.send(call, body)?;
    match line.receive()? {
        Answer::Refused(refusal) => Err(refusal.into()),
        Answer::Bytes { size } => Ok((Answer::Bytes { size }, line.bytes(size)?.into())),
        answer => Ok((answer, Bytes::new())),
    }
}

fn unexpected<T>() -> Result<T> {
    Err(Error::bug(
        "the far side gave an answer to another question",
    ))
}

#[async_trait]
impl Data for FarFolder {
    fn place(&self) -> String {
        format!(
            "{} (ssh_folder {}:{})",
            self.inner.name, self.inner.host, self.inner.path
        )
    }

    fn limits(&self) -> StoreLimits {
        StoreLimits {
            blocks: u32::MAX,
            block: 2 * crate::transfer::BLOCK_BYTES,
            near: false,
            marks_first: false,
            remembers: true,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    async fn list(&self, prefix: &str, deep: bool, from: Option<&str>) -> Result<Page> {
        match self
            .ask_without_body(Call::List {
                prefix: prefix.to_owned(),
                deep,
                from: from.map(str::to_owned),
            })
            .await?
        {
            Answer::Page(page) => Ok(page),
            _ => unexpected(),
        }
    }

    async fn head(&self, key: &Key) -> Result<Option<Object>> {
        match self
            .ask_without_body(Call::Head { key: key.clone() })
            .await?
        {
            Answer::Object(object) => Ok(object),
            _ => unexpected(),
        }
    }

    async fn read(&self, key: &Key, range: Range<u64>, version: Option<&str>) -> Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let call = Call::Read {
            key: key.clone(),
            start: range.start,
            end: range.end,
            version: version.map(str::to_owned),
        };
        match self.ask(call, Bytes::new()).await? {
            (Answer::Bytes { .. }, bytes) if bytes.len() as u64 == wanted => Ok(bytes),
            _ => unexpected(),
        }
    }

    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool> {
        let call = Call::Write {
            key: key.clone(),
            size: bytes.len() as u64,
            marks: marks.clone(),
            create,
        };
        match self.ask(call, bytes).await?.0 {
            Answer::Made(made) => Ok(made),
            _ => unexpected(),
        }
    }

    async fn open(
        &self,
        key: &Key,
        shape: Shape,
        marks: &Marks,
        id: Option<&str>,
    ) -> Result<String> {
        match self
            .ask_without_body(Call::Open {
                key: key.clone(),
                shape,
                marks: marks.clone(),
                id: id.map(str::to_owned),
            })
            .await?
        {
            Answer::Upload(id) => Ok(id),
            _ => unexpected(),
        }
    }

    async fn blocks(&self, key: &Key, id: &str) -> Result<Option<Vec<Block>>> {
        match self
            .ask_without_body(Call::Blocks {
                key: key.clone(),
                id: id.to_owned(),
            })
            .await?
        {
            Answer::Blocks(blocks) => Ok(blocks),
            _ => unexpected(),
        }
    }

    async fn put(
        &self,
        key: &Key,
        id: &str,
        index: u32,
        bytes: Bytes,
        sums: &Sums,
    ) -> Result<Block> {
        let call = Call::Put {
            key: key.clone(),
            id: id.to_owned(),
            index,
            size: bytes.len() as u64,
            sums: *sums,
        };
        match self.ask(call, bytes).await?.0 {
            Answer::Block(block) => Ok(block),
            _ => unexpected(),
        }
    }

    async fn finish(&self, key: &Key, id: &str, blocks: &[Block], marks: &Marks) -> Result<()> {
        let call = Call::Finish {
            key: key.clone(),
            id: id.to_owned(),
            blocks: blocks.to_vec(),
            marks: marks.clone(),
        };
        match self.ask_without_body(call).await? {
            Answer::Done => Ok(()),
            _ => unexpected(),
        }
    }

    async fn abandon(&self, key: &Key, id: &str) -> Result<()> {
        match self
            .ask_without_body(Call::Abandon {
                key: key.clone(),
                id: id.to_owned(),
            })
            .await?
        {
            Answer::Done => Ok(()),
            _ => unexpected(),
        }
    }

    async fn delete(&self, keys: &[Key]) -> Result<()> {
        match self
            .ask_without_body(Call::Delete {
                keys: keys.to_vec(),
            })
            .await?
        {
            Answer::Done => Ok(()),
            _ => unexpected(),
        }
    }

    async fn delete_marks(&self, marks: &[FolderMark]) -> Result<()> {
        match self
            .ask_without_body(Call::DeleteMarks {
                marks: marks.to_vec(),
            })
            .await?
        {
            Answer::Done => Ok(()),
            _ => unexpected(),
        }
    }

    async fn copy_from(&self, _: &dyn Data, _: &Key, _: &Key, _: u64) -> Result<bool> {
        Ok(false)
    }

    async fn url(&self, key: &Key, _: Duration) -> Result<String> {
        Err(Error::unsupported(format!(
            "{key}: a folder behind ssh has no address that others could use"
        ))
        .hint("copy it to a blob store, or bring it here with `tow down`"))
    }
}
