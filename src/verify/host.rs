//! What does the text of host code say of numbers: the window it sets, the arguments it launches with?
//!
//! Of a window the last `num_bytes` and `hitRatio` before the call, and the project's one `cudaLimitPersistingL2CacheSize`, are evaluated:
//! numbers, arithmetic, `min` and `max`, `sizeof`, constants and macros, variables with one value, parameters for which
//! every call passes one number, and the limits of the device (`prop.persistingL2CacheMaxSize`). All else is unknown, with the
//! expression that is; nothing is run or guessed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::inputs::Types;
use super::job::Window;
use super::library::Found;
use crate::ir::ast::{
    BinaryOp, Expr, ExprKind, FunctionDef, Init, Name, Stmt, StmtKind, TemplateArg, Type, UnaryOp, Unit,
    VarDecl,
};
use crate::ir::facts::ClosureFact;
use crate::ir::walk;
use crate::launch::persist::{PersistFact, PersistKind};
use crate::source::{Sources, Span};

/// Calls and variables followed one into another.
const DEEPEST: u32 = 12;

/// The host code of a project.
pub struct HostCode<'a> {
    sources: &'a Sources,
    types: &'a Types<'a>,
    device: Option<&'a Found>,
    functions: Vec<Function<'a>>,
    /// File-scope variables with their only value.
    globals: FxHashMap<Name, Meaning<'a>>,
}

struct Function<'a> {
    def: &'a FunctionDef,
    variables: FxHashMap<Name, Meaning<'a>>,
    /// Variables that a step (`++i`, `n /= 2`) changes.
    changing: FxHashSet<Name>,
    settings: Vec<Setting<'a>>,
    calls: Vec<(Name, &'a [Expr])>,
    /// Each launch with its arguments.
    launches: Vec<(Span, &'a [Expr])>,
}

/// What a launch passes for one parameter, as far as the text says.
#[derive(Clone, Debug, PartialEq)]
pub enum Passed {
    /// A struct's fields, in order.
    Fields(Vec<f64>),
    /// A variable that changes from launch to launch.
    Several,
    Unknown,
}

/// What a variable is, as far as one function says.
#[derive(Clone, Copy)]
enum Meaning<'a> {
    Value(&'a Expr),
    /// Filled by `cudaDeviceGetAttribute`.
    Attribute(Name),
    /// Assigned more than once, or in another way.
    Several,
}

/// A part of a window, or the set-aside, where it is set.
struct Setting<'a> {
    what: What,
    at: Span,
    value: &'a Expr,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Bytes,
    HitRatio,
    SetAside,
}

