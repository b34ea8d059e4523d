//! The `-D` flags of a Makefile that lies beside the sources.
//!
//! Many programs get a type or a tile size from nowhere else: `CFLAGS := -Dfloat_t=double -DTILE=16`. What counts is what a
//! plain `make` defines: conditionals are decided by the values that the file gives its variables. Flags that depend on
//! the environment, on functions of make or on the target, and names with several values are left out.

use std::collections::BTreeMap;
use std::path::Path;

/// The names under which make looks for its input, in its order.
const NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// `NAME=VALUE` or `NAME` for each definition of the directory's Makefile; `None` where there is no such file.
pub fn defines(directory: &Path) -> Option<Vec<String>> {
    let text = NAMES.iter().find_map(|name| std::fs::read(directory.join(name)).ok())?;
    Some(read(&String::from_utf8_lossy(&text)))
}

fn read(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let mut variables: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut found: Vec<String> = Vec::new();
    let mut contested: Vec<String> = Vec::new();
    // A branch around the line: whether make takes it, where that is known.
    let mut branches: Vec<Option<bool>> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("");
        let (word, rest) = line.trim_start().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
        match word {
            "ifeq" => branches.push(equal(rest, &variables)),
            "ifneq" => branches.push(equal(rest, &variables).map(|is_equal| !is_equal)),
            "ifdef" => branches.push(is_set(rest, &variables)),
            "ifndef" => branches.push(is_set(rest, &variables).map(|is_set| !is_set)),
            "else" => {
                // `else ifeq …` is taken to be unknown.
                let taken = branches.pop().flatten().filter(|_| rest.trim().is_empty());
                branches.push(taken.map(|taken| !taken));
            }
            "endif" => {
                branches.pop();
            }
            _ if branches.contains(&Some(false)) => {}
            _ => {
                let is_sure = branches.iter().all(|branch| *branch == Some(true));
                assign(line, is_sure, &mut variables);
                for word in line.split_whitespace() {
                    let define = word.strip_prefix("-D").and_then(|define| expand(define, &variables));
                    let Some(define) = define.and_then(|define| plain(&define)) else { continue };
                    let name = name(&define).to_owned();
                    match found.iter().find(|known| self::name(known) == name) {
                        Some(known) if *known == define => {}
                        None if is_sure => found.push(define),
                        Some(_) | None => contested.push(name),
                    }
                }
            }
        }
    }
    found.retain(|define| !contested.iter().any(|name| name == self::name(define)));
    found
}

/// `NAME = value` and its kin; a value that is not known for sure is `None`.
fn assign(line: &str, is_sure: bool, variables: &mut BTreeMap<String, Option<String>>) {
    // The lines of a recipe are the shell's.
    let Some((left, value)) = line.split_once('=').filter(|_| !line.starts_with('\t')) else { return };
    let is_kept = left.ends_with('?');
    let adds = left.ends_with(['+', '!']);
    let name = left.trim_end_matches([':', '?', '+', '!']).trim();
    if !is_name(name) || (is_kept && variables.contains_key(name)) {
        return;
    }
    let value = expand(value.trim(), variables).filter(|_| is_sure && !adds);
    variables.insert(name.to_owned(), value);
}

/// The text with `$(NAME)` replaced; `None` where a variable is not known.
fn expand(text: &str, variables: &BTreeMap<String, Option<String>>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        let (open, after) = after.split_at_checked(1)?;
        let (name, after) = after.split_once(if open == "(" { ')' } else { '}' })?;
        out.push_str(before);
        out.push_str(variables.get(name)?.as_deref()?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// `(a,b)`: is one what the other is?
fn equal(pair: &str, variables: &BTreeMap<String, Option<String>>) -> Option<bool> {
    let inner = pair.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (left, right) = inner.split_once(',')?;
    let side = |text: &str| expand(text.trim(), variables);
    Some(side(left)? == side(right)?)
}

/// A variable that nothing here sets may come from the environment.
fn is_set(name: &str, variables: &BTreeMap<String, Option<String>>) -> Option<bool> {
    variables.get(name.trim())?.as_ref().map(|value| !value.is_empty())
}

fn name(define: &str) -> &str {
    define.split_once('=').map_or(define, |(name, _)| name)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A definition that stands for itself: an identifier, with a value free of variables and quotes if any.
fn plain(define: &str) -> Option<String> {
    let value_is_plain = define
        .split_once('=')
        .is_none_or(|(_, value)| !value.is_empty() && !value.contains(['$', '"', '\'', '\\', '`', '(', ')']));
    (is_name(name(define)) && value_is_plain).then(|| define.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_every_build_are_read() {
        let text = "CFLAGS := $(EXTRA) -Dreal=double -DTILE=16 \\\n  -DUSE_LDG -O3\nDEBUG = no\n\
                    ifeq ($(DEBUG),yes)\n  CFLAGS += -DCHECK=1\nendif\n# -DOLD=1\n";
        assert_eq!(read(text), ["real=double", "TILE=16", "USE_LDG"]);
    }

    #[test]
    fn conditionals_follow_the_defaults_of_the_file() {
        let text = "SP = yes\nVERIFY ?= no\nTILE := 32\nifeq ($(SP),yes)\n  CFLAGS += -DSINGLE -DT=$(TILE)\nelse\n  \
                    CFLAGS += -DDOUBLE\nendif\nifneq ($(VERIFY),no)\n  CFLAGS += -DVERIFY\nendif\n";
        assert_eq!(read(text), ["SINGLE", "T=32"]);
    }

    #[test]
    fn what_the_environment_decides_is_left_out() {
        let text = "ifdef FAST\n  CFLAGS += -DFAST\nendif\nifeq ($(shell uname),Linux)\n  CFLAGS += -DLINUX\nendif\n\
                    all: x.cu\n\tnvcc -DN=4 x.cu\nifeq ($(CC),gcc)\nN = 1\nendif\nA = -DM=$(N)\n";
        assert_eq!(read(text), ["N=4"]);
    }

    #[test]
    fn what_differs_or_needs_make_is_left_out() {
        let text = "A = -DN=4\nB = -DN=8\nC = -DM=$(SIZE) -DS=\\\"x\\\" -D$(OTHER) -DF(x)=x\n";
        assert_eq!(read(text), Vec::<String>::new());
    }
}
