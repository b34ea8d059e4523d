//! What kind of braces enclose a token, found without a parser.

use super::lex::{Kind, Token, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The file, a namespace, or `extern "C" {`.
    File,
    Class,
    Enum,
    /// A braced list of values.
    List,
    /// A function body or a block in it.
    Body,
}

/// What has been seen since the last `;`, `{` or `}`.
#[derive(Clone, Copy, Default)]
struct Head {
    namespace: bool,
    class: bool,
    enumeration: bool,
    parenthesis: bool,
    external: bool,
}

/// Follows the braces of a token stream; feed it every live token in order.
pub struct Scopes {
    open: Vec<Scope>,
    head: Head,
    last: Kind,
    parentheses: u32,
}

impl Default for Scopes {
    fn default() -> Self {
        Scopes { open: Vec::new(), head: Head::default(), last: Kind::End, parentheses: 0 }
    }
}

impl Scopes {
    pub fn current(&self) -> Scope {
        self.open.last().copied().unwrap_or(Scope::File)
    }

    /// At file, namespace or class scope and outside parentheses.
    pub fn is_outer(&self) -> bool {
        self.parentheses == 0 && matches!(self.current(), Scope::File | Scope::Class)
    }

    /// Takes the next token; returns the scope it stands in (for `{` and `}`, the outer one).
    pub fn feed(&mut self, token: Token) -> Scope {
        let before = self.current();
        let scope = match token.kind {
            Kind::Punct(b'{') => {
                self.open.push(self.classify(before));
                self.head = Head::default();
                self.parentheses = 0;
                before
            }
            Kind::Punct(b'}') => {
                self.open.pop();
                self.head = Head::default();
                self.parentheses = 0;
                self.current()
            }
            _ => {
                self.note(token.kind);
                before
            }
        };
        self.last = token.kind;
        scope
    }

    fn note(&mut self, kind: Kind) {
        match kind {
            Kind::Punct(b';') if self.parentheses == 0 => self.head = Head::default(),
            Kind::Punct(b'(') => self.parentheses += 1,
            Kind::Punct(b')') => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.head.parenthesis = true;
            }
            Kind::Word(Word::Namespace) => self.head.namespace = true,
            Kind::Word(Word::Specifier) => self.head.external = true,
            // `template <class T>` declares no class.
            Kind::Word(Word::Class)
                if !matches!(self.last, Kind::Punct(b'<' | b',')) && self.parentheses == 0 =>
            {
                self.head.class = true;
            }
            Kind::Word(Word::Enum) if self.parentheses == 0 => self.head.enumeration = true,
            _ => {}
        }
    }

    fn classify(&self, outer: Scope) -> Scope {
        use Kind::{Punct, Word as W};
        let head = self.head;
        let after_declarator = matches!(self.last, Punct(b')') | W(Word::Trailer | Word::Const));
        match outer {
            Scope::Enum => Scope::List,
            Scope::File | Scope::Class => match self.last {
                _ if head.namespace => Scope::File,
                Kind::Literal if head.external => Scope::File,
                Punct(b'=' | b',' | b'(') | W(Word::Statement) => Scope::List,
                _ if after_declarator => Scope::Body,
                _ if head.enumeration => Scope::Enum,
                _ if head.class => Scope::Class,
                _ if head.parenthesis => Scope::Body,
                _ => Scope::List,
            },
            Scope::Body | Scope::List => match self.last {
                Punct(b'=' | b',' | b'(') | W(Word::Statement) => Scope::List,
                _ if after_declarator => Scope::Body,
                Punct(b';' | b'{' | b'}' | b']' | b':') | W(Word::Else | Word::Do) => {
                    if outer == Scope::List && !matches!(self.last, Punct(b']')) {
                        Scope::List
                    } else {
                        Scope::Body
                    }
                }
                _ if head.enumeration => Scope::Enum,
                _ if head.class => Scope::Class,
                _ => Scope::List,
            },
        }
    }
}
