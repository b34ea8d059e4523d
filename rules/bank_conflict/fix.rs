//! The edits, where the source shows that no access depends on the layout.

use cudalint::ir::facts::AccessFact;
use cudalint::lint::finding::{Applicability, Fix};
use cudalint::lint::rule::Context;
use cudalint::memory::layout::{Layout, Swizzle};
use cudalint::source::{Edit, Span};

use super::Evidence;
use super::remedy::{Better, Remedies, Remedy};

/// Bytes of static shared memory that a block may have.
const MOST_STATIC_BYTES: u64 = 48 * 1024;

/// A padded declaration or swizzled indices; `None` where the array is used in other ways than by all its indices.
pub fn fix(cx: &Context, remedies: &Remedies, evidence: &Evidence) -> Option<Fix> {
    let Remedy::Layout(better) = &evidence.remedy else { return None };
    let declaration = evidence.base.declaration?;
    let is_local = evidence.kernel.span.contains(declaration);
    if better.is_flat || !is_local || cx.sources.get(declaration.file).lossy {
        return None;
    }
    let uses = indexed_uses(cx, remedies, evidence, declaration)?;
    let array = &evidence.base.name;
    match better.layout {
        Layout::Plain => None,
        Layout::Pad { elements } if fits(evidence, better) => Some(Fix {
            title: format!("pad the rows of `{array}` by {elements}"),
            applicability: Applicability::Unsafe,
            edits: vec![padded(cx, declaration, array, better.extents.len(), elements)?],
        }),
        Layout::Pad { .. } => None,
        Layout::Swizzle(swizzle) => Some(Fix {
            title: format!("permute the rows of `{array}`"),
            applicability: Applicability::Unsafe,
            edits: uses.iter().map(|use_| swizzled(cx, &use_.indices, swizzle)).collect::<Option<_>>()?,
        }),
    }
}

/// Whether the padded array and the kernel's other static arrays stay within what a block may have.
fn fits(evidence: &Evidence, better: &Better) -> bool {
    let bytes = evidence.kernel.bases.iter().filter(|base| base.space == evidence.base.space).map(|base| {
        let elements = base.extents.iter().copied().fold(1, u64::saturating_mul);
        let size = base.element_bytes.and_then(|size| u64::try_from(size.0).ok()).unwrap_or(0);
        if base.extents.is_empty() { 0 } else { elements.saturating_mul(size) }
    });
    bytes.fold(better.extra_bytes, u64::saturating_add) <= MOST_STATIC_BYTES
}

/// `[32]` becomes `[32 + 1]`.
fn padded(cx: &Context, declaration: Span, array: &str, dimensions: usize, elements: u64) -> Option<Edit> {
    let text = cx.sources.text(declaration);
    let rest = text.strip_prefix(array)?;
    let mut brackets = brackets(rest);
    if brackets.len() != dimensions {
        return None;
    }
    let (start, end) = brackets.pop()?;
    let extent = rest.get(start..end)?;
    let at = declaration.start as usize + array.len();
    let replacement = format!("{} + {elements}", operand(extent));
    Some(Edit { span: Span::new(declaration.file, at + start, at + end), replacement })
}

/// `[r][c]` becomes `[r][c ^ (r & 31)]`.
fn swizzled(cx: &Context, indices: &[Span], swizzle: Swizzle) -> Option<Edit> {
    let row = cx.sources.text(*indices.get(swizzle.dimension)?).trim();
    let span = *indices.last()?;
    let column = cx.sources.text(span);
    if [row, column]
        .iter()
        .any(|text| text.contains(['=', '(', '"']) || text.contains("++") || text.contains("--"))
    {
        return None;
    }
    let row = match swizzle.shift {
        0 => operand(row),
        shift => format!("({} >> {shift})", operand(row)),
    };
    let turned = format!("({row} & {})", swizzle.mask);
    let turned = if swizzle.unit > 1 { format!("({turned} * {})", swizzle.unit) } else { turned };
    Some(Edit { span, replacement: format!("{} ^ {turned}", operand(column)) })
}

