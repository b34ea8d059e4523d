//! Which host code leaves L2 lines persisting, and whether anything frees them afterwards?
//!
//! Lines that an access-policy window fetched with `cudaAccessPropertyPersisting` stay in the set-aside part of L2 until
//! `cudaCtxResetPersistingL2Cache`, until they are touched with the normal property, or until the set-aside is given
//! back. Clearing the window (`num_bytes = 0`) frees nothing. A function's events are read in the order of its text;
//! what frees the lines may follow in the function itself, in what it calls, in its callers after the call, in its class,
//! or in the destructor of a guard.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::ast::{Expr, ExprKind, FunctionDef, Name, UnaryOp};
use crate::ir::walk;
use crate::lower::project::Project;
use crate::source::{FileId, Sources, Span};

/// What makes L2 lines persist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PersistKind {
    /// `cudaStreamSetAttribute`
    StreamWindow,
    /// `cudaGraphKernelNodeSetAttribute`
    GraphNodeWindow,
    /// `cudaLaunchKernelEx` with an access-policy window among its attributes.
    LaunchWindow,
    /// `cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, …)`
    SetAside,
}

/// A call that makes L2 lines persist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistFact {
    pub kind: PersistKind,
    /// The call.
    pub span: Span,
    /// The function around it.
    pub function: String,
    /// Where the hit property becomes persisting.
    pub property: Option<Span>,
    /// Where the window is cleared later in the function, which frees no line.
    pub cleared: Option<Span>,
    /// Where the lines are freed afterwards.
    pub released: Option<Span>,
}

/// The facts of a project, by file and position.
pub fn facts(project: &Project, sources: &Sources) -> Vec<PersistFact> {
    let speaks = |id: &FileId| {
        let text = &sources.get(*id).text;
        ["AccessPropertyPersisting", "PersistingL2CacheSize", "ACCESS_PROPERTY_PERSISTING", "PERSISTING_L2"]
            .iter()
            .any(|word| text.contains(word))
    };
    if !sources.ids().any(|id| speaks(&id)) {
        return Vec::new();
    }
    let functions = functions(project);
    let graph = Graph::of(sources, &functions);
    let mut facts: Vec<PersistFact> = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        for event in &function.events {
            if let Event::Persist { kind, span, property } = *event {
                facts.push(PersistFact {
                    kind,
                    span,
                    function: function.def.name.to_string(),
                    property,
                    cleared: function.cleared_after(span),
                    released: graph.released_after(at, span),
                });
            }
        }
    }
    facts.sort_by_key(|fact| (fact.span, fact.kind));
    facts.dedup();
    facts
}

/// What a host function does to the persisting lines, in the order of its text.
enum Event {
    Persist { kind: PersistKind, span: Span, property: Option<Span> },
    Cleared { span: Span },
    Released { span: Span },
    Call { span: Span, callee: Name },
}

impl Event {
    fn span(&self) -> Span {
        match *self {
            Event::Persist { span, .. }
            | Event::Cleared { span }
            | Event::Released { span }
            | Event::Call { span, .. } => span,
        }
    }
}

struct HostFunction {
    def: Arc<FunctionDef>,
    events: Vec<Event>,
}

impl HostFunction {
    fn cleared_after(&self, span: Span) -> Option<Span> {
        self.events.iter().find_map(|event| match *event {
            Event::Cleared { span: cleared } if cleared.start > span.start => Some(cleared),
            _ => None,
        })
    }
}

fn functions(project: &Project) -> Vec<HostFunction> {
    let units = project.files.iter().map(|file| &file.unit);
    let all = units
        .flat_map(|unit| unit.functions.iter().chain(unit.structs.iter().flat_map(|of| of.methods.iter())));
    let mut seen = FxHashSet::default();
    all.filter(|def| def.body.is_some() && !def.qualifiers.kernel)
        .filter(|def| def.qualifiers.host || !def.qualifiers.device)
        .filter(|def| seen.insert(def.span))
        .map(|def| HostFunction {
            def: def.clone(),
            events: Reader::read(def.body.as_deref().unwrap_or(&[])),
        })
        .collect()
}

