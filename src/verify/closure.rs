//! Lambdas that launches pass: for each a class with a name, whose members hold what the lambda captures.
//!
//! A closure's type cannot be named, so no instance of a kernel can be asked for with it. What the analysis knows of the captures
//! ([`ClosureFact`]) and what the host code declares are the members; where one of them cannot be made, that is the reason why
//! the kernel is not run.

use super::host::HostCode;
use super::inputs::parsed;
use super::slice::Functor;
use crate::ir::ast::{Path, TemplateArg, Type, VarDecl};
use crate::ir::facts::{CaptureFact, ClosureFact, KernelFact};
use crate::source::{Sources, Span};

/// Begins the classes' names.
pub const PREFIX: &str = "cudalint_lambda_";

/// A lambda as a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Closure {
    pub name: String,
    pub lambda: Span,
    /// Names of types that its text uses, and what they stand for in the host.
    pub types: Vec<(String, String)>,
    /// Constants of the host: type, name and value.
    pub constants: Vec<(String, String, String)>,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub name: String,
    /// `T* in`
    pub declared: String,
    /// The same with what the host's names stand for: `float* in`.
    pub resolved: String,
    pub holds: Holds,
    /// What is known of the numbers in it, in their order.
    pub numbers: Vec<Option<f64>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Holds {
    Value(Type),
    Closure(Box<Closure>),
}

impl Closure {
    /// This and the lambdas that it holds, those first.
    pub fn functors(&self) -> Vec<Functor> {
        let inner = self.members.iter().filter_map(|member| match &member.holds {
            Holds::Closure(inner) => Some(inner.functors()),
            Holds::Value(_) => None,
        });
        let mut found: Vec<Functor> = inner.flatten().collect();
        let mut members = String::new();
        for (name, ty) in &self.types {
            members.push_str(&format!("using {name} = {ty};\n"));
        }
        for (ty, name, value) in &self.constants {
            members.push_str(&format!("static constexpr {ty} {name} = {value};\n"));
        }
        for member in &self.members {
            members.push_str(&format!("{};\n", member.declared));
        }
        found.push(Functor { name: self.name.clone(), lambda: self.lambda, members });
        found
    }
}

/// The classes for the lambdas that the launch of a kernel passes, by parameter; `most` is what numbers are cut to.
pub fn closures(
    kernel: &KernelFact,
    host: &HostCode,
    sources: &Sources,
    most: Option<f64>,
) -> Result<Vec<(String, Closure)>, String> {
    let mut maker = Maker { host, sources, most, count: 0 };
    let passed = kernel.params.iter().filter_map(|param| Some((param, param.closure.as_ref()?)));
    passed
        .map(|(param, fact)| {
            let made = maker.closure(fact);
            let made = made.map_err(|why| format!("the lambda that is passed for `{}` {why}", param.name))?;
            Ok((param.name.clone(), made))
        })
        .collect()
}

struct Maker<'m, 'a> {
    host: &'m HostCode<'a>,
    sources: &'m Sources,
    most: Option<f64>,
    count: usize,
}

impl Maker<'_, '_> {
    /// The error goes on from "the lambda".
    fn closure(&mut self, fact: &ClosureFact) -> Result<Closure, String> {
        if fact.takes_this {
            return Err("captures the object that it stands in".to_owned());
        }
        if let Some(member) = self.host.member_used(fact) {
            return Err(format!("uses `{member}`, a member of the object that it stands in"));
        }
        let mut constants = Vec::new();
        let mut members = Vec::new();
        for capture in &fact.captures {
            let declaration = self.host.declaration(fact.span, &capture.name).filter(|_| !capture.is_new);
            match declaration.and_then(|declaration| self.constant(capture, declaration, fact.span)) {
                Some((ty, value)) => constants.push((ty, capture.name.clone(), value)),
                None if fact.by_reference => {
                    return Err(format!("captures by reference, `{}` among others", capture.name));
                }
                None => members.push(self.member(capture, declaration)?),
            }
        }
        let mut types = Vec::new();
        let text = self.sources.text(fact.span);
        let texts = || members.iter().map(|member| member.declared.as_str()).chain([text]);
        let is_used = |name: &str| texts().any(|text| words(text).any(|word| word == name));
        for (name, ty) in fact.types.iter().filter(|(name, _)| is_used(name)) {
            match ty {
                Some(ty) if ty != name => types.push((name.clone(), ty.clone())),
                Some(_) => return Err(format!("uses `{name}`, a type of the host function's own")),
                None => return Err(format!("uses `{name}`, of which it is not seen what it stands for")),
            }
        }
        for (name, value) in fact.constants.iter().filter(|(name, _)| is_used(name)) {
            let value = value.ok_or_else(|| format!("uses `{name}`, whose value is not known"))?;
            constants.push(("auto".to_owned(), name.clone(), value.to_string()));
        }
        let name = format!("{PREFIX}{}", self.count);
        self.count += 1;
        Ok(Closure { name, lambda: fact.span, types, constants, members })
    }

