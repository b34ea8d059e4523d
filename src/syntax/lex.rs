//! A lexer for CUDA C++ that never fails: every byte belongs to a token, a comment or white space.
//!
//! A preprocessor directive is one token, from its `#` to the end of the logical line. Punctuation is one token per
//! byte, so `>>` closes two template lists without a special case. A string or comment that is not closed ends at the
//! end of its line or of the file.

use std::ops::Range;

/// A half-open byte range of the text, 12 bytes in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub start: u32,
    pub end: u32,
    pub kind: Kind,
    /// No other token begins earlier on the same physical line.
    pub first: bool,
}

impl Token {
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word(Word),
    Number,
    /// A string or character literal with its prefix.
    Literal,
    Punct(u8),
    /// `#…` to the end of the logical line.
    Directive,
    /// What lies beyond the last token.
    End,
}

/// What masking needs to know of a word. Only the words that matter to some mask have a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Any other identifier.
    Plain,
    /// `LIKE_THIS2`: two or more of `A-Z0-9_`, with a letter. Usually a macro.
    Caps,
    /// `int`, `float`, `auto` …
    Type,
    Void,
    /// `const`, `volatile`
    Const,
    /// `static`, `inline`, `constexpr`, `extern`, `virtual` …
    Specifier,
    /// `__device__`, `__host__`, `__forceinline__` …
    Function,
    Global,
    /// `__shared__`, `__constant__`, `__managed__`
    Space,
    Restrict,
    Align,
    Attribute,
    Bounds,
    Cluster,
    Registers,
    BlockSize,
    Pragma,
    /// `for`, `if`, `return` …: begins a statement.
    Statement,
    Else,
    Do,
    Class,
    Enum,
    Template,
    Typename,
    Namespace,
    /// `using`, `typedef`, `friend`, `static_assert`, `public` …
    Declaration,
    /// `sizeof`, `new`, `operator` …: a word of expressions.
    Operator,
    /// `noexcept`, `override`, `mutable`: between `)` and `{`. Not `final`, which also ends a class head.
    Trailer,
}

/// Lexes the whole text; linear time.
pub fn lex(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { bytes: text.as_bytes(), at: 0, first: true, tokens: Vec::new() };
    lexer.tokens.reserve(text.len() / 4);
    lexer.run();
    lexer.tokens
}

/// Where a kernel launch stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSite {
    /// The offset of the kernel's name or of the launch function's.
    pub name: u32,
    /// The offset of the statement's first token: a macro around the launch, say.
    pub statement: u32,
}

/// The launches in a text, by their `<<<` or the runtime's launch functions.
pub fn launch_sites(text: &str) -> Vec<LaunchSite> {
    let tokens = lex(text);
    let is = |at: usize, byte: u8| tokens.get(at).is_some_and(|token| token.kind == Kind::Punct(byte));
    let adjoin = |at: usize| matches!((tokens.get(at), tokens.get(at + 1)), (Some(one), Some(two)) if one.end == two.start);
    let opens = |at: usize| (0..3).all(|next| is(at + next, b'<')) && adjoin(at) && adjoin(at + 1);
    let mut sites = Vec::new();
    let mut statement = None;
    for (at, token) in tokens.iter().enumerate() {
        if matches!(token.kind, Kind::Punct(b';' | b'{' | b'}')) {
            statement = None;
            continue;
        }
        let statement = *statement.get_or_insert(token.start);
        let word = text.get(token.range()).unwrap_or("");
        let name = if opens(at) && !is(at.wrapping_sub(1), b'<') {
            kernel_name(&tokens, at)
        } else if word.starts_with("cudaLaunchKernel") || word.starts_with("cudaLaunchCooperativeKernel") {
            Some(at)
        } else {
            None
        };
        let name = name.and_then(|name| tokens.get(name));
        sites.extend(name.map(|name| LaunchSite { name: name.start, statement }));
    }
    sites
}

