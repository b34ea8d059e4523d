//! Which rules run, and at which level.
//!
//! Layers are applied from the built-in set up to the command line. Within a layer the more specific word
//! wins (rule before category before `all`), and on a tie the rule is off.

use std::collections::BTreeMap;
use std::fmt;

use super::finding::{Level, RuleInfo};

/// Silences and reports nothing by itself: the finding about an allow comment that silences nothing.
pub static UNUSED_ALLOW: RuleInfo = RuleInfo {
    name: "unused-allow",
    summary: "an allow comment that silences nothing, or names no rule",
    category: super::finding::Category::Suppression,
    default_level: Level::Warning,
    since: "0.1.0",
    measured: None,
    doc: include_str!("unused_allow.md"),
};

/// A word of `--select` or `--ignore`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    All,
    Category(String),
    Rule(&'static str),
}

impl Selector {
    /// Reads a rule name, a category or `all`; the error is a suggestion, if one is close.
    pub fn parse(word: &str, rules: &[&'static RuleInfo]) -> Result<Selector, UnknownRule> {
        if word.eq_ignore_ascii_case("all") {
            return Ok(Selector::All);
        }
        if let Some(rule) = rules.iter().find(|rule| rule.name == word) {
            return Ok(Selector::Rule(rule.name));
        }
        if rules.iter().any(|rule| rule.category.to_string() == word) {
            return Ok(Selector::Category(word.to_owned()));
        }
        let categories: Vec<String> = rules.iter().map(|rule| rule.category.to_string()).collect();
        let known = rules.iter().map(|rule| rule.name).chain(categories.iter().map(String::as_str));
        Err(UnknownRule { word: word.to_owned(), suggestion: closest(word, known) })
    }

    fn specificity(&self, rule: &RuleInfo) -> u8 {
        match self {
            Selector::All => 1,
            Selector::Category(name) if rule.category.to_string() == *name => 2,
            Selector::Rule(name) if rule.name == *name => 3,
            Selector::Category(_) | Selector::Rule(_) => 0,
        }
    }
}

/// A word that names no rule, no category and not `all`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown rule or category `{word}`")]
pub struct UnknownRule {
    pub word: String,
    pub suggestion: Option<String>,
}

/// The known word that was meant: the nearest, if it is near enough, or the only one that begins so.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    let near = known.iter().map(|candidate| (distance(word, candidate), *candidate));
    let (edits, best) = near.min_by_key(|(edits, candidate)| (*edits, *candidate))?;
    if edits <= 1 + word.chars().count() / 4 {
        return Some(best.to_owned());
    }
    let mut begun = known.iter().filter(|candidate| word.len() > 2 && candidate.starts_with(word));
    let only = begun.next()?;
    begun.next().is_none().then(|| (*only).to_owned())
}

/// Levenshtein distance with transpositions of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

/// How much is reported: what wastes bandwidth for sure, or also what a careful author may want to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Persona {
    #[default]
    Default,
    Pedantic,
}

impl fmt::Display for Persona {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Persona::Default => "default",
            Persona::Pedantic => "pedantic",
        })
    }
}

/// Freezes the default set: rules added after an edition's last version stay off until selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Edition {
    #[default]
    E2026,
}

impl Edition {
    /// The last version whose new rules belong to the edition's default set.
    fn last_version(self) -> (u32, u32) {
        match self {
            Edition::E2026 => (0, 1),
        }
    }

    /// Whether a rule that version `since` added belongs to the default set.
    pub fn includes(self, since: &str) -> bool {
        let mut parts = since.split('.').map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
        let version = (parts.next().unwrap_or(u32::MAX), parts.next().unwrap_or(0));
        version <= self.last_version()
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Edition::E2026 => "2026",
        })
    }
}

/// The words of one layer: a configuration file, an override or the command line.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// Replaces what lower layers chose.
    pub select: Option<Vec<Selector>>,
    pub extend_select: Vec<Selector>,
    pub ignore: Vec<Selector>,
    /// A level chooses the rule too; `off` ignores it.
    pub levels: BTreeMap<&'static str, Level>,
}

/// The rules that run, each with its level; a rule that is absent is off.
pub type Levels = BTreeMap<&'static str, Level>;

