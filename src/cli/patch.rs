//! Unified diffs, read backwards: what a text was before a diff made it what it is.

use std::path::PathBuf;

/// One file of a diff.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FilePatch {
    /// `None` where the file was added.
    pub old: Option<PathBuf>,
    /// `None` where the file was deleted.
    pub new: Option<PathBuf>,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// 0-based first line in the new text, and how many lines the hunk has there.
    start: usize,
    lines: usize,
    old: String,
    new: String,
}

/// What git puts before the names of the two sides; with `diff.mnemonicPrefix` it tells commits, the index and files.
const PREFIXES: [(&str, &str); 5] = [("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/")];

/// Reads `git diff` or `diff -u` output.
pub fn parse(text: &str) -> Result<Vec<FilePatch>, String> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut lines = text.split_inclusive('\n').peekable();
    let mut old = None;
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("--- ") {
            old = file_name(name);
        } else if let Some(name) = line.strip_prefix("+++ ") {
            let (old, new) = without_prefixes(old.take(), file_name(name));
            files.push(FilePatch { old, new, hunks: Vec::new() });
        } else if let Some(header) = line.strip_prefix("@@ ") {
            let hunk = hunk(header, &mut lines)?;
            files.last_mut().ok_or("a hunk stands before any file name")?.hunks.push(hunk);
        }
    }
    Ok(files)
}

fn file_name(text: &str) -> Option<String> {
    let name = text.trim_end_matches(['\n', '\r']);
    let quoted = name.strip_prefix('"').and_then(|name| name.rsplit_once('"'));
    let name = match quoted {
        Some((name, _)) => unquoted(name),
        None => name.split('\t').next().unwrap_or_default().to_owned(),
    };
    (name != "/dev/null").then_some(name)
}

/// The names without what git puts before both; a directory may be called `a`.
fn without_prefixes(old: Option<String>, new: Option<String>) -> (Option<PathBuf>, Option<PathBuf>) {
    let has = |name: &Option<String>, prefix| name.as_ref().is_none_or(|name| name.starts_with(prefix));
    let pair = PREFIXES.iter().find(|(a, b)| has(&old, a) && has(&new, b));
    let bare = |name: Option<String>, prefix: &str| {
        name.map(|name| PathBuf::from(name.strip_prefix(prefix).unwrap_or(&name)))
    };
    let (a, b) = pair.copied().unwrap_or_default();
    (bare(old, a), bare(new, b))
}