impl<'a> HostCode<'a> {
    /// `device` gives the limits that the host code asks for; without one they are unknown.
    pub fn new(
        sources: &'a Sources,
        units: impl IntoIterator<Item = &'a Unit>,
        types: &'a Types<'a>,
        device: Option<&'a Found>,
    ) -> HostCode<'a> {
        let (mut functions, mut globals) = (Vec::new(), FxHashMap::default());
        for unit in units {
            let methods = unit.structs.iter().flat_map(|of| &of.methods);
            let hosts = unit.functions.iter().chain(methods).filter(|def| !def.qualifiers.kernel);
            functions.extend(hosts.filter_map(|def| function(def)));
            for global in &unit.globals {
                declare(&mut globals, global);
            }
        }
        HostCode { sources, types, device, functions, globals }
    }

    /// The window behind a fact; the error says what is not known of it.
    pub fn window(&self, fact: &PersistFact) -> Result<Window, String> {
        if fact.kind == PersistKind::SetAside {
            return Err("no access-policy window is set beside this set-aside".to_owned());
        }
        let function = self.around(fact.span);
        let function = function.ok_or("the function around it was not understood")?;
        let last = |what: What, name: &str| {
            let before = function.settings.iter().filter(|s| s.what == what && s.at.start < fact.span.start);
            before
                .max_by_key(|setting| setting.at.start)
                .ok_or_else(|| format!("`{name}` is not set in `{}`", fact.function))
                .and_then(|setting| {
                    self.number(setting.value, function, 0).map_err(|why| format!("`{name}`: {why}"))
                })
        };
        let bytes = last(What::Bytes, "num_bytes")?;
        let hit_ratio = last(What::HitRatio, "hitRatio")?;
        if !(hit_ratio > 0.0 && hit_ratio <= 1.0) {
            return Err(format!("`hitRatio` is {hit_ratio}"));
        }
        if bytes < 16.0 {
            return Err(format!("`num_bytes` is {bytes}"));
        }
        Ok(Window { bytes: bytes as u64, hit_ratio, set_aside: self.set_aside(fact)? as u64 })
    }

    /// What the launch at `launch` passes for the parameter at `place`.
    pub fn passed(&self, launch: Span, place: usize) -> Passed {
        let found = self.functions.iter().find_map(|function| {
            let (_, args) = function.launches.iter().find(|(span, _)| *span == launch)?;
            Some((function, args.get(place)?))
        });
        let Some((function, arg)) = found else { return Passed::Unknown };
        let fields = match &arg.kind {
            ExprKind::Construct { args, .. } => Some(args.iter().collect::<Vec<_>>()),
            ExprKind::Call { callee, args }
                if name(callee).is_some_and(|n| n.as_str().starts_with("make_")) =>
            {
                Some(args.iter().collect())
            }
            _ => None,
        };
        let fields = fields.filter(|fields| fields.len() > 1).map(|fields| {
            fields.into_iter().map(|field| self.number(field, function, 0)).collect::<Result<Vec<f64>, _>>()
        });
        if let Some(Ok(fields)) = fields {
            return Passed::Fields(fields);
        }
        let mut changes = false;
        let body = [Stmt { span: arg.span, kind: StmtKind::Expr(arg.clone()) }];
        walk::expressions(&body, &mut |part| {
            if let ExprKind::Name(path) = &part.kind {
                changes |= function.changing.contains(&path.name);
            }
        });
        if changes { Passed::Several } else { Passed::Unknown }
    }

    /// The variable or parameter that a name means at a place.
    pub fn declaration(&self, at: Span, name: &str) -> Option<&'a VarDecl> {
        let def = self.around(at)?.def;
        let mut found = def.params.iter().find(|param| param.name.as_str() == name);
        locals(def.body.as_deref().unwrap_or_default(), &mut |local| {
            if local.name.as_str() == name && local.span.start < at.start {
                found = Some(local);
            }
        });
        found
    }

    /// Whether a variable is one that C++ knows the value of when it compiles.
    pub fn is_constant(&self, variable: &VarDecl, at: Span) -> bool {
        self.is_constant_to(variable, at, 0)
    }

    fn is_constant_to(&self, variable: &VarDecl, at: Span, depth: u32) -> bool {
        let is_const = variable.storage.is_const || variable.storage.is_constexpr;
        let init = match &variable.init {
            Init::Assign(value) => std::slice::from_ref(&**value),
            Init::Paren(values) | Init::Brace(values) => values,
            Init::None => return false,
        };
        if !is_const || depth > DEEPEST {
            return false;
        }
        let body: Vec<Stmt> =
            init.iter().map(|value| Stmt { span: value.span, kind: StmtKind::Expr(value.clone()) }).collect();
        let mut known = true;
        walk::expressions(&body, &mut |part| {
            known &= match &part.kind {
                ExprKind::Name(path) => self
                    .declaration(at, path.name.as_str())
                    .is_none_or(|other| self.is_constant_to(other, at, depth + 1)),
                ExprKind::Call { .. } | ExprKind::Index(..) | ExprKind::Field { .. } | ExprKind::This => {
                    false
                }
                _ => true,
            };
        });
        known
    }

    /// Whether a step changes one of the variables that a lambda captures.
    pub fn changes(&self, fact: &ClosureFact) -> bool {
        self.around(fact.span).is_some_and(|function| {
            let captured = |name: &Name| fact.captures.iter().any(|capture| capture.name == name.as_str());
            function.changing.iter().any(captured)
        })
    }

    /// A member of the class around a lambda that its text uses.
    pub fn member_used(&self, fact: &ClosureFact) -> Option<Name> {
        let class = self.types.class(self.around(fact.span)?.def.class?)?;
        let is_member = |name: &&Name| class.fields.iter().any(|field| field.name == **name);
        fact.others.iter().find(is_member).copied()
    }

    /// The innermost function around a place: a method lies in no other function, a lambda's text in its own.
    fn around(&self, at: Span) -> Option<&Function<'a>> {
        let inside = self.functions.iter().filter(|function| function.def.span.contains(at));
        inside.min_by_key(|function| function.def.span.end - function.def.span.start)
    }

    /// The limit that is set before the window in its function, else the only one of the project.
    fn set_aside(&self, fact: &PersistFact) -> Result<f64, String> {
        let all = self.functions.iter().flat_map(|function| {
            let settings = function.settings.iter().filter(|setting| setting.what == What::SetAside);
            settings.map(move |setting| (function, setting))
        });
        // Giving the set-aside back is none.
        let all: Vec<_> =
            all.filter(|(function, setting)| self.number(setting.value, function, 0) != Ok(0.0)).collect();
        let near = all.iter().rfind(|(function, setting)| {
            function.def.span.contains(fact.span) && setting.at.start < fact.span.start
        });
        let (function, setting) = match (near, all.as_slice()) {
            (Some(near), _) | (None, [near]) => near,
            (None, []) => {
                return Err(
                    "nothing is set aside: without `cudaLimitPersistingL2CacheSize` no line persists"
                        .to_owned(),
                );
            }
            (None, _) => return Err("several sizes are set aside".to_owned()),
        };
        self.number(setting.value, function, 0).map_err(|why| format!("the set-aside: {why}"))
    }

    fn number(&self, expr: &Expr, function: &Function<'a>, depth: u32) -> Result<f64, String> {
        let unknown = || {
            let text = self.sources.text(expr.span).split_whitespace().collect::<Vec<_>>().join(" ");
            Err(format!("the value of `{text}` is not known"))
        };
        if depth > DEEPEST {
            return unknown();
        }
        let inner = |expr: &Expr| self.number(expr, function, depth + 1);
        match &expr.kind {
            ExprKind::Int { value, .. } => Ok(*value as f64),
            ExprKind::Float { value, .. } => Ok(*value),
            ExprKind::Cast { ty, operand, .. } => Ok(cast(ty, inner(operand)?)),
            ExprKind::Construct { ty, args, .. } => match args.as_slice() {
                [one] => Ok(cast(ty, inner(one)?)),
                _ => unknown(),
            },
            ExprKind::Unary(UnaryOp::Neg, of) => Ok(-inner(of)?),
            ExprKind::Unary(UnaryOp::Plus, of) => inner(of),
            ExprKind::Binary(op, a, b) => {
                let whole = is_whole(a) && is_whole(b);
                let (a, b) = (inner(a)?, inner(b)?);
                binary(*op, a, b, whole).map_or_else(unknown, Ok)
            }
            ExprKind::Ternary(condition, then, otherwise) => {
                if inner(condition)? != 0.0 {
                    inner(then)
                } else {
                    inner(otherwise)
                }
            }
            ExprKind::SizeofType(ty) => match self.types.size(ty) {
                Some(bytes) => Ok(bytes as f64),
                None => unknown(),
            },
            ExprKind::Field { member, .. } => self.limit(member.name).map_or_else(unknown, Ok),
            ExprKind::Call { callee, args } => match (name(callee).map(Name::as_str), args.as_slice()) {
                (Some("min" | "fmin" | "fminf" | "MIN"), [a, b]) => Ok(inner(a)?.min(inner(b)?)),
                (Some("max" | "fmax" | "fmaxf" | "MAX"), [a, b]) => Ok(inner(a)?.max(inner(b)?)),
                _ => unknown(),
            },
            ExprKind::Name(path) => match function.variables.get(&path.name) {
                Some(Meaning::Value(value)) => inner(value),
                Some(Meaning::Attribute(which)) => self.limit(*which).map_or_else(unknown, Ok),
                Some(Meaning::Several) => unknown(),
                None => self.outside(path.name, function, depth).map_or_else(unknown, Ok),
            },
            _ => unknown(),
        }
    }

    /// A parameter for which every call passes one number, a file-scope constant or a macro.
    fn outside(&self, name: Name, function: &Function<'a>, depth: u32) -> Option<f64> {
        if let Some(place) = function.def.params.iter().position(|param| param.name == name) {
            let calls = self.functions.iter().flat_map(|caller| {
                let here = caller.calls.iter().filter(|(callee, _)| *callee == function.def.name);
                here.map(move |(_, args)| (caller, args.get(place)))
            });
            let mut values = calls.map(|(caller, arg)| self.number(arg?, caller, depth + 1).ok());
            let first = values.next()??;
            return values.all(|value| value == Some(first)).then_some(first);
        }
        if let Some(Meaning::Value(value)) = self.globals.get(&name) {
            return self.number(value, function, depth + 1).ok();
        }
        match self.types.meaning(name)? {
            TemplateArg::Value(value) => self.number(value, function, depth + 1).ok(),
            TemplateArg::Type(_) => None,
        }
    }

    /// A limit of the device by the name of its property or attribute.
    fn limit(&self, name: Name) -> Option<f64> {
        let device = self.device?;
        let bytes = match name.as_str() {
            "l2CacheSize" | "cudaDevAttrL2CacheSize" => device.l2_bytes,
            "persistingL2CacheMaxSize" | "cudaDevAttrMaxPersistingL2CacheSize" => device.persisting_bytes,
            "accessPolicyMaxWindowSize" | "cudaDevAttrMaxAccessPolicyWindowSize" => device.window_bytes,
            _ => return None,
        };
        Some(bytes as f64)
    }
}

