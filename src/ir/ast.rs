//! The syntax that lowering executes: owned, compact, free of tree-sitter, spans into the original text.
//!
//! Nodes that were not understood are values ([`ExprKind::Unknown`], [`StmtKind::Unknown`]) with a reason,
//! so that one odd statement never costs the rest of its kernel.

use std::sync::Arc;

use super::super::source::Span;

/// An identifier. Interned: comparing is comparing pointers' text once; copying is free.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(&'static str);

impl Name {
    /// Interns `text`. Every distinct identifier is kept for the life of the process.
    pub fn new(text: &str) -> Name {
        use rustc_hash::FxHashSet;
        use std::sync::{LazyLock, RwLock};
        static TABLE: LazyLock<RwLock<FxHashSet<&'static str>>> = LazyLock::new(Default::default);
        if let Ok(table) = TABLE.read()
            && let Some(known) = table.get(text)
        {
            return Name(known);
        }
        let mut table = TABLE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = table.get(text) {
            return Name(known);
        }
        let leaked: &'static str = Box::leak(text.to_owned().into_boxed_str());
        table.insert(leaked);
        Name(leaked)
    }

    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// The member at a place, for those that have no name of their own: no name in a source is spelt so.
    pub fn member(place: usize) -> Name {
        Name::new(&format!("[{place}]"))
    }

