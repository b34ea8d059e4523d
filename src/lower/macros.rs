//! Macro expansion by text, as the preprocessor does it: arguments, rescanning, `#` and `##`, no self-reference.

use std::sync::Arc;

use crate::ir::ast::Name;

#[derive(Clone, Debug)]
pub struct MacroDef {
    pub name: Name,
    /// `None` for an object-like macro.
    pub params: Option<Vec<String>>,
    pub variadic: bool,
    pub body: String,
    /// Where in its file it is defined.
    pub offset: u32,
    pub is_undef: bool,
}

impl MacroDef {
    /// As the front end saw it; `None` for one in a branch that is not compiled.
    pub fn from_front(item: crate::syntax::macros::MacroDef) -> Option<MacroDef> {
        (item.presence != crate::syntax::macros::Presence::Dead).then(|| MacroDef {
            name: Name::new(&item.name),
            params: item.params,
            variadic: item.variadic,
            body: item.body,
            offset: item.offset,
            is_undef: item.undef,
        })
    }
}

/// A longer expansion is given up: it is no index expression.
const LONGEST: usize = 20_000;
const DEEPEST: usize = 40;

/// The text with all macros that `lookup` knows expanded; `None` where it grows beyond reason.
pub fn expand(text: &str, lookup: &dyn Fn(Name) -> Option<Arc<MacroDef>>) -> Option<String> {
    let mut out = String::new();
    expand_into(text, lookup, &mut Vec::new(), &mut out)?;
    Some(out)
}

/// The body of `item` with `args` in place of its parameters, then rescanned.
pub fn expand_call(
    item: &MacroDef,
    args: Option<&[String]>,
    lookup: &dyn Fn(Name) -> Option<Arc<MacroDef>>,
) -> Option<String> {
    let body = substitute(item, args, lookup, &mut vec![item.name])?;
    let mut out = String::new();
    expand_into(&body, lookup, &mut vec![item.name], &mut out)?;
    Some(out)
}

fn expand_into(
    text: &str,
    lookup: &dyn Fn(Name) -> Option<Arc<MacroDef>>,
    hidden: &mut Vec<Name>,
    out: &mut String,
) -> Option<()> {
    if hidden.len() > DEEPEST || out.len() > LONGEST {
        return None;
    }
    let mut rest = text;
    while let Some(token) = next_token(rest) {
        rest = &rest[token.len()..];
        if !is_identifier(token) {
            out.push_str(token);
            continue;
        }
        let name = Name::new(token);
        let item = if hidden.contains(&name) { None } else { lookup(name) };
        let Some(item) = item else {
            out.push_str(token);
            continue;
        };
        let args = match item.params {
            None => None,
            Some(_) => match arguments(rest) {
                Some((args, used)) => {
                    rest = &rest[used..];
                    Some(args)
                }
                None => {
                    out.push_str(token);
                    continue;
                }
            },
        };
        let body = substitute(&item, args.as_deref(), lookup, hidden)?;
        hidden.push(name);
        expand_into(&body, lookup, hidden, out)?;
        hidden.pop();
    }
    (out.len() <= LONGEST).then_some(())
}

fn substitute(
    item: &MacroDef,
    args: Option<&[String]>,
    lookup: &dyn Fn(Name) -> Option<Arc<MacroDef>>,
    hidden: &mut Vec<Name>,
) -> Option<String> {
    let (Some(params), Some(args)) = (&item.params, args) else { return Some(item.body.clone()) };
    if args.len() < params.len() && !(params.len() == 1 && args.is_empty()) && !item.variadic {
        return None;
    }
    let argument = |token: &str| -> Option<String> {
        if item.variadic && token == "__VA_ARGS__" {
            return Some(args.get(params.len()..).unwrap_or(&[]).join(", "));
        }
        let place = params.iter().position(|param| param == token)?;
        Some(args.get(place).cloned().unwrap_or_default())
    };
    let has_more = args.get(params.len()..).is_some_and(|more| more.iter().any(|arg| !arg.trim().is_empty()));
    let body = with_options(&item.body, has_more);
    let mut out = String::new();
    let mut rest = body.as_str();
    let mut pasting = false;
    while let Some(token) = next_token(rest) {
        rest = &rest[token.len()..];
        if rest.starts_with('#') && token == "#" {
            // `a ## b`: both sides as written, nothing between.
            rest = rest[1..].trim_start();
            out.truncate(out.trim_end().len());
            pasting = true;
            continue;
        }
        if token == "#" {
            let skipped = rest.trim_start();
            if let Some(param) = next_token(skipped)
                && let Some(text) = argument(param)
            {
                rest = &skipped[param.len()..];
                out.push_str(&format!("{:?}", text.trim()));
                continue;
            }
        }
        match argument(token) {
            Some(text) if pasting || rest.trim_start().starts_with("##") => out.push_str(text.trim()),
            Some(text) => expand_into(text.trim(), lookup, hidden, &mut out)?,
            None => out.push_str(token),
        }
        pasting = pasting && token.trim().is_empty();
        if out.len() > LONGEST {
            return None;
        }
    }
    Some(out)
}

