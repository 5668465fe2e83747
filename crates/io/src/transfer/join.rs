//! Two listings side by side, in the order of keys, one page at a time.

use super::StorePath;
use crate::data::{Object, Page, UnsupportedEntry};
use std::cmp::Ordering;
use std::collections::VecDeque;
use towline_core::Result;

/// One name, and the sides that have it.
#[derive(Debug)]
pub(super) enum Pair {
    Both(Object, Object),
    Source(Object),
    Target(Object),
    Unsupported(UnsupportedEntry),
}

/// One listing; pages are fetched when they are needed.
#[derive(Debug)]
struct Pages {
    endpoint: StorePath,
    prefix: String,
    objects: VecDeque<Object>,
    unsupported: Vec<UnsupportedEntry>,
    next: Option<String>,
    begun: bool,
}

impl Pages {
    fn new(endpoint: StorePath) -> Self {
        Self {
            prefix: endpoint.prefix(),
            endpoint,
            objects: VecDeque::new(),
            unsupported: Vec::new(),
            next: None,
            begun: false,
        }
    }

    /// Fetches pages until there is an object, or the listing ends.
    async fn fill(&mut self) -> Result<()> {
        while self.objects.is_empty() && (!self.begun || self.next.is_some()) {
            let page = self
                .endpoint
                .store
                .list(&self.prefix, true, self.next.as_deref())
                .await?;
            self.add_page(page);
        }
        Ok(())
    }

    fn add_page(&mut self, page: Page) {
        self.begun = true;
        self.next = page.next;
        self.unsupported.extend(page.unsupported);
        self.objects.extend(page.objects);
    }

    fn first(&self) -> Option<&str> {
        self.objects
            .front()
            .map(|object| below(&object.key, &self.prefix))
    }
}

/// A key without the prefix it was listed by.
pub(super) fn below<'k>(key: &'k crate::data::Key, prefix: &str) -> &'k str {
    key.as_str().strip_prefix(prefix).unwrap_or(key.as_str())
}

#[derive(Debug)]
pub(super) struct Join {
    source: Pages,
    target: Pages,
}

impl Join {
    /// `first` is the source's first page.
    pub(super) fn new(source: StorePath, first: Page, target: StorePath) -> Self {
        let mut source = Pages::new(source);
        source.add_page(first);
        Self {
            source,
            target: Pages::new(target),
        }
    }

    /// The next name. If a service has another order than ours, one name may come twice, once for
    /// each side. Then an equal object may be sent again; before a deletion the source is asked
    /// anew.
    pub(super) async fn next(&mut self) -> Result<Option<Pair>> {
        self.source.fill().await?;
        self.target.fill().await?;
        if let Some(entry) = self.source.unsupported.pop() {
            return Ok(Some(Pair::Unsupported(entry)));
        }
        let order = match (self.source.first(), self.target.first()) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(source), Some(target)) => source.cmp(target),
        };
        let source = if order == Ordering::Greater {
            None
        } else {
            self.source.objects.pop_front()
        };
        let target = if order == Ordering::Less {
            None
        } else {
            self.target.objects.pop_front()
        };
        Ok(match (source, target) {
            (Some(source), Some(target)) => Some(Pair::Both(source, target)),
            (Some(source), None) => Some(Pair::Source(source)),
            (None, Some(target)) => Some(Pair::Target(target)),
            (None, None) => None,
        })
    }
}