/// Folds the layers, lowest first, into the level of every rule that runs.
pub fn levels(
    rules: &[&'static RuleInfo],
    persona: Persona,
    edition: Edition,
    preview: bool,
    layers: &[&Layer],
) -> Levels {
    let level = |rule: &RuleInfo| {
        let mut chosen = by_default(rule, persona, edition, preview);
        let mut level = match rule.default_level {
            Level::Off if persona == Persona::Pedantic => Level::Note,
            Level::Off => Level::Warning,
            level => level,
        };
        for layer in layers {
            chosen = choose(layer, rule).unwrap_or(chosen && layer.select.is_none());
            level = match layer.levels.get(rule.name) {
                None | Some(Level::Off) => level,
                Some(level) => *level,
            };
        }
        chosen.then_some(level)
    };
    rules.iter().filter_map(|rule| Some((rule.name, level(rule)?))).collect()
}

fn by_default(rule: &RuleInfo, persona: Persona, edition: Edition, preview: bool) -> bool {
    let wanted = persona == Persona::Pedantic || rule.default_level != Level::Off;
    wanted && (preview || edition.includes(rule.since))
}

/// What a layer says about a rule: on, off, or nothing.
fn choose(layer: &Layer, rule: &RuleInfo) -> Option<bool> {
    let strongest = |words: &[Selector]| words.iter().map(|word| word.specificity(rule)).max().unwrap_or(0);
    let mut on = strongest(layer.select.as_deref().unwrap_or_default()).max(strongest(&layer.extend_select));
    let mut off = strongest(&layer.ignore);
    match layer.levels.get(rule.name) {
        Some(Level::Off) => off = 3,
        Some(_) => on = 3,
        None => {}
    }
    (on > 0 || off > 0).then_some(on > off)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Category;
    use super::*;

    const fn rule(name: &'static str, category: Category, level: Level, since: &'static str) -> RuleInfo {
        RuleInfo { name, summary: "", category, default_level: level, since, measured: None, doc: "" }
    }

    static BANK: RuleInfo = rule("bank-conflict", Category::Bank, Level::Warning, "0.1.0");
    static STRIDE: RuleInfo = rule("uncoalesced-access", Category::Coalescing, Level::Warning, "0.1.0");
    static OFFSET: RuleInfo = rule("misaligned-access", Category::Coalescing, Level::Off, "0.1.0");
    static LATER: RuleInfo = rule("later-rule", Category::Cache, Level::Warning, "0.2.0");
    static RULES: [&RuleInfo; 4] = [&BANK, &STRIDE, &OFFSET, &LATER];

    fn words(words: &[&str]) -> Vec<Selector> {
        words.iter().map(|word| Selector::parse(word, &RULES).unwrap()).collect()
    }

    fn on(layers: &[&Layer]) -> Vec<&'static str> {
        levels(&RULES, Persona::Default, Edition::E2026, false, layers).into_keys().collect()
    }

    #[test]
    fn the_default_set_is_frozen_by_the_edition() {
        assert_eq!(on(&[]), ["bank-conflict", "uncoalesced-access"]);
        let preview = levels(&RULES, Persona::Default, Edition::E2026, true, &[]);
        assert!(preview.contains_key("later-rule"));
    }

    #[test]
    fn the_more_specific_word_wins_and_ties_are_off() {
        let layer = |select: &[&str], ignore: &[&str]| Layer {
            select: Some(words(select)),
            ignore: words(ignore),
            ..Layer::default()
        };
        assert_eq!(on(&[&layer(&["coalescing"], &["misaligned-access"])]), ["uncoalesced-access"]);
        assert_eq!(on(&[&layer(&["bank-conflict"], &["all"])]), ["bank-conflict"]);
        assert_eq!(on(&[&layer(&["bank-conflict"], &["bank-conflict"])]), [""; 0]);
        assert_eq!(
            on(&[&layer(&["all"], &["bank"])]),
            ["later-rule", "misaligned-access", "uncoalesced-access"]
        );
    }

    #[test]
    fn a_select_replaces_lower_layers_and_keeps_their_levels() {
        let file = Layer { levels: BTreeMap::from([("bank-conflict", Level::Error)]), ..Layer::default() };
        let line = Layer { select: Some(words(&["bank"])), ..Layer::default() };
        let levels = levels(&RULES, Persona::Default, Edition::E2026, false, &[&file, &line]);
        assert_eq!(levels, BTreeMap::from([("bank-conflict", Level::Error)]));
        let off = Layer { levels: BTreeMap::from([("bank-conflict", Level::Off)]), ..Layer::default() };
        assert_eq!(on(&[&off]), ["uncoalesced-access"]);
        assert_eq!(on(&[&off, &line]), ["bank-conflict"]);
    }

    #[test]
    fn pedantic_reports_what_is_off_as_notes() {
        let levels = levels(&RULES, Persona::Pedantic, Edition::E2026, false, &[]);
        assert_eq!(levels.get("misaligned-access"), Some(&Level::Note));
        assert_eq!(levels.get("bank-conflict"), Some(&Level::Warning));
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_name() {
        let unknown = Selector::parse("bank-conflit", &RULES).unwrap_err();
        assert_eq!(unknown.suggestion.as_deref(), Some("bank-conflict"));
        assert_eq!(Selector::parse("nonsense", &RULES).unwrap_err().suggestion, None);
        let begun = Selector::parse("uncoalesced", &RULES).unwrap_err();
        assert_eq!(begun.suggestion.as_deref(), Some("uncoalesced-access"));
        assert_eq!(distance("abc", "acb"), 1);
    }
}