/// Integers stay integers, so that a cast truncates.
fn cast(ty: &Type, value: f64) -> f64 {
    match ty {
        Type::Float { .. } => value,
        _ => value.trunc(),
    }
}

/// Written without a point: the division of two such is the integers'.
fn is_whole(expr: &Expr) -> bool {
    let mut whole = true;
    let body = [Stmt { span: expr.span, kind: StmtKind::Expr(expr.clone()) }];
    walk::expressions(&body, &mut |part| {
        whole &= !matches!(&part.kind, ExprKind::Float { .. })
            && !matches!(&part.kind, ExprKind::Cast { ty, .. } | ExprKind::Construct { ty, .. }
                if matches!(**ty, Type::Float { .. }));
    });
    whole
}

fn binary(op: BinaryOp, a: f64, b: f64, whole: bool) -> Option<f64> {
    let truth = |truth: bool| Some(f64::from(u8::from(truth)));
    match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a * b),
        BinaryOp::Div if b == 0.0 => None,
        BinaryOp::Div if whole => Some((a / b).trunc()),
        BinaryOp::Div => Some(a / b),
        BinaryOp::Shl => Some(a * b.exp2()),
        BinaryOp::Shr => Some((a / b.exp2()).floor()),
        BinaryOp::Lt => truth(a < b),
        BinaryOp::Le => truth(a <= b),
        BinaryOp::Gt => truth(a > b),
        BinaryOp::Ge => truth(a >= b),
        BinaryOp::Eq => truth(a == b),
        BinaryOp::Ne => truth(a != b),
        BinaryOp::Rem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Other => None,
    }
}

