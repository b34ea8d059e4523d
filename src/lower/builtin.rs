//! Functions that CUDA and its runtime provide, cooperative groups, and memory instructions in inline PTX.

use super::exec::{AccessKind, Exec, Mode};
use super::types::{FloatKind, Ty};
use super::value::{Group, Place, Pointer, Val};
use crate::index::expr::{Axis, ExprId, Node, Op, Symbol};
use crate::ir::ast::{self, Asm, Expr, ExprKind, Name, Path, TemplateArg};
use crate::ir::facts::{MemorySpace, Operation};
use crate::source::Span;
use std::rc::Rc;

/// The row distance that `cudaMallocPitch` chooses, as messages name it.
pub const PITCH: &str = "pitch";

/// CUDA's own atomics, without their scopes; an overload of one of these for another type is a loop around it.
const BUILTIN_ATOMICS: &[&str] = &[
    "atomicAdd",
    "atomicSub",
    "atomicExch",
    "atomicMin",
    "atomicMax",
    "atomicInc",
    "atomicDec",
    "atomicCAS",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
];

impl Exec<'_> {
    /// A call of a function that is known by name; `None` where it is not one.
    pub fn builtin_call(&mut self, path: &Path, args: &[Expr], at: Span, discarded: bool) -> Option<Val> {
        let name = path.name.as_str();
        if let Some(value) = self.arithmetic_builtin(name, args) {
            return Some(value);
        }
        if let Some(value) = self.memory_builtin(name, args, at, discarded) {
            return Some(value);
        }
        if let Some(value) = self.warp_builtin(path, args) {
            return Some(value);
        }
        match self.mode {
            Mode::Host => self.host_builtin(path, args, at),
            Mode::Device => None,
        }
    }

    fn int_arg(&mut self, args: &[Expr], place: usize) -> Option<(ExprId, Ty)> {
        match self.value(args.get(place)?) {
            Val::Int(expr, ty) => Some((expr, ty)),
            _ => None,
        }
    }

    /// The bits of a number of 32 or 64 bits in reverse order: neighbours change places, then pairs, then fours.
    fn reversed(&mut self, value: ExprId, bits: u32) -> ExprId {
        let mut value = value;
        for step in [1, 2, 4, 8, 16, 32].into_iter().filter(|step| *step < bits) {
            // The lower half of every `2 * step` bits.
            let all = if bits == 64 { u64::MAX } else { u64::from(u32::MAX) };
            let mask = all / ((1 << step) + 1);
            let (mask, step) = (self.arena.constant(mask as i64), self.arena.constant(i64::from(step)));
            let upper = self.arena.binary(Op::Shr, true, value, step);
            let upper = self.arena.binary(Op::And, true, upper, mask);
            let lower = self.arena.binary(Op::And, true, value, mask);
            let lower = self.arena.binary(Op::Shl, true, lower, step);
            value = self.arena.binary(Op::Or, true, upper, lower);
        }
        value
    }

    fn arithmetic_builtin(&mut self, name: &str, args: &[Expr]) -> Option<Val> {
        match (name, args.len()) {
            (
                "min" | "max" | "umin" | "umax" | "imin" | "imax" | "MIN" | "MAX" | "fminf" | "fmaxf"
                | "fmin" | "fmax",
                2,
            ) => {
                let (a, b) = (self.value(&args[0]), self.value(&args[1]));
                Some(self.extreme(name.to_ascii_lowercase().contains("min"), a, b))
            }
            // At most the number that is known, which it is as a rule.
            ("gcd", 2) => {
                let (a, _) = self.int_arg(args, 0)?;
                let (b, _) = self.int_arg(args, 1)?;
                let (known, other) = match (self.arena.as_const(a), self.arena.as_const(b)) {
                    (Some(x), Some(y)) => {
                        let (mut x, mut y) = (x, y);
                        while y != 0 {
                            (x, y) = (y, x % y);
                        }
                        return Some(Val::Int(self.arena.constant(x.abs()), Ty::INT));
                    }
                    (Some(_), None) => (a, b),
                    (None, Some(_)) => (b, a),
                    (None, None) => return None,
                };
                let name = format!("gcd with {}", self.arena.display(other));
                let open = self.named_unknown(&name);
                Some(Val::Int(self.arena.binary(Op::Min, false, known, open), Ty::INT))
            }
            ("abs" | "labs" | "llabs", 1) => match self.value(&args[0]) {
                Val::Int(x, ty) => {
                    let negated = self.arena.scale(x, -1);
                    Some(Val::Int(self.arena.binary(Op::Max, false, x, negated), ty))
                }
                other => Some(other),
            },
            ("__mul24" | "__umul24" | "mul24", 2) => {
                let (a, ta) = self.int_arg(args, 0)?;
                let (b, _) = self.int_arg(args, 1)?;
                Some(Val::Int(self.arena.mul(a, b), ta))
            }
            // The product of two numbers of 32 bits has 64: a wrapping product holds them, whatever its sign.
            ("__umulhi" | "__mulhi", 2) => {
                let signed = name == "__mulhi";
                let mut factors = Vec::new();
                for place in 0..2 {
                    let (factor, _) = self.int_arg(args, place)?;
                    factors.push(self.arena.wrap(4, signed, factor));
                }
                let product = self.arena.mul(*factors.first()?, *factors.last()?);
                let half = self.arena.constant(32);
                let high = self.arena.binary(Op::Shr, !signed, product, half);
                Some(Val::Int(high, Ty::Int { size: 4, signed }))
            }
            ("__brev", 1) => {
                let (value, _) = self.int_arg(args, 0)?;
                let value = self.arena.wrap(4, false, value);
                Some(Val::Int(self.reversed(value, 32), Ty::UINT))
            }
            ("__brevll", 1) => {
                let (value, _) = self.int_arg(args, 0)?;
                Some(Val::Int(self.reversed(value, 64), Ty::Int { size: 8, signed: false }))
            }
            ("div_up" | "DivUp" | "divup" | "ceil_div" | "cdiv" | "CeilDiv" | "ceilDiv" | "iDivUp", 2)
                if self.project.functions(&self.tu, Name::new(name)).is_empty()
                    && self.project.macro_at(&self.tu, Name::new(name), self.file(), u32::MAX).is_none() =>
            {
                let (a, ta) = self.int_arg(args, 0)?;
                let (b, _) = self.int_arg(args, 1)?;
                let sum = self.arena.add(a, b);
                let minus_one = self.arena.constant(-1);
                let sum = self.arena.add(sum, minus_one);
                Some(Val::Int(self.arena.binary(Op::Div, false, sum, b), ta))
            }
            (
                "ceil" | "ceilf" | "floor" | "floorf" | "round" | "sqrt" | "sqrtf" | "log2" | "log2f"
                | "exp2",
                1,
            ) => Some(self.rounded(name, &args[0])),
            ("pow" | "powf", 2) => {
                let (a, b) = (self.value(&args[0]), self.value(&args[1]));
                if let (Some(a), Some(b)) = (self.number(&a), self.number(&b)) {
                    let zero = self.arena.constant(0);
                    return Some(Val::Float(Some(a.powf(b)), zero, FloatKind::Double));
                }
                // `pow(2, stage + 1)`: a shift.
                if let (Some(2.0), Val::Int(exponent, _)) = (self.number(&a), &b) {
                    let one = self.arena.constant(1);
                    let power = self.arena.binary(Op::Shl, false, one, *exponent);
                    return Some(Val::Int(power, Ty::Int { size: 8, signed: true }));
                }
                let parts = [self.atom(&a), self.atom(&b)];
                let atom = self.combine(&parts);
                Some(Val::Float(None, atom, FloatKind::Double))
            }
            (
                "__cvta_generic_to_shared"
                | "__cvta_generic_to_global"
                | "cast_smem_ptr_to_uint"
                | "__nvvm_get_smem_pointer",
                1,
            ) => {
                match self.value(&args[0]) {
                    // An address as an integer: steps are bytes.
                    Val::Ptr(pointer) => {
                        Some(Val::Ptr(Pointer { to: Ty::Int { size: 1, signed: false }, ..pointer }))
                    }
                    other => Some(other),
                }
            }
            (
                "forward" | "move" | "__builtin_assume_aligned" | "assume_aligned" | "raw_pointer_cast",
                1..,
            ) => Some(self.value_or_place(&args[0])),
            (
                "__syncthreads"
                | "__syncwarp"
                | "__threadfence"
                | "__threadfence_block"
                | "__threadfence_system"
                | "__builtin_assume"
                | "printf",
                _,
            ) => {
                args.iter().for_each(|arg| {
                    self.value(arg);
                });
                if name.starts_with("__sync") || name.starts_with("__thread") {
                    self.fence();
                }
                Some(Val::Void)
            }
            ("assert", _) => Some(Val::Void),
            (make, _) if make.starts_with("make_") && !matches!(make, "make_pair" | "make_tuple") => {
                let of = super::types::vector_type(make.strip_prefix("make_")?)?;
                let ty = self.named_type(&Path::simple(Name::new(&of.name)));
                if let ([only], true) = (args, of.fields.len() > 1) {
                    // make_float3(float4): an overload of the samples' headers.
                    let value = self.value(only);
                    let atom = self.atom(&value);
                    return Some(self.opaque_of(&ty, vec![atom]));
                }
                let items: Vec<_> = args.iter().map(|arg| (None, arg)).collect();
                Some(self.aggregate(&ty, &items))
            }
            _ => None,
        }
    }

    pub fn number(&self, value: &Val) -> Option<f64> {
        match value {
            Val::Float(known, ..) => *known,
            Val::Int(expr, _) => self.arena.as_const(*expr).map(|value| value as f64),
            _ => None,
        }
    }

    fn rounded(&mut self, name: &str, arg: &Expr) -> Val {
        let value = self.value(arg);
        if let Some(x) = self.number(&value) {
            let result = match name {
                "ceil" | "ceilf" => x.ceil(),
                "floor" | "floorf" => x.floor(),
                "round" => x.round(),
                "sqrt" | "sqrtf" => x.sqrt(),
                "exp2" => x.exp2(),
                _ => x.log2(),
            };
            let zero = self.arena.constant(0);
            return Val::Float(Some(result), zero, FloatKind::Double);
        }
        let atom = self.atom(&value);
        let atom = self.arena.opaque(vec![atom]);
        Val::Float(None, atom, FloatKind::Double)
    }

    fn extreme(&mut self, least: bool, a: Val, b: Val) -> Val {
        match (&a, &b) {
            (Val::Int(x, tx), Val::Int(y, ty)) => {
                let result = if tx.scalar_size() >= ty.scalar_size() { tx.clone() } else { ty.clone() };
                let unsigned = matches!(result, Ty::Int { size: 4, signed: false });
                Val::Int(self.arena.binary(if least { Op::Min } else { Op::Max }, unsigned, *x, *y), result)
            }
            _ => {
                if let (Some(x), Some(y)) = (self.number(&a), self.number(&b)) {
                    let zero = self.arena.constant(0);
                    return Val::Float(
                        Some(if least { x.min(y) } else { x.max(y) }),
                        zero,
                        FloatKind::Double,
                    );
                }
                let parts = [self.atom(&a), self.atom(&b)];
                let atom = self.combine(&parts);
                match (&a, &b) {
                    (Val::Float(_, _, size), _) | (_, Val::Float(_, _, size)) => {
                        Val::Float(None, atom, *size)
                    }
                    (Val::Int(_, ty), _) | (_, Val::Int(_, ty)) => {
                        let atom = self.arena.opaque(parts.to_vec());
                        Val::Int(atom, ty.clone())
                    }
                    _ => Val::Opaque(Ty::Unknown("min of values that are not seen"), atom),
                }
            }
        }
    }

    // Memory.

    fn memory_builtin(&mut self, name: &str, args: &[Expr], at: Span, discarded: bool) -> Option<Val> {
        match name {
            "__ldg" | "__ldcg" | "__ldca" | "__ldcs" | "__ldlu" | "__ldcv" | "ldg" | "LDG" | "doLdg" => {
                if args.len() != 1 {
                    return None;
                }
                let Val::Ptr(pointer) = self.value(&args[0]) else {
                    return Some(
                        self.opaque_of(&Ty::Unknown("load through a pointer that is not seen"), Vec::new()),
                    );
                };
                let kind = if name == "__ldg" { AccessKind::ReadOnly } else { AccessKind::Plain };
                self.record(Operation::Load, &pointer, None, kind, at);
                Some(self.loaded(&pointer))
            }
            "__stcg" | "__stcs" | "__stwb" | "__stwt" if args.len() == 2 => {
                let value = self.value(&args[1]);
                self.mark_all_used(&value);
                if let Val::Ptr(pointer) = self.value(&args[0]) {
                    self.record(Operation::Store, &pointer, None, AccessKind::Plain, at);
                }
                Some(Val::Void)
            }
            "__nv_atomic_load_n" | "__atomic_load_n" if !args.is_empty() => {
                args.iter().skip(1).for_each(|arg| {
                    self.value(arg);
                });
                let Val::Ptr(pointer) = self.value(&args[0]) else {
                    return Some(self.opaque_of(&Ty::Unknown("an atomic load"), Vec::new()));
                };
                self.record(Operation::Load, &pointer, None, AccessKind::Plain, at);
                Some(self.loaded(&pointer))
            }
            // `atomicMaxFloat`, a compare-and-swap loop of the project's own.
            _ if name.starts_with("atomic") && !BUILTIN_ATOMICS.contains(&name) && self.has_body(name) => {
                None
            }
            _ if name.starts_with("atomic") || name.starts_with("gpuAtomicAdd") || name == "red_add" => {
                Some(self.atomic(name, args, at, discarded))
            }
            "__pipeline_memcpy_async" => {
                let (to, from) = (self.value(args.first()?), self.value(args.get(1)?));
                let bytes =
                    self.int_arg(args, 2).and_then(|(bytes, _)| self.arena.as_const(bytes)).unwrap_or(4);
                self.copy(from, to, bytes, at);
                Some(Val::Void)
            }
            "memcpy" | "memset" if self.mode == Mode::Device => {
                args.iter().for_each(|arg| {
                    self.value(arg);
                });
                Some(Val::Void)
            }
            _ => None,
        }
    }

    fn copy(&mut self, from: Val, to: Val, bytes: i64, at: Span) {
        let ty = byte_block(bytes);
        if let Val::Ptr(pointer) = from {
            self.record(
                Operation::Load,
                &Pointer { to: ty.clone(), ..pointer },
                None,
                AccessKind::AsyncCopy,
                at,
            );
        }
        if let Val::Ptr(pointer) = to {
            self.record(Operation::Store, &Pointer { to: ty, ..pointer }, None, AccessKind::AsyncCopy, at);
        }
    }

    fn has_body(&self, name: &str) -> bool {
        self.project.functions(&self.tu, Name::new(name)).iter().any(|entry| entry.item.body.is_some())
    }

    fn atomic(&mut self, name: &str, args: &[Expr], at: Span, discarded: bool) -> Val {
        let mut values: Vec<Val> = args.iter().map(|arg| self.value(arg)).collect();
        if values.is_empty() {
            return Val::Void;
        }
        let target = values.remove(0);
        let one = values.first().is_some_and(|value| self.number(value) == Some(1.0));
        let kind = match name {
            "atomicCAS" => AccessKind::AtomicCas,
            "atomicAdd" if discarded && one && matches!(values.first(), Some(Val::Int(..))) => {
                AccessKind::AtomicIncrement
            }
            _ => AccessKind::AtomicOther,
        };
        let pointer = match target {
            Val::Ptr(pointer) => pointer,
            Val::Ref(place) => match &*place {
                Place::Memory { pointer, .. } => pointer.clone(),
                Place::Slot { .. } | Place::Value(_) => return Val::Void,
            },
            other => {
                let atom = self.atom(&other);
                return self.opaque_of(&Ty::INT, vec![atom]);
            }
        };
        let shared =
            self.bases.get(pointer.base as usize).is_some_and(|base| base.space == MemorySpace::Shared);
        let integer = pointer.to.is_integer();
        let reduces =
            matches!(name, "atomicAdd" | "atomicMax" | "atomicMin" | "atomicOr" | "atomicAnd" | "atomicInc");
        let one_address =
            self.arena.deps(pointer.offset) & (crate::index::expr::TID | crate::index::expr::DATA) == 0;
        let kind = match kind {
            AccessKind::AtomicOther | AccessKind::AtomicIncrement
                if (discarded || one) && integer && reduces && one_address && pointer.to.align() == 4 =>
            {
                AccessKind::AtomicReduced
            }
            AccessKind::AtomicOther if shared && (!integer || pointer.to.align() == 8) => {
                AccessKind::AtomicLoop
            }
            kind => kind,
        };
        self.record(Operation::Atomic, &pointer, None, kind, at);
        // The old value differs between lanes even at one address.
        let lane = self.linear_thread();
        let atom = self.arena.opaque(vec![pointer.offset, lane]);
        match &pointer.to {
            Ty::Float(kind) => Val::Float(None, atom, *kind),
            ty => Val::Int(atom, ty.clone()),
        }
    }

    // Warps and groups.

    pub fn linear_thread(&mut self) -> ExprId {
        let [x, y, z] = Axis::ALL.map(|axis| self.arena.symbol(Symbol::ThreadIdx(axis)));
        let [bx, by, _] = self.dims.block;
        // A one-dimensional block keeps its short form.
        let depth = self.arena.mul(by, z);
        let rows = self.arena.add(y, depth);
        let rows = self.arena.mul(bx, rows);
        self.arena.add(x, rows)
    }

    fn warp_index(&mut self) -> ExprId {
        let linear = self.linear_thread();
        let width = self.arena.constant(32);
        self.arena.binary(Op::Div, true, linear, width)
    }

    /// `threadIdx.x / 32`, in any of its spellings: the same for the lanes of a warp.
    fn is_of_warp(&self, id: ExprId) -> bool {
        let Node::Binary { op, b, .. } = self.arena.node(id) else { return false };
        match (op, self.arena.as_const(*b)) {
            (Op::Div, Some(width)) => width >= 32 && width % 32 == 0,
            (Op::Shr, Some(bits)) => bits >= 5,
            _ => false,
        }
    }

    /// What a shuffle makes of the lanes' values; `uniform`: all lanes of a warp get that of one lane.
    fn shuffled(&mut self, value: Val, source: Option<ExprId>, uniform: bool) -> Val {
        let atom = self.atom(&value);
        // `__shfl_sync(mask, threadIdx.x / 32, 0)`: what all lanes of a warp have already.
        if uniform && self.is_of_warp(atom) {
            return value;
        }
        let lane = if uniform { self.warp_index() } else { self.linear_thread() };
        let kept = if uniform { lane } else { atom };
        let inputs = [kept, lane, source.unwrap_or(lane)];
        let shuffled = self.arena.opaque(inputs.to_vec());
        match value {
            Val::Int(_, ty) => Val::Int(shuffled, ty),
            Val::Float(_, _, size) => Val::Float(None, shuffled, size),
            other => {
                let ty = self.type_of(&other);
                self.opaque_of(&ty, inputs.to_vec())
            }
        }
    }

    /// `shfl.sync.idx.b32 %0, %1, 0, 0x1f, mask;`: lane 0 of the whole warp to all.
    fn ptx_broadcast(&mut self, asm: &Asm) -> Option<Val> {
        let text = asm.template.trim().trim_end_matches(';').strip_prefix("shfl.sync.idx.b32")?;
        let operands: Vec<String> = text.split(',').map(|part| part.trim().to_ascii_lowercase()).collect();
        let [to, from, "0", "0x1f" | "31", _] = operands.iter().map(String::as_str).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let (_, input) =
            asm.inputs.first().filter(|_| (to, from) == ("%0", "%1") && asm.outputs.len() == 1)?;
        let value = self.value(input);
        let source = self.arena.constant(0);
        Some(self.shuffled(value, Some(source), true))
    }

    fn warp_builtin(&mut self, path: &Path, args: &[Expr]) -> Option<Val> {
        let name = path.name.as_str();
        if name.starts_with("__shfl") {
            let sync = usize::from(name.ends_with("_sync"));
            let values: Vec<Val> = args.iter().map(|arg| self.value(arg)).collect();
            let value = values.get(sync)?.clone();
            let source = values.get(sync + 1).map(|value| self.atom(value));
            let direct = matches!(name, "__shfl" | "__shfl_sync");
            let uniform = direct
                && source.is_some_and(|source| self.arena.deps(source) & crate::index::expr::TID == 0)
                && values.len() <= sync + 2;
            return Some(self.shuffled(value, source, uniform));
        }
        match name {
            "__ballot"
            | "__ballot_sync"
            | "__activemask"
            | "__any"
            | "__any_sync"
            | "__all"
            | "__all_sync"
            | "__match_any_sync"
            | "__reduce_add_sync"
            | "__reduce_max_sync"
            | "__reduce_min_sync"
            | "__syncthreads_count"
            | "__syncthreads_or"
            | "__syncthreads_and" => {
                args.iter().for_each(|arg| {
                    self.value(arg);
                });
                if name.starts_with("__syncthreads") {
                    self.fence();
                }
                let warp = self.warp_index();
                Some(Val::Int(self.arena.opaque(vec![warp]), Ty::UINT))
            }
            "__popc" | "__clz" | "__ffs" | "__popcll" | "__ffsll" | "__clzll" => {
                let (value, _) = self.int_arg(args, 0)?;
                if let Some(known) = self.arena.as_const(value) {
                    let known = known as u32;
                    let result = match name {
                        "__popc" | "__popcll" => i64::from(known.count_ones()),
                        "__clz" => i64::from(known.leading_zeros()),
                        _ => i64::from(if known == 0 { 0 } else { known.trailing_zeros() + 1 }),
                    };
                    return Some(Val::Int(self.arena.constant(result), Ty::INT));
                }
                Some(Val::Int(self.arena.opaque(vec![value]), Ty::INT))
            }
            // `cooperative_groups::sync(group)`.
            "sync" if args.len() == 1 => match self.quietly(|exec| exec.value(&args[0])) {
                Val::Group(group) => Some(self.group_method(group, path.name)),
                _ => None,
            },
            "this_thread_block" => Some(Val::Group(Group::Block)),
            "this_grid" => Some(Val::Group(Group::Grid)),
            "this_thread" => Some(Val::Group(Group::Tile(1))),
            "coalesced_threads" => Some(Val::Group(Group::Tile(32))),
            "tiled_partition" | "__tiled_partition" => {
                args.iter().take(1).for_each(|arg| {
                    self.value(arg);
                });
                let size = match path.args.as_deref().and_then(<[TemplateArg]>::first) {
                    Some(TemplateArg::Value(expr)) => self.quietly(|exec| exec.value(expr)),
                    Some(TemplateArg::Type(ast::Type::Named(name))) => {
                        let expr = Expr { span: self.nowhere(), kind: ExprKind::Name(name.clone()) };
                        self.quietly(|exec| exec.value(&expr))
                    }
                    _ => self.value(args.get(1)?),
                };
                let size = self.atom(&size);
                Some(Val::Group(Group::Tile(self.arena.as_const(size).unwrap_or(32))))
            }
            _ => None,
        }
    }

    pub fn group_method(&mut self, group: Group, method: Name) -> Val {
        let threads = |exec: &mut Self| {
            let [x, y, z] = exec.dims.block;
            let xy = exec.arena.mul(x, y);
            exec.arena.mul(xy, z)
        };
        let value = match (group, method.as_str()) {
            (Group::Block, "thread_rank") => self.linear_thread(),
            (Group::Block, "size" | "num_threads") => threads(self),
            (Group::Grid, "thread_rank") => {
                let linear = self.linear_thread();
                let [x, y, z] = Axis::ALL.map(|axis| self.arena.symbol(Symbol::BlockIdx(axis)));
                let [gx, gy, _] = self.dims.grid;
                let depth = self.arena.mul(gy, z);
                let rows = self.arena.add(y, depth);
                let rows = self.arena.mul(gx, rows);
                let block = self.arena.add(x, rows);
                let size = threads(self);
                let start = self.arena.mul(block, size);
                self.arena.add(start, linear)
            }
            (Group::Grid, "size" | "num_threads") => {
                let mut total = threads(self);
                for extent in self.dims.grid {
                    total = self.arena.mul(total, extent);
                }
                total
            }
            (Group::Tile(size), "thread_rank") => {
                let linear = self.linear_thread();
                let size = self.arena.constant(size.max(1));
                self.arena.binary(Op::Rem, true, linear, size)
            }
            (Group::Tile(size), "meta_group_rank") => {
                let linear = self.linear_thread();
                let size = self.arena.constant(size.max(1));
                self.arena.binary(Op::Div, true, linear, size)
            }
            (Group::Tile(size), "meta_group_size") => {
                let all = threads(self);
                let size = self.arena.constant(size.max(1));
                self.arena.binary(Op::Div, true, all, size)
            }
            (Group::Tile(size), "size" | "num_threads") => self.arena.constant(size),
            (Group::Block | Group::Grid, "group_index" | "block_index") => {
                let parts = Axis::ALL.map(|axis| self.arena.symbol(Symbol::BlockIdx(axis)));
                return self.dim3(parts.into_iter().map(|part| Val::Int(part, Ty::UINT)).collect());
            }
            (Group::Block, "thread_index") => {
                let parts = Axis::ALL.map(|axis| self.arena.symbol(Symbol::ThreadIdx(axis)));
                return self.dim3(parts.into_iter().map(|part| Val::Int(part, Ty::UINT)).collect());
            }
            (Group::Block, "group_dim" | "dim_threads") => {
                let parts = self.dims.block;
                return self.dim3(parts.into_iter().map(|part| Val::Int(part, Ty::UINT)).collect());
            }
            (_, "sync" | "arrive" | "wait" | "barrier_wait") => {
                self.fence();
                return Val::Void;
            }
            _ => {
                let linear = self.linear_thread();
                self.arena.opaque(vec![linear])
            }
        };
        Val::Int(value, Ty::INT)
    }

    // Host.

    fn host_builtin(&mut self, path: &Path, args: &[Expr], at: Span) -> Option<Val> {
        match path.name.as_str() {
            "cudaMalloc"
            | "cudaMallocManaged"
            | "cudaMallocHost"
            | "cudaHostAlloc"
            | "cudaMallocAsync"
            | "cudaMallocPitch"
            | "cudaHostGetDevicePointer"
            | "hipMalloc" => {
                args.iter().skip(1).for_each(|arg| {
                    self.value(arg);
                });
                self.allocate(args.first()?, at);
                if path.name.as_str() == "cudaMallocPitch" {
                    // The pitch is a multiple of 512 on current devices.
                    if let Val::Ref(place) = self.value(args.get(1)?) {
                        let pitch = self.arena.unknown(PITCH, Some(4096));
                        self.write(&place, Val::Int(pitch, Ty::SIZE), at);
                    }
                }
                Some(self.success())
            }
            "getopt" | "getopt_long" => {
                let value = self.named_preferred("getopt", -1);
                Some(Val::Int(value, Ty::INT))
            }
            "checkCmdLineFlag" | "sdkCheckCmdLineFlag" => {
                let value = self.named_preferred("command line flag", 0);
                Some(Val::Int(value, Ty::INT))
            }
            "strcmp" | "strncmp" | "strcasecmp" => {
                let value = self.named_preferred("string comparison", 1);
                Some(Val::Int(value, Ty::INT))
            }
            "atoi"
            | "atol"
            | "atoll"
            | "strtol"
            | "strtoul"
            | "stoi"
            | "stol"
            | "atof"
            | "strtod"
            | "getCmdLineArgumentInt" => {
                let name = args.first().map_or("", |arg| self.sources.text(arg.span));
                let name = format!("{}({name})", path.name);
                let value = self.named_unknown(&name);
                Some(match path.name.as_str() {
                    "atof" | "strtod" => Val::Float(None, value, FloatKind::Double),
                    _ => Val::Int(value, Ty::INT),
                })
            }
            "cudaLaunchKernel" | "cudaLaunchCooperativeKernel" => {
                self.launch_call(args, at);
                Some(self.success())
            }
            "cudaLaunchKernelEx" => {
                self.launch_ex(args, at);
                Some(self.success())
            }
            "swap" if args.len() == 2 => {
                let (a, b) = (self.place(&args[0]), self.place(&args[1]));
                let (x, y) = (self.read(&a, at), self.read(&b, at));
                self.write(&a, y, at);
                self.write(&b, x, at);
                Some(Val::Void)
            }
            "exit" | "abort" | "_exit" | "quick_exit" => {
                self.alive = self.arena.constant(0);
                Some(Val::Void)
            }
            name if name.starts_with("cuda") && self.project.functions(&self.tu, path.name).is_empty() => {
                let values: Vec<Val> = args.iter().map(|arg| self.value(arg)).collect();
                let reads_out = name.starts_with("cudaGet")
                    || name.starts_with("cudaOccupancy")
                    || name.starts_with("cudaDeviceGet")
                    || name.contains("Create");
                if reads_out {
                    for value in &values {
                        if let Val::Ref(place) = value
                            && let Place::Slot { .. } = &**place
                            && !matches!(self.read_if_slot(place), Some(Val::Ptr(_)))
                        {
                            self.forget(&place.clone(), &[], at);
                        }
                    }
                }
                Some(self.success())
            }
            _ => None,
        }
    }

    fn read_if_slot(&mut self, place: &Place) -> Option<Val> {
        match place {
            Place::Slot { slot, path } => Some(self.read_slot(*slot, path)),
            Place::Memory { .. } | Place::Value(_) => None,
        }
    }

    fn success(&mut self) -> Val {
        Val::Int(self.arena.constant(0), Ty::INT)
    }

    /// A value of the environment whose value in a plain run is known.
    pub fn named_preferred(&mut self, name: &str, value: i64) -> ExprId {
        if let Some(index) = self.arena.unknowns.iter().position(|unknown| unknown.name == name) {
            return self.arena.symbol(Symbol::Unknown(index as u32));
        }
        self.arena.unknown(name, Some(value))
    }

    /// `cudaMalloc(&p, n)`: `p` points to the start of fresh memory.
    fn allocate(&mut self, target: &Expr, at: Span) {
        let value = self.value(target);
        let place = match value {
            Val::Ref(place) => place,
            _ => return,
        };
        let Place::Slot { .. } = &*place else { return };
        let to = match self.type_of_place(&place) {
            Ty::Ptr(to) => (*to).clone(),
            _ => Ty::Auto,
        };
        let mut inner = target;
        while let ExprKind::Cast { operand, .. } | ExprKind::Unary(_, operand) = &inner.kind {
            inner = operand;
        }
        let name = self.sources.text(inner.span).trim().to_owned();
        let base = self.named_base(&name, MemorySpace::Global, &to, None);
        let offset = self.arena.constant(0);
        self.write(&place, Val::Ptr(Pointer { base, offset, to }), at);
    }

    /// `cudaLaunchKernel(func, grid, block, args, shared, stream)`
    fn launch_call(&mut self, args: &[Expr], at: Span) {
        let [func, grid, block, values, ..] = args else { return };
        let (grid, block) = (self.extent(grid), self.extent(block));
        let mut values_out = Vec::new();
        if let Val::Ref(place) = self.value(values)
            && let Place::Slot { slot, path } = &*place
            && let Val::Array(array) = self.read_slot(*slot, path)
        {
            for value in array.known.values().cloned() {
                let value = match value {
                    Val::Ref(place) => self.read(&place, at),
                    value => value,
                };
                values_out.push(value);
            }
        }
        let mut callee = func;
        while let ExprKind::Cast { operand, .. } | ExprKind::Unary(ast::UnaryOp::AddrOf, operand) =
            &callee.kind
        {
            callee = operand;
        }
        self.record_launch(callee, grid, block, values_out, at);
    }

    /// `cudaLaunchKernelEx(&config, kernel, args…)`
    fn launch_ex(&mut self, args: &[Expr], at: Span) {
        let [config, callee, rest @ ..] = args else { return };
        let config = match self.value(config) {
            Val::Ref(place) => self.read(&place, at),
            value => value,
        };
        let Val::Obj(config) = config else { return };
        let grid = config.fields.first().cloned().and_then(|value| self.extent_of(value));
        let block = config.fields.get(1).cloned().and_then(|value| self.extent_of(value));
        let values = rest.iter().map(|arg| self.value(arg)).collect();
        let mut callee = callee;
        while let ExprKind::Cast { operand, .. } | ExprKind::Unary(ast::UnaryOp::AddrOf, operand) =
            &callee.kind
        {
            callee = operand;
        }
        self.record_launch(callee, grid, block, values, at);
    }

    // Inline PTX.

    pub fn inline_asm(&mut self, asm: &Asm, at: Span) {
        if asm.is_fence {
            self.fence();
        }
        if let (Some(value), Some((_, output))) = (self.ptx_broadcast(asm), asm.outputs.first()) {
            let place = self.place(output);
            return self.write(&place, value, at);
        }
        let operands: Vec<&Expr> = asm.outputs.iter().chain(&asm.inputs).map(|(_, expr)| expr).collect();
        let instruction =
            asm.template.trim_start().trim_start_matches(|c: char| c == '{' || c.is_whitespace());
        let pointers: Vec<Option<Pointer>> = ptx_addresses(&asm.template)
            .into_iter()
            .map(|(place, step)| self.ptx_pointer(operands.get(place).copied()?, step))
            .collect();
        let is_shared = instruction.starts_with("ldmatrix")
            || instruction.starts_with("stmatrix")
            || instruction.split_whitespace().next().is_some_and(|word| word.contains(".shared"));
        self.has_unseen_shared |= is_shared && pointers.first().is_some_and(Option::is_none);
        let width = ptx_width(instruction);
        if instruction.starts_with("cp.async") {
            if let [Some(to), Some(from), ..] = pointers.as_slice() {
                let bytes = asm
                    .template
                    .split(|c: char| !c.is_ascii_digit())
                    .filter_map(|n| n.parse().ok())
                    .find(|n| [4, 8, 16].contains(n))
                    .unwrap_or(16);
                self.copy(Val::Ptr(from.clone()), Val::Ptr(to.clone()), bytes, at);
            }
        } else if let Some(Some(pointer)) = pointers.first() {
            let (operation, kind, width) = match instruction {
                text if text.starts_with("ldmatrix") || text.starts_with("stmatrix") => {
                    let count = if text.contains(".x4") {
                        4
                    } else if text.contains(".x2") {
                        2
                    } else {
                        1
                    };
                    let operation = if text.starts_with("ld") { Operation::Load } else { Operation::Store };
                    (operation, AccessKind::Matrix(count), 16)
                }
                text if text.starts_with("ld.") => (Operation::Load, AccessKind::Plain, width),
                text if text.starts_with("st.") => (Operation::Store, AccessKind::Plain, width),
                text if text.starts_with("red.") || text.starts_with("atom.") => {
                    (Operation::Atomic, AccessKind::AtomicOther, width)
                }
                _ => (Operation::Load, AccessKind::Plain, 0),
            };
            // 256 bits a lane (sm_100) are beyond what was measured.
            if (1..=WIDEST).contains(&width) {
                self.record(operation, &Pointer { to: byte_block(width), ..pointer.clone() }, None, kind, at);
            }
        }
        for (_, expr) in &asm.outputs {
            let place = self.place(expr);
            let lane = self.linear_thread();
            if let Place::Slot { .. } = &place {
                let ty = self.type_of_place(&place);
                let value = self.opaque_of(&ty, vec![lane]);
                self.write(&place, value, at);
            }
        }
    }

    fn ptx_pointer(&mut self, operand: &Expr, step: i64) -> Option<Pointer> {
        let Val::Ptr(pointer) = self.value(operand) else { return None };
        let step = self.arena.constant(step);
        Some(Pointer { offset: self.arena.add(pointer.offset, step), ..pointer })
    }
}