    /// The place of a [`Name::member`].
    pub fn as_member(self) -> Option<usize> {
        self.0.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// `ns::S<T>::f<4>`: the last part is `name` with `args`; the parts before it are `scope`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub scope: Vec<PathPart>,
    pub name: Name,
    /// `None`: no `<…>` was written. `Some(vec![])`: `<>`.
    pub args: Option<Vec<TemplateArg>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PathPart {
    pub name: Name,
    pub args: Option<Vec<TemplateArg>>,
}

impl Path {
    pub fn simple(name: Name) -> Path {
        Path { scope: Vec::new(), name, args: None }
    }

    /// The name, where nothing qualifies it and it has no template arguments.
    pub fn as_simple(&self) -> Option<Name> {
        (self.scope.is_empty() && self.args.is_none()).then_some(self.name)
    }
}

/// What stands between `<` and `>`. `f<N>` cannot tell a type from a value: such a name is `Type(Named)`
/// and the executor looks it up as either.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateArg {
    Type(Type),
    Value(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub span: Span,
    pub kind: ExprKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Int {
        value: u64,
        unsigned: bool,
        long: bool,
    },
    Float {
        value: f64,
        double: bool,
    },
    Bool(bool),
    Char(i64),
    Str,
    Nullptr,
    This,
    /// A variable, constant, macro, enumerator, function, or built-in such as `threadIdx`.
    Name(Path),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a = b` (`None`) or `a op= b`.
    Assign(Option<BinaryOp>, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    Comma(Vec<Expr>),
    /// `a[i]`; more than one index only for C++23 `a[i, j]`.
    Index(Box<Expr>, Vec<Expr>),
    Field {
        base: Box<Expr>,
        member: Path,
        arrow: bool,
    },
    /// `f(args)`, `x.m(args)`, `f<T>(args)` (template arguments are in the callee's path).
    Call {
        callee: Box<Expr>,
        args: Vec<Expr>,
    },
    /// `k<T><<<grid, block, shared, stream>>>(args)`; `config` has the 2–4 expressions in order.
    Launch {
        callee: Box<Expr>,
        config: Vec<Expr>,
        args: Vec<Expr>,
    },
    Cast {
        style: CastStyle,
        ty: Box<Type>,
        operand: Box<Expr>,
    },
    /// `T(args)` for a type known by syntax (`float(x)`, `unsigned(x)`), `T{args}`, `dim3{16, 16}`.
    Construct {
        ty: Box<Type>,
        args: Vec<Expr>,
        braced: bool,
    },
    /// `{a, b}` without a type; designated initialisers keep their field name.
    InitList(Vec<(Option<Name>, Expr)>),
    SizeofType(Box<Type>),
    SizeofExpr(Box<Expr>),
    AlignofType(Box<Type>),
    Lambda(Arc<Lambda>),
    /// `args...`, `std::forward<Args>(args)...`: the pattern.
    PackExpansion(Box<Expr>),
    New {
        ty: Box<Type>,
        count: Option<Box<Expr>>,
    },
    Unknown(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Neg,
    Plus,
    Not,
    BitNot,
    Deref,
    AddrOf,
    PreInc,
    PreDec,
    PostInc,
    PostDec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `<=>`, `->*` and the like: not an index operation.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CastStyle {
    C,
    Static,
    Reinterpret,
    Const,
}

/// A type as written. `const`/`volatile` are dropped except where rules read them.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Void,
    Bool,
    /// `char` … `long long`, with `size` in bytes on LP64 (Linux; `long` is 8).
    Int {
        size: u8,
        signed: bool,
    },
    /// `float` 4, `double` 8, `long double` 16 (host only).
    Float {
        size: u8,
    },
    Auto,
    /// A user type, a CUDA vector type, `size_t`, a template parameter: resolved by the executor.
    Named(Path),
    Pointer {
        to: Box<Type>,
        is_const: bool,
        restrict: bool,
    },
    /// `T&` and `T&&`.
    Reference {
        to: Box<Type>,
        is_const: bool,
    },
    /// `T[extent]`; `None` for `[]`.
    Array {
        of: Box<Type>,
        extent: Option<Box<Expr>>,
    },
    Decltype(Box<Expr>),
    /// `Args... args`: that of each, where `Args` stands for one of the pack.
    Pack(Box<Type>),
    /// Function types, pack expansions, anything else.
    Unknown(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    pub span: Span,
    pub kind: StmtKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    Empty,
    Decl(Vec<VarDecl>),
    Expr(Expr),
    Block(Vec<Stmt>),
    If {
        is_constexpr: bool,
        init: Option<Box<Stmt>>,
        cond: Expr,
        then: Box<Stmt>,
        otherwise: Option<Box<Stmt>>,
    },
    For {
        init: Option<Box<Stmt>>,
        cond: Option<Expr>,
        step: Option<Expr>,
        body: Box<Stmt>,
    },
    RangeFor {
        var: VarDecl,
        range: Expr,
        body: Box<Stmt>,
    },
    While {
        cond: Expr,
        body: Box<Stmt>,
    },
    DoWhile {
        body: Box<Stmt>,
        cond: Expr,
    },
    Return(Option<Expr>),
    Break,
    Continue,
    Switch {
        cond: Expr,
        cases: Vec<Case>,
    },
    /// `goto`, `label:` and the like (the label's statement follows it).
    Jump,
    /// `KERNEL_LOOP(i, n) { … }` whose definition the builder does not expand: `name(args) body`.
    LoopMacro {
        name: Name,
        args: Vec<Expr>,
        body: Box<Stmt>,
    },
    /// `DISPATCH(args, { … });`: a macro with a block as its last argument. The statement begins at the name.
    BlockMacro {
        name: Name,
        /// Those before the block.
        args: Vec<Expr>,
        body: Box<Stmt>,
    },
    /// `NAME;`, `NAME` alone on its line, or `NAME(args)` without `;`: a macro used as a statement.
    /// `args` is the original text of each argument; `None` where there were no parentheses.
    Macro {
        name: Name,
        args: Option<Vec<String>>,
    },
    /// The branches of an `#if` that could not be decided, each a list of statements.
    Alternatives(Vec<Vec<Stmt>>),
    Asm(Asm),
    Alias(Alias),
    Struct(Arc<StructDef>),
    Enum(Arc<EnumDef>),
    Unknown(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `None` for `default`.
    pub value: Option<Expr>,
    pub body: Vec<Stmt>,
}

/// Inline PTX: `asm("template" : outputs : inputs)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Asm {
    pub template: String,
    pub outputs: Vec<(String, Expr)>,
    pub inputs: Vec<(String, Expr)>,
    /// `"memory"` is clobbered: no access to memory is moved across it.
    pub is_fence: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct VarDecl {
    pub name: Name,
    pub name_span: Span,
    pub span: Span,
    pub ty: Type,
    pub init: Init,
    pub storage: Storage,
    /// `__align__(n)` / `alignas(n)` on the declaration.
    pub align: Option<Box<Expr>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    None,
    /// `= e` (an [`ExprKind::InitList`] for `= {…}`).
    Assign(Box<Expr>),
    /// `T x(a, b)`; also recovered from the silent misparse as a function declarator.
    Paren(Vec<Expr>),
    /// `T x{a, b}`
    Brace(Vec<Expr>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    pub shared: bool,
    pub constant: bool,
    pub device: bool,
    pub managed: bool,
    pub external: bool,
    pub is_static: bool,
    pub is_const: bool,
    pub is_constexpr: bool,
    pub is_volatile: bool,
    /// `__restrict__` on the declarator of a parameter.
    pub restrict: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lambda {
    pub span: Span,
    /// Init captures: `p` and `pointer` of `[p = pointer]`.
    pub captures: Vec<(Name, Expr)>,
    /// `[]<int n>()`
    pub template: Vec<TemplateParam>,
    pub params: Vec<VarDecl>,
    pub body: Vec<Stmt>,
    /// `[&]` or `[&x]`; false for `[=]`.
    pub by_reference: bool,
    /// `[this]` or `[*this]`
    pub takes_this: bool,
    pub is_device: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TemplateParam {
    pub name: Name,
    pub kind: TemplateParamKind,
    pub is_pack: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TemplateParamKind {
    Type { default: Option<Type> },
    Value { ty: Type, default: Option<Expr> },
    Template,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionQualifiers {
    pub kernel: bool,
    pub device: bool,
    pub host: bool,
    pub is_static: bool,
    pub is_constexpr: bool,
    pub is_const: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDef {
    /// `f`, or `operator()`, `operator[]`, `operator+` … spelt without spaces.
    pub name: Name,
    pub name_span: Span,
    /// From the first specifier to the closing brace (or `;`).
    pub span: Span,
    /// From the opening brace's successor to the closing brace, where there is a body.
    pub body_span: Option<Span>,
    /// Enclosing namespaces and classes, outermost first; `S::f` defined outside has `S` here too.
    pub scope: Vec<Name>,
    /// The class where this is a method (inside or outside the class body).
    pub class: Option<Name>,
    /// `<half, n>` of `void vec<half, n>::load()` outside the class body.
    pub class_args: Option<Vec<TemplateArg>>,
    pub template: Vec<TemplateParam>,
    /// Explicit specialisation `f<float>`: its arguments.
    pub specialization: Option<Vec<TemplateArg>>,
    pub ret: Type,
    pub params: Vec<VarDecl>,
    pub qualifiers: FunctionQualifiers,
    /// `__launch_bounds__(max_threads, min_blocks)`.
    pub launch_bounds: Vec<Expr>,
    /// Constructor initialisers `: a(x), b{y}`.
    pub initializers: Vec<(Name, Vec<Expr>)>,
    /// `None` for a declaration.
    pub body: Option<Vec<Stmt>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StructDef {
    pub name: Name,
    pub span: Span,
    pub scope: Vec<Name>,
    pub template: Vec<TemplateParam>,
    /// Partial or full specialisation: the arguments after the name.
    pub specialization: Option<Vec<TemplateArg>>,
    pub bases: Vec<Type>,
    pub is_union: bool,
    pub align: Option<Expr>,
    /// `__attribute__((packed))`
    pub packed: bool,
    /// Non-static data members in order. An anonymous struct or union member has an empty name.
    pub fields: Vec<VarDecl>,
    /// `static constexpr int N = 4;`
    pub constants: Vec<VarDecl>,
    pub methods: Vec<Arc<FunctionDef>>,
    pub aliases: Vec<Alias>,
    pub structs: Vec<Arc<StructDef>>,
    pub enums: Vec<Arc<EnumDef>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EnumDef {
    /// Empty for an anonymous enum.
    pub name: Name,
    pub span: Span,
    pub scope: Vec<Name>,
    pub scoped: bool,
    pub underlying: Option<Type>,
    pub items: Vec<(Name, Option<Expr>)>,
}

/// `typedef T A;`, `using A = T;`, `template <…> using A = T;`
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    pub name: Name,
    pub scope: Vec<Name>,
    pub template: Vec<TemplateParam>,
    pub ty: Type,
}

/// `template __global__ void k<float, 4>(…);`
#[derive(Clone, Debug, PartialEq)]
pub struct Instantiation {
    pub function: Path,
    pub params: Vec<VarDecl>,
    pub span: Span,
}

/// `template class Solver<double>;`: every method of the class is instantiated.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassInstantiation {
    pub class: Path,
    pub span: Span,
}

/// Everything one file defines. Building one never fails: what was not understood is in `gaps`.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    pub functions: Vec<Arc<FunctionDef>>,
    pub structs: Vec<Arc<StructDef>>,
    pub enums: Vec<Arc<EnumDef>>,
    pub aliases: Vec<Alias>,
    /// File-scope variables: `__constant__`, `__device__`, `const`, `constexpr`, `extern __shared__` …
    pub globals: Vec<VarDecl>,
    pub instantiations: Vec<Instantiation>,
    pub class_instantiations: Vec<ClassInstantiation>,
    pub gaps: Vec<Gap>,
}

/// A place that was not understood, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    pub span: Span,
    pub reason: String,
}