/// Calls `f` for every variable that a body declares, those of lambdas in it included.
fn locals<'a>(body: &'a [Stmt], f: &mut dyn FnMut(&'a VarDecl)) {
    walk::statements(body, &mut |stmt| {
        if let StmtKind::Decl(vars) = &stmt.kind {
            vars.iter().for_each(&mut *f);
        } else if let StmtKind::RangeFor { var, .. } = &stmt.kind {
            f(var);
        }
    });
    walk::expressions(body, &mut |expr| {
        if let ExprKind::Lambda(lambda) = &expr.kind {
            lambda.params.iter().for_each(&mut *f);
            walk::statements(&lambda.body, &mut |stmt| {
                if let StmtKind::Decl(vars) = &stmt.kind {
                    vars.iter().for_each(&mut *f);
                }
            });
        }
    });
}

fn function(def: &FunctionDef) -> Option<Function<'_>> {
    let body = def.body.as_deref()?;
    let mut function = Function {
        def,
        variables: FxHashMap::default(),
        changing: FxHashSet::default(),
        settings: Vec::new(),
        calls: Vec::new(),
        launches: Vec::new(),
    };
    walk::statements(body, &mut |stmt| {
        if let StmtKind::Decl(vars) = &stmt.kind {
            vars.iter().for_each(|var| declare(&mut function.variables, var));
        }
    });
    walk::expressions(body, &mut |expr| match &expr.kind {
        ExprKind::Assign(op, to, value) => match (&to.kind, op) {
            (ExprKind::Field { member, .. }, None) => {
                field(&mut function, member.name.as_str(), expr.span, value)
            }
            (ExprKind::Name(path), None) => assign(&mut function.variables, path.name, Meaning::Value(value)),
            (ExprKind::Name(path), Some(_)) => {
                function.changing.insert(path.name);
                assign(&mut function.variables, path.name, Meaning::Several);
            }
            _ => {}
        },
        ExprKind::InitList(items) => list(&mut function, expr.span, items),
        ExprKind::Unary(UnaryOp::PreInc | UnaryOp::PreDec | UnaryOp::PostInc | UnaryOp::PostDec, of) => {
            if let Some(name) = name(of) {
                function.changing.insert(name);
                assign(&mut function.variables, name, Meaning::Several);
            }
        }
        ExprKind::Launch { args, .. } => function.launches.push((expr.span, args)),
        ExprKind::Call { callee, args } => call(&mut function, expr.span, callee, args),
        _ => {}
    });
    Some(function)
}

