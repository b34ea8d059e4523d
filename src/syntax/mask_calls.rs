//! Masks for macros in the place of specifiers, statements and loop heads, and for types as arguments.

use super::lex::{Kind, Word};
use super::macros::Class;
use super::mask::{HeadKind, LoopMacro, Masker};
use super::mask_scope::Scope;

/// How many tokens a macro call may have to be searched for statements among its arguments.
const STATEMENT_TOKENS: usize = 2048;

impl Masker<'_> {
    pub(super) fn statements(&mut self) {
        let mut at = 0;
        let mut before = None;
        while at < self.tokens.len() {
            let next = if self.is_name(at) { self.name(at, before) } else { at + 1 };
            if let Some(kept) = (at..next).rev().find(|&at| self.kind(at) != Kind::End) {
                before = Some(kept);
            }
            at = next;
        }
        self.compact();
    }

    fn name(&mut self, at: usize, before: Option<usize>) -> usize {
        let last = before.map_or(Kind::End, |before| self.kind(before));
        match self.close(at + 1) {
            Some(close) => self.call(at, close, last),
            None => self.bare(at, last, before),
        }
    }

    /// A statement or declaration may begin after this token.
    fn is_start(&self, at: usize, last: Kind) -> bool {
        match last {
            Kind::End | Kind::Punct(b';' | b'{' | b'}') | Kind::Word(Word::Else | Word::Do) => true,
            Kind::Punct(b')') => self.scope(at) == Scope::Body,
            Kind::Punct(b':') => self.is_first(at) && matches!(self.scope(at), Scope::Body | Scope::Class),
            _ => false,
        }
    }

    /// `NAME(…)` at `at`; `close` is its `)`.
    fn call(&mut self, at: usize, close: usize, last: Kind) -> usize {
        let after = close + 1;
        let caps = self.is_word(at, Word::Caps);
        let class = self.class(at);
        let is_macro = caps || class.is_some();
        let scope = self.scope(at);
        let start = self.is_start(at, last);
        if scope == Scope::Body && start {
            if self.opens_loop(at, after, class) {
                return self.loop_macro(at, close, class);
            }
            if is_macro && let Some(next) = self.block_argument(at, close) {
                return next;
            }
            if caps && let Some(next) = self.branches(at, close) {
                return next;
            }
            if is_macro && self.precedes_loop(at, after, last) {
                self.drop(at, close);
                return after;
            }
            if is_macro && self.begins_statement(after) {
                return self.end_statement(at, close);
            }
            return at + 1;
        }
        let outer = matches!(scope, Scope::File | Scope::Class);
        if outer && start && self.is_bare_declaration(at, after, is_macro) {
            self.record_statement(at, Some(close), true);
            self.drop(at, close);
            return after;
        }
        // `[=] DEVICE (int i) {`
        let is_lambda = last == Kind::Punct(b']')
            && (matches!(self.kind(after), Kind::Punct(b'{') | Kind::Word(Word::Trailer))
                || self.is_arrow(after));
        if caps && is_lambda {
            self.drop(at, at);
            return at + 1;
        }
        if is_macro && self.is_attribute_call(at, after, last, outer) {
            self.drop(at, close);
            return after;
        }
        at + 1
    }

    /// `NAME(…)` in a body whose `)` is followed by the statement that it governs.
    fn opens_loop(&self, at: usize, after: usize, class: Option<Class>) -> bool {
        if self.is(after, b'{') {
            return class != Some(Class::Statement);
        }
        let named = class.is_none() && self.is_word(at, Word::Caps) && self.text(at).contains("KERNEL_LOOP");
        let known = matches!(class, Some(Class::Loop | Class::Condition));
        (named || known) && !self.is(after, b';') && self.kind(after) != Kind::End && !self.is(after, b'}')
    }

    fn loop_macro(&mut self, at: usize, close: usize, class: Option<Class>) -> usize {
        let span = self.bytes(at, close);
        let block_end = if self.is(close + 1, b'{') { self.pair(close + 1) } else { None };
        let has_else = block_end.is_some_and(|end| self.is_word(end + 1, Word::Else));
        let is_condition = has_else || class == Some(Class::Condition);
        let args = self.arguments(at + 1, close);
        let name = self.text(at).to_owned();
        let room = span.len();
        self.drop(at, close);
        let pieces: &[&str] = match room {
            _ if is_condition => &["if", "(", "1", ")"],
            8.. => &["while", "(", "1", ")"],
            7 => &["for", "(", ";", ";", ")"],
            _ => &["if", "(", "1", ")"],
        };
        if !self.place(span.clone(), pieces) {
            self.place(span.clone(), &["for", "(", ";", ";", ")"]);
        }
        let kind = if is_condition { HeadKind::Condition } else { HeadKind::Loop };
        self.loop_macros.push(LoopMacro { name, args, span, kind });
        close + 1
    }

    /// `DISPATCH(type, T, { … });` becomes `while (1) { … }`. Returns the index of the `{`.
    fn block_argument(&mut self, at: usize, close: usize) -> Option<usize> {
        let end = close.checked_sub(1).filter(|&end| self.is(end, b'}'))?;
        let open = self.pair(end).filter(|&open| open > at + 1)?;
        let before = open - 1;
        if !(self.is(before, b',') || before == at + 1) || !self.has_semicolon(open + 1, end) {
            return None;
        }
        // Before the arguments are dropped: `arguments` reads up to a comma or the `)`.
        let args = if before == at + 1 { Vec::new() } else { self.arguments(at + 1, before) };
        let span = self.bytes(at, before);
        let room = span.start..self.bytes(open, open).start;
        let name = self.text(at).to_owned();
        let governed = self.is(close + 1, b';');
        self.drop(at, before);
        self.drop(close, if governed { close + 1 } else { close });
        let placed = [&["while", "(", "1", ")"][..], &["for", "(", ";", ";", ")"], &["if", "(", "1", ")"]]
            .into_iter()
            .any(|pieces| self.place(room.clone(), pieces));
        if placed {
            self.loop_macros.push(LoopMacro { name, args, span: room, kind: HeadKind::Block });
        }
        self.make_body(open + 1, end);
        Some(open)
    }

    /// `IF_TARGET(CONDITION, (a(); b();), (c();))` becomes `if(1) {a(); b();} else {c();}`; what holds on the host
    /// alone gets `if(0)`. Returns the index of the first statement.
    fn branches(&mut self, at: usize, close: usize) -> Option<usize> {
        let branches = self.statement_arguments(at + 1, close)?;
        let (first, _) = branches.first().copied()?;
        let taken = if (at..first).any(|at| self.text(at) == "NV_IS_HOST") { "0" } else { "1" };
        let head = self.bytes(at, first).start..self.bytes(first, first).start;
        self.drop(at, first - 1);
        self.place(head, &["if", "(", taken, ")"]);
        for (index, &(open, end)) in branches.iter().enumerate() {
            self.brace(open, b'{');
            self.brace(end, b'}');
            if let Some(&(next, _)) = branches.get(index + 1) {
                let room = self.bytes(end, end).end..self.bytes(next, next).start;
                if next > end + 1 {
                    self.drop(end + 1, next - 1);
                }
                // Without room for `else` only what is taken stays.
                if !self.place(room, &["else"])
                    && taken == "1"
                    && let Some(&(next, end)) = branches.get(index + 1)
                {
                    self.drop(next, end);
                    break;
                }
            }
        }
        let last = branches.last().map_or(close, |&(_, end)| end);
        if last < close {
            self.drop(last + 1, close);
        }
        Some(first)
    }

    /// The brackets around each argument after the first, where one of these holds statements. For an argument
    /// without parentheses of its own these are the comma before and the `)` or comma after it.
    fn statement_arguments(&self, open: usize, close: usize) -> Option<Vec<(usize, usize)>> {
        if close > open + STATEMENT_TOKENS {
            return None;
        }
        let mut found = Vec::new();
        let mut holds_statements = false;
        let mut comma = None;
        let mut at = open + 1;
        let mut semicolon = false;
        while at <= close {
            match self.kind(at) {
                Kind::Punct(b'(' | b'[' | b'{') => at = self.pair(at)?,
                Kind::Punct(b';') => semicolon = true,
                Kind::Punct(b',' | b')') => {
                    if let Some(comma) = comma {
                        let own = self.is(comma + 1, b'(') && self.pair(comma + 1) == at.checked_sub(1);
                        let inner = if own { (comma + 1, at - 1) } else { (comma, at) };
                        semicolon |= own && self.has_semicolon(comma + 2, at - 1);
                        holds_statements |= semicolon;
                        found.push(inner);
                    }
                    semicolon = false;
                    comma = Some(at);
                }
                _ => {}
            }
            at += 1;
        }
        // Two bare arguments would share the comma between them.
        let apart = found.windows(2).all(|pair| matches!(pair, [left, right] if left.1 < right.0));
        (holds_statements && apart && found.len() <= 2).then_some(found)
    }

    fn has_semicolon(&self, from: usize, to: usize) -> bool {
        let mut at = from;
        let mut last = Kind::End;
        while at < to {
            last = self.kind(at);
            match last {
                Kind::Punct(b';') => return true,
                Kind::Punct(b'(' | b'[' | b'{') => {
                    let Some(end) = self.pair(at) else { return false };
                    at = end;
                    last = self.kind(at);
                }
                _ => {}
            }
            at += 1;
        }
        let begins = matches!(self.kind(from), Kind::Punct(b'{') | Kind::Word(Word::Statement | Word::Do));
        begins && last == Kind::Punct(b'}')
    }

    /// Makes the bracket or comma at `at` a brace.
    fn brace(&mut self, at: usize, brace: u8) {
        let Some(token) = self.tokens.get_mut(at) else { return };
        token.kind = Kind::Punct(brace);
        let start = token.start;
        self.write(start, if brace == b'{' { "{" } else { "}" });
    }

    /// Writes the pieces one after the other into blanked bytes, each whole on one line; false where they do not fit.
    fn place(&mut self, span: std::ops::Range<u32>, pieces: &[&str]) -> bool {
        let mut at = span.start;
        let mut placed = Vec::new();
        for piece in pieces {
            let length = piece.len() as u32;
            loop {
                if at + length > span.end {
                    return false;
                }
                let room = self.out.get(at as usize..(at + length) as usize).unwrap_or_default();
                match room.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')) {
                    Some(line_end) => at += line_end as u32 + 1,
                    None => break,
                }
            }
            placed.push((at, *piece));
            at += length;
        }
        for (at, piece) in placed {
            self.write(at, piece);
        }
        true
    }

    /// A macro such as `UNROLL` before a loop: a `;` in its place could end an outer loop's body.
    fn precedes_loop(&self, at: usize, after: usize, last: Kind) -> bool {
        let name = self.text(at);
        let governed = matches!(last, Kind::Punct(b')') | Kind::Word(Word::Else));
        let is_pragma = name.contains("UNROLL") || name.contains("PRAGMA");
        let is_loop = matches!(self.text(after), "for" | "while") || self.is_word(after, Word::Do);
        is_loop && (is_pragma || (governed && self.visible.get(name).is_none()))
    }

    fn is_arrow(&self, at: usize) -> bool {
        self.is(at, b'-') && self.is(at + 1, b'>')
    }

    /// A name such as `LIB_HOST_DEVICE`: it is no return type, although it stands where one might.
    fn is_hinted(&self, at: usize) -> bool {
        let name = self.text(at);
        ["DEVICE", "HOST", "INLINE", "API", "EXPORT", "NODISCARD", "DEPRECATED", "ATTR", "VISIB", "FUNC"]
            .iter()
            .any(|hint| name.contains(hint))
    }

    /// The token can only begin a new statement, or ends the block.
    fn begins_statement(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Punct(b'}') => true,
            Kind::End => at >= self.tokens.len(),
            Kind::Word(Word::Trailer) => false,
            Kind::Word(Word::Operator | Word::Const) => self.is_first(at),
            Kind::Word(_) => true,
            Kind::Punct(b'+' | b'-') => {
                self.is_first(at) && self.kind(at) == self.kind(at + 1) && self.is_name(at + 2)
            }
            _ => false,
        }
    }

    /// Ends the macro call at `at` as a statement: with a `;` behind it where there is room, else in its place.
    fn end_statement(&mut self, at: usize, close: usize) -> usize {
        self.record_statement(at, Some(close), false);
        let span = self.bytes(at, close);
        if matches!(self.out.get(span.end as usize), Some(b' ' | b'\t')) {
            self.write(span.end, ";");
            return close + 1;
        }
        // The arguments stay where they hold a launch: `(`…`)` becomes ` …;`.
        let launches =
            (at..close).any(|at| self.is(at, b'<') && self.is(at + 1, b'<') && self.is(at + 2, b'<'));
        if launches {
            self.drop(at, at + 1);
            self.drop(close, close);
            self.write(span.end - 1, ";");
        } else {
            self.drop(at, close);
            self.write(span.start, ";");
        }
        close + 1
    }

    /// `DEFINE_OP(add, float)` at file or class scope, without `;`.
    fn is_bare_declaration(&self, at: usize, after: usize, is_macro: bool) -> bool {
        match self.kind(after) {
            Kind::End => after >= self.tokens.len() && is_macro,
            Kind::Punct(b'}' | b'[' | b'~') => is_macro,
            Kind::Word(Word::Const) => is_macro && self.is_first(after),
            Kind::Word(Word::Trailer | Word::Operator) => false,
            Kind::Word(Word::Caps) => is_macro && (self.is_first(after) || !self.is(after + 1, b'{')),
            Kind::Word(_) if is_macro => true,
            Kind::Word(
                Word::Template
                | Word::Namespace
                | Word::Class
                | Word::Global
                | Word::Function
                | Word::Specifier
                | Word::Void
                | Word::Declaration,
            ) => self.is_first(at) && self.is_first(after) && self.scope(at) == Scope::File,
            _ => false,
        }
    }

    /// `MY_ALIGN(16)` within a declaration.
    fn is_attribute_call(&self, at: usize, after: usize, last: Kind, outer: bool) -> bool {
        let named = matches!(
            self.kind(after),
            Kind::Word(
                Word::Plain
                    | Word::Caps
                    | Word::Type
                    | Word::Void
                    | Word::Function
                    | Word::Space
                    | Word::Specifier
            )
        );
        match last {
            Kind::Word(Word::Class) => named,
            Kind::Word(
                Word::Space | Word::Specifier | Word::Function | Word::Type | Word::Void | Word::Const,
            ) => named,
            // `using X DEPRECATED("…") = …`
            Kind::Word(Word::Plain | Word::Caps) => {
                self.is_word(at, Word::Caps) && (named || (outer && self.is(after, b'=')))
            }
            Kind::Punct(b'>') => named && outer,
            Kind::Punct(b']') => self.is_word(at, Word::Caps) && self.is(after, b';'),
            Kind::Punct(b')') | Kind::Word(Word::Trailer) => {
                outer && matches!(self.kind(after), Kind::Punct(b'{' | b';'))
            }
            _ => false,
        }
    }

    /// A word without parentheses.
    fn bare(&mut self, at: usize, last: Kind, before: Option<usize>) -> usize {
        let class = self.class(at);
        if !self.is_word(at, Word::Caps) && !matches!(class, Some(Class::Statement | Class::Loop)) {
            return at + 1;
        }
        let scope = self.scope(at);
        let start = self.is_start(at, last);
        if scope == Scope::Body && start {
            if self.may_blank(at) && self.precedes_loop(at, at + 1, last) {
                self.drop(at, at);
                return at + 1;
            }
            if class != Some(Class::Type) && self.is_bare_statement(at) {
                self.record_statement(at, None, false);
                let range = self.bytes(at, at);
                self.drop(at, at);
                self.write(range.start, ";");
                return at + 1;
            }
            if self.is(at + 1, b'{') && class == Some(Class::Loop) {
                let (name, span) = (self.text(at).to_owned(), self.bytes(at, at));
                self.drop(at, at);
                self.place(span.clone(), &["for", "(", ";", ";", ")"]);
                let kind = HeadKind::Loop;
                self.loop_macros.push(LoopMacro { name, args: Vec::new(), span, kind });
                return at + 1;
            }
        }
        if !self.may_blank(at) {
            return at + 1;
        }
        let outer = matches!(scope, Scope::File | Scope::Class);
        if self.is_attribute_word(at, last, before, outer, start) {
            if outer && start && self.is_first(at) && self.is_first(at + 1) {
                self.record_statement(at, None, true);
            }
            self.drop(at, at);
        }
        at + 1
    }

    /// `OP10` alone on its line, or `OP10 OP10 OP5`.
    fn is_bare_statement(&self, at: usize) -> bool {
        let mut next = at + 1;
        while self.is_word(next, Word::Caps) && !self.is_first(next) && next < at + 64 {
            next += 1;
        }
        let ends = match self.kind(next) {
            Kind::End => next >= self.tokens.len(),
            Kind::Punct(b'}') => true,
            Kind::Punct(b'+' | b'-') => self.begins_statement(next),
            Kind::Word(Word::Trailer) => false,
            Kind::Word(_) => self.is_first(next),
            _ => false,
        };
        // The specifier or type of a declaration that goes on in the next line is no statement.
        let declares = next == at + 1
            && self.class(at) != Some(Class::Statement)
            && matches!(self.kind(next), Kind::Word(Word::Plain))
            && (self.is_name(next + 1) || self.is(next + 1, b';') || self.is(next + 1, b'['));
        ends && !declares
    }

    /// A macro in the place of a specifier or attribute.
    fn is_attribute_word(
        &self,
        at: usize,
        last: Kind,
        before: Option<usize>,
        outer: bool,
        start: bool,
    ) -> bool {
        let next = self.kind(at + 1);
        let in_declaration = match last {
            Kind::Punct(b'>') | Kind::Word(Word::Specifier | Word::Function | Word::Space | Word::Global) => {
                true
            }
            // After `[[nodiscard]]`.
            Kind::Punct(b']') => outer,
            _ => false,
        };
        match last {
            Kind::Word(Word::Class) => {
                let named = self.is_name(at + 1);
                let then = self.kind(at + 2);
                let ends =
                    matches!(then, Kind::Punct(b'{' | b':' | b'<' | b';')) || self.text(at + 2) == "final";
                return named && ends;
            }
            Kind::Punct(b')') | Kind::Word(Word::Trailer) if outer => {
                return matches!(next, Kind::Punct(b'{' | b';' | b':'));
            }
            Kind::Word(Word::Type | Word::Void) => return self.is_name(at + 1),
            Kind::Word(Word::Declaration) => return self.is_name(at + 1) && self.is_type(at + 1),
            // `= PREFIX cub::f()`: two names side by side are no expression.
            Kind::Punct(_) | Kind::Word(Word::Statement)
                if !outer && self.is_name(at + 1) && self.is_scope_operator(at + 2) =>
            {
                return true;
            }
            Kind::Punct(b'*' | b'&') | Kind::Word(Word::Plain | Word::Caps) => {
                let operand = before.is_some_and(|before| outer || self.is_declarator(before));
                return operand && self.is_name(at + 1) && self.is(at + 2, b'(');
            }
            _ => {}
        }
        if !start && !in_declaration {
            return false;
        }
        match next {
            Kind::Word(Word::Statement | Word::Do) => start && self.scope(at) == Scope::Body,
            Kind::Word(
                Word::Type
                | Word::Void
                | Word::Template
                | Word::Class
                | Word::Enum
                | Word::Typename
                | Word::Declaration
                | Word::Namespace
                | Word::Space,
            ) => true,
            Kind::Word(Word::Specifier | Word::Function | Word::Global | Word::Const) => {
                self.has_type(at + 1) || (outer && self.is_hinted(at))
            }
            Kind::Word(Word::Plain | Word::Caps) => self.has_type(at + 1) || (outer && self.is_hinted(at)),
            Kind::Word(Word::Operator) | Kind::Punct(b'~') => outer && self.is_hinted(at),
            Kind::Punct(b'[') => outer && self.is(at + 2, b'['),
            Kind::Punct(b'}') => outer && self.is_first(at),
            Kind::End => outer && at + 1 >= self.tokens.len(),
            _ => false,
        }
    }

    /// The `*` at `at` belongs to a declaration, as in `float* MACRO f(`.
    fn is_declarator(&self, at: usize) -> bool {
        at.checked_sub(1)
            .is_some_and(|before| matches!(self.kind(before), Kind::Word(Word::Type | Word::Void)))
    }

    /// After specifiers and other macros comes a type, so that what stands before them is none.
    fn has_type(&self, from: usize) -> bool {
        for at in from..from + 16 {
            match self.kind(at) {
                Kind::Word(Word::Specifier | Word::Function | Word::Global | Word::Const) => {}
                Kind::Word(Word::Caps) if !self.is_type(at) => {}
                Kind::Word(Word::Plain | Word::Caps) => return self.is_type(at),
                Kind::Word(Word::Statement | Word::Operator | Word::Trailer) => return false,
                Kind::Word(_) => return true,
                _ => return false,
            }
        }
        false
    }

    /// The name at `at` is a type, because the name of what it declares follows.
    fn is_type(&self, at: usize) -> bool {
        let mut at = at;
        loop {
            at += 1;
            if self.is(at, b'<') {
                match self.angle_end(at) {
                    Some(after) => at = after,
                    None => return false,
                }
            }
            if !self.is_scope_operator(at) {
                break;
            }
            at += 2;
            if !self.is_name(at) && !self.is_word(at, Word::Template) {
                return self.is_word(at, Word::Operator);
            }
        }
        while let Kind::Punct(b'*' | b'&') | Kind::Word(Word::Const | Word::Restrict) = self.kind(at) {
            at += 1;
        }
        matches!(
            self.kind(at),
            Kind::Word(Word::Plain | Word::Caps | Word::Operator | Word::Function | Word::Specifier)
        )
    }

    /// Overwrites types among the arguments of calls: `SWAP(int, a, b)` becomes `SWAP(T__, a, b)`.
    pub(super) fn type_arguments(&mut self) {
        let mut open: Vec<Frame> = Vec::new();
        let mut edits = Vec::new();
        for at in 0..self.tokens.len() {
            let kind = self.kind(at);
            match kind {
                Kind::Punct(b'(' | b'[' | b'{') => {
                    if let Some(frame) = open.last_mut() {
                        frame.argument.is_type = false;
                    }
                    open.push(Frame {
                        is_call: kind == Kind::Punct(b'(') && self.is_call(at),
                        argument: Argument::new(at + 1),
                    });
                }
                Kind::Punct(b')' | b']' | b'}') => {
                    if let Some(frame) = open.pop()
                        && frame.is_call
                        && kind == Kind::Punct(b')')
                    {
                        edits.extend(frame.argument.finish(at));
                    }
                }
                Kind::Punct(b';') => {
                    if let Some(frame) = open.last_mut() {
                        frame.is_call = false;
                    }
                }
                Kind::Punct(b',') => {
                    if let Some(frame) = open.last_mut() {
                        let angle = frame.argument.angles > 0 && frame.argument.is_type;
                        if !angle {
                            edits.extend(frame.argument.finish(at).filter(|_| frame.is_call));
                            frame.argument = Argument::new(at + 1);
                        }
                    }
                }
                _ => {
                    if let Some(frame) = open.last_mut() {
                        frame.argument.take(kind);
                    }
                }
            }
        }
        for (from, to) in edits {
            self.overwrite_type(from, to);
        }
        self.compact();
    }

    fn overwrite_type(&mut self, from: usize, to: usize) {
        let range = self.bytes(from, from);
        if to > from + 1 {
            self.drop(from + 1, to - 1);
        }
        let word: String = "T".chars().chain("_".repeat(range.len().saturating_sub(1)).chars()).collect();
        self.write(range.start, &word);
    }

    /// The `(` at `open` begins the arguments of a call or macro, not parameters or the operand of `sizeof`.
    fn is_call(&self, open: usize) -> bool {
        let Some(name) = open.checked_sub(1).filter(|&name| self.is_name(name)) else { return false };
        let is_macro = self.is_word(name, Word::Caps) || self.class(name).is_some();
        let Some(before) = name.checked_sub(1) else { return is_macro };
        match self.kind(before) {
            Kind::Word(Word::Statement | Word::Else | Word::Do) => true,
            Kind::Word(Word::Operator | Word::Class | Word::Typename) => false,
            Kind::Word(_) => false,
            Kind::Punct(b';' | b'{' | b'}') => is_macro || self.scope(name) == Scope::Body,
            Kind::Punct(b'*' | b'&' | b'>' | b'~') => false,
            Kind::Punct(b':') => is_macro,
            Kind::Punct(_) => true,
            Kind::Number | Kind::Literal | Kind::Directive | Kind::End => false,
        }
    }
}

