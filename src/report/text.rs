//! The full report for people, drawn by miette: the only file that names it.
//!
//! miette's own reader walks the file from its first byte for each label (a millisecond per finding in a 1 MB file);
//! `Snippets` answers from the line index instead, with the same drawing.

use std::borrow::Cow;
use std::fmt::{self, Write};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    NarratableReportHandler, Severity, SourceCode, SourceSpan, SpanContents, ThemeCharacters, ThemeStyles,
};

use super::super::ir::facts::TrailStep;
use super::super::lint::finding::{Applicability, Finding, Fix, Level};
use super::super::source::{FileId, SourceFile, Span};
use super::concise;
use super::diff;
use super::place::{Range, harmless, shown_path};
use super::{Report, rule_url};

/// How reports for people look. The caller decides; nothing here asks the terminal or the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub drawing: Drawing,
    pub colour: bool,
    /// Rule names become terminal hyperlinks (OSC 8) to their documentation.
    pub links: bool,
    /// Columns to wrap text at; source lines are never wrapped.
    pub width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawing {
    Unicode,
    Ascii,
    /// Sentences instead of drawings, for screen readers.
    Narrated,
}

impl Style {
    /// For files and pipes: ASCII, no colour, no links.
    pub const PLAIN: Style = Style { drawing: Drawing::Ascii, colour: false, links: false, width: 100 };
}

/// Each finding with its source, why it costs, what to do and how sure it is; the allowed ones in a line each.
pub fn render(report: &Report<'_>, style: &Style) -> String {
    let mut out = String::new();
    for group in report.findings.chunk_by(|a, b| a.span.file == b.span.file) {
        let Some(first) = group.first() else { continue };
        let snippets = Snippets::new(report, first.span.file);
        for finding in group {
            one(&mut out, report, finding, &snippets, style);
            out.push('\n');
        }
    }
    for (finding, reason) in report.suppressed {
        let Range { line, column, .. } = Range::of(report.sources, finding.span);
        let path = shown_path(report.sources, finding.span.file);
        let reason = if reason.is_empty() { "no reason given".to_owned() } else { harmless(reason) };
        let _ = writeln!(out, "{path}:{line}:{column}: allowed[{}] {reason}", finding.rule.name);
    }
    out
}

fn one(out: &mut String, report: &Report<'_>, finding: &Finding, snippets: &Snippets<'_>, style: &Style) {
    let shown = Shown { finding, snippets, url: rule_url(finding.rule).filter(|_| style.links) };
    let before = out.len();
    let drawn = match style.drawing {
        Drawing::Unicode | Drawing::Ascii => graphical(style).render_report(out, &shown),
        Drawing::Narrated => NarratableReportHandler::new().render_report(out, &shown),
    };
    if drawn.is_err() {
        out.truncate(before);
        concise::line(out, report, finding, style);
        out.push('\n');
    }
    for (key, text) in details(report, finding) {
        paragraph(out, key, &text, style);
    }
    if let Some(fix) = &finding.fix {
        proposal(out, report, fix, style);
    }
}

fn graphical(style: &Style) -> GraphicalReportHandler {
    let characters = match style.drawing {
        Drawing::Unicode => ThemeCharacters::unicode(),
        Drawing::Ascii | Drawing::Narrated => ThemeCharacters::ascii(),
    };
    let styles = if style.colour { ThemeStyles::ansi() } else { ThemeStyles::none() };
    GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_width(style.width.max(40))
        .with_links(style.links)
        .without_syntax_highlighting()
}