/// An operand of any operator: in parentheses unless it is one name or number.
fn operand(text: &str) -> String {
    let text = text.trim();
    let is_single = text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    if is_single { text.to_owned() } else { format!("({text})") }
}

/// The array's name with all its indices: `tile[r][c]`.
struct Use {
    span: Span,
    /// The insides of the brackets.
    indices: Vec<Span>,
}

/// Every use of the array's name in its kernel; `None` if one of them is not an access by all indices, or if an access
/// is made in another way, such as through a macro.
fn indexed_uses(
    cx: &Context,
    remedies: &Remedies,
    evidence: &Evidence,
    declaration: Span,
) -> Option<Vec<Use>> {
    let (array, kernel) = (&evidence.base.name, evidence.kernel);
    let text = cx.sources.text(kernel.span);
    let accesses = remedies.accesses_to(kernel, evidence.base);
    let mut uses = Vec::new();
    for at in names(text, array) {
        let start = kernel.span.start as usize + at;
        let name = Span::new(kernel.span.file, start, start + array.len());
        if declaration.contains(name) {
            continue;
        }
        let use_ = use_at(name, text.get(at + array.len()..)?)?;
        let is_access = accesses.iter().any(|(_, fact)| {
            fact.span.contains(use_.span)
                && (fact.span.start == name.start || is_atomic(cx, Span { end: name.start, ..fact.span }))
        });
        let is_whole = use_.indices.len() == evidence.base.extents.len();
        if !is_access || !is_whole || !within_rows(cx, evidence, &use_.indices) {
            return None;
        }
        uses.push(use_);
    }
    let is_seen = |fact: &AccessFact| uses.iter().any(|use_| fact.span.contains(use_.span));
    accesses.iter().all(|(_, fact)| is_seen(fact)).then_some(uses)
}

/// A name with the brackets that follow it.
fn use_at(name: Span, rest: &str) -> Option<Use> {
    let brackets = brackets(rest);
    let at = |offset: usize| name.end as usize + offset;
    let (_, end) = *brackets.last()?;
    Some(Use {
        span: Span::new(name.file, name.start as usize, at(end + 1)),
        indices: brackets.iter().map(|&(from, to)| Span::new(name.file, at(from), at(to))).collect(),
    })
}

/// `atomicAdd(&` before the name.
fn is_atomic(cx: &Context, lead: Span) -> bool {
    let lead = cx.sources.text(lead).trim_end();
    let name = lead.strip_suffix('&').map(str::trim_end).and_then(|lead| lead.strip_suffix('('));
    name.is_some_and(|name| {
        name.starts_with("atomic") && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    })
}

/// Not `tile[0][i]` over all rows: rows whose index is a number are left alone.
fn within_rows(cx: &Context, evidence: &Evidence, indices: &[Span]) -> bool {
    let (_, outer) = match indices.split_last() {
        Some(split) => split,
        None => return false,
    };
    let is_number = |span: &Span| cx.sources.text(*span).trim().parse::<u64>().is_ok();
    evidence.base.extents.first() == Some(&1) || !outer.iter().all(is_number)
}

/// Where `name` stands in a text as a word, outside comments.
fn names(text: &str, name: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let comments = comments(text);
    text.match_indices(name)
        .map(|(at, _)| at)
        .filter(|&at| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at + name.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_word)
                && !after.is_some_and(is_word)
                && !comments.iter().any(|&(start, end)| (start..end).contains(&at))
        })
        .collect()
}

fn comments(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find('/')).map(|place| at + place) {
        let rest = text.get(next..).unwrap_or("");
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            at = next + 1;
            continue;
        };
        found.push((next, next + length));
        at = next + length;
    }
    found
}

/// The insides of the brackets that a text begins with: `[a][b + 1].x` gives `a` and `b + 1`.
fn brackets(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '[' => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            ']' if depth == 1 => {
                depth = 0;
                found.push((start, at));
            }
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 && !c.is_whitespace() => break,
            _ => {}
        }
    }
    found
}
