//! The `-D` flags of a Makefile that lies beside the sources.
//!
//! Many programs get a type or a tile size from nowhere else: `CFLAGS := -Dfloat_t=double -DTILE=16`. Only what every build
//! with this file defines counts: flags outside conditionals, with a value that needs no expansion, and the same one
//! wherever the name is defined.

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
    let mut found: Vec<String> = Vec::new();
    let mut contested: Vec<String> = Vec::new();
    let mut depth = 0usize;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("");
        match line.split_whitespace().next() {
            Some("ifeq" | "ifneq" | "ifdef" | "ifndef") => depth += 1,
            Some("endif") => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                for word in line.split_whitespace() {
                    let Some(define) = word.strip_prefix("-D").and_then(plain) else { continue };
                    let name = name(&define);
                    match found.iter().find(|known| self::name(known) == name) {
                        Some(known) if *known != define => contested.push(name.to_owned()),
                        Some(_) => {}
                        None => found.push(define),
                    }
                }
            }
            _ => {}
        }
    }
    found.retain(|define| !contested.iter().any(|name| name == self::name(define)));
    found
}

fn name(define: &str) -> &str {
    define.split_once('=').map_or(define, |(name, _)| name)
}

/// A definition that stands for itself: an identifier, with a value free of variables and quotes if any.
fn plain(define: &str) -> Option<String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
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
    fn what_differs_or_needs_make_is_left_out() {
        let text = "A = -DN=4\nB = -DN=8\nC = -DM=$(SIZE) -DS=\\\"x\\\" -D$(OTHER) -DF(x)=x\n";
        assert_eq!(read(text), Vec::<String>::new());
    }
}