// Reading a function.

/// What is known of one attribute or window variable.
#[derive(Clone, Copy, Default)]
struct Window {
    property: Option<Span>,
    is_normal: bool,
    is_cleared: bool,
}

#[derive(Default)]
struct Reader {
    windows: FxHashMap<Name, Window>,
    /// The last window written, for calls whose argument is not a variable of the function.
    last: Window,
    /// Variables that hold the limit as it was before.
    saved: FxHashSet<Name>,
    is_launch_attribute: bool,
    events: Vec<Event>,
}

impl Reader {
    fn read(body: &[crate::ir::ast::Stmt]) -> Vec<Event> {
        let mut reader = Reader::default();
        walk::expressions(body, &mut |expr| reader.expression(expr));
        reader.events
    }

    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Assign(None, to, value) => self.assignment(expr.span, to, value),
            ExprKind::InitList(items) => {
                let is_hit = |(at, item): (usize, &(Option<Name>, Expr))| match item.0 {
                    Some(name) => name.as_str() == "hitProp",
                    None => at == 3,
                };
                let persisting = items.iter().enumerate().find(|&(at, item)| {
                    is_hit((at, item)) && property(&item.1) == Some(Property::Persisting)
                });
                if let Some((_, (_, value))) = persisting {
                    self.last = Window { property: Some(value.span), ..Window::default() };
                }
            }
            ExprKind::Call { callee, args } => self.call(expr.span, callee, args),
            _ => {}
        }
    }

    fn assignment(&mut self, span: Span, to: &Expr, value: &Expr) {
        let ExprKind::Field { member, .. } = &to.kind else { return };
        let root = root(to);
        let mut window = root.and_then(|root| self.windows.get(&root)).copied().unwrap_or(self.last);
        match (member.name.as_str(), property(value)) {
            ("hitProp", Some(Property::Persisting)) => {
                window = Window { property: Some(span), is_normal: false, ..window };
            }
            ("hitProp", Some(Property::Normal)) => {
                window = Window { property: None, is_normal: true, ..window };
            }
            ("hitProp", Some(Property::Streaming)) => {
                window = Window { property: None, is_normal: false, ..window };
            }
            ("num_bytes", _) => window.is_cleared = is_zero(value),
            ("accessPolicyWindow", _) => {
                let from = self::root(value).and_then(|from| self.windows.get(&from));
                window = from.copied().unwrap_or(self.last);
            }
            ("id", _) => {
                self.is_launch_attribute |=
                    name_of(value).is_some_and(|name| WINDOW_ATTRIBUTES.contains(&name.as_str()));
                return;
            }
            _ => return,
        }
        self.last = window;
        if let Some(root) = root {
            self.windows.insert(root, window);
        }
    }

    fn call(&mut self, span: Span, callee: &Expr, args: &[Expr]) {
        let callee = match &callee.kind {
            ExprKind::Name(path) => path.name,
            ExprKind::Field { member, .. } => member.name,
            _ => return,
        };
        let is = |at: usize, names: &[&str]| {
            args.get(at).and_then(name_of).is_some_and(|name| names.contains(&name.as_str()))
        };
        match callee.as_str() {
            "cudaStreamSetAttribute" | "cuStreamSetAttribute" if is(1, WINDOW_ATTRIBUTES) => {
                self.window(PersistKind::StreamWindow, span, args.get(2));
            }
            "cudaGraphKernelNodeSetAttribute" | "cuGraphKernelNodeSetAttribute"
                if is(1, WINDOW_ATTRIBUTES) =>
            {
                self.window(PersistKind::GraphNodeWindow, span, args.get(2));
            }
            "cudaLaunchKernelEx" | "cudaLaunchKernelExC" | "cuLaunchKernelEx" if self.is_launch_attribute => {
                self.window(PersistKind::LaunchWindow, span, None);
            }
            "cudaCtxResetPersistingL2Cache" | "cuCtxResetPersistingL2Cache" | "cudaDeviceReset" => {
                self.events.push(Event::Released { span });
            }
            "cudaDeviceGetLimit" | "cuCtxGetLimit" if is(1, LIMITS) => {
                self.saved.extend(args.first().and_then(root));
            }
            "cudaDeviceSetLimit" | "cuCtxSetLimit" if is(0, LIMITS) => {
                let is_back = args.get(1).is_some_and(|size| {
                    is_zero(size) || root(size).is_some_and(|name| self.saved.contains(&name))
                });
                self.events.push(if is_back {
                    Event::Released { span }
                } else {
                    Event::Persist { kind: PersistKind::SetAside, span, property: None }
                });
            }
            _ => self.events.push(Event::Call { span, callee }),
        }
    }

    /// A window is set: persisting, normal, or cleared.
    fn window(&mut self, kind: PersistKind, span: Span, attribute: Option<&Expr>) {
        let known = attribute.and_then(root).and_then(|root| self.windows.get(&root));
        let window = known.copied().unwrap_or(self.last);
        if window.is_cleared {
            self.events.push(Event::Cleared { span });
        } else if window.is_normal {
            self.events.push(Event::Released { span });
        } else if window.property.is_some() {
            self.events.push(Event::Persist { kind, span, property: window.property });
        }
    }
}

