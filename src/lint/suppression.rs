//! Comments that silence findings.
//!
//! ```cuda
//! x = in[i * 32];        // cudalint: allow(uncoalesced-access) read once
//! // cudalint: allow(uncoalesced-access, bank-conflict) holds for the next statement
//! // cudalint: allow-begin(bank) … // cudalint: allow-end(bank)
//! // cudalint: allow-file(all)
//! ```
//!
//! `NOLINT(cudalint-RULE)`, `NOLINTNEXTLINE(…)`, `NOLINTBEGIN(…)` and `NOLINTEND(…)` are read the same way. Of the
//! comments that cover a finding, the one that covers the fewest lines silences it; one that silences nothing is a
//! finding itself.

use std::ops::Range;

use super::super::ir::ast::Gap;
use super::super::source::{Edit, FileId, SourceFile, Sources, Span};
use super::finding::{Applicability, Finding, Fix, Level, Numbers, RuleInfo};
use super::selection::{Selector, UNUSED_ALLOW, UnknownRule, closest};

mod comments;

use comments::{Comment, comments};

/// A statement after an allow comment is covered up to this many lines.
const STATEMENT_LINES: u32 = 20;

/// One comment that silences.
#[derive(Clone, Debug)]
pub struct Allow {
    /// The whole comment; also the closing one of a block.
    comments: Vec<Comment>,
    words: Vec<Word>,
    /// 1-based, inclusive.
    first_line: u32,
    last_line: u32,
    pub reason: String,
    /// Nothing but this directive stands in its comments, so that they can be removed whole.
    alone: bool,
    /// A block that nothing closes.
    open: bool,
}

#[derive(Clone, Debug)]
struct Word {
    /// With the separator that goes with it.
    range: Range<usize>,
    text: String,
    selector: Result<Selector, UnknownRule>,
    used: bool,
}

/// A comment to us that says nothing we know.
struct Mistake {
    comment: Comment,
    message: String,
    help: String,
}

/// What the comments of a file made of its findings.
#[derive(Debug, Default)]
pub struct Applied {
    pub kept: Vec<Finding>,
    /// With the reason written in the comment; may be empty.
    pub suppressed: Vec<(Finding, String)>,
    /// About comments that silence nothing.
    pub unused: Vec<Finding>,
}

