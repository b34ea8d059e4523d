//! A lambda written as a class with a name.
//!
//! ```text
//! [=] __device__ (int i) { out[i] = by; }   ->   struct cudalint_lambda_0 { float* out; float by;
//!                                                __device__ auto operator()(int i) const { out[i] = by; } };
//! ```
//!
//! That is what the closure's type is (C++17, [expr.prim.lambda.closure]), but that it can be named. The body stays in its lines
//! and columns.

use std::ops::Range;

use super::tokens::{Kind, Token, tokens};
use super::{FileId, Functor, Sources};

/// The parts of a lambda by their places.
#[derive(Debug)]
pub struct Parts<'a> {
    functor: &'a Functor,
    /// Without their brackets.
    template: Vec<Token<'a>>,
    params: Vec<Token<'a>>,
    returns: Vec<Token<'a>>,
    is_mutable: bool,
    /// From its `{`; offsets as in the file.
    body: Range<usize>,
    words: Vec<&'a str>,
}

/// Begins the names of template parameters that stand for `auto`.
const AUTO: &str = "cudalint_auto_";

impl<'a> Parts<'a> {
    pub fn of(functor: &'a Functor, sources: &'a Sources) -> Result<Parts<'a>, String> {
        let text = sources.text(functor.lambda);
        let tokens = tokens(text);
        let odd =
            || "the lambda comes from a macro, or is written in a way that is not understood".to_owned();
        let is = |at: usize, mark: &str| tokens.get(at).is_some_and(|token| token.is(mark));
        let inside = |open: usize| {
            let close = closing(&tokens, open).ok_or_else(odd)?;
            Ok::<_, String>((tokens.get(open + 1..close).unwrap_or_default().to_vec(), close + 1))
        };
        if !is(0, "[") {
            return Err(odd());
        }
        let (_, mut at) = inside(0)?;
        let (mut template, mut params, mut returns) = (Vec::new(), Vec::new(), Vec::new());
        if is(at, "<") {
            (template, at) = inside(at)?;
        }
        // Attributes: `__device__`, a macro, `__launch_bounds__(256)` is none of a lambda.
        while !is(at, "(") && !is(at, "{") {
            tokens.get(at).filter(|token| token.kind == Kind::Word).ok_or_else(odd)?;
            at += 1;
        }
        if is(at, "(") {
            (params, at) = inside(at)?;
        }
        let mut is_mutable = false;
        while !is(at, "{") {
            let token = tokens.get(at).ok_or_else(odd)?;
            is_mutable |= token.is("mutable");
            at += 1;
            if token.is("-") && is(at, ">") {
                at += 1;
                while !is(at, "{") {
                    returns.push(*tokens.get(at).ok_or_else(odd)?);
                    at += 1;
                }
            }
        }
        let annotated = |pair: &[Token]| match pair {
            [one, next] => one.is("]") && (next.is("__device__") || next.is("__host__")),
            _ => false,
        };
        if tokens.get(at..).unwrap_or_default().windows(2).any(annotated) {
            return Err(
                "a lambda with another for the device in its body is none that compilers take".to_owned()
            );
        }
        let start = functor.lambda.start as usize;
        let body = start + tokens.get(at).map_or(0, |token| token.start)..start + text.len();
        let words = tokens.iter().filter(|token| token.kind == Kind::Word).map(|token| token.text);
        Ok(Parts { functor, template, params, returns, is_mutable, body, words: words.collect() })
    }

    pub fn name(&self) -> &str {
        &self.functor.name
    }

    /// Where the lambda begins.
    pub fn place(&self) -> (FileId, usize) {
        (self.functor.lambda.file, self.functor.lambda.start as usize)
    }

    pub fn body(&self) -> Range<usize> {
        self.body.clone()
    }

    /// Every identifier of the lambda and of its members.
    pub fn uses(&self) -> impl Iterator<Item = &'a str> + '_ {
        let members = tokens(&self.functor.members).into_iter().filter(|token| token.kind == Kind::Word);
        self.words.iter().copied().chain(members.map(|token| token.text))
    }

    /// The class up to the body of its operator.
    pub fn begin(&self) -> String {
        let Functor { name, members, .. } = self.functor;
        let mut template: Vec<String> = Vec::new();
        if !self.template.is_empty() {
            template.push(spelt(&self.template));
        }
        let mut params = String::new();
        let mut count = 0;
        for (at, token) in self.params.iter().enumerate() {
            if token.is("auto") {
                let own = format!("{AUTO}{count}");
                let dots = self.params.get(at + 1..at + 4).is_some_and(|next| next.iter().all(|t| t.is(".")));
                template.push(format!("class{} {own}", if dots { "..." } else { "" }));
                params.push_str(&own);
                count += 1;
            } else {
                params.push_str(token.text);
            }
            params.push_str(gap(&self.params, at));
        }
        let template = match template.is_empty() {
            true => String::new(),
            false => format!("template <{}> ", template.join(", ")),
        };
        let constant = if self.is_mutable { "" } else { " const" };
        let returns = match self.returns.is_empty() {
            true => String::new(),
            false => format!(" -> {}", spelt(&self.returns)),
        };
        format!(
            "\n// cudalint's own: a lambda under a name.\nstruct {name} {{\n{members}\
             {template}__device__ auto operator()({params}){constant}{returns}"
        )
    }
}

