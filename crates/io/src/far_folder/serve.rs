//! The far side: this program on the host that has the folder, until its session ends.

use super::call::{Answer, Call, FolderHello, PROTOCOL_VERSION};
use crate::data::Data;
use crate::folder::Folder;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use towline_core::Result;
use towline_wire::daemon::Refusal;
use towline_wire::frame;
use towline_wire::line::GREETING;

/// The largest body of one call.
const MAX_BODY_BYTES: u64 = 256 << 20;

/// Serves the folder at `path` on stdin and stdout.
pub fn folder_main(name: &str, path: &Path) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(256 << 10, io::stdout().lock());
    let mut input = BufReader::with_capacity(256 << 10, io::stdin().lock());
    let folder = Folder::configured(name, path);
    let program = blake3::hash(&std::fs::read("/proc/self/exe")?)
        .to_hex()
        .to_string();
    output.write_all(GREETING)?;
    frame::write(
        &mut output,
        &FolderHello {
            protocol: PROTOCOL_VERSION,
            program,
            refused: folder.as_ref().err().map(Refusal::from),
        },
    )?;
    output.flush()?;
    let Ok(folder) = folder else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    while let Some(call) = frame::read_exactly::<Call>(&mut input)? {
        let body = body(&call, &mut input)?;
        let (answer, bytes) = runtime
            .block_on(answer(&folder, call, body))
            .unwrap_or_else(|error| (Answer::Refused(Refusal::from(&error)), Vec::new()));
        frame::write(&mut output, &answer)?;
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

fn body(call: &Call, input: &mut impl Read) -> io::Result<Vec<u8>> {
    let (Call::Write { size, .. } | Call::Put { size, .. }) = call else {
        return Ok(Vec::new());
    };
    if *size > MAX_BODY_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a block is too large",
        ));
    }
    let mut bytes = vec![0; usize::try_from(*size).map_err(io::Error::other)?];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

async fn answer(folder: &Folder, call: Call, body: Vec<u8>) -> Result<(Answer, Vec<u8>)> {
    let plain = |answer: Answer| Ok((answer, Vec::new()));
    match call {
        Call::List { prefix, deep, from } => plain(Answer::Page(
            folder.list(&prefix, deep, from.as_deref()).await?,
        )),
        Call::Head { key } => plain(Answer::Object(folder.head(&key).await?)),
        Call::Read {
            key,
            start,
            end,
            version,
        } => {
            let bytes = folder.read(&key, start..end, version.as_deref()).await?;
            Ok((
                Answer::Bytes {
                    size: bytes.len() as u64,
                },
                bytes.to_vec(),
            ))
        }
        Call::Write {
            key, marks, create, ..
        } => plain(Answer::Made(
            folder.write(&key, body.into(), &marks, create).await?,
        )),
        Call::Open {
            key,
            shape,
            marks,
            id,
        } => plain(Answer::Upload(
            folder.open(&key, shape, &marks, id.as_deref()).await?,
        )),
        Call::Blocks { key, id } => plain(Answer::Blocks(folder.blocks(&key, &id).await?)),
        Call::Put {
            key,
            id,
            index,
            sums,
            ..
        } => plain(Answer::Block(
            folder.put(&key, &id, index, body.into(), &sums).await?,
        )),
        Call::Finish {
            key,
            id,
            blocks,
            marks,
        } => {
            folder.finish(&key, &id, &blocks, &marks).await?;
            plain(Answer::Done)
        }
        Call::Abandon { key, id } => {
            folder.abandon(&key, &id).await?;
            plain(Answer::Done)
        }
        Call::DeleteMarks { marks } => {
            folder.delete_marks(&marks).await?;
            plain(Answer::Done)
        }
        Call::Delete { keys } => {
            folder.delete(&keys).await?;
            plain(Answer::Done)
        }
    }
}