/// Silences the findings of one file. `ran` tells which rules ran on it. Where something was not understood, nobody
/// can tell that a comment silences nothing.
pub fn apply(
    sources: &Sources,
    file: FileId,
    findings: Vec<Finding>,
    gaps: &[Gap],
    rules: &[&'static RuleInfo],
    ran: &dyn Fn(&str) -> bool,
) -> Applied {
    let source = sources.get(file);
    let mut applied = Applied::default();
    let named = |name: &str| memchr::memmem::find(source.text.as_bytes(), name.as_bytes()).is_some();
    if !["cudalint", "CUDALINT", "Cudalint"].into_iter().any(named) {
        applied.kept = findings;
        return applied;
    }
    let (mut allows, mistakes) = parse(source, rules);
    for finding in findings {
        match silence(&mut allows, source, &finding) {
            Some(reason) => applied.suppressed.push((finding, reason)),
            None => applied.kept.push(finding),
        }
    }
    let asked_not_to = allows.iter().any(|allow| allow.names(&UNUSED_ALLOW));
    if ran(UNUSED_ALLOW.name) && !asked_not_to {
        let understood =
            |allow: &&Allow| !gaps.iter().any(|gap| gap.span.file == file && allow.meets(source, gap));
        let unused =
            allows.iter().filter(understood).filter_map(|allow| unused(source, file, allow, rules, ran));
        applied.unused = unused.collect();
        applied.unused.extend(mistakes.into_iter().map(|mistake| mistaken(source, file, mistake)));
    }
    applied
}

/// The reason of the narrowest comment that covers the finding.
fn silence(allows: &mut [Allow], source: &SourceFile, finding: &Finding) -> Option<String> {
    let line = source.line(finding.span.start);
    let covers = |allow: &&mut Allow| {
        (allow.first_line..=allow.last_line).contains(&line) && allow.names(finding.rule)
    };
    let narrowest =
        allows.iter_mut().filter(covers).min_by_key(|allow| allow.last_line - allow.first_line)?;
    for word in &mut narrowest.words {
        word.used |= word.names(finding.rule);
    }
    Some(narrowest.reason.clone())
}

impl Allow {
    fn meets(&self, source: &SourceFile, gap: &Gap) -> bool {
        source.line(gap.span.start) <= self.last_line && self.first_line <= source.line(gap.span.end)
    }

    fn names(&self, rule: &RuleInfo) -> bool {
        self.words.iter().any(|word| word.names(rule))
    }
}

impl Word {
    fn names(&self, rule: &RuleInfo) -> bool {
        match &self.selector {
            Ok(Selector::All) => rule.name != UNUSED_ALLOW.name,
            Ok(Selector::Category(category)) => rule.category.to_string() == *category,
            Ok(Selector::Rule(name)) => rule.name == *name,
            Err(_) => false,
        }
    }

    /// Whether silence here means that nothing is found: the rules it names ran.
    fn judged(&self, rules: &[&'static RuleInfo], ran: &dyn Fn(&str) -> bool) -> bool {
        let named = rules.iter().filter(|rule| self.names(rule));
        let wide = !matches!(self.selector, Ok(Selector::Rule(_)));
        let mut named = named.filter(|rule| !wide || rule.default_level != Level::Off);
        named.all(|rule| ran(rule.name))
    }
}

/// All directives of a file, in order, blocks paired; and what was meant as one.
fn parse(source: &SourceFile, rules: &[&'static RuleInfo]) -> (Vec<Allow>, Vec<Mistake>) {
    let text = source.text.as_str();
    let comments = comments(text);
    let lines = Lines { source, comments: &comments };
    let mut allows: Vec<Allow> = Vec::new();
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let last_line = source.line(text.len() as u32);
    for comment in &comments {
        let Some(directive) = directive(text, comment) else {
            mistakes.extend(unknown_verb(text, comment));
            continue;
        };
        if directive.list.is_empty() && directive.verb != Verb::End {
            let (message, help) = ("this comment names no rule", "write `allow(rule)`, or `allow(all)`");
            mistakes.push(Mistake { comment: comment.clone(), message: message.into(), help: help.into() });
            continue;
        }
        let line = source.line(comment.range.start as u32);
        let (first_line, last_line) = match directive.verb {
            Verb::Line => (line, line),
            Verb::NextLine => (line + 1, line + 1),
            Verb::Allow if comment.own_line => lines.next_statement(comment),
            Verb::Allow => (line, source.line(comment.range.end as u32)),
            Verb::Begin => (line, last_line),
            Verb::File => (1, last_line),
            Verb::End => {
                if !close(&mut allows, &mut open, &directive, comment, line) {
                    let message = "no open block with these words stands before this end".to_owned();
                    let help = "write the words of its `allow-begin`, or none".to_owned();
                    mistakes.push(Mistake { comment: comment.clone(), message, help });
                }
                continue;
            }
        };
        if directive.verb == Verb::Begin {
            open.push(allows.len());
        }
        allows.push(Allow {
            comments: vec![comment.clone()],
            words: directive.words(text, rules),
            first_line,
            last_line,
            open: directive.verb == Verb::Begin,
            reason: directive.reason,
            alone: directive.alone,
        });
    }
    (allows, mistakes)
}

/// Ends the innermost open block with the same words; `false` where there is none.
fn close(allows: &mut [Allow], open: &mut Vec<usize>, end: &Directive, comment: &Comment, line: u32) -> bool {
    let names = |at: &usize| {
        let words = allows.get(*at).map(|allow| allow.words.iter().map(|word| word.text.as_str()));
        words.is_some_and(|words| {
            end.list.is_empty() || words.eq(end.list.iter().map(|(word, _)| word.as_str()))
        })
    };
    let Some(found) = open.iter().rposition(names) else { return false };
    let at = open.remove(found);
    if let Some(allow) = allows.get_mut(at) {
        allow.last_line = line;
        allow.open = false;
        allow.alone &= end.alone;
        allow.comments.push(comment.clone());
    }
    true
}

struct Lines<'a> {
    source: &'a SourceFile,
    comments: &'a [Comment],
}

impl Lines<'_> {
    /// The lines of the statement after a comment on a line of its own.
    fn next_statement(&self, comment: &Comment) -> (u32, u32) {
        let text = self.source.text.as_str();
        let (mut first, mut depth) = (None, 0i32);
        let from = comment.range.end;
        let mut skipped = self.comments.iter().filter(|other| other.range.start >= from).peekable();
        let mut at = from;
        while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
            if let Some(other) = skipped.next_if(|other| other.range.start <= at) {
                at = other.range.end.max(at);
                continue;
            }
            let line = self.source.line(at as u32);
            if first.is_some_and(|first| line >= first + STATEMENT_LINES) {
                break;
            }
            if first.is_none() && text.get(at..).is_some_and(|rest| rest.starts_with("#pragma")) {
                at = self.source.line_range(line).end;
                continue;
            }
            match c {
                c if c.is_whitespace() => {}
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                ';' | '{' | '}' if depth <= 0 => return (first.unwrap_or(line), line),
                _ => {}
            }
            if !c.is_whitespace() {
                first = first.or(Some(line));
            }
            at += c.len_utf8();
        }
        let first = first.unwrap_or_else(|| self.source.line(from as u32) + 1);
        (first, first)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    /// This line or, alone on a line, the next statement.
    Allow,
    Begin,
    End,
    File,
    /// `NOLINT`.
    Line,
    /// `NOLINTNEXTLINE`.
    NextLine,
}

#[derive(Debug)]
struct Directive {
    verb: Verb,
    /// Rule words with their places.
    list: Vec<(String, Range<usize>)>,
    reason: String,
    alone: bool,
}

impl Directive {
    fn words(&self, text: &str, rules: &[&'static RuleInfo]) -> Vec<Word> {
        let last = self.list.len() - usize::from(!self.list.is_empty());
        let word = |(at, (word, range)): (usize, &(String, Range<usize>))| {
            let selector = match word.as_str() {
                "*" => Ok(Selector::All),
                word => Selector::parse(word, rules),
            };
            let range = with_separator(text, range, at == last && at > 0);
            Word { range, text: word.clone(), selector, used: false }
        };
        self.list.iter().enumerate().map(word).collect()
    }
}

/// A word with the comma that would be left over without it.
fn with_separator(text: &str, word: &Range<usize>, last: bool) -> Range<usize> {
    if last {
        let before = text.get(..word.start).unwrap_or_default();
        return before.trim_end().trim_end_matches(',').len()..word.end;
    }
    let after = text.get(word.end..).unwrap_or_default();
    let rest = after.trim_start();
    match rest.strip_prefix(',') {
        Some(rest) => word.start..text.len() - rest.trim_start().len(),
        None => word.clone(),
    }
}

const VERBS: [(&str, Verb); 4] = [
    ("allow-begin", Verb::Begin),
    ("allow-end", Verb::End),
    ("allow-file", Verb::File),
    ("allow", Verb::Allow),
];

const NOLINT: [(&str, Verb); 4] = [
    ("NOLINTNEXTLINE", Verb::NextLine),
    ("NOLINTBEGIN", Verb::Begin),
    ("NOLINTEND", Verb::End),
    ("NOLINT", Verb::Line),
];

/// What a comment tells us, if anything.
fn directive(text: &str, comment: &Comment) -> Option<Directive> {
    let body = comment.body(text);
    let inside = text.get(body.clone())?;
    own_directive(inside, body.start).or_else(|| nolint_directive(inside, body.start))
}

/// `cudalint: allow(a, b) reason`, at the start of the comment or after another `//` in it.
fn own_directive(inside: &str, offset: usize) -> Option<Directive> {
    let Addressed { before, written, verb_at, after } = addressed(inside)?;
    let verb = VERBS.iter().find(|(name, _)| *name == written);
    let meant =
        || VERBS.iter().find(|(name, _)| closest(written, [*name]).is_some() && written.starts_with('a'));
    let (_, verb) = verb.or_else(meant)?;
    let (list, rest) = word_list(after, offset + verb_at + written.len(), "");
    let reason = rest.trim().trim_start_matches([':', '-']).trim().to_owned();
    Some(Directive { verb: *verb, list, reason, alone: before.is_empty() })
}

/// The parts of a comment to us.
struct Addressed<'a> {
    before: &'a str,
    /// The first word after `cudalint:`, and its place.
    written: &'a str,
    verb_at: usize,
    after: &'a str,
}

fn addressed(inside: &str) -> Option<Addressed<'_>> {
    const NAME: &str = "cudalint:";
    let at = inside.as_bytes().windows(NAME.len()).position(|w| w.eq_ignore_ascii_case(NAME.as_bytes()))?;
    let before = inside.get(..at)?.trim_end();
    if !before.is_empty() && !before.ends_with("//") {
        return None;
    }
    let rest = inside.get(at + NAME.len()..)?;
    let verb_at = inside.len() - rest.trim_start().len();
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
    let (written, after) = rest.split_at_checked(end)?;
    Some(Addressed { before, written, verb_at, after })
}

