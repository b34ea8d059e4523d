//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::super::lint::config::{ConfidenceName, FailOn, PersonaName};

/// Finds memory accesses of CUDA kernels that waste bandwidth, from plain source.
#[derive(Debug, Parser)]
#[command(name = "cudalint", version, about, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Exit status: 0 clean, 1 findings at or above the failing level, 2 wrong use or configuration."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub check: CheckArgs,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check files and directories; the same as no command at all.
    Check(Box<CheckArgs>),
    /// List the rules.
    Rules(RulesArgs),
    /// Run the kernels of findings on a GPU and tell which findings it confirms.
    ///
    /// Executes the project's kernels, never its host code. Exit status: 0 nothing confirmed or refuted, 1 otherwise, 2
    /// where a driver, a device or a compiler is missing.
    #[cfg(feature = "verify")]
    Verify(Box<VerifyArgs>),
    /// List every memory access of every kernel with its cost, or why that is not known.
    Inspect(Box<InspectArgs>),
    /// Count what is understood of a tree.
    #[command(hide = true)]
    Survey(Box<InspectArgs>),
    /// Say what a rule finds, why it costs and what to do.
    Explain {
        /// The rule's name
        rule: String,
    },
    /// Show, check or describe the configuration.
    Config {
        #[command(subcommand)]
        action: Box<ConfigAction>,
    },
    /// Write a first cudalint.toml into this directory.
    Init,
    /// Accept what is found today, so that only new findings are reported.
    Baseline {
        #[command(subcommand)]
        action: Box<BaselineAction>,
    },
    /// Print a completion script for a shell.
    Completions { shell: clap_complete::Shell },
    /// Print the manual page, of a command if one is named.
    Man { command: Option<String> },
}

#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Print every value that holds for a file, with the file and line it came from.
    Show(Box<ShowArgs>),
    /// Check configuration files.
    Check {
        /// The files [default: the one that holds here]
        files: Vec<PathBuf>,
    },
    /// Print the JSON schema of cudalint.toml.
    Schema,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub project: ProjectArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
}

#[derive(Debug, Subcommand)]
pub enum BaselineAction {
    /// Write a new file with all findings of today.
    Create(BaselineArgs),
    /// Accept the findings of today in an existing file, and drop those that are gone.
    Update(BaselineArgs),
    /// Drop accepted findings that are gone.
    Prune(BaselineArgs),
    /// List accepted findings, and which of them are gone.
    Show(BaselineArgs),
}

#[derive(Clone, Debug, Default, Args)]
pub struct BaselineArgs {
    #[command(flatten)]
    pub project: ProjectArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// The file of accepted findings [default: cudalint-baseline.json of the project]
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Fail where accepted findings are gone, instead of dropping them
    #[arg(long)]
    pub check: bool,
}

/// What `check` takes.
#[derive(Clone, Debug, Default, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub project: ProjectArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub known: KnownArgs,
    #[command(flatten)]
    pub fix: FixArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which findings are old.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Only new findings")]
pub struct KnownArgs {
    /// A file of accepted findings [default: cudalint-baseline.json of the project, if it is there]
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Report what the baseline accepts, too
    #[arg(long, conflicts_with = "baseline")]
    pub no_baseline: bool,
    /// Report what is new since the current branch left this commit
    #[arg(long, value_name = "REV", group = "since")]
    pub new_from: Option<String>,
    /// Check what is staged, and report what is new in it
    #[arg(long, group = "since", conflicts_with_all = ["fix", "unsafe_fixes", "fix_only"])]
    pub staged: bool,
    /// Report what is new since before this diff was applied; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "since")]
    pub diff_file: Option<PathBuf>,
}

/// Changes of the checked files.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Fixes")]
pub struct FixArgs {
    /// Apply safe fixes and report what is left
    #[arg(long)]
    pub fix: bool,
    /// Apply unsafe fixes too: they keep results, but use other resources or need a promise
    #[arg(long)]
    pub unsafe_fixes: bool,
    /// Apply fixes and report nothing
    #[arg(long)]
    pub fix_only: bool,
    /// Show what would be fixed as a diff, and change nothing
    #[arg(long)]
    pub diff: bool,
    /// Put an allow comment at every finding, with a reason
    #[arg(long, value_name = "REASON", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(conflicts_with_all = ["fix", "unsafe_fixes", "fix_only"])]
    pub add_allow: Option<String>,
}

impl FixArgs {
    /// Whether any fix is to be made or shown.
    pub fn any(&self) -> bool {
        self.fix || self.unsafe_fixes || self.fix_only || (self.diff && self.add_allow.is_none())
    }
}

