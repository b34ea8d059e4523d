//! Tokens with their text, as the slicer reads them.

use crate::syntax::lex::{self, Kind as Lexed};

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

/// The tokens of a text; `::` is one.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found: Vec<Token> = Vec::new();
    for token in lex::lex(text) {
        let kind = match token.kind {
            Lexed::Word(_) => Kind::Word,
            Lexed::Number | Lexed::Literal => Kind::Literal,
            Lexed::Punct(_) => Kind::Mark,
            Lexed::Directive => Kind::Directive,
            Lexed::End => break,
        };
        let Some(here) = text.get(token.range()) else { continue };
        let start = token.start as usize;
        match found.last_mut() {
            Some(last) if here == ":" && last.text == ":" && last.end() == start => {
                last.text = text.get(last.start..start + 1).unwrap_or("::");
            }
            _ => found.push(Token { kind, text: here, start }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_marks_are_joined() {
        let texts: Vec<&str> = tokens("a::b ? c : d").iter().map(|token| token.text).collect();
        assert_eq!(texts, ["a", "::", "b", "?", "c", ":", "d"]);
    }
}