const WINDOW_ATTRIBUTES: &[&str] = &[
    "cudaStreamAttributeAccessPolicyWindow",
    "cudaKernelNodeAttributeAccessPolicyWindow",
    "cudaLaunchAttributeAccessPolicyWindow",
    "CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW",
    "CU_KERNEL_NODE_ATTRIBUTE_ACCESS_POLICY_WINDOW",
    "CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW",
];

const LIMITS: &[&str] = &["cudaLimitPersistingL2CacheSize", "CU_LIMIT_PERSISTING_L2_CACHE_SIZE"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Property {
    Normal,
    Streaming,
    Persisting,
}

fn property(value: &Expr) -> Option<Property> {
    match name_of(value)?.as_str() {
        "cudaAccessPropertyPersisting" | "CU_ACCESS_PROPERTY_PERSISTING" => Some(Property::Persisting),
        "cudaAccessPropertyNormal" | "CU_ACCESS_PROPERTY_NORMAL" => Some(Property::Normal),
        "cudaAccessPropertyStreaming" | "CU_ACCESS_PROPERTY_STREAMING" => Some(Property::Streaming),
        _ => None,
    }
}

/// The name an expression is, without casts and scopes.
fn name_of(expr: &Expr) -> Option<Name> {
    match &expr.kind {
        ExprKind::Name(path) => Some(path.name),
        ExprKind::Cast { operand, .. } => name_of(operand),
        _ => None,
    }
}

/// The variable an expression leads to: `attr` of `&attr.val[0].accessPolicyWindow`.
fn root(expr: &Expr) -> Option<Name> {
    match &expr.kind {
        ExprKind::Name(path) => path.as_simple(),
        ExprKind::Field { base, .. } | ExprKind::Index(base, _) => root(base),
        ExprKind::Unary(UnaryOp::AddrOf | UnaryOp::Deref, base) => root(base),
        ExprKind::Cast { operand, .. } => root(operand),
        _ => None,
    }
}

fn is_zero(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int { value, .. } => *value == 0,
        ExprKind::Cast { operand, .. } => is_zero(operand),
        _ => false,
    }
}

// Who frees what.

struct Graph<'a> {
    functions: &'a [HostFunction],
    /// Where each function frees lines, itself or through what it calls.
    releases: Vec<Option<Span>>,
    /// Callers of a name: the function and the call.
    callers: FxHashMap<Name, Vec<(usize, Span)>>,
    /// Names and classes of functions that free lines, with the place.
    names: FxHashMap<Name, Span>,
    classes: FxHashMap<Name, Vec<(Name, Span)>>,
}