/// Bytes of the widest instruction of the model, a lane.
const WIDEST: i64 = 16;

/// A type of that many bytes, aligned to them.
fn byte_block(bytes: i64) -> Ty {
    match bytes {
        1 | 2 | 4 | 8 => Ty::Int { size: bytes as u8, signed: false },
        _ => super::types::vector_type("float4").map_or(Ty::UINT, |of| Ty::Struct(Rc::new(of))),
    }
}

/// `[%2 + 16]` → (2, 16), in order.
fn ptx_addresses(template: &str) -> Vec<(usize, i64)> {
    template
        .split('[')
        .skip(1)
        .filter_map(|part| {
            let inside = part.split(']').next()?.trim().strip_prefix('%')?;
            let (place, step) = inside.split_once('+').unwrap_or((inside, "0"));
            Some((place.trim().parse().ok()?, step.trim().parse().unwrap_or(0)))
        })
        .collect()
}

/// Bytes per lane that `ld.global.v4.f32` moves.
fn ptx_width(instruction: &str) -> i64 {
    let word = instruction.split_whitespace().next().unwrap_or("");
    let parts = word.split('.');
    let vector = parts.clone().find_map(|part| part.strip_prefix('v')?.parse::<i64>().ok()).unwrap_or(1);
    let bits = parts.rev().find_map(|part| {
        part.get(1..).filter(|_| part.starts_with(['b', 'f', 'u', 's']))?.parse::<i64>().ok()
    });
    bits.map_or(0, |bits| vector * bits / 8)
}
