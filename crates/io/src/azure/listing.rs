//! The two XML answers we read: a page of blobs and a list of blocks.

use crate::data::{FolderMark, Key, Marks, Object, Page, UnsupportedEntry};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use towline_core::{Error, Result};

/// The name of the metadata that holds the object's BLAKE3.
pub(super) const BLAKE3_METADATA: &str = "tow_blake3";
/// The name of the metadata that holds the time of the source.
pub(super) const MODIFIED_METADATA: &str = "tow_modified";

/// Calls `leaf` with the path and the text of every element without children, and `closed` with the
/// name of every element that ends.
fn walk(
    xml: &[u8],
    mut leaf: impl FnMut(&[String], &str, bool),
    mut closed: impl FnMut(&str),
) -> Result<()> {
    let mut reader = Reader::from_reader(xml);
    let mut path: Vec<String> = Vec::new();
    let (mut text, mut is_leaf, mut encoded) = (String::new(), false, false);
    let wrong = |error: &dyn std::fmt::Display| {
        Error::unreachable(format!("the service sent XML that cannot be read: {error}"))
    };
    loop {
        match reader.read_event().map_err(|error| wrong(&error))? {
            Event::Start(start) => {
                path.push(String::from_utf8_lossy(start.name().as_ref()).into_owned());
                encoded = start
                    .try_get_attribute("Encoded")
                    .ok()
                    .flatten()
                    .is_some_and(|value| value.value.as_ref() == b"true");
                text.clear();
                is_leaf = true;
            }
            Event::Empty(empty) => {
                path.push(String::from_utf8_lossy(empty.name().as_ref()).into_owned());
                leaf(&path, "", false);
                path.pop();
            }
            Event::Text(part) => text += &part.decode().map_err(|error| wrong(&error))?,
            Event::CData(part) => text += &String::from_utf8_lossy(&part),
            Event::GeneralRef(reference) => {
                let character = reference
                    .resolve_char_ref()
                    .map_err(|error| wrong(&error))?;
                if let Some(character) = character {
                    text.push(character);
                } else {
                    let name = reference.decode().map_err(|error| wrong(&error))?;
                    text += resolve_predefined_entity(&name)
                        .ok_or_else(|| wrong(&"an unknown entity"))?;
                }
            }
            Event::End(_) => {
                if is_leaf {
                    leaf(&path, &text, encoded);
                }
                is_leaf = false;
                if let Some(name) = path.pop() {
                    closed(&name);
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if path.is_empty() {
        Ok(())
    } else {
        Err(wrong(&"it breaks off"))
    }
}

#[derive(Default)]
struct Blob {
    name: String,
    size: Option<u64>,
    changed: Option<i64>,
    version: Option<String>,
    marks: Marks,
    is_folder: bool,
}

/// A page of `List Blobs`. The prefix `root` is removed from every name.
pub(super) fn page(xml: &[u8], root: &str) -> Result<Page> {
    use std::cell::RefCell;
    let page = RefCell::new(Page::default());
    let blob = RefCell::new(Blob::default());
    let leaf = |path: &[String], text: &str, encoded: bool| {
        let mut blob = blob.borrow_mut();
        let parent = path.len().checked_sub(2).map_or("", |at| path[at].as_str());
        match (parent, path.last().map_or("", String::as_str)) {
            ("Blob" | "BlobPrefix", "Name") => {
                blob.name = if encoded {
                    percent_encoding::percent_decode_str(text)
                        .decode_utf8_lossy()
                        .into_owned()
                } else {
                    text.to_owned()
                };
            }
            ("Properties", "Content-Length") => blob.size = text.parse().ok(),
            ("Properties", "Last-Modified") => blob.changed = millis(text),
            ("Properties", "Etag") => blob.version = Some(quoted(text)),
            ("Properties", "Content-MD5") => blob.marks.md5 = decode_md5(text),
            ("Properties", "ResourceType") => blob.is_folder |= text == "directory",
            ("Metadata", name) => match name.to_ascii_lowercase().as_str() {
                BLAKE3_METADATA => blob.marks.blake3 = decode_hex(text),
                MODIFIED_METADATA => blob.marks.modified = decode_modified(text),
                "hdi_isfolder" => blob.is_folder |= text == "true",
                _ => {}
            },
            (_, "NextMarker") if !text.is_empty() => page.borrow_mut().next = Some(text.to_owned()),
            _ => {}
        }
    };
    let closed = |name: &str| match name {
        "Blob" => add(&mut page.borrow_mut(), blob.take(), root),
        "BlobPrefix" => {
            let name = blob.take().name;
            let below = name
                .strip_prefix(root)
                .unwrap_or(&name)
                .trim_end_matches('/');
            page.borrow_mut()
                .folders
                .push(below.rsplit('/').next().unwrap_or(below).to_owned());
        }
        _ => {}
    };
    walk(xml, leaf, closed)?;
    Ok(page.into_inner())
}

fn add(page: &mut Page, blob: Blob, root: &str) {
    let below = blob.name.strip_prefix(root).unwrap_or(&blob.name);
    let has_slash = (below.is_empty() || below.ends_with('/')) && blob.size == Some(0);
    if blob.is_folder || has_slash {
        // The root itself has no name below it.
        page.marks.extend(
            Key::new(below.trim_end_matches('/'))
                .ok()
                .map(|folder| FolderMark { folder, has_slash }),
        );
        return;
    }
    match (Key::new(below), blob.size) {
        (Ok(key), Some(size)) => {
            page.objects.push(Object {
                key,
                size,
                disk_bytes: None,
                changed: blob.changed,
                version: blob.version,
                marks: blob.marks,
                marks_are_whole: true,
            });
        }
        (Err(why), _) => page.unsupported.push(UnsupportedEntry {
            name: crate::data::shown(below),
            why,
            is_failure: true,
        }),
        (_, None) => page.unsupported.push(UnsupportedEntry {
            name: crate::data::shown(below),
            why: "the service does not tell its size".to_owned(),
            is_failure: true,
        }),
    }
}

/// The names of uncommitted blocks with their sizes.
pub(super) fn blocks(xml: &[u8]) -> Result<Vec<(String, u64)>> {
    use std::cell::RefCell;
    let found = RefCell::new(Vec::new());
    let current = RefCell::new((String::new(), None));
    let leaf = |path: &[String], text: &str, _: bool| {
        if path.iter().any(|part| part == "UncommittedBlocks") {
            match path.last().map_or("", String::as_str) {
                "Name" => text.clone_into(&mut current.borrow_mut().0),
                "Size" => current.borrow_mut().1 = text.parse().ok(),
                _ => {}
            }
        }
    };
    let closed = |name: &str| {
        if name == "Block"
            && let (name, Some(size)) = current.take()
        {
            found.borrow_mut().push((name, size));
        }
    };
    walk(xml, leaf, closed)?;
    Ok(found.into_inner())
}

/// An entity tag in quotes. Listings give it bare, while headers and conditions need the quotes.
fn quoted(tag: &str) -> String {
    if tag.starts_with('"') || tag.starts_with("W/") {
        tag.to_owned()
    } else {
        format!("\"{tag}\"")
    }
}

pub(crate) fn millis(text: &str) -> Option<i64> {
    let moment = OffsetDateTime::parse(&text.trim().replace("GMT", "+0000"), &Rfc2822).ok()?;
    i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok()
}

pub(crate) fn decode_md5(text: &str) -> Option<[u8; 16]> {
    BASE64_STANDARD.decode(text.trim()).ok()?.try_into().ok()
}

pub(crate) fn decode_hex(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text.trim())
        .ok()
        .map(|hash| *hash.as_bytes())
}

pub(crate) fn encode_modified((seconds, nanos): (i64, u32)) -> String {
    format!("{seconds}.{nanos:09}")
}

pub(crate) fn decode_modified(text: &str) -> Option<(i64, u32)> {
    let (seconds, nanos) = text.trim().split_once('.')?;
    let nanos: u32 = (nanos.len() == 9).then(|| nanos.parse().ok())??;
    Some((seconds.parse().ok()?, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_XML: &str = r#"<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="x" ContainerName="c"><Prefix>r/</Prefix><Blobs>
        <Blob><Name>r/a &amp; b/&#252;.txt</Name><Properties><Last-Modified>Sun, 15 Nov 2026 09:57:00 GMT</Last-Modified><Etag>0x8D</Etag><Content-Length>12</Content-Length><Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5></Properties>
        <Metadata><Tow_Blake3>af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262</Tow_Blake3><tow_modified>1700000000.000000007</tow_modified></Metadata><OrMetadata/></Blob>
        <Blob><Name>r/../evil</Name><Properties><Content-Length>1</Content-Length></Properties><Metadata /></Blob>
        <Blob><Name Encoded="true">r/x%01y</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>
        <Blob><Name>r/folder</Name><Properties><Content-Length>0</Content-Length></Properties><Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>
        <Blob><Name>r/deeper/</Name><Properties><Content-Length>0</Content-Length></Properties></Blob>
        <Blob><Name>r/</Name><Properties><Content-Length>0</Content-Length></Properties></Blob>
        <BlobPrefix><Name>r/deeper/</Name></BlobPrefix></Blobs><NextMarker>2!ab&amp;c</NextMarker></EnumerationResults>"#;

    #[test]
    fn a_page_is_read_with_marks_and_unsupported_entries() {
        let page = page(PAGE_XML.as_bytes(), "r/").expect("reads");
        assert_eq!(page.objects.len(), 1);
        let object = &page.objects[0];
        assert_eq!(object.key.as_str(), "a & b/ü.txt");
        assert_eq!(
            (object.size, object.version.as_deref()),
            (12, Some("\"0x8D\""))
        );
        assert_eq!(object.changed, Some(1_794_736_620_000));
        assert_eq!(object.marks.modified, Some((1_700_000_000, 7)));
        assert_eq!(object.marks.md5, Some(crate::transfer::hash::md5(b"")));
        assert_eq!(
            object.marks.blake3,
            Some(crate::transfer::hash::blake3(b""))
        );
        assert_eq!(page.folders, ["deeper"]);
        assert_eq!(
            page.marks
                .iter()
                .map(|mark| (mark.folder.as_str(), mark.has_slash))
                .collect::<Vec<_>>(),
            [("folder", false), ("deeper", true)]
        );
        assert_eq!(page.next.as_deref(), Some("2!ab&c"));
        let unsupported: Vec<&str> = page
            .unsupported
            .iter()
            .map(|unsupported| unsupported.name.as_str())
            .collect();
        assert_eq!(unsupported, ["../evil", "x\\u{1}y"]);
    }

    #[test]
    fn blanks_in_names_are_kept() {
        for name in ["r/ a ", " r/a", "r/a b", "r/a&#32;", "r/&#9;a", " "] {
            let xml = format!(
                "<EnumerationResults>\n<Blobs><Blob>\n <Name>{name}</Name><Properties>\
                    <Content-Length>1</Content-Length></Properties></Blob></Blobs>\
                    <NextMarker /></EnumerationResults>"
            );
            let page = page(xml.as_bytes(), "").expect("reads");
            let found = page
                .objects
                .iter()
                .map(|object| object.key.to_string())
                .chain(page.unsupported.iter().map(|entry| entry.name.clone()))
                .collect::<Vec<_>>();
            let expected = name.replace("&#32;", " ").replace("&#9;", "\\t");
            assert_eq!(found, [expected], "{name:?}");
            assert_eq!(page.next, None);
        }
    }

    #[test]
    fn a_page_cut_anywhere_is_an_error_and_no_shorter_page() {
        let whole = PAGE_XML.trim_end();
        for cut in 1..whole.len() {
            if whole.is_char_boundary(cut) && cut > whole.find("<Blobs>").expect("there") {
                assert!(
                    page(&whole.as_bytes()[..cut], "r/").is_err(),
                    "cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn uncommitted_blocks_are_read() {
        let xml = "<BlockList><CommittedBlocks><Block><Name>b2xk</Name><Size>9</Size></Block></CommittedBlocks><UncommittedBlocks><Block><Name>YQ==</Name><Size>4</Size></Block></UncommittedBlocks></BlockList>";
        assert_eq!(
            blocks(xml.as_bytes()).expect("reads"),
            [("YQ==".to_owned(), 4)]
        );
        assert_eq!(
            blocks(b"<BlockList><CommittedBlocks /><UncommittedBlocks /></BlockList>")
                .expect("reads"),
            []
        );
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        for time in [(0, 0), (1_700_000_000, 999_999_999), (-5, 1)] {
            assert_eq!(decode_modified(&encode_modified(time)), Some(time));
        }
        assert_eq!(decode_modified("12.5"), None);
    }
}