fn field<'a>(function: &mut Function<'a>, member: &str, at: Span, value: &'a Expr) {
    let what = match member {
        "num_bytes" => What::Bytes,
        "hitRatio" => What::HitRatio,
        _ => return,
    };
    function.settings.push(Setting { what, at, value });
}

/// `{base, bytes, ratio, hit, miss}`, where the fourth is a property, or with the fields' names.
fn list<'a>(function: &mut Function<'a>, at: Span, items: &'a [(Option<Name>, Expr)]) {
    for (field_name, value) in items {
        if let Some(field_name) = field_name {
            field(function, field_name.as_str(), at, value);
        }
    }
    if let [(None, _), (None, bytes), (None, ratio), (None, hit), ..] = items
        && name(hit).is_some_and(|name| {
            name.as_str().contains("ccessProperty") || name.as_str().contains("ACCESS_PROPERTY")
        })
    {
        function.settings.push(Setting { what: What::Bytes, at, value: bytes });
        function.settings.push(Setting { what: What::HitRatio, at, value: ratio });
    }
}

fn call<'a>(function: &mut Function<'a>, at: Span, callee: &Expr, args: &'a [Expr]) {
    let Some(callee) = name(callee) else { return };
    function.calls.push((callee, args));
    match (callee.as_str(), args) {
        ("cudaDeviceSetLimit" | "cuCtxSetLimit", [limit, value])
            if name(limit).is_some_and(|name| {
                ["cudaLimitPersistingL2CacheSize", "CU_LIMIT_PERSISTING_L2_CACHE_SIZE"]
                    .contains(&name.as_str())
            }) =>
        {
            function.settings.push(Setting { what: What::SetAside, at, value });
        }
        ("cudaDeviceGetAttribute", [to, which, ..]) => {
            if let (Some(to), Some(which)) = (pointee(to), name(which)) {
                assign(&mut function.variables, to, Meaning::Attribute(which));
            }
        }
        _ => {
            // What gets a variable's address may change it.
            for to in args.iter().filter_map(pointee) {
                assign(&mut function.variables, to, Meaning::Several);
            }
        }
    }
}

/// `x` of `&x`.
fn pointee(expr: &Expr) -> Option<Name> {
    match &expr.kind {
        ExprKind::Unary(UnaryOp::AddrOf, of) => name(of),
        ExprKind::Cast { operand, .. } => pointee(operand),
        _ => None,
    }
}

fn name(expr: &Expr) -> Option<Name> {
    match &expr.kind {
        ExprKind::Name(path) => Some(path.name),
        ExprKind::Cast { operand, .. } => name(operand),
        _ => None,
    }
}

fn declare<'a>(variables: &mut FxHashMap<Name, Meaning<'a>>, var: &'a VarDecl) {
    match &var.init {
        Init::None => {}
        Init::Assign(value) => assign(variables, var.name, Meaning::Value(value)),
        Init::Paren(args) | Init::Brace(args) => match args.as_slice() {
            [one] => assign(variables, var.name, Meaning::Value(one)),
            [] => {}
            _ => assign(variables, var.name, Meaning::Several),
        },
    }
}

