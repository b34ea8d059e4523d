//! What a rule is.

use super::finding::{Finding, RuleInfo};
use crate::ir::facts::KernelFact;
use crate::launch::persist::PersistFact;
use crate::lower::project::Project;
use crate::source::Sources;

/// A room under `rules/`. It decides from facts and adds what it found; levels and suppression come later.
pub trait Rule: Sync {
    fn info(&self) -> &'static RuleInfo;

    fn check(&self, cx: &Context, out: &mut Vec<Finding>);
}

/// What a rule may read: the access facts of the project.
pub struct Context<'a> {
    pub sources: &'a Sources,
    /// Every kernel in every launch, by file and position.
    pub kernels: &'a [KernelFact],
    pub project: &'a Project,
    /// Host calls that make L2 lines persist, by file and position.
    pub persisting: &'a [PersistFact],
    /// Report what is eligible, not only what pays.
    pub pedantic: bool,
}
