//! `rules` and `explain`: what the rules are.

use std::fmt::Write as _;

use serde::Serialize;

use super::super::lint::config::ConfigError;
use super::super::lint::selection::closest;
use super::Engine;
use super::args::{ListFormat, RulesArgs};
use super::failure::Failure;
use super::shell::Shell;

#[derive(Serialize)]
struct RuleEntry {
    name: &'static str,
    summary: &'static str,
    category: String,
    level: String,
    since: &'static str,
    /// Of the findings on measured lines of real programs, how many were right; `null`: not measured.
    measured: Option<MeasuredEntry>,
}

#[derive(Serialize)]
struct MeasuredEntry {
    right: u32,
    found: u32,
    precision: &'static str,
}

pub fn rules(args: &RulesArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let entry = |rule: &super::super::lint::finding::RuleInfo| RuleEntry {
        name: rule.name,
        summary: rule.summary,
        category: rule.category.to_string(),
        level: rule.default_level.to_string(),
        since: rule.since,
        measured: rule.measured.map(|measured| MeasuredEntry {
            right: measured.right,
            found: measured.found,
            precision: measured.precision(),
        }),
    };
    let entries: Vec<RuleEntry> = engine.infos().into_iter().map(entry).collect();
    let mut text = String::new();
    let format = if args.json { ListFormat::Json } else { args.output_format };
    match format {
        ListFormat::Json => {
            text = serde_json::to_string_pretty(&serde_json::json!({ "schemaVersion": 1, "rules": entries }))
                .unwrap_or_default();
            text.push('\n');
        }
        ListFormat::Text => {
            let width = entries.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
            for rule in entries {
                let (name, level, category, summary) = (rule.name, rule.level, rule.category, rule.summary);
                let _ = writeln!(text, "{name:width$}  {level:7}  {category:11}  {summary}");
            }
        }
    }
    shell.stdout.write_all(text.as_bytes())?;
    shell.stdout.flush()?;
    Ok(0)
}

/// The rule's own document.
pub fn explain(name: &str, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let rules = engine.infos();
    let Some(rule) = rules.iter().find(|rule| rule.name == name) else {
        let meant = closest(name, rules.iter().map(|rule| rule.name));
        let help = meant
            .map_or("`cudalint rules` lists them".to_owned(), |meant| format!("did you mean `{meant}`?"));
        return Err(ConfigError::new(format!("unknown rule `{name}`")).with_help(Some(help)).into());
    };
    shell.stdout.write_all(rule.doc.trim_end().as_bytes())?;
    shell.stdout.write_all(b"\n")?;
    shell.stdout.flush()?;
    Ok(0)
}