    fn member(&mut self, capture: &CaptureFact, declaration: Option<&VarDecl>) -> Result<Member, String> {
        let name = &capture.name;
        if let Some(fact) = &capture.closure {
            let inner =
                self.closure(fact).map_err(|why| format!("captures another, `{name}`, which {why}"))?;
            let declared = format!("{} {name}", inner.name);
            let (resolved, holds) = (declared.clone(), Holds::Closure(Box::new(inner)));
            return Ok(Member { name: name.clone(), declared, resolved, holds, numbers: Vec::new() });
        }
        let unseen = || format!("captures `{name}`, whose type is not seen");
        let written = declaration.filter(|declaration| !matches!(unreferenced(&declaration.ty), Type::Auto));
        let (ty, declared) = match written {
            Some(declaration) => {
                let ty = unreferenced(&declaration.ty);
                let declared = self.declared(ty, name).ok_or_else(unseen)?;
                let volatile = if declaration.storage.is_volatile { "volatile " } else { "" };
                (ty.clone(), format!("{volatile}{declared}"))
            }
            None => match parsed(&capture.ty).filter(|_| !capture.ty.contains('?') && capture.ty != "auto") {
                Some(TemplateArg::Type(ty)) => (ty, format!("{} {name}", capture.ty)),
                Some(TemplateArg::Value(_)) | None => return Err(unseen()),
            },
        };
        let cut = |number: f64| self.most.map_or(number, |most| number.min(most));
        let numbers = capture.numbers.iter().map(|number| number.map(cut)).collect();
        let is_plain = !matches!(ty, Type::Array { .. }) && !capture.ty.contains('?');
        let resolved = if is_plain { format!("{} {name}", capture.ty) } else { declared.clone() };
        Ok(Member { name: name.clone(), declared, resolved, holds: Holds::Value(ty), numbers })
    }

    /// Type and value of a constant: the lambda does not capture it, and may use it where only a constant will do.
    fn constant(&self, capture: &CaptureFact, declaration: &VarDecl, at: Span) -> Option<(String, String)> {
        let [Some(value)] = capture.numbers.as_slice() else { return None };
        if !self.host.is_constant(declaration, at) {
            return None;
        }
        let Some(TemplateArg::Type(ty)) = parsed(&capture.ty) else { return None };
        let is_exact = declaration.storage.is_constexpr || matches!(ty, Type::Int { .. } | Type::Bool);
        let ty = self.spelt(&declaration.ty).unwrap_or_else(|| capture.ty.clone());
        is_exact.then(|| (ty, value.to_string()))
    }

    /// A type with the name that it declares.
    fn declared(&self, ty: &Type, name: &str) -> Option<String> {
        if let Type::Array { of, extent: Some(extent) } = ty {
            return self.declared(of, &format!("{name}[{}]", self.sources.text(extent.span)));
        }
        Some(format!("{} {name}", self.spelt(ty)?))
    }