/// `__VA_OPT__(text)` is its text where there are variable arguments, and nothing where there are none (C++20).
fn with_options(body: &str, has_more: bool) -> String {
    const OPTION: &str = "__VA_OPT__";
    let mut out = String::new();
    let mut rest = body;
    while let Some(at) = rest.find(OPTION) {
        let after = &rest[at + OPTION.len()..];
        let open = after.len() - after.trim_start().len();
        let mut depth = 0;
        let close = after.char_indices().skip_while(|(place, _)| *place < open).find_map(|(place, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(place)
        });
        let (Some(close), true) = (close, after[open..].starts_with('(')) else { break };
        out.push_str(&rest[..at]);
        if has_more {
            out.push_str(&after[open + 1..close]);
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    out
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The next token: an identifier, a number, a literal, white space or one character. `None` at the end.
fn next_token(text: &str) -> Option<&str> {
    let mut chars = text.char_indices();
    let (_, first) = chars.next()?;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let end = if first.is_ascii_alphabetic() || first == '_' {
        text.find(|c: char| !word(c))
    } else if first.is_ascii_digit() {
        text.find(|c: char| !(word(c) || c == '.' || c == '\''))
    } else if first == '"' || first == '\'' {
        let mut escaped = false;
        let close = chars.find(|&(_, c)| {
            let ends = c == first && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        close.map(|(at, c)| at + c.len_utf8())
    } else if first.is_whitespace() {
        text.find(|c: char| !c.is_whitespace())
    } else {
        Some(first.len_utf8())
    };
    Some(&text[..end.unwrap_or(text.len())])
}

/// The arguments after a function-like macro's name, with the bytes they take; `None` where no `(` follows.
pub fn arguments(text: &str) -> Option<(Vec<String>, usize)> {
    let open = text.len() - text.trim_start().len();
    if !text[open..].starts_with('(') {
        return None;
    }
    let mut depth = 0;
    let mut args = vec![String::new()];
    let mut at = open;
    while let Some(token) = next_token(&text[at..]) {
        at += token.len();
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            if args.len() == 1 && args[0].trim().is_empty() {
                args.clear();
            }
            return Some((args, at));
        }
        if depth == 1 && token == "," {
            args.push(String::new());
        } else if !(depth == 1 && token == "(" && args.len() == 1 && args[0].is_empty()) {
            args.last_mut()?.push_str(token);
        }
    }
    None
}

/// The text with the parentheses of `(name)` blanked where `is_variable` says that the name is one: `(n) + (k)` is a sum and
/// `(n * (m)) + k` no cast, which a grammar without types cannot know.
pub fn without_casts(text: &str, is_variable: &dyn Fn(Name) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(token) = next_token(rest) {
        let after = &rest[token.len()..];
        if token == "("
            && let Some(name) = next_token(after.trim_start()).filter(|name| is_identifier(name))
            && let Some(closed) = after.trim_start()[name.len()..].trim_start().strip_prefix(')')
            && !out.trim_end().ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '>'))
            && is_variable(Name::new(name))
        {
            out.push(' ');
            out.push_str(name);
            out.push(' ');
            rest = closed;
            continue;
        }
        out.push_str(token);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_text_stands_where_there_are_variable_arguments() {
        assert_eq!(with_options("f(a __VA_OPT__(,) __VA_ARGS__)", true), "f(a , __VA_ARGS__)");
        assert_eq!(with_options("f(a __VA_OPT__(,) __VA_ARGS__)", false), "f(a  __VA_ARGS__)");
        assert_eq!(with_options("__VA_OPT__ (g(1), 2) x", true), "g(1), 2 x");
        assert_eq!(with_options("__VA_OPT__ left open (", true), "__VA_OPT__ left open (");
    }
}
