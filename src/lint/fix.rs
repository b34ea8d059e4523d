//! Which fixes can be applied together, and what the text becomes.

use std::collections::BTreeMap;

use super::super::source::{Edit, FileId};
use super::finding::{Applicability, Finding, Fix};

impl Fix {
    /// Whether it is applied: safe ones on request, unsafe ones on a stronger request.
    pub fn applies(&self, unsafe_too: bool) -> bool {
        let wanted = match self.applicability {
            Applicability::Safe => true,
            Applicability::Unsafe => unsafe_too,
            Applicability::DisplayOnly => false,
        };
        wanted && !self.edits.is_empty()
    }
}

/// The fixes, by their place in `findings`, that do not overlap one another; earlier ones go first. Edits that
/// several fixes share, such as the declaration of one function, are no overlap.
pub fn compatible(findings: &[&Finding]) -> Vec<usize> {
    let mut taken: Vec<&Edit> = Vec::new();
    let mut chosen = Vec::new();
    for (at, finding) in findings.iter().enumerate() {
        let Some(fix) = &finding.fix else { continue };
        let free = |edit: &Edit| taken.iter().all(|other| *other == edit || !touches(other, edit));
        if fix.edits.iter().all(free) {
            taken.extend(&fix.edits);
            chosen.push(at);
        }
    }
    chosen
}

/// Whether two edits change neighbouring or the same bytes: their order would matter.
fn touches(a: &Edit, b: &Edit) -> bool {
    a.span.file == b.span.file && a.span.start <= b.span.end && b.span.start <= a.span.end
}

/// The edits of some fixes by file, sorted and each once.
pub fn by_file<'a>(fixes: impl IntoIterator<Item = &'a Fix>) -> BTreeMap<FileId, Vec<Edit>> {
    let mut files: BTreeMap<FileId, Vec<Edit>> = BTreeMap::new();
    for edit in fixes.into_iter().flat_map(|fix| &fix.edits) {
        files.entry(edit.span.file).or_default().push(edit.clone());
    }
    for edits in files.values_mut() {
        edits.sort();
        edits.dedup();
    }
    files
}

/// The text after sorted edits; `None` where they overlap or leave the text. New lines end as the text's own.
pub fn apply(text: &str, edits: &[Edit]) -> Option<String> {
    let crlf = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        result.push_str(text.get(at..start)?);
        text.get(start..end)?;
        match crlf {
            true => result.push_str(&edit.replacement.replace("\r\n", "\n").replace('\n', "\r\n")),
            false => result.push_str(&edit.replacement),
        }
        at = end;
    }
    result.push_str(text.get(at..)?);
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Span;
    use super::*;

    fn edit(start: usize, end: usize, replacement: &str) -> Edit {
        Edit { span: Span::new(FileId(0), start, end), replacement: replacement.to_owned() }
    }

    #[test]
    fn edits_keep_line_ends_and_the_byte_order_mark() {
        assert_eq!(apply("abc", &[edit(0, 1, "x"), edit(2, 2, "\n")]).as_deref(), Some("xb\nc"));
        assert_eq!(apply("\u{feff}a\r\nb", &[edit(6, 6, "c\n")]).as_deref(), Some("\u{feff}a\r\nc\r\nb"));
        assert_eq!(apply("abc", &[edit(0, 2, ""), edit(1, 3, "")]), None);
        assert_eq!(apply("abc", &[edit(2, 9, "")]), None);
        assert_eq!(apply("é", &[edit(1, 1, "")]), None);
    }

    #[test]
    fn overlapping_fixes_wait_and_shared_edits_do_not() {
        let fix = |edits| Fix { title: String::new(), applicability: Applicability::Safe, edits };
        let fixes = [
            fix(vec![edit(0, 2, "a")]),
            fix(vec![edit(2, 4, "b")]),
            fix(vec![edit(0, 2, "a"), edit(5, 6, "")]),
        ];
        let finding = |fix: &Fix| Finding {
            rule: &super::super::selection::UNUSED_ALLOW,
            level: super::super::finding::Level::Warning,
            span: Span::new(FileId(0), 0, 0),
            message: String::new(),
            label: String::new(),
            notes: Vec::new(),
            help: None,
            trail: Vec::new(),
            kernel: String::new(),
            access_text: String::new(),
            numbers: Default::default(),
            fix: Some(fix.clone()),
        };
        let findings: Vec<Finding> = fixes.iter().map(finding).collect();
        let findings: Vec<&Finding> = findings.iter().collect();
        assert_eq!(compatible(&findings), [0, 2]);
    }
}