/// The first token of `a::kernel<T, 4>` in front of the `<<<` at `at`.
fn kernel_name(tokens: &[Token], at: usize) -> Option<usize> {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    let mut name = at.checked_sub(1)?;
    let mut depth = 0;
    loop {
        match kind(name)? {
            Kind::Punct(b'>') => depth += 1,
            Kind::Punct(b'<') => depth -= 1,
            Kind::Punct(b';' | b'{' | b'}') => return None,
            _ if depth == 0 => break,
            _ => {}
        }
        name = name.checked_sub(1)?;
    }
    while name >= 3
        && kind(name - 1) == Some(Kind::Punct(b':'))
        && kind(name - 2) == Some(Kind::Punct(b':'))
        && !matches!(kind(name - 3)?, Kind::Punct(_))
    {
        name -= 3;
    }
    Some(name)
}

/// The range of the line comment or block comment that starts at `at`, if one does.
pub fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'/'), Some(b'/')) => Some(logical_line_end(bytes, at)),
        (Some(b'/'), Some(b'*')) => Some(block_comment_end(bytes, at)),
        _ => None,
    }
}

/// The length of a backslash-newline at `at`; 0 where there is none.
pub fn continuation(bytes: &[u8], at: usize) -> usize {
    match (bytes.get(at), bytes.get(at + 1), bytes.get(at + 2)) {
        (Some(b'\\'), Some(b'\n'), _) => 2,
        (Some(b'\\'), Some(b'\r'), Some(b'\n')) => 3,
        _ => 0,
    }
}

fn logical_line_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => return at,
            b'\\' => at += continuation(bytes, at).max(1),
            _ => at += 1,
        }
    }
    bytes.len()
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 2;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'*' && bytes.get(at + 1) == Some(&b'/') {
            return at + 2;
        }
        at += 1;
    }
    bytes.len()
}

pub fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

pub fn is_word_byte(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit()
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    first: bool,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        if self.bytes.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.first = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0 => self.at += 1,
                b'\\' => {
                    let length = continuation(self.bytes, self.at);
                    self.at += length;
                    if length == 0 {
                        self.push(Kind::Punct(byte), self.at + 1);
                    }
                }
                b'/' => match comment_end(self.bytes, self.at) {
                    Some(end) => self.at = end,
                    None => self.push(Kind::Punct(byte), self.at + 1),
                },
                b'#' if self.first => {
                    let end = self.directive_end();
                    self.push(Kind::Directive, end);
                }
                b'"' | b'\'' => {
                    let end = literal_end(self.bytes, self.at);
                    self.push(Kind::Literal, end);
                }
                b'0'..=b'9' => self.number(),
                b'.' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number(),
                _ if is_word_start(byte) => self.word(),
                _ => self.push(Kind::Punct(byte), self.at + 1),
            }
        }
    }

    fn push(&mut self, kind: Kind, end: usize) {
        let end = end.min(self.bytes.len());
        self.tokens.push(Token { start: self.at as u32, end: end as u32, kind, first: self.first });
        self.first = false;
        self.at = end;
    }

    /// The end of the directive at `at`: its newline, not counting those after a backslash or in a comment or string.
    fn directive_end(&self) -> usize {
        let mut at = self.at + 1;
        // An apostrophe in `#error don't` opens nothing; a string matters only for `//` and `/*` in it.
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\n' => return at,
                b'\\' => at += continuation(self.bytes, at).max(1),
                b'"' => at = literal_end(self.bytes, at),
                b'/' => at = comment_end(self.bytes, at).unwrap_or(at + 1),
                _ => at += 1,
            }
        }
        at
    }

    fn number(&mut self) {
        let mut at = self.at + 1;
        while let Some(&byte) = self.bytes.get(at) {
            let before = self.bytes.get(at - 1).copied().unwrap_or(0);
            let sign = matches!(byte, b'+' | b'-')
                && matches!(before, b'e' | b'E' | b'p' | b'P')
                && !self.is_hex_e(at);
            let separator = byte == b'\'' && self.bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_' || sign || separator) {
                break;
            }
            at += 1;
        }
        self.push(Kind::Number, at);
    }

    /// `0xE+1` is a sum: a hexadecimal number's exponent is `p`.
    fn is_hex_e(&self, at: usize) -> bool {
        let hex = matches!(self.bytes.get(self.at..self.at + 2), Some(b"0x" | b"0X"));
        hex && matches!(self.bytes.get(at - 1), Some(b'e' | b'E'))
    }

    fn word(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|&byte| !is_word_byte(byte)).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        let end = self.at + length;
        match (word, self.bytes.get(end)) {
            (b"R" | b"LR" | b"uR" | b"UR" | b"u8R", Some(b'"')) => {
                let end = raw_string_end(self.bytes, end);
                self.push(Kind::Literal, end);
            }
            (b"L" | b"u" | b"U" | b"u8", Some(b'"' | b'\'')) => {
                let end = literal_end(self.bytes, end);
                self.push(Kind::Literal, end);
            }
            _ => self.push(Kind::Word(classify(word)), end),
        }
    }
}

