//! The page of a cluster, as data: the caller decides how to print it.

/// Sections from top to bottom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    pub sections: Vec<Section>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// Lines of text; each ends with a newline.
    Text(String),
    Table {
        columns: Vec<&'static str>,
        rows: Vec<Vec<Cell>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

/// The meaning of a cell to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// The name of the row's subject.
    Strong,
    Good,
    Busy,
    Bad,
    Quiet,
}

impl Page {
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.sections.push(Section::Text(text));
        }
        self
    }

    #[must_use]
    pub fn table(mut self, columns: &[&'static str], rows: Vec<Vec<Cell>>) -> Self {
        self.sections.push(Section::Table {
            columns: columns.to_vec(),
            rows,
        });
        self
    }

    /// One line each.
    #[must_use]
    pub fn lines(self, lines: impl IntoIterator<Item = impl std::fmt::Display>) -> Self {
        let text: String = lines
            .into_iter()
            .flat_map(|line| [line.to_string(), "\n".to_owned()])
            .collect();
        self.text(text)
    }
}

impl Cell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_texts_in_order_and_no_empty_one() {
        let page = Page::default().text("a\n").text("").text("b\n");
        let texts = ["a\n", "b\n"].map(|text| Section::Text(text.to_owned()));
        assert_eq!(page.sections, texts);
    }
}