    fn spelt(&self, ty: &Type) -> Option<String> {
        Some(match ty {
            Type::Void => "void".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int { size, signed } => {
                let sign = if *signed { "" } else { "unsigned " };
                let base = match size {
                    1 => "char",
                    2 => "short",
                    4 => "int",
                    _ => "long long",
                };
                format!("{sign}{base}")
            }
            Type::Float { size: 4 } => "float".to_owned(),
            Type::Float { .. } => "double".to_owned(),
            Type::Named(path) => self.path(path)?,
            Type::Pointer { to, is_const, .. } => {
                format!("{}{}*", if *is_const { "const " } else { "" }, self.spelt(to)?)
            }
            Type::Reference { .. }
            | Type::Array { .. }
            | Type::Auto
            | Type::Decltype(_)
            | Type::Pack(_)
            | Type::Unknown(_) => return None,
        })
    }

    fn path(&self, path: &Path) -> Option<String> {
        let part = |name: &str, args: &Option<Vec<TemplateArg>>| {
            let Some(args) = args else { return Some(name.to_owned()) };
            let args: Option<Vec<String>> = args
                .iter()
                .map(|arg| match arg {
                    TemplateArg::Type(ty) => self.spelt(ty),
                    TemplateArg::Value(value) => Some(self.sources.text(value.span).to_owned()),
                })
                .collect();
            Some(format!("{name}<{}>", args?.join(", ")))
        };
        let scope = path.scope.iter().map(|of| part(of.name.as_str(), &of.args));
        let parts: Option<Vec<String>> = scope.chain([part(path.name.as_str(), &path.args)]).collect();
        Some(parts?.join("::"))
    }
}