/// Why, from where, what to do, for which launch, how sure: in this order.
fn details(report: &Report<'_>, finding: &Finding) -> Vec<(&'static str, String)> {
    let mut details: Vec<(&'static str, String)> =
        finding.notes.iter().map(|note| ("why", note.clone())).collect();
    for step in finding.trail.iter().filter(|step| step.span.file != finding.span.file) {
        let line = report.sources.line(step.span);
        details
            .push(("from", format!("{}:{line}: {}", shown_path(report.sources, step.span.file), step.text)));
    }
    details.extend(finding.help.iter().map(|help| ("help", help.clone())));
    let basis: Vec<String> = launch(finding).into_iter().chain(confidence(finding)).collect();
    if !basis.is_empty() {
        details.push(("for", basis.join("; ")));
    }
    if !finding.numbers.assumptions.is_empty() {
        details.push(("if", finding.numbers.assumptions.join("; ")));
    }
    details
}

/// `k<float>` in blocks of 16x16 (launch site)
fn launch(finding: &Finding) -> Option<String> {
    let shape = finding.numbers.launch_shape.as_ref().map(|shape| format!("blocks of {shape}"));
    let source =
        finding.numbers.launch_source.as_ref().map(|source| format!(" ({source})")).unwrap_or_default();
    let kernel = (!finding.kernel.is_empty()).then(|| format!("`{}`", finding.kernel));
    match (kernel, shape) {
        (Some(kernel), Some(shape)) => Some(format!("{kernel} in {shape}{source}")),
        (Some(only), None) => Some(only),
        (None, Some(only)) => Some(format!("{only}{source}")),
        (None, None) => None,
    }
}

fn confidence(finding: &Finding) -> Option<String> {
    finding.numbers.confidence.map(|confidence| format!("confidence: {confidence}"))
}

/// How sure, and what was taken for granted, in one phrase.
pub(super) fn sureness(finding: &Finding) -> Option<String> {
    let confidence = confidence(finding)?;
    let assumptions = &finding.numbers.assumptions;
    Some(match assumptions.is_empty() {
        true => confidence,
        false => format!("{confidence}, if {}", assumptions.join("; ")),
    })
}

fn proposal(out: &mut String, report: &Report<'_>, fix: &Fix, style: &Style) {
    let preview = diff::preview(report.sources, fix);
    paragraph(out, "fix", &format!("{} ({})", fix.title, applicability(fix.applicability)), style);
    for (sign, line) in preview {
        let shown = match sign {
            '@' => paint(style, "36", &format!("@@ {line} @@")),
            '-' => paint(style, "31", &format!("-{line}")),
            '+' => paint(style, "32", &format!("+{line}")),
            _ => format!(" {line}"),
        };
        let _ = writeln!(out, "        {shown}");
    }
}

pub(super) fn applicability(applicability: Applicability) -> &'static str {
    match applicability {
        Applicability::Safe => "safe",
        Applicability::Unsafe => "unsafe",
        Applicability::DisplayOnly => "display-only",
    }
}

/// `  key: text`, wrapped at words, continuation lines under the text.
fn paragraph(out: &mut String, key: &str, text: &str, style: &Style) {
    const INDENT: usize = 8;
    let mut head = paint(style, "36", &format!("{key:>6}:")) + " ";
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        out.push_str(&std::mem::replace(&mut head, " ".repeat(INDENT)));
        let mut column = INDENT;
        for (at, word) in harmless(line).split(' ').enumerate() {
            let wide = word.chars().count();
            if at > 0 && column + 1 + wide > style.width.max(40) {
                let _ = write!(out, "\n{}", " ".repeat(INDENT));
                column = INDENT;
            } else if at > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += wide;
        }
        out.push('\n');
    }
}

/// Text in an ANSI style, where colour is wanted.
pub(super) fn paint(style: &Style, sgr: &str, text: &str) -> String {
    if style.colour { format!("\u{1b}[{sgr}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// A finding as miette sees it.
#[derive(Debug)]
struct Shown<'a> {
    finding: &'a Finding,
    snippets: &'a Snippets<'a>,
    url: Option<String>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&harmless(&self.finding.message))
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.finding.rule.name))
    }

    fn severity(&self) -> Option<Severity> {
        Some(match self.finding.level {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
            Level::Note | Level::Off => Severity::Advice,
        })
    }

    fn url<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.url.as_ref().map(|url| Box::new(url) as Box<dyn fmt::Display + 'a>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.snippets)
    }

    /// The access first, then the trail's other places in the same file; a place is labelled once.
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Finding { span, label, trail, .. } = self.finding;
        let primary = LabeledSpan::new_primary_with_span(non_empty(label), self.snippets.range(*span));
        let mut labels: Vec<LabeledSpan> = vec![primary];
        for TrailStep { span: place, text } in trail.iter().filter(|step| step.span.file == span.file) {
            let range = self.snippets.range(*place);
            let known =
                labels.iter().any(|l| *l.inner() == range && (l.label() == Some(text) || l.primary()));
            if !known {
                labels.push(LabeledSpan::new_with_span(non_empty(text), range));
            }
        }
        Some(Box::new(labels.into_iter()))
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| harmless(text))
}

/// One file's text for drawing: lines found through the line index, control characters replaced by spaces of the
/// same length so that source text cannot steer a terminal.
struct Snippets<'a> {
    file: &'a SourceFile,
    name: String,
    text: Cow<'a, str>,
}