fn literal_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes.get(start).copied();
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += continuation(bytes, at).max(2),
            b'\n' => return at,
            _ if Some(byte) == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `quote` is the place of the `"` in `R"delimiter(…)delimiter"`.
fn raw_string_end(bytes: &[u8], quote: usize) -> usize {
    let rest = bytes.get(quote + 1..).unwrap_or_default();
    let Some(open) = rest.iter().take(17).position(|&byte| byte == b'(') else {
        return literal_end(bytes, quote);
    };
    let delimiter = rest.get(..open).unwrap_or_default();
    let mut at = quote + 1 + open + 1;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b')' && bytes.get(at..at + open) == Some(delimiter) && bytes.get(at + open) == Some(&b'"')
        {
            return at + open + 1;
        }
    }
    bytes.len()
}

fn is_caps(word: &[u8]) -> bool {
    word.len() >= 2
        && word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
        && word.iter().any(u8::is_ascii_uppercase)
}

/// The class of an identifier.
pub fn classify(word: &[u8]) -> Word {
    match word {
        b"void" => Word::Void,
        b"int" | b"float" | b"double" | b"char" | b"bool" | b"short" | b"long" | b"unsigned" | b"signed"
        | b"auto" | b"wchar_t" | b"char16_t" | b"char32_t" | b"char8_t" | b"size_t" | b"__int64"
        | b"__half" | b"half" | b"int8_t" | b"int16_t" | b"int32_t" | b"int64_t" | b"uint8_t"
        | b"uint16_t" | b"uint32_t" | b"uint64_t" => Word::Type,
        b"const" | b"volatile" => Word::Const,
        b"static" | b"inline" | b"constexpr" | b"extern" | b"virtual" | b"explicit" | b"consteval"
        | b"register" | b"thread_local" | b"__inline" | b"__inline__" | b"__extension__" => Word::Specifier,
        b"__device__" | b"__host__" | b"__forceinline__" | b"__noinline__" => Word::Function,
        b"__global__" => Word::Global,
        b"__shared__" | b"__constant__" | b"__managed__" => Word::Space,
        b"__restrict__" | b"__restrict" => Word::Restrict,
        b"__align__" | b"alignas" => Word::Align,
        b"__attribute__" | b"__attribute" | b"__declspec" => Word::Attribute,
        b"__launch_bounds__" => Word::Bounds,
        b"__cluster_dims__" => Word::Cluster,
        b"__maxnreg__" => Word::Registers,
        b"__block_size__" => Word::BlockSize,
        b"_Pragma" | b"__pragma" => Word::Pragma,
        b"for" | b"while" | b"if" | b"return" | b"switch" | b"break" | b"continue" | b"goto" | b"case"
        | b"default" | b"try" | b"catch" | b"throw" | b"asm" | b"__asm__" | b"__asm" | b"delete"
        | b"co_return" => Word::Statement,
        b"else" => Word::Else,
        b"do" => Word::Do,
        b"struct" | b"class" | b"union" => Word::Class,
        b"enum" => Word::Enum,
        b"template" => Word::Template,
        b"typename" => Word::Typename,
        b"namespace" => Word::Namespace,
        b"using" | b"typedef" | b"friend" | b"static_assert" | b"public" | b"private" | b"protected"
        | b"concept" | b"requires" => Word::Declaration,
        b"sizeof" | b"alignof" | b"decltype" | b"typeid" | b"new" | b"operator" | b"this" | b"true"
        | b"false" | b"nullptr" | b"and" | b"or" | b"not" | b"static_cast" | b"reinterpret_cast"
        | b"const_cast" | b"dynamic_cast" | b"__alignof__" | b"__typeof__" | b"defined" => Word::Operator,
        b"noexcept" | b"override" | b"mutable" => Word::Trailer,
        _ if is_caps(word) => Word::Caps,
        _ => Word::Plain,
    }
}