/// The offset behind the captures of a lambda.
pub fn after_captures(lambda: &str) -> Option<usize> {
    let tokens = tokens(lambda);
    tokens.first().filter(|token| token.is("["))?;
    Some(tokens.get(closing(&tokens, 0)?)?.end())
}

/// The place of the bracket that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    let is_angle = tokens.get(open)?.is("<");
    for (at, token) in tokens.iter().enumerate().skip(open).filter(|(_, token)| token.kind == Kind::Mark) {
        depth += match token.text {
            "(" | "[" | "{" => 1,
            ")" | "]" | "}" => -1,
            "<" if is_angle => 1,
            ">" if is_angle => -1,
            _ => 0,
        };
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// A space where one stood.
fn gap(tokens: &[Token], at: usize) -> &'static str {
    match (tokens.get(at), tokens.get(at + 1)) {
        (Some(one), Some(next)) if one.end() < next.start => " ",
        _ => "",
    }
}

fn spelt(tokens: &[Token]) -> String {
    let parts = tokens.iter().enumerate().map(|(at, token)| format!("{}{}", token.text, gap(tokens, at)));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceFile, Span};

    fn begin(lambda: &str) -> Result<String, String> {
        let mut sources = Sources::default();
        let file = sources.add(SourceFile::new("a.cu", lambda.to_owned()));
        let functor = Functor {
            name: "F".to_owned(),
            lambda: Span::new(file, 0, lambda.len()),
            members: "int n;\n".to_owned(),
        };
        let parts = Parts::of(&functor, &sources)?;
        Ok(parts.begin().lines().skip(3).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn heads_of_lambdas() {
        let head = |lambda| begin(lambda).expect("understood");
        assert_eq!(head("[=] __device__ (int i) { }"), "int n; __device__ auto operator()(int i) const");
        assert_eq!(head("[] { }"), "int n; __device__ auto operator()() const");
        assert_eq!(
            head("[n, p = a[0]] __host__ __device__ (const auto& x, auto... y) mutable -> float* { }"),
            "int n; template <class cudalint_auto_0, class... cudalint_auto_1> \
             __device__ auto operator()(const cudalint_auto_0& x, cudalint_auto_1... y) -> float*"
        );
        assert_eq!(
            head("[=]<class T, int N = 4>(T (&x)[N]) noexcept { }"),
            "int n; template <class T, int N = 4> __device__ auto operator()(T (&x)[N]) const"
        );
    }

    #[test]
    fn what_is_no_lambda_is_a_reason() {
        for text in ["LAMBDA(int i) { }", "[=", "[=] (int", "[=] 3", ""] {
            assert!(begin(text).is_err_and(|why| why.contains("macro")), "{text}");
        }
        let nested = "[=] __device__ (int i) { auto g = [=] __device__ () { }; }";
        assert!(begin(nested).is_err_and(|why| why.contains("in its body")));
    }
}