impl fmt::Debug for Snippets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snippets({})", self.name)
    }
}

impl<'a> Snippets<'a> {
    fn new(report: &Report<'a>, id: FileId) -> Self {
        let file = report.sources.get(id);
        Snippets { file, name: shown_path(report.sources, id), text: without_controls(&file.text) }
    }

    fn range(&self, span: Span) -> SourceSpan {
        let boundary = |offset: u32| {
            let mut offset = (offset as usize).min(self.text.len());
            while !self.text.is_char_boundary(offset) {
                offset -= 1;
            }
            offset
        };
        let start = boundary(span.start);
        (start, boundary(span.end.max(span.start)).saturating_sub(start)).into()
    }
}

fn without_controls(text: &str) -> Cow<'_, str> {
    let harmful = |at: usize, byte: u8| match byte {
        b'\t' | b'\n' => false,
        b'\r' => text.as_bytes().get(at + 1) != Some(&b'\n'),
        _ => byte < 0x20 || byte == 0x7f,
    };
    if !text.bytes().enumerate().any(|(at, byte)| harmful(at, byte)) {
        return Cow::Borrowed(text);
    }
    // All harmful bytes are ASCII, so every offset keeps its meaning.
    text.char_indices().map(|(at, c)| if c.is_ascii() && harmful(at, c as u8) { ' ' } else { c }).collect()
}

impl SourceCode for Snippets<'_> {
    fn read_span<'b>(
        &'b self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'b> + 'b>, MietteError> {
        let start = span.offset();
        let last = start + span.len().saturating_sub(1);
        let line = self.file.line(start as u32);
        let first = line.saturating_sub(before as u32).max(1);
        let next = self.file.line(last as u32).saturating_add(after as u32).saturating_add(1);
        let from = if before == 0 { start } else { self.file.line_range(first).start };
        let to = self.file.line_range(next).start.max(from);
        let data = self.text.get(from..to).ok_or(MietteError::OutOfBounds)?;
        let column = if before == 0 { self.file.position(start as u32).column as usize - 1 } else { 0 };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            data.as_bytes(),
            (from, data.len()).into(),
            first as usize - 1,
            column,
            (next - first) as usize,
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miette::NamedSource;

    const SOURCE: &str =
        "// é😀\n\n__global__ void k(int *a) {\n\tint i = threadIdx.x;\r\n  a[i * 32] = 1;\n}\n";

    /// Draws one label through `source`.
    fn drawn(source: &dyn SourceCode, start: usize, len: usize) -> String {
        struct Plain<'a>(&'a dyn SourceCode, LabeledSpan);
        impl fmt::Debug for Plain<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("Plain")
            }
        }
        impl fmt::Display for Plain<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("m")
            }
        }
        impl std::error::Error for Plain<'_> {}
        impl Diagnostic for Plain<'_> {
            fn source_code(&self) -> Option<&dyn SourceCode> {
                Some(self.0)
            }
            fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
                Some(Box::new(std::iter::once(self.1.clone())))
            }
        }
        let mut out = String::new();
        let label = LabeledSpan::new(Some("here".to_owned()), start, len);
        graphical(&Style::PLAIN).render_report(&mut out, &Plain(source, label)).unwrap();
        out
    }

    #[test]
    fn draws_as_miettes_own_reader_does() {
        let file = SourceFile::new("a.cu", SOURCE.to_owned());
        let ours = Snippets { file: &file, name: "a.cu".to_owned(), text: without_controls(SOURCE) };
        let theirs = NamedSource::new("a.cu", SOURCE.to_owned());
        let access = SOURCE.find("a[i").unwrap();
        let kernel = SOURCE.find("__global__").unwrap();
        for (start, len) in [(access, 9), (kernel, 10), (kernel, SOURCE.len() - kernel - 1), (access, 1)] {
            assert_eq!(drawn(&ours, start, len), drawn(&theirs, start, len));
        }
    }

    #[test]
    fn any_span_draws() {
        for text in ["", "\n", "x", "é😀\n\u{1b}[31m\r\r\n\t}"] {
            let file = SourceFile::new("a.cu", text.to_owned());
            let ours = Snippets { file: &file, name: "a.cu".to_owned(), text: without_controls(text) };
            for start in 0..text.len() + 3 {
                for end in start..text.len() + 3 {
                    let range = ours.range(Span::new(FileId(0), start, end));
                    assert!(!drawn(&ours, range.offset(), range.len()).contains('\u{1b}'));
                }
            }
        }
    }
}