/// A comment that starts with our name and goes on with no word of ours.
fn unknown_verb(text: &str, comment: &Comment) -> Option<Mistake> {
    let Addressed { written, .. } = addressed(text.get(comment.body(text))?)?;
    // `launch` is read with the kernel it stands at.
    if written == "launch" {
        return None;
    }
    let known = || VERBS.iter().map(|(name, _)| *name).chain(["launch"]);
    let lower = written.to_ascii_lowercase();
    // `begin-allow` for `allow-begin`.
    let turned = lower.split_once('-').map(|(a, b)| format!("{b}-{a}"));
    let meant = [Some(lower.as_str()), turned.as_deref()];
    let meant = meant.into_iter().flatten().find_map(|word| closest(word, known()));
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("one of {}", known().collect::<Vec<_>>().join(", ")),
    };
    Some(Mistake { comment: comment.clone(), message: format!("unknown comment word `{written}`"), help })
}

/// `NOLINT(cudalint-a, other-check)`, anywhere in the comment; other tools' words are left alone.
fn nolint_directive(inside: &str, offset: usize) -> Option<Directive> {
    let at = inside.find("NOLINT")?;
    let rest = inside.get(at..)?;
    let (name, verb) = NOLINT.iter().find(|(name, _)| rest.starts_with(&format!("{name}(")))?;
    let (list, after) = word_list(rest.get(name.len()..)?, offset + at + name.len(), "cudalint-");
    let written = rest.get(name.len()..)?.split(')').next()?.split(',').count();
    let alone = inside.get(..at)?.trim().is_empty() && written == list.len();
    let reason = after.trim().trim_start_matches([':', '-']).trim().to_owned();
    (!list.is_empty()).then_some(Directive { verb: *verb, list, reason, alone })
}