fn assign<'a>(variables: &mut FxHashMap<Name, Meaning<'a>>, name: Name, meaning: Meaning<'a>) {
    variables.entry(name).and_modify(|known| *known = Meaning::Several).or_insert(meaning);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::persist;
    use crate::lint::check::{Input, analyze};
    use crate::source::SourceFile;

    const DEVICE: fn() -> Found = || Found {
        name: "a device".to_owned(),
        arch: 90,
        l2_bytes: 60 << 20,
        persisting_bytes: 37 << 20,
        window_bytes: 128 << 20,
    };

    fn window(before: &str, bytes: &str, device: Option<&Found>) -> Result<Window, String> {
        let text = format!(
            "#define SHARE 0.5f\n\
             void run(cudaStream_t stream, float* table, size_t given) {{\n{before}\n\
             cudaStreamAttrValue attr = {{}};\n\
             attr.accessPolicyWindow.num_bytes = {bytes};\n\
             attr.accessPolicyWindow.hitRatio = SHARE;\n\
             attr.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;\n\
             cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &attr);\n}}\n\
             int main() {{ run(0, table, 1 << 20); run(1, table, 1 << 20); }}\n"
        );
        let mut input = Input::default();
        input.checked.push(input.sources.add(SourceFile::new("a.cu", text)));
        let known = analyze(&input);
        let facts = persist::facts(&known.project, &input.sources);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let mut types = Types::of(units());
        types.define("SHARE", "0.5f");
        HostCode::new(&input.sources, units(), &types, device)
            .window(facts.iter().find(|fact| fact.kind == PersistKind::StreamWindow).expect("a window"))
    }

    #[test]
    fn sizes_that_the_text_says() {
        let aside = "cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 8 * 1024 * 1024);";
        let wanted = |bytes| Ok(Window { bytes, hit_ratio: 0.5, set_aside: 8 << 20 });
        assert_eq!(window(aside, "1 << 20", None), wanted(1 << 20));
        assert_eq!(window(aside, "given", None), wanted(1 << 20));
        let count = format!("{aside} const int n = 1000; size_t bytes = n * sizeof(float);");
        assert_eq!(window(&count, "bytes", None), wanted(4000));
        assert_eq!(window(aside, "int(1000 * 0.75)", None), wanted(750));
    }

    #[test]
    fn limits_of_the_device() {
        let device = DEVICE();
        let aside = "cudaDeviceProp prop; cudaGetDeviceProperties(&prop, 0);\n\
                     size_t size = std::min(int(prop.l2CacheSize * 0.5), prop.persistingL2CacheMaxSize);\n\
                     cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, size);";
        let bytes = "std::min((size_t)prop.accessPolicyMaxWindowSize, given)";
        let found = window(aside, bytes, Some(&device));
        assert_eq!(found, Ok(Window { bytes: 1 << 20, hit_ratio: 0.5, set_aside: 30 << 20 }));
        assert!(window(aside, bytes, None).is_err_and(|why| why.contains("accessPolicyMaxWindowSize")));
    }

    #[test]
    fn arguments_of_launches() {
        let text = "void run(float* p, int log2N, int n) {\n\
                    for (int s = 1; s < 33; s++) k<<<1, 32>>>(p, s * 2, n, make_int4(2, 1, 0, 0));\n\
                    for (; log2N > 11; log2N -= 2) k<<<1, 32>>>(p, log2N, n, dims);\n}\n";
        let mut input = Input::default();
        input.checked.push(input.sources.add(SourceFile::new("a.cu", text.to_owned())));
        let known = analyze(&input);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let types = Types::of(units());
        let host = HostCode::new(&input.sources, units(), &types, None);
        let passed = |line: usize| -> Vec<Passed> {
            let mut all = host.functions.iter().flat_map(|function| &function.launches);
            let (span, _) = all.nth(line).expect("a launch");
            (0..4).map(|place| host.passed(*span, place)).collect()
        };
        let fields = Passed::Fields(vec![2.0, 1.0, 0.0, 0.0]);
        assert_eq!(passed(0), [Passed::Unknown, Passed::Several, Passed::Unknown, fields]);
        assert_eq!(passed(1), [Passed::Unknown, Passed::Several, Passed::Unknown, Passed::Unknown]);
    }

    #[test]
    fn what_is_not_known_is_named() {
        let why = |before: &str, bytes| window(before, bytes, None).expect_err("unknown");
        assert!(why("", "1 << 20").contains("nothing is set aside"));
        let aside = "cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);";
        assert_eq!(why(aside, "ask()"), "`num_bytes`: the value of `ask()` is not known");
        let twice = format!("{aside} size_t n = 16; if (stream) n = 32;");
        assert_eq!(why(&twice, "n"), "`num_bytes`: the value of `n` is not known");
    }
}
