//! What does the analysis say of the very launch that is run?
//!
//! A finding's number may be for a launch that a run does not repeat: an average over the launches of a loop, the best of some
//! blocks, sizes that are only assumed. So each launch that is to be run is written into a copy of the project, with its numbers
//! in place of expressions, and the copy is analysed:
//!
//! ```text
//! for (int s = 1; s < 33; s++) k<<<n / 256, 256>>>(p, s);     the project: 30.5 sectors on average
//! void cudalint_launch_0() { k<<<dim3(8,1,1), dim3(256,1,1)>>>(0, 1024); }     the run: 32 sectors
//! ```
//!
//! The launches of the project itself are blanked out in the copy: they would only be analysed once more. A lambda that is passed
//! is copied into its launch, behind what it captures:
//!
//! ```text
//! void cudalint_launch_1(float* out) { int n = 64; each<<<dim3(8,1,1), dim3(256,1,1)>>>([=] __device__ (int i) { … }); }
//! ```

use std::collections::BTreeMap;

use super::job::{Arg, Here, Launch, Prediction};
use super::plan::profiled;
use crate::ir::ast::{ExprKind, FunctionDef, Unit};
use crate::ir::facts::{AccessFact, Confidence, KernelFact};
use crate::ir::walk;
use crate::source::{FileId, SourceFile, Sources, Span};

/// Launches to be analysed, by the file that they are written into.
#[derive(Debug, Default)]
pub struct Exact {
    texts: BTreeMap<FileId, Vec<(usize, Text)>>,
    count: usize,
}

/// Where the launches lie in the copy.
pub struct Places {
    launches: Vec<Span>,
    /// Places in the copy with the text of others of the project.
    copies: Vec<(Span, Span)>,
}

/// Source with pieces that are copied from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    /// Where each begins, and where it is from.
    copies: Vec<(usize, Span)>,
}

impl Text {
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub fn copy(&mut self, sources: &Sources, from: Span) {
        self.copies.push((self.text.len(), from));
        self.text.push_str(sources.text(from));
    }

    pub fn append(&mut self, other: Text) {
        let begun = self.text.len();
        self.copies.extend(other.copies.into_iter().map(|(at, from)| (begun + at, from)));
        self.text.push_str(&other.text);
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text { text, copies: Vec::new() }
    }
}

/// The arguments of a launch as source.
#[derive(Clone, Debug, Default)]
pub struct Spelt {
    pub args: Vec<Text>,
    /// Declarations of parameters of the function around the launch, for what may be anything.
    pub params: Vec<String>,
    /// Statements before the launch.
    pub before: Text,
    /// The file that knows the names in a lambda.
    pub file: Option<FileId>,
}

impl Exact {
    /// Adds a launch of `kernel` with what stands for its arguments in the source; its number.
    pub fn add(&mut self, kernel: &KernelFact, name: &str, launch: Launch, spelt: Spelt) -> usize {
        let Spelt { args, params, before, file } = spelt;
        // A launch knows the macros and types of the file around it.
        let file = file.or(kernel.shape.span.map(|span| span.file)).unwrap_or(kernel.name_span.file);
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let number = self.count;
        self.count += 1;
        let mut text = Text::from(format!("\nvoid cudalint_launch_{number}({}) {{ ", params.join(", ")));
        text.append(before);
        text.push(&format!(
            "{name}<<<dim3({gx}, {gy}, {gz}), dim3({bx}, {by}, {bz}), {}>>>(",
            launch.shared_bytes
        ));
        for (place, arg) in args.into_iter().enumerate() {
            text.push(if place == 0 { "" } else { ", " });
            text.append(arg);
        }
        text.push("); }\n");
        self.texts.entry(file).or_default().push((number, text));
        number
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The project with these launches and no others.
    pub fn copy<'a>(
        &self,
        sources: &Sources,
        units: impl IntoIterator<Item = &'a Unit>,
    ) -> (Sources, Places) {
        let mut launching: BTreeMap<FileId, Vec<Span>> = BTreeMap::new();
        for function in units.into_iter().flat_map(|unit| &unit.functions) {
            if let Some(body) = function.body_span.filter(|_| launches(function)) {
                launching.entry(body.file).or_default().push(body);
            }
        }
        let mut copy = Sources::default();
        let mut launches = vec![Span::new(FileId(0), 0, 0); self.count];
        let mut copies = Vec::new();
        for id in sources.ids() {
            let mut text = sources.get(id).text.clone();
            for body in launching.get(&id).into_iter().flatten() {
                blank(&mut text, *body);
            }
            for (number, launch) in self.texts.get(&id).into_iter().flatten() {
                let start = text.len();
                text.push_str(&launch.text);
                copies.extend(launch.copies.iter().map(|(at, from)| {
                    let at = start + at;
                    (Span::new(id, at, at + (from.end - from.start) as usize), *from)
                }));
                if let Some(place) = launches.get_mut(*number) {
                    *place = Span::new(id, start, text.len());
                }
            }
            copy.add(SourceFile::new(sources.path(id), text));
        }
        (copy, Places { launches, copies })
    }
}

