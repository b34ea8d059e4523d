//! Text, spans, line index and edits. Knows nothing else.

pub mod include;

use std::path::{Path, PathBuf};

use line_index::{LineIndex, TextSize, WideEncoding};

/// A file of the project: an index into [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A half-open range of bytes `start..end` in one file's original text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Span { file, start: start as u32, end: end as u32 }
    }

    /// The smallest span that covers both; `self` where the files differ.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    pub fn contains(self, other: Span) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }
}

/// A text change: the bytes of `span` become `replacement`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edit {
    pub span: Span,
    pub replacement: String,
}

/// A position for people and machines: 1-based line, 1-based column in UTF-16 code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// One file's original text with its line index.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path as reports print it: relative to the working directory where possible, `/` as separator.
    pub path: PathBuf,
    pub text: String,
    /// True where the bytes on disk were not UTF-8; spans then refer to the lossy text and no fix is offered.
    pub lossy: bool,
    lines: LineIndex,
}

impl SourceFile {
    pub fn new(path: impl Into<PathBuf>, text: String) -> Self {
        let lines = LineIndex::new(&text);
        SourceFile { path: path.into(), text, lossy: false, lines }
    }

    /// Decodes bytes; text that is not UTF-8 is read lossily and marked.
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::new(path, text),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                SourceFile { lossy: true, ..Self::new(path, text) }
            }
        }
    }

    pub fn position(&self, offset: u32) -> Position {
        let offset = self.floor_char_boundary(offset);
        let at = self.lines.line_col(TextSize::from(offset));
        let wide = self.lines.to_wide(WideEncoding::Utf16, at);
        Position { line: at.line + 1, column: wide.map_or(at.col, |w| w.col) + 1 }
    }

    /// The 1-based line of a byte offset.
    pub fn line(&self, offset: u32) -> u32 {
        self.lines.line_col(TextSize::from(self.floor_char_boundary(offset))).line + 1
    }

    /// The byte range of a 1-based line without its line end; empty past the end.
    pub fn line_range(&self, line: u32) -> std::ops::Range<usize> {
        let Some(range) = line.checked_sub(1).and_then(|line| self.lines.line(line)) else {
            return self.text.len()..self.text.len();
        };
        let (start, end) = (usize::from(range.start()), usize::from(range.end()));
        let end = start + self.text[start..end].trim_end_matches(['\n', '\r']).len();
        start..end
    }

    /// The text of a span, clamped to the file.
    pub fn slice(&self, span: Span) -> &str {
        let start = self.floor_char_boundary(span.start) as usize;
        let end = self.floor_char_boundary(span.end) as usize;
        self.text.get(start..end.max(start)).unwrap_or("")
    }

    fn floor_char_boundary(&self, offset: u32) -> u32 {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset as u32
    }
}

/// All files of a run, in the order in which reports list them.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    pub fn add(&mut self, file: SourceFile) -> FileId {
        self.files.push(file);
        FileId(self.files.len() as u32 - 1)
    }

    /// Puts another text in a file's place and returns the file that was there.
    pub fn replace(&mut self, id: FileId, file: SourceFile) -> Option<SourceFile> {
        self.files.get_mut(id.0 as usize).map(|slot| std::mem::replace(slot, file))
    }

    pub fn get(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    pub fn ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn text(&self, span: Span) -> &str {
        self.get(span.file).slice(span)
    }

    pub fn path(&self, id: FileId) -> &Path {
        &self.get(id).path
    }

    pub fn line(&self, span: Span) -> u32 {
        self.get(span.file).line(span.start)
    }
}