/// Words in parentheses that carry a prefix, without it, each with its place; and what follows.
fn word_list<'a>(text: &'a str, offset: usize, prefix: &str) -> (Vec<(String, Range<usize>)>, &'a str) {
    let Some(list) = text.trim_start().strip_prefix('(') else { return (Vec::new(), text) };
    let start = offset + text.len() - list.len();
    let (inside, rest) = list.split_once(')').unwrap_or((list, ""));
    let mut words = Vec::new();
    let mut at = start;
    for part in inside.split(',') {
        let word = part.trim();
        let word_at = at + part.len() - part.trim_start().len();
        if let Some(name) = word.strip_prefix(prefix).filter(|name| !name.is_empty()) {
            words.push((name.to_owned(), word_at..word_at + word.len()));
        }
        at += part.len() + 1;
    }
    (words, rest)
}

/// The finding about a comment, or about some of its words, that silences nothing.
fn unused(
    source: &SourceFile,
    file: FileId,
    allow: &Allow,
    rules: &[&'static RuleInfo],
    ran: &dyn Fn(&str) -> bool,
) -> Option<Finding> {
    let comment = allow.comments.first()?;
    let idle = |word: &&Word| !word.used && (word.selector.is_err() || word.judged(rules, ran));
    let idle: Vec<&Word> = allow.words.iter().filter(idle).collect();
    if idle.is_empty() && !allow.open {
        return None;
    }
    let names = idle.iter().map(|word| format!("`{}`", word.text)).collect::<Vec<_>>().join(", ");
    let unknown = idle.iter().find_map(|word| word.selector.as_ref().err());
    let (message, help) = match unknown {
        None if idle.is_empty() => ("this block of allow is never closed".to_owned(), None),
        None => (format!("allow of {names} silences nothing"), Some("remove it".to_owned())),
        Some(unknown) => {
            let meant = unknown.suggestion.as_ref().map(|meant| format!("did you mean `{meant}`?"));
            (unknown.to_string(), meant)
        }
    };
    let edits = if unknown.is_some() { Vec::new() } else { removal(source, file, allow, &idle) };
    let fix = (!edits.is_empty()).then(|| Fix {
        title: "remove what silences nothing".to_owned(),
        applicability: Applicability::Safe,
        edits,
    });
    Some(Finding {
        rule: &UNUSED_ALLOW,
        level: UNUSED_ALLOW.default_level,
        span: Span::new(file, comment.range.start, comment.range.end),
        label: if unknown.is_some() {
            "no such rule".to_owned()
        } else {
            "nothing to silence here".to_owned()
        },
        message,
        notes: Vec::new(),
        help,
        trail: Vec::new(),
        kernel: String::new(),
        access_text: source.text.get(comment.range.clone()).unwrap_or_default().to_owned(),
        numbers: Numbers::default(),
        fix,
    })
}

fn mistaken(source: &SourceFile, file: FileId, mistake: Mistake) -> Finding {
    let Mistake { comment, message, help } = mistake;
    Finding {
        rule: &UNUSED_ALLOW,
        level: UNUSED_ALLOW.default_level,
        span: Span::new(file, comment.range.start, comment.range.end),
        label: "silences nothing".to_owned(),
        message,
        notes: Vec::new(),
        help: Some(help),
        trail: Vec::new(),
        kernel: String::new(),
        access_text: source.text.get(comment.range.clone()).unwrap_or_default().to_owned(),
        numbers: Numbers::default(),
        fix: None,
    }
}

/// Edits that remove the idle words, and the whole comment where nothing else is in it.
fn removal(source: &SourceFile, file: FileId, allow: &Allow, idle: &[&Word]) -> Vec<Edit> {
    if idle.is_empty() || source.lossy {
        return Vec::new();
    }
    let edit = |range: Range<usize>| Edit {
        span: Span::new(file, range.start, range.end),
        replacement: String::new(),
    };
    if idle.len() < allow.words.len() {
        // Two words that go together could share a comma; one at a time is enough.
        return idle.first().map(|word| edit(word.range.clone())).into_iter().collect();
    }
    if !allow.alone {
        return Vec::new();
    }
    allow.comments.iter().map(|comment| edit(comment.with_surroundings(&source.text))).collect()
}

/// Edits that put an allow comment at each finding: on a line of its own before it or, inside a macro, behind it.
pub fn insertions(sources: &Sources, findings: &[Finding], reason: &str) -> Vec<Edit> {
    let mut places: Vec<(FileId, u32, &str)> = findings
        .iter()
        .filter(|finding| !sources.get(finding.span.file).lossy && finding.rule.name != UNUSED_ALLOW.name)
        .map(|finding| (finding.span.file, sources.line(finding.span), finding.rule.name))
        .collect();
    places.sort_unstable();
    places.dedup();
    let lines = places.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    let insert = |line: &[(FileId, u32, &str)]| {
        let (file, number, _) = line.first()?;
        let rules: Vec<&str> = line.iter().map(|(_, _, rule)| *rule).collect();
        Some(insertion(sources.get(*file), *file, *number, &rules.join(", "), reason))
    };
    lines.filter_map(insert).collect()
}

fn insertion(source: &SourceFile, file: FileId, line: u32, rules: &str, reason: &str) -> Edit {
    let range = source.line_range(line);
    let text = source.text.get(range.clone()).unwrap_or_default();
    let reason = if reason.is_empty() { String::new() } else { format!(" {reason}") };
    let before = source.text.get(source.line_range(line.saturating_sub(1))).unwrap_or_default();
    if line > 1 && before.ends_with('\\') {
        let at = range.start + text.trim_end_matches('\\').trim_end().len();
        let replacement = format!(" /* cudalint: allow({rules}){reason} */");
        return Edit { span: Span::new(file, at, at), replacement };
    }
    // A byte order mark stays first.
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let text = text.get(mark..).unwrap_or_default();
    let indent = text.get(..text.len() - text.trim_start().len()).unwrap_or_default();
    let replacement = format!("{indent}// cudalint: allow({rules}){reason}\n");
    let at = range.start + mark;
    Edit { span: Span::new(file, at, at), replacement }
}

#[cfg(test)]
mod tests;
