//! Tokens of C++ with their places: enough to find where a declaration ends and which names it uses.

/// What a token is; comments and white space are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Word,
    /// One punctuation character, or `::`.
    Mark,
    /// A number, string or character.
    Literal,
    /// A whole preprocessor line with its continuations, from `#` to the line's end.
    Directive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// Byte offset in the file.
    pub start: usize,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != Kind::Literal
    }
}

/// The tokens of a text. Never fails: an unclosed comment or string ends with the text.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut line_start = true;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.as_bytes().first().copied().unwrap_or(b' ');
        let length = match first {
            b'\n' => {
                line_start = true;
                at += 1;
                continue;
            }
            _ if first.is_ascii_whitespace() || first == b'\\' => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with("//") => {
                at += logical_line(rest);
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                at += rest.get(2..).and_then(|inner| inner.find("*/")).map_or(rest.len(), |end| end + 4);
                continue;
            }
            b'#' if line_start => logical_line(rest),
            b'R' if rest.starts_with("R\"") => raw_string(rest),
            b'"' | b'\'' => quoted(rest, first),
            b'0'..=b'9' => number(rest),
            b'.' if rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => number(rest),
            b':' if rest.starts_with("::") => 2,
            _ if is_word(first) => rest.bytes().take_while(|&byte| is_word(byte)).count(),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        let kind = match first {
            b'#' if line_start => Kind::Directive,
            b'"' | b'\'' | b'0'..=b'9' => Kind::Literal,
            b'.' if length > 1 => Kind::Literal,
            b'R' if rest.starts_with("R\"") => Kind::Literal,
            _ if is_word(first) => Kind::Word,
            _ => Kind::Mark,
        };
        line_start = false;
        found.push(Token { kind, text: rest.get(..length).unwrap_or(rest), start: at });
        at += length.max(1);
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Up to the line's end, which a backslash before it moves on.
fn logical_line(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while let Some(end) = bytes.get(at..).and_then(|tail| tail.iter().position(|&byte| byte == b'\n')) {
        let line = bytes.get(at..at + end).unwrap_or_default();
        if !line.trim_ascii_end().ends_with(b"\\") {
            return at + end;
        }
        at += end + 1;
    }
    rest.len()
}

fn quoted(rest: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'\n' => return at,
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `R"x(…)x"`
fn raw_string(rest: &str) -> usize {
    let Some(open) = rest.find('(') else { return rest.len() };
    let close = format!("){}\"", rest.get(2..open).unwrap_or_default());
    rest.find(&close).map_or(rest.len(), |at| at + close.len())
}

/// A number with its digit separators, suffixes and signed exponents.
fn number(rest: &str) -> usize {
    let mut before = b' ';
    let mut length = 0;
    let hex = rest.starts_with("0x") || rest.starts_with("0X");
    for byte in rest.bytes() {
        let exponent = if hex { b"pP" } else { b"eE" };
        let sign = (byte == b'+' || byte == b'-') && exponent.contains(&before);
        if !(is_word(byte) || byte == b'.' || byte == b'\'' || sign) {
            break;
        }
        before = byte;
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_strings_hide_braces() {
        assert_eq!(texts("a /* { */ \"}\" // {\n'}' b"), ["a", "\"}\"", "'}'", "b"]);
        assert_eq!(texts("R\"x(}\")x\" y"), ["R\"x(}\")x\"", "y"]);
        assert_eq!(texts("1'000e-3f+.5 a::b"), ["1'000e-3f", "+", ".5", "a", "::", "b"]);
    }

    #[test]
    fn a_directive_is_one_token_with_its_continuations() {
        let found = tokens("int a;\n#define F(x) \\\n  x\nint b; # not one");
        let directive = found.iter().find(|token| token.kind == Kind::Directive).map(|token| token.text);
        assert_eq!(directive, Some("#define F(x) \\\n  x"));
        assert_eq!(found.iter().filter(|token| token.kind == Kind::Directive).count(), 1);
    }

    #[test]
    fn never_stuck() {
        for text in ["\"", "'", "/*", "R\"(", "\\", "#", "é", "0x", "1e+", "\u{1F600}"] {
            tokens(text);
        }
    }
}