/// Git writes names with unusual characters as C strings: `\303\251` is `é`.
fn unquoted(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let octal = rest.iter().take(3).take_while(|digit| (b'0'..=b'7').contains(*digit)).count();
        let (escape, after) = rest.split_at(octal.max(1).min(rest.len()));
        rest = after;
        bytes.push(match escape {
            [b'n'] => b'\n',
            [b't'] => b'\t',
            [b'r'] => b'\r',
            digits if octal > 0 => {
                digits.iter().fold(0, |value: u8, digit| value.wrapping_mul(8) + (digit - b'0'))
            }
            other => other.first().copied().unwrap_or(b'\\'),
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `-1,2 +3,4 @@` and the lines that belong to it.
fn hunk<'a>(
    header: &str,
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
) -> Result<Hunk, String> {
    let mut ranges = header.split(' ').filter_map(|part| part.strip_prefix(['-', '+'])).map(range);
    let (Some(Some((_, mut old_left))), Some(Some((first, count)))) = (ranges.next(), ranges.next()) else {
        return Err(format!("not a hunk: @@ {}", header.trim_end()));
    };
    // A hunk without new lines names the line before it.
    let start = if count == 0 { first } else { first.saturating_sub(1) };
    let mut hunk = Hunk { start, lines: count, ..Hunk::default() };
    let mut new_left = count;
    while old_left > 0 || new_left > 0 {
        let Some(line) = lines.next() else { return Err("the diff ends inside a hunk".to_owned()) };
        let rest = line.get(1..).unwrap_or("\n");
        match line.as_bytes().first() {
            Some(b'-') => {
                hunk.old.push_str(rest);
                old_left = old_left.saturating_sub(1);
            }
            Some(b'+') => {
                hunk.new.push_str(rest);
                new_left = new_left.saturating_sub(1);
            }
            _ => {
                hunk.old.push_str(rest);
                hunk.new.push_str(rest);
                old_left = old_left.saturating_sub(1);
                new_left = new_left.saturating_sub(1);
            }
        }
        if lines.peek().is_some_and(|next| next.starts_with('\\')) {
            let last = line.as_bytes().first().copied();
            lines.next();
            if last != Some(b'+') {
                hunk.old.pop();
            }
            if last != Some(b'-') {
                hunk.new.pop();
            }
        }
    }
    Ok(hunk)
}

fn range(text: &str) -> Option<(usize, usize)> {
    let (first, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((first.parse().ok()?, count.parse().ok()?))
}

impl FilePatch {
    /// The text before the change; `None` where the diff does not fit the text.
    pub fn reverse(&self, new: &str) -> Option<String> {
        let lines: Vec<&str> = new.split_inclusive('\n').collect();
        let mut old = String::with_capacity(new.len());
        let mut at = 0;
        for hunk in &self.hunks {
            old.extend(lines.get(at..hunk.start)?.iter().copied());
            let end = hunk.start.checked_add(hunk.lines)?;
            let here = lines.get(hunk.start..end)?.concat();
            if here.trim_end_matches(['\r', '\n']) != hunk.new.trim_end_matches(['\r', '\n']) {
                return None;
            }
            old.push_str(&hunk.old);
            at = end;
        }
        old.extend(lines.get(at..)?.iter().copied());
        Some(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `new` taken back by the diff from `old` to it, with and without context, is `old`.
    fn round_trip(old: &str, new: &str) {
        for context in [0, 3] {
            let diff = similar::TextDiff::from_lines(old, new);
            let text = diff.unified_diff().context_radius(context).header("a/x.cu", "b/x.cu").to_string();
            let files = parse(&text).unwrap();
            if let [file] = files.as_slice() {
                assert_eq!(file.reverse(new).as_deref(), Some(old), "{text}");
                assert_eq!(file.new, Some(PathBuf::from("x.cu")));
            } else {
                assert_eq!(old, new);
            }
        }
    }

    #[test]
    fn a_diff_is_taken_back() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        round_trip(old, "a\nB\nc\nd\ne\nf\ng\nh\nx\ni\n");
        round_trip(old, "b\nc\nd\ne\nf\ng\nh\n");
        round_trip(old, old);
        round_trip("", "a\nb\n");
        round_trip("a\n", "");
        round_trip("a\r\nb\r\n", "a\r\nc\r\n");
        round_trip("a\nb", "a\nc");
        round_trip("a\nb\n", "a\nb");
    }

    #[test]
    fn names_are_read_as_git_writes_them() {
        let names = |text: &str| {
            let text = format!("{text}@@ -1 +1 @@\n-a\n+b\n");
            let files = parse(&text).unwrap();
            (files[0].old.clone().unwrap(), files[0].new.clone().unwrap())
        };
        let both = |name: &str| (PathBuf::from(name), PathBuf::from(name));
        assert_eq!(
            names("--- \"a/\\303\\251 \\\"x\\\".cu\"\n+++ \"b/\\303\\251 \\\"x\\\".cu\"\n"),
            both("é \"x\".cu")
        );
        assert_eq!(names("--- i/x.cu\n+++ w/x.cu\n"), both("x.cu"));
        assert_eq!(names("--- a/x.cu\n+++ a/x.cu\n"), both("a/x.cu"));
        assert_eq!(names("--- a/a b.cu\t\n+++ b/a b.cu\t\n"), both("a b.cu"));
        assert_eq!(names("--- x.cu\t2026-11-30\n+++ x.cu\t2026-11-30\n"), both("x.cu"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let files = parse("--- a/x.cu\n+++ b/x.cu\n@@ -1 +1 @@\n-a\n+b\n").unwrap();
        assert_eq!(files[0].reverse("c\n"), None);
        assert_eq!(files[0].reverse(""), None);
        assert!(parse("--- a\n+++ b\n@@ -1 +1 @@\n-a\n").is_err());
        assert!(parse("@@ -1 +1 @@\n-a\n+b\n").is_err());
        let added = parse("--- /dev/null\n+++ b/new.cu\n@@ -0,0 +1 @@\n+a\n").unwrap();
        assert_eq!((added[0].old.as_ref(), added[0].new.as_ref()), (None, Some(&PathBuf::from("new.cu"))));
    }
}
