//! What a cluster shows of itself, as data: whoever prints it decides how.

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

/// What a cell means to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// The name of what the row is about.
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
        let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
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