struct Frame {
    is_call: bool,
    argument: Argument,
}

/// What is known of the argument being read.
struct Argument {
    from: usize,
    /// Only tokens that a type may hold so far.
    is_type: bool,
    /// A built-in type is among them.
    builtin: bool,
    names: u32,
    angles: i32,
    last: Kind,
}

impl Argument {
    fn new(from: usize) -> Argument {
        Argument { from, is_type: true, builtin: false, names: 0, angles: 0, last: Kind::End }
    }

    fn take(&mut self, kind: Kind) {
        match kind {
            Kind::Word(Word::Type | Word::Void) => self.builtin = true,
            Kind::Word(Word::Const | Word::Class | Word::Typename) => {}
            // A name after a built-in type would be a parameter.
            Kind::Word(Word::Plain | Word::Caps) => {
                let continues = matches!(self.last, Kind::Word(Word::Plain | Word::Caps));
                let declares = self.builtin && self.angles == 0;
                let after_star = matches!(self.last, Kind::Punct(b'*' | b'&'));
                self.is_type &= !continues && !declares && !after_star;
                self.names += 1;
            }
            Kind::Punct(b'<') => self.angles += 1,
            Kind::Punct(b'>') => self.angles -= 1,
            Kind::Punct(b'*' | b'&') => self.is_type &= self.last != Kind::End,
            Kind::Punct(b':') => {}
            Kind::Number => self.is_type &= self.angles > 0,
            _ => self.is_type = false,
        }
        self.last = kind;
    }

    /// The token range to overwrite, where the argument `from..end` is a type.
    fn finish(&self, end: usize) -> Option<(usize, usize)> {
        let pointer = matches!(self.last, Kind::Punct(b'*' | b'&'));
        // `launch(kernel<float>, n)`: an instance of a template parses, and may be a function.
        let instance = self.last == Kind::Punct(b'>');
        let is_type =
            self.is_type && self.angles == 0 && self.from < end && (self.builtin || pointer) && !instance;
        is_type.then_some((self.from, end))
    }
}
