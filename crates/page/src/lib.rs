//! The files of the page that `tow ui` shows. The build script makes them from `ui/`; without
//! Node.js there is one plain page that says how to get the real one.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct PageFile {
    pub name: &'static str,
    /// Its content, compressed by gzip.
    pub gzip: &'static [u8],
    /// Changes with its content; in quotes, as an HTTP header wants it.
    pub tag: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));