impl Places {
    /// The place in the project of one in the copy.
    fn original(&self, span: Span) -> Span {
        match self.copies.iter().find(|(copy, _)| copy.contains(span)) {
            Some((copy, from)) => {
                let at = |offset: u32| (from.start + (offset - copy.start)) as usize;
                Span::new(from.file, at(span.start), at(span.end))
            }
            None => span,
        }
    }

    /// Adds to `predictions`, which are of accesses of `of`, what the analysis of the copy, `known`, says of them in launch
    /// `number`.
    pub fn tell<'p>(
        &self,
        number: usize,
        known: &[KernelFact],
        of: &KernelFact,
        block: [u32; 3],
        predictions: impl IntoIterator<Item = &'p mut Prediction>,
    ) {
        let Some(place) = self.launches.get(number) else { return };
        let is_launch = |span: Option<Span>| span.is_some_and(|span| place.contains(span));
        let found = known.iter().find(|kernel| {
            kernel.name_span == of.name_span
                && kernel.seen_from == of.seen_from
                && is_launch(kernel.shape.span)
                && kernel.shape.block == block
                && kernel.tried.is_empty()
        });
        let Some(found) = found else { return };
        let here = |prediction: &Prediction| {
            let access = of.accesses.get(usize::try_from(prediction.id).ok()?)?;
            let before = of.accesses.iter().take(prediction.id as usize);
            let place = before.filter(|other| is_alike(other, access)).count();
            let is_same = |other: &&AccessFact| {
                is_alike_at(other, access, self.original(other.span), |call| self.original(call))
            };
            let access = found.accesses.iter().filter(is_same).nth(place)?;
            let request = access.request.as_ref()?;
            let assumed = (access.confidence == Confidence::Assumed).then(|| access.assumptions.join("; "));
            Some(Here { units: request.units, ideal: request.ideal, profiled: profiled(access), assumed })
        };
        for prediction in predictions {
            prediction.here = here(prediction);
        }
    }
}

/// The same place of the source, reached by the same calls.
fn is_alike(a: &AccessFact, b: &AccessFact) -> bool {
    is_alike_at(a, b, a.span, |call| call)
}

/// The same where `a` lies elsewhere.
fn is_alike_at(a: &AccessFact, b: &AccessFact, at: Span, original: impl Fn(Span) -> Span) -> bool {
    let is_called_alike =
        a.calls.len() == b.calls.len() && a.calls.iter().zip(&b.calls).all(|(a, b)| original(*a) == *b);
    at == b.span && is_called_alike && a.space == b.space && a.operation == b.operation
}

/// Whether the text of a host function launches anything.
fn launches(function: &FunctionDef) -> bool {
    let mut found = false;
    if !function.qualifiers.kernel {
        walk::expressions(function.body.as_deref().unwrap_or_default(), &mut |expr| {
            found |= match &expr.kind {
                ExprKind::Launch { .. } => true,
                ExprKind::Call { callee, .. } => {
                    matches!(&callee.kind, ExprKind::Name(path) if path.name.as_str().starts_with("cudaLaunch"))
                }
                _ => false,
            };
        });
    }
    found
}