fn unreferenced(ty: &Type) -> &Type {
    match ty {
        Type::Reference { to, .. } => unreferenced(to),
        ty => ty,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::exact::Exact;
    use super::super::inputs::Types;
    use super::super::job::{Arg, Job, Prediction};
    use super::super::plan::{Given, Planner};
    use super::*;
    use crate::lint::check::{Input, analyze};
    use crate::source::SourceFile;

    const KERNEL: &str = "template <class F> __global__ void each(int n, F f) {\n\
                          int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) f(i); }\n\
                          template <class F> void parallel(F f) { each<<<16, 256>>>(4096, f); }\n";

    /// The job of each launch, with what is predicted for the launch that it makes.
    fn jobs(text: &str, given: &Given) -> Vec<Result<Job, String>> {
        let mut input = Input::default();
        input.checked.push(input.sources.add(SourceFile::new("a.cu", format!("{KERNEL}{text}"))));
        let known = analyze(&input);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let planner = Planner::new(&input.sources, units(), []);
        let types = Types::of(units());
        let host = HostCode::new(&input.sources, units(), &types, None);
        let job = |kernel: &KernelFact| {
            let wanted: Vec<usize> = (0..kernel.accesses.len()).collect();
            let mut job = planner.job(kernel, &wanted, given, &[], &host)?;
            let mut exact = Exact::default();
            let number = planner.ask(&mut exact, kernel, &job, &job.args, &host).ok_or("no launch")?;
            let (sources, places) = exact.copy(&input.sources, units());
            let again = analyze(&Input { sources, ..Input::default() });
            places.tell(number, &again.kernels, kernel, job.launch.block, &mut job.predictions);
            Ok(job)
        };
        known.kernels.iter().map(job).collect()
    }

    fn here(job: &Job) -> Vec<Option<f64>> {
        let here = |prediction: &Prediction| prediction.here.as_ref().map(|here| here.units);
        job.predictions.iter().map(here).collect()
    }

    #[test]
    fn captures_are_members_with_the_hosts_values() {
        let text = "template <class T> void run(T* out, const T* in, T by, int n) {\n\
                    constexpr int STEP = 2; int pitch = 4; auto at = [=](int i) { return pitch * i; };\n\
                    parallel([=] __device__ (int i) { T a[STEP] = {in[STEP * i], by}; if (i < n) out[at(i)] = a[0]; }); }\n\
                    void start(double* out, const double* in, int n) { run(out, in, 0.5, n); }\n";
        let given = Given { values: [("f.n".to_owned(), 100.0)].into(), ..Given::default() };
        let given = Given { extents: [("f.in".to_owned(), 65536)].into(), ..given };
        let job = jobs(text, &given).remove(0).expect("a job");
        assert_eq!(job.kernel, "each<cudalint_lambda_1>");
        let class = "struct cudalint_lambda_1 {\nusing T = double;\nstatic constexpr int STEP = 2;\n\
                     const T* in;\nT by;\nint n;\nT* out;\ncudalint_lambda_0 at;\n\
                     __device__ auto operator()(int i) const\n#line 6 \"a.cu\"\n";
        assert!(job.source.contains(class), "{}", job.source);
        // Two pointers of 8 B, a double, an int and the 4 B of the other lambda behind a pointer: 8 + 8 + 4 (+ 4) + 8 + 4 (+ 4) B.
        let Some(Arg::Struct { bytes, pointers }) = job.args.get(1) else { panic!("{:?}", job.args) };
        assert_eq!(bytes.len(), 40);
        assert_eq!(
            bytes.get(8..20),
            Some([&0.5f64.to_le_bytes()[..], &100i32.to_le_bytes()].concat().as_slice())
        );
        assert_eq!(bytes.get(32..36), Some(&4i32.to_le_bytes()[..]));
        assert_eq!(pointers.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 24]);
        assert_eq!(pointers.first().map(|(_, buffer)| buffer.bytes), Some(65536));
        // Of 32 lanes 2 doubles apart 512 B are 16 sectors. With 100 elements three warps store 4 doubles apart, each lane
        // to a sector of its own, and one with 4 lanes to 4 sectors: (3 · 32 + 4) / 4 = 25.
        assert_eq!(here(&job), [Some(16.0), Some(25.0)]);
    }

    #[test]
    fn one_number_in_an_object() {
        let text = "struct P { float4 unused; int step; };\n\
                    void run(float* out) { P p = {{1, 2, 3, 4}, 8};\n\
                    parallel([out, q = p] __device__ (auto i) { out[q.step * i] = 1; }); }\n";
        let job = jobs(text, &Given::default()).remove(0).expect("a job");
        // A pointer, and at 16 the object: 16 B of floats and the step.
        let Some(Arg::Struct { bytes, pointers }) = job.args.get(1) else { panic!("{:?}", job.args) };
        assert_eq!((bytes.len(), pointers.len()), (48, 1));
        assert_eq!(bytes.get(16..20), Some(&1f32.to_le_bytes()[..]));
        assert_eq!(bytes.get(32..36), Some(&8i32.to_le_bytes()[..]));
        // 8 floats are a sector.
        assert_eq!(job.predictions.iter().map(|one| one.sectors).collect::<Vec<_>>(), [Some(32.0)]);
    }

    #[test]
    fn what_cannot_be_made_is_a_reason() {
        let cases = [
            (
                "void run(float* p) { parallel([&] __device__ (int i) { p[i] = 0; }); }",
                "captures by reference, `p`",
            ),
            (
                "void run(float* p) { parallel([p, q = unseen(p)] __device__ (int i) { p[i] = q[i]; }); }",
                "captures `q`, whose type is not seen",
            ),
            (
                "void run(float* p) { struct S { int a; }; S s{3}; parallel([=] __device__ (int i) { S t = s; p[t.a] = i; }); }",
                "uses `S`, a type of the host function's own",
            ),
            (
                "void run(std::vector<int> v, float* p) { parallel([=] __device__ (int i) { p[v[0]] = i; }); }",
                "`v`, which the lambda captures: the layout of `vector` is not known",
            ),
            (
                "template <class... F> __global__ void all(int n, F... f) { n = 1; (f(n), ...); }\n\
                 void run(float* p) { all<<<1, 32>>>(3, [=] __device__ (int i) { p[i] = 0; }); }",
                "the type of a lambda in a pack has no name",
            ),
            (
                "struct A { float* p; void run() { parallel([=] __device__ (int i) { p[i] = 0; }); } };",
                "uses `p`, a member of the object",
            ),
            (
                "struct A { float* p; void run() { parallel([this] __device__ (int i) { p[i] = 0; }); } };",
                "captures the object that it stands in",
            ),
        ];
        for (text, why) in cases {
            let jobs = jobs(text, &Given::default());
            let is_told = jobs.iter().any(|job| job.as_ref().is_err_and(|said| said.contains(why)));
            assert!(is_told, "{text}: {jobs:?}");
        }
    }
}