impl<'a> Graph<'a> {
    fn of(sources: &Sources, functions: &'a [HostFunction]) -> Graph<'a> {
        let mut callers: FxHashMap<Name, Vec<(usize, Span)>> = FxHashMap::default();
        for (at, function) in functions.iter().enumerate() {
            for event in &function.events {
                if let Event::Call { span, callee } = *event {
                    callers.entry(callee).or_default().push((at, span));
                }
            }
        }
        let direct = |function: &HostFunction| {
            function.events.iter().find_map(|event| match *event {
                Event::Released { span } => Some(span),
                _ => None,
            })
        };
        let releases = functions.iter().map(direct).collect();
        let (names, classes) = (FxHashMap::default(), FxHashMap::default());
        let mut graph = Graph { functions, releases, callers, names, classes };
        graph.spread(sources);
        for (function, release) in functions.iter().zip(&graph.releases) {
            let Some(span) = *release else { continue };
            graph.names.entry(function.def.name).or_insert(span);
            if let Some(class) = function.def.class {
                graph.classes.entry(class).or_default().push((function.def.name, span));
            }
        }
        graph
    }

    /// Callers of what frees lines free lines; so do users of a guard whose destructor does.
    fn spread(&mut self, sources: &Sources) {
        let mut open: Vec<usize> =
            (0..self.functions.len()).filter(|&at| self.release(at).is_some()).collect();
        while let Some(at) = open.pop() {
            let (Some(function), Some(span)) = (self.functions.get(at), self.release(at)) else { continue };
            let name = function.def.name;
            let callers = self.callers.get(&name).into_iter().flatten().map(|&(caller, _)| caller);
            let mut found: Vec<usize> = callers.collect();
            if let Some(class) = function.def.class.filter(|_| name.as_str().starts_with('~')) {
                let uses =
                    |of: &HostFunction| of.def.class != Some(class) && says(sources.text(of.def.span), class);
                found
                    .extend((0..self.functions.len()).filter(|&at| self.functions.get(at).is_some_and(uses)));
            }
            for at in found {
                if let Some(slot) = self.releases.get_mut(at).filter(|slot| slot.is_none()) {
                    *slot = Some(span);
                    open.push(at);
                }
            }
        }
    }

    fn release(&self, at: usize) -> Option<Span> {
        self.releases.get(at).copied().flatten()
    }

    /// Where lines are freed after a call in a function: later in it, in its class, or later in its callers.
    fn released_after(&self, at: usize, call: Span) -> Option<Span> {
        let mut seen = FxHashSet::default();
        let mut open = vec![(at, call)];
        while let Some((at, call)) = open.pop() {
            let Some(function) = self.functions.get(at) else { continue };
            if !seen.insert((at, call.start)) {
                continue;
            }
            if let Some(span) = self.later(at, call).or_else(|| self.in_class(function)) {
                return Some(span);
            }
            open.extend(self.callers.get(&function.def.name).into_iter().flatten());
        }
        None
    }

    fn later(&self, at: usize, call: Span) -> Option<Span> {
        let events = &self.functions.get(at)?.events;
        let freed = |event: &Event| match *event {
            Event::Released { span } => Some(span),
            Event::Call { callee, .. } => self.names.get(&callee).copied(),
            Event::Persist { .. } | Event::Cleared { .. } => None,
        };
        let later = events.iter().filter(|event| event.span().start > call.start).find_map(freed);
        // Lines are freed although no event of the function's own does it: by a guard's destructor.
        let by_guard =
            || if events.iter().any(|event| freed(event).is_some()) { None } else { self.release(at) };
        later.or_else(by_guard)
    }

    /// Another method of the class frees lines.
    fn in_class(&self, function: &HostFunction) -> Option<Span> {
        let methods = self.classes.get(&function.def.class?)?;
        methods.iter().find(|(name, _)| *name != function.def.name).map(|&(_, span)| span)
    }
}

/// Whether a text has `name` as a word.
fn says(text: &str, name: Name) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name.as_str()).any(|(at, word)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}
