//! `primaryLocationLineHash` as GitHub's upload action computes it, so that it need not replace ours.
//!
//! Of each line the hash of the 100 UTF-16 code units that start there, over line ends, is taken:
//! `h ← 37·h + unit`, modulo 2⁶⁴, with spaces and tabs skipped, every line end one LF, an end mark 0xFFFF and then
//! 100 zeros. It is kept rolling: what left the window is subtracted with weight 37¹⁰⁰. The value is printed in
//! hexadecimal with the number of times that it was seen in the file: `9fea2a2b8628778f:1`.

use rustc_hash::FxHashMap;

const WINDOW: usize = 100;
const BASE: u64 = 37;

/// The hash of each line, from the first: index 0 is line 1. A last empty line has the hash of the end mark.
pub(super) fn line_hashes(text: &str) -> Vec<String> {
    let mut rolling = Rolling::new();
    let (mut line, mut starts, mut after_cr) = (0usize, true, false);
    for unit in text.encode_utf16().chain([0xFFFF]) {
        let skipped =
            unit == u16::from(b' ') || unit == u16::from(b'\t') || (after_cr && unit == u16::from(b'\n'));
        after_cr = !skipped && unit == u16::from(b'\r');
        if skipped {
            continue;
        }
        let unit = if after_cr { u16::from(b'\n') } else { unit };
        let begun = starts.then_some(line);
        if starts {
            line += 1;
        }
        starts = unit == u16::from(b'\n');
        rolling.push(unit, begun);
    }
    for _ in 0..WINDOW {
        rolling.push(0, None);
    }
    rolling.hashes
}

struct Rolling {
    hash: u64,
    /// The last 100 units, each with the line that begins there.
    window: [(u16, Option<usize>); WINDOW],
    at: usize,
    /// BASE to the power of WINDOW: the weight of the unit that leaves.
    leaving: u64,
    seen: FxHashMap<u64, u32>,
    hashes: Vec<String>,
}

impl Rolling {
    fn new() -> Rolling {
        let leaving = (0..WINDOW).fold(1u64, |power, _| power.wrapping_mul(BASE));
        Rolling {
            hash: 0,
            window: [(0, None); WINDOW],
            at: 0,
            leaving,
            seen: FxHashMap::default(),
            hashes: vec![],
        }
    }

    fn push(&mut self, unit: u16, begun: Option<usize>) {
        let Some(slot) = self.window.get_mut(self.at) else { return };
        let (left, line) = std::mem::replace(slot, (unit, begun));
        if line.is_some() {
            // The window holds exactly the 100 units from that line's start.
            let count = self.seen.entry(self.hash).or_insert(0);
            *count += 1;
            self.hashes.push(format!("{:x}:{count}", self.hash));
        }
        let gone = self.leaving.wrapping_mul(u64::from(left));
        self.hash = self.hash.wrapping_mul(BASE).wrapping_add(u64::from(unit)).wrapping_sub(gone);
        self.at = (self.at + 1) % WINDOW;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector computed with GitHub's own code.
    #[test]
    fn as_the_upload_action_computes_it() {
        let source = "__global__ void k(float *a, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n\n  \
                      a[i * 32] = 1.0f;\n\n  a[i * 32] = 1.0f;\r\n\ta[i] = 2.0f; // é😀\n}\n";
        let hashes = line_hashes(source);
        assert_eq!(hashes.first().map(String::as_str), Some("9fea2a2b8628778f:1"));
        assert_eq!(hashes.get(3).map(String::as_str), Some("40ab79c811588c6a:1"));
        assert_eq!(hashes.get(6).map(String::as_str), Some("a4ee65bc8256c4a8:1"));
        assert_eq!(hashes.len(), 9);
    }

    #[test]
    fn counts_equal_windows() {
        let line = "x".repeat(200) + "\n";
        let hashes = line_hashes(&line.repeat(2));
        assert!(hashes.iter().take(2).map(|hash| hash.split(':').nth(1)).eq([Some("1"), Some("2")]));
    }

    #[test]
    fn empty_text_has_one_line() {
        assert_eq!(line_hashes("").len(), 1);
    }
}
