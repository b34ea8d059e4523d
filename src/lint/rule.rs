//! What a rule is.

use std::marker::PhantomData;

use super::finding::{Finding, RuleInfo};

/// A room under `rules/`. It decides from facts and adds what it found; levels and suppression come later.
pub trait Rule: Sync {
    fn info(&self) -> &'static RuleInfo;

    fn check(&self, cx: &Context, out: &mut Vec<Finding>);
}

/// What a rule may read: the access facts of the project.
pub struct Context<'a> {
    project: PhantomData<&'a ()>,
}