/// Spaces in place of a body's text, but for its lines and directives: every span of the rest stays where it is.
fn blank(text: &mut String, body: Span) {
    let (start, end) = (body.start as usize, (body.end as usize).saturating_sub(1));
    let Some(inside) = text.get(start..end) else { return };
    let mut blanked = String::with_capacity(inside.len());
    let mut is_directive = false;
    for line in inside.split_inclusive('\n') {
        is_directive = is_directive || line.trim_start().starts_with('#');
        if is_directive {
            blanked.push_str(line);
            is_directive = line.trim_end().ends_with('\\');
        } else {
            blanked.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
    }
    text.replace_range(start..end, &blanked);
}

/// What stands for an argument in the source: a number, or for what has none a name that means nothing.
pub fn literal(arg: &Arg, is_float: bool) -> String {
    match arg {
        // A null pointer in a launch says nothing about the kernel.
        Arg::Buffer(_) => "0".to_owned(),
        Arg::Scalar { .. } if is_float => "1.0f".to_owned(),
        Arg::Scalar { bytes } => {
            let mut wide = [0; 8];
            wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(wide).to_string()
        }
        Arg::Struct { .. } => "cudalint_made_up".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_blanked_in_place() {
        let mut text = "void f() { é();\n#ifdef A \\\n B\n k<<<1, 2>>>();\n#endif\n} int x;".to_owned();
        let (start, end) = (text.find('{').unwrap() + 1, text.find('}').unwrap() + 1);
        let before = text.len();
        blank(&mut text, Span::new(FileId(0), start, end));
        assert_eq!(text.len(), before);
        assert!(text.starts_with("void f() {") && text.ends_with("\n#endif\n} int x;"), "{text}");
        assert!(text.contains("#ifdef A \\\n B\n") && !text.contains("<<<"), "{text}");
    }

    #[test]
    fn a_launch_with_numbers_is_analysed_by_itself() {
        use super::super::host::HostCode;
        use super::super::inputs::Types;
        use super::super::plan::{Given, Planner};
        use crate::lint::check::{Input, analyze};
        let text = "__global__ void k(float* p, int s) { p[threadIdx.x * s] = 0; }\n\
                    void run(float* p) { for (int s = 1; s < 9; s *= 2) k<<<4, 64>>>(p, s); }\n";
        let mut input = Input::default();
        input.checked.push(input.sources.add(SourceFile::new("a.cu", text.to_owned())));
        let known = analyze(&input);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let planner = Planner::new(&input.sources, units(), []);
        let types = Types::of(units());
        let host = HostCode::new(&input.sources, units(), &types, None);
        let kernel = known.kernels.first().expect("a kernel");
        let given = Given { values: [("s".to_owned(), 2.0)].into(), ..Given::default() };
        let mut job = planner.job(kernel, &[0], &given, &[], &host).expect("a job");
        let mut exact = Exact::default();
        let number = planner.ask(&mut exact, kernel, &job, &job.args, &host).expect("a launch");
        let (sources, places) = exact.copy(&input.sources, units());
        let again = analyze(&Input { sources, ..Input::default() });
        // Two floats apart: 64 of 256 B in 8 sectors.
        places.tell(number, &again.kernels, kernel, job.launch.block, &mut job.predictions);
        let here = job.predictions.first().and_then(|prediction| prediction.here.clone());
        assert!(matches!(here, Some(Here { units: 8.0, assumed: None, .. })), "{here:?}");
    }

    #[test]
    fn a_pack_holds_what_the_launch_passes() {
        use super::super::host::HostCode;
        use super::super::inputs::Types;
        use super::super::plan::{Given, Planner};
        use crate::lint::check::{Input, analyze};
        let text = "struct S { __device__ void operator()(float* p, const double* in, int step, float by) const {\n\
                    p[threadIdx.x * step] = by * in[threadIdx.x]; } };\n\
                    template <class F, class... A> __global__ void k(F f, float* p, A... a) { f(p, a...); }\n\
                    template <class... A> __global__ void unseen(float* p, A... a) { S()(p, a...); }\n\
                    template <class... A> void start(A&&... a) { k<<<1, 32>>>(S(), std::forward<A>(a)...); }\n\
                    void run(float* p, const double* in) { start(p, in, 8, 2.5f); }\n";
        let mut input = Input::default();
        input.checked.push(input.sources.add(SourceFile::new("a.cu", text.to_owned())));
        let known = analyze(&input);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let planner = Planner::new(&input.sources, units(), []);
        let types = Types::of(units());
        let host = HostCode::new(&input.sources, units(), &types, None);
        let planned = |name: &str| {
            let kernel = known.kernels.iter().find(|kernel| kernel.name.starts_with(name)).expect("a kernel");
            (kernel, planner.job(kernel, &[0, 1], &Given::default(), &[], &host))
        };
        let (kernel, job) = planned("k<");
        let mut job = job.expect("a job");
        assert_eq!(job.kernel, "k<S, double*, int, float>");
        assert_eq!(job.params, ["f", "p", "a[0]", "a[1]", "a[2]"]);
        let [_, Arg::Buffer(_), Arg::Buffer(_), Arg::Scalar { bytes: step }, Arg::Scalar { bytes: by }] =
            job.args.as_slice()
        else {
            panic!("{:?}", job.args)
        };
        assert_eq!((step, by), (&8i32.to_le_bytes().to_vec(), &2.5f32.to_le_bytes().to_vec()));
        let mut exact = Exact::default();
        let number = planner.ask(&mut exact, kernel, &job, &job.args, &host).expect("a launch");
        let (sources, places) = exact.copy(&input.sources, units());
        let again = analyze(&Input { sources, ..Input::default() });
        places.tell(number, &again.kernels, kernel, job.launch.block, &mut job.predictions);
        let here = job.predictions.iter().map(|prediction| prediction.here.as_ref().map(|here| here.units));
        // 32 doubles in 8 sectors; eight floats apart, each lane has a sector of its own.
        assert_eq!(here.collect::<Vec<_>>(), [Some(8.0), Some(32.0)]);
        let (_, job) = planned("unseen<");
        assert_eq!(job, Err("parameter `a`: no launch says what the pack holds".to_owned()));
    }
}