/// What is read, and with which configuration.
#[derive(Clone, Debug, Default, Args)]
pub struct ProjectArgs {
    /// Files and directories; `-` reads standard input [default: .]
    pub paths: Vec<PathBuf>,
    /// The path that standard input stands for
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub stdin_filename: Option<PathBuf>,
    /// Also leave these files out (a glob as in .gitignore)
    #[arg(long, value_name = "GLOB", help_heading = "Files")]
    pub exclude: Vec<String>,
    /// Leave excluded files out even where they are named one by one
    #[arg(long, help_heading = "Files")]
    pub force_exclude: bool,
    /// Read what .gitignore and hidden names leave out
    #[arg(long, help_heading = "Files")]
    pub no_ignore: bool,
    /// Read with a macro defined, as a compiler's -D
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]", help_heading = "Files")]
    pub define: Vec<String>,
    /// Look for quoted includes here too
    #[arg(short = 'I', long = "include-dir", value_name = "DIR", help_heading = "Files")]
    pub include_dir: Vec<PathBuf>,
    /// A configuration file to use for all files, or one setting: 'fail-on = "error"'
    #[arg(long, value_name = "FILE|'KEY = VALUE'", help_heading = "Configuration")]
    pub config: Vec<String>,
    /// Read no configuration file
    #[arg(long, help_heading = "Configuration")]
    pub isolated: bool,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Files")]
    pub threads: Option<usize>,
}

/// Which rules run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Rules")]
pub struct SelectionArgs {
    /// Run only these rules: names, categories or `all`
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub select: Vec<String>,
    /// Run these rules too
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub extend_select: Vec<String>,
    /// Do not run these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Report only findings that are at least this sure
    #[arg(long, value_enum, value_name = "CONFIDENCE")]
    pub min_confidence: Option<ConfidenceName>,
    /// How much to report
    #[arg(long, value_enum)]
    pub persona: Option<PersonaName>,
    /// The same as --persona pedantic
    #[arg(long, conflicts_with = "persona")]
    pub pedantic: bool,
    /// Run rules that are newer than the configuration's edition
    #[arg(long)]
    pub preview: bool,
}

/// What is written, and with which exit status.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// A format, to standard output or to a file; may be given several times
    #[arg(long, value_name = "FORMAT[=FILE]")]
    pub output_format: Vec<String>,
    /// Tells this run from others of the same tool on one commit, in SARIF
    #[arg(long, value_name = "NAME")]
    pub sarif_category: Option<String>,
    /// The highest level in SARIF: code scanning fails its own check for an error
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub sarif_max_level: Option<SarifLevel>,
    /// Print how often each rule was found, instead of the findings
    #[arg(long)]
    pub statistics: bool,
    /// Print how long each step took, to standard error
    #[arg(long)]
    pub timings: bool,
    /// Also report findings that a comment silences
    #[arg(long)]
    pub show_suppressed: bool,
    /// Print the files that would be checked, and check nothing
    #[arg(long)]
    pub show_files: bool,
    /// Print nothing but findings
    #[arg(short, long)]
    pub quiet: bool,
    /// Exit with 0 even where there are findings
    #[arg(short = 'e', long)]
    pub exit_zero: bool,
    /// The level from which a finding fails the run
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub fail_on: Option<FailOn>,
    /// Fail only where there are more failing warnings and notes than this, or an error
    #[arg(long, value_name = "N")]
    pub max_warnings: Option<usize>,
    /// When to use colour and links
    #[arg(long, value_enum, value_name = "WHEN", global = true)]
    pub color: Option<ColorWhen>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SarifLevel {
    Note,
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    #[command(flatten)]
    pub project: ProjectArgs,
    /// A table for people, or the stable JSON
    #[arg(long, value_enum, default_value_t)]
    pub output_format: ListFormat,
}

/// What `verify` takes.
#[cfg(feature = "verify")]
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub project: ProjectArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Only kernels of this name
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Confront every access with the device, not only those of findings
    #[arg(long)]
    pub all: bool,
    /// Show the generated translation units and inputs, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Seconds after which a kernel's process is ended; a fifth of them for one launch
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub timeout: f64,
    /// Keep the generated translation units and inputs in this directory
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// How many kernels run at once; more than one disturbs their times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
    /// The architecture to compile for: `auto` is the device's; with --dry-run any, such as `sm_90`
    #[arg(long, value_name = "auto|sm_XX", default_value = "auto")]
    pub arch: ArchName,
    /// Only findings of these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub rule: Vec<String>,
    /// `text` for people, versioned `json`, or the findings as `sarif` with what was measured; to standard output or to a file
    #[arg(long, value_name = "FORMAT[=FILE]")]
    pub output_format: Vec<String>,
    /// The level from which a confirmed finding fails the run; a refuted one always does
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub fail_on: Option<FailOn>,
}

/// What `verify` compiles for.
#[cfg(feature = "verify")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchName {
    /// The device's own.
    Auto,
    Named(super::super::verify::job::Arch),
}

#[cfg(feature = "verify")]
impl std::str::FromStr for ArchName {
    type Err = String;

    fn from_str(text: &str) -> Result<ArchName, String> {
        if text == "auto" { Ok(ArchName::Auto) } else { text.parse().map(ArchName::Named) }
    }
}

#[derive(Clone, Debug, Args)]
pub struct RulesArgs {
    /// The same as --output-format json
    #[arg(long)]
    pub json: bool,
    #[arg(long, value_enum, default_value_t)]
    pub output_format: ListFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    #[default]
    #[value(alias = "table")]
    Text,
    Json,
}
