//! Kernel signatures: marker macros become `void`, unknown words in the head are blanked, heads are recorded.

use super::lex::{Kind, Word};
use super::macros::Class;
use super::mask::{KERNEL_MACROS, KernelHead, Masker};

/// How many tokens are searched for a kernel's name, and for its body after the parameters.
const HEAD_TOKENS: usize = 256;

/// A kernel's head as found before the other masks: byte offsets, which stay valid.
pub(super) struct Signature {
    /// `__global__` or the marker.
    start: u32,
    name: u32,
    parameters: u32,
    marker: Option<String>,
}

impl Masker<'_> {
    pub(super) fn signatures(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            let marker = match self.kind(at) {
                Kind::Word(Word::Global) => None,
                Kind::Word(Word::Plain | Word::Caps) if self.is_marker(at) => Some(self.text(at).to_owned()),
                _ => {
                    at += 1;
                    continue;
                }
            };
            at = self.signature(at, marker).max(at + 1);
        }
        self.compact();
    }

    fn is_marker(&self, at: usize) -> bool {
        let name = self.text(at);
        KERNEL_MACROS.contains(&name)
            || self.options.kernel_macros.iter().any(|known| known == name)
            || self.class(at) == Some(Class::Kernel)
    }

    /// Masks the head around `at`, which is `__global__` or a marker; returns where to go on.
    fn signature(&mut self, at: usize, marker: Option<String>) -> usize {
        let mut extra = Vec::new();
        let Some(name) = self.find_name(at + 1, &mut extra) else { return at + 1 };
        let parameters = if self.is(name + 1, b'<') { self.angle_end(name + 1) } else { Some(name + 1) };
        let Some((parameters, close)) = parameters.and_then(|open| Some((open, self.close(open)?))) else {
            return at + 1;
        };
        let start = self.bytes(at, at).start;
        self.before_global(at);
        if marker.is_some() {
            self.replace_marker(at, name);
        }
        for (from, to) in extra {
            self.drop(from, to);
        }
        self.parameters(parameters, close);
        self.after_parameters(close + 1);
        let offset = |at: usize| self.tokens.get(at).map_or(0, |token| token.start);
        self.heads.push(Signature { start, name: offset(name), parameters: offset(parameters), marker });
        close
    }

    /// The index of the kernel's name, searching from `at`. Words that are no part of a declaration go to `extra`.
    fn find_name(&self, at: usize, extra: &mut Vec<(usize, usize)>) -> Option<usize> {
        let limit = at + HEAD_TOKENS;
        let mut at = at;
        let mut qualified = false;
        while let Kind::Word(word) = self.kind(at)
            && at < limit
        {
            if !matches!(word, Word::Plain | Word::Caps) {
                at += 1;
                continue;
            }
            let after = if self.is(at + 1, b'<') { self.angle_end(at + 1)? } else { at + 1 };
            if self.is_scope_operator(after) {
                qualified = true;
                at = after + 2;
                continue;
            }
            if let Some(close) = self.close(after) {
                if after > at + 1 || !self.is_macro_call(close + 1) {
                    return Some(at);
                }
                extra.push((at, close));
                at = close + 1;
                continue;
            }
            // The `type` of `typename std::enable_if<…>::type` stays.
            if after == at + 1 && !qualified {
                extra.push((at, at));
            }
            qualified = false;
            at = after;
            // The `::type`, `*` or `&` of a return type.
            while self.is(at, b'*') || self.is(at, b'&') {
                at += 1;
            }
        }
        None
    }

    /// What follows a `)` shows that the parentheses were a macro's, not the parameters.
    fn is_macro_call(&self, after: usize) -> bool {
        match self.kind(after) {
            Kind::Word(Word::Plain | Word::Caps) => match self.close(after + 1) {
                Some(close) => matches!(self.kind(close + 1), Kind::Punct(b'{' | b';') | Kind::Word(_)),
                None => {
                    self.is(after + 1, b'<') || self.is_name(after + 1) || self.is_scope_operator(after + 1)
                }
            },
            Kind::Word(Word::Trailer | Word::Const | Word::Declaration) => false,
            Kind::Word(_) => true,
            _ => false,
        }
    }

    /// Blanks macros between the template header and `__global__`.
    fn before_global(&mut self, global: usize) {
        let mut at = global;
        while let Some(last) = at.checked_sub(1) {
            at = match self.kind(last) {
                Kind::Word(Word::Specifier | Word::Function | Word::Void) | Kind::Literal => last,
                Kind::Word(Word::Plain | Word::Caps) if self.may_blank(last) => {
                    self.drop(last, last);
                    last
                }
                Kind::Punct(b')') => match self.pair(last).and_then(|open| open.checked_sub(1)) {
                    Some(name) if self.is_word(name, Word::Caps) => {
                        self.record_statement(name, Some(last), true);
                        self.drop(name, last);
                        name
                    }
                    _ => return,
                },
                _ => return,
            };
        }
    }

    /// The marker stands for `__global__`, or for `__global__ void` where no return type follows.
    fn replace_marker(&mut self, at: usize, name: usize) {
        let range = self.bytes(at, at);
        let has_type = (at + 1..name).any(|at| matches!(self.kind(at), Kind::Word(Word::Void | Word::Type)));
        let text = match (has_type, range.len()) {
            (true, 10..) => "__global__",
            (true, _) => "",
            (false, 15..) => "__global__ void",
            (false, 4..) => "void",
            (false, _) => return,
        };
        self.drop(at, at);
        self.write(range.start, text);
    }

    /// Blanks macros at the front of a parameter: `GRID_CONST Params const p`, but not the type `REAL x`.
    fn parameters(&mut self, open: usize, close: usize) {
        let mut at = open;
        while at < close {
            let starts = at == open || self.is(at, b',');
            let starts = starts || (at > open && self.is_word(at, Word::Const));
            if starts && self.is_word(at + 1, Word::Caps) && self.is_parameter_macro(at + 1) {
                let end = self.close(at + 2).unwrap_or(at + 1);
                self.drop(at + 1, end);
            }
            at += 1;
            if self.is(at, b'(') && at != open {
                at = self.pair(at).unwrap_or(at);
            }
        }
    }

    fn is_parameter_macro(&self, at: usize) -> bool {
        if !self.may_blank(at) {
            return false;
        }
        let mut next = self.close(at + 1).map_or(at + 1, |close| close + 1);
        while self.is_word(next, Word::Const) {
            next += 1;
        }
        match self.kind(next) {
            Kind::Punct(b':') => self.is_scope_operator(next),
            Kind::Word(Word::Type | Word::Void | Word::Class | Word::Typename) => true,
            Kind::Word(Word::Plain | Word::Caps) => {
                !matches!(self.kind(next + 1), Kind::Punct(b',' | b')' | b'=' | b'[') | Kind::End)
            }
            _ => false,
        }
    }

    /// Blanks words between `)` and `{`.
    fn after_parameters(&mut self, mut at: usize) {
        while self.is_name(at) {
            let end = self.close(at + 1).unwrap_or(at);
            self.drop(at, end);
            at = end + 1;
        }
    }

    /// Finds the bodies of the kernels on what the masks have left.
    pub(super) fn kernels(&mut self) {
        let heads = std::mem::take(&mut self.heads);
        for head in heads {
            let find = |offset: u32| self.tokens.binary_search_by_key(&offset, |token| token.start).ok();
            let Some((name, open)) = find(head.name).zip(find(head.parameters)) else { continue };
            let Some(body) = self.pair(open).and_then(|close| self.body(close + 1)) else { continue };
            let end = match self.pair(body) {
                Some(end) => self.bytes(body, end),
                None => {
                    let range = self.bytes(body, body).start..self.source.len() as u32;
                    self.gap(range.clone(), "a kernel's braces do not match");
                    range
                }
            };
            let offset = self.tokens.get(self.declaration_start(name)).map_or(head.name, |token| token.start);
            self.kernels.push(KernelHead {
                offset: offset.min(head.start),
                name: self.text(name).to_owned(),
                name_span: self.bytes(name, name),
                body: end,
                marker: head.marker,
            });
        }
    }

    /// The `{` of the body after the parameters; `None` for a declaration.
    fn body(&self, from: usize) -> Option<usize> {
        let mut at = from;
        while at < from + HEAD_TOKENS {
            match self.kind(at) {
                Kind::Punct(b'{') => return Some(at),
                Kind::Punct(b';' | b'}') | Kind::End => return None,
                Kind::Punct(b'(') => at = self.pair(at)?,
                _ => {}
            }
            at += 1;
        }
        None
    }

    fn declaration_start(&self, name: usize) -> usize {
        let mut at = name;
        while let Some(last) = at.checked_sub(1) {
            match self.kind(last) {
                Kind::Punct(b';' | b'{') => break,
                // The `{}` of a template argument belongs to the header.
                Kind::Punct(b'}') => break,
                // `public:` but not `std::`.
                Kind::Punct(b':') if !self.is(last.wrapping_sub(1), b':') && !self.is(last + 1, b':') => {
                    break;
                }
                _ => at = last,
            }
        }
        at
    }
}
