//! The comments of a C++ text: enough of a lexer to tell them from strings.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// With its `//` or `/* */`, without the line end.
    pub range: Range<usize>,
    /// Only white space stands before it on its line.
    pub own_line: bool,
}

impl Comment {
    /// Without the marks and the white space inside them.
    pub fn body(&self, text: &str) -> Range<usize> {
        let whole = text.get(self.range.clone()).unwrap_or_default();
        let inside = whole.trim_start_matches(['/', '*', '!']);
        let start = self.range.end - inside.trim_start().len();
        let inside = text.get(start..self.range.end).unwrap_or_default();
        let inside = if whole.starts_with("/*") { inside.trim_end_matches(['/', '*']) } else { inside };
        start..start + inside.trim_end().len()
    }

    /// With what would be left over without it: its whole line, or the white space before it.
    pub fn with_surroundings(&self, text: &str) -> Range<usize> {
        let before = text.get(..self.range.start).unwrap_or_default();
        let after = text.get(self.range.end..).unwrap_or_default();
        let start = before.trim_end_matches([' ', '\t']).len();
        let line_end = after.find('\n').map_or(after.len(), |newline| newline + 1);
        let rest_is_blank = after.get(..line_end).is_some_and(|rest| rest.trim().is_empty());
        match (self.own_line, rest_is_blank) {
            (true, true) => start..self.range.end + line_end,
            (false, true) => start..self.range.end,
            (_, false) => self.range.clone(),
        }
    }
}

/// All comments, in order. What is not closed ends with its line, or with the text.
pub fn comments(text: &str) -> Vec<Comment> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) =
        bytes.get(at..).and_then(|rest| rest.iter().position(|b| matches!(b, b'/' | b'"' | b'\'')))
    {
        at += offset;
        let rest = bytes.get(at..).unwrap_or_default();
        let end = match rest {
            [b'/', b'/', ..] => at + line_comment(rest),
            [b'/', b'*', ..] => at + 2 + until(rest.get(2..).unwrap_or_default(), b"*/"),
            [b'"', ..] if is_raw(bytes, at) => {
                at += raw_string(rest);
                continue;
            }
            [b'\'', ..] if is_digit_separator(bytes, at) => {
                at += 1;
                continue;
            }
            [quote @ (b'"' | b'\''), ..] => {
                at += literal(rest, *quote);
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let before = bytes.get(..at).unwrap_or_default();
        let own_line = before.iter().rev().take_while(|b| **b != b'\n').all(u8::is_ascii_whitespace);
        let end = end.min(bytes.len());
        found.push(Comment { range: at..end, own_line });
        at = end;
    }
    found
}

/// Up to the line end that no backslash continues, without it.
fn line_comment(rest: &[u8]) -> usize {
    let mut end = 0;
    for line in rest.split_inclusive(|b| *b == b'\n') {
        let content = line.trim_ascii_end();
        let last = end + line.len() >= rest.len();
        if last || !content.ends_with(b"\\") {
            let keep = line.strip_suffix(b"\n").unwrap_or(line);
            return end + keep.strip_suffix(b"\r").unwrap_or(keep).len();
        }
        end += line.len();
    }
    end
}

/// Past the next `mark`.
fn until(rest: &[u8], mark: &[u8]) -> usize {
    memchr::memmem::find(rest, mark).map_or(rest.len(), |at| at + mark.len())
}

fn is_raw(bytes: &[u8], quote: usize) -> bool {
    let before = bytes.get(..quote).unwrap_or_default();
    let prefix = before.iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    matches!(before.get(before.len() - prefix..), Some(b"R" | b"LR" | b"uR" | b"UR" | b"u8R"))
}

/// `"delimiter(…)delimiter"`.
fn raw_string(rest: &[u8]) -> usize {
    let Some(open) = rest.iter().position(|b| *b == b'(') else { return 1 };
    let mut mark = vec![b')'];
    mark.extend(rest.get(1..open).unwrap_or_default());
    mark.push(b'"');
    open + until(rest.get(open..).unwrap_or_default(), &mark)
}

/// `1'000`.
fn is_digit_separator(bytes: &[u8], quote: usize) -> bool {
    let at = |index: Option<usize>| index.and_then(|index| bytes.get(index));
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    digit(at(quote.checked_sub(1))) && digit(at(quote.checked_add(1)))
}

/// A string or a character, which ends with its line at the latest.
fn literal(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if *byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at.min(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        comments(text).into_iter().map(|comment| &text[comment.range]).collect()
    }

    #[test]
    fn comments_are_told_from_strings() {
        assert_eq!(texts("a // b\nc /* d */ e"), ["// b", "/* d */"]);
        assert_eq!(texts("\"// no\" // yes \\\n still\nx"), ["// yes \\\n still"]);
        assert_eq!(texts("R\"x(// no )\" )x\" // yes\r\n"), ["// yes"]);
        assert_eq!(texts("1'000 // yes '\nu'\\'' // yes"), ["// yes '", "// yes"]);
        assert_eq!(texts("\"open\n// yes"), ["// yes"]);
        assert_eq!(texts("/* open"), ["/* open"]);
        assert_eq!(texts("a / b"), [""; 0]);
    }
}
