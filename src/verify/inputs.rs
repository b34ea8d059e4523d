//! Arguments for a kernel from its parameters' types: plausible values where nobody says better.
//!
//! Sizes are large enough that bounds guards hold, indices small enough that every buffer has room for them, floats
//! finite. What cannot be made (textures, structs of unknown layout) is an error with the reason, never a guess.

use rustc_hash::{FxHashMap, FxHashSet};

use super::closure::{self, Closure, Holds};
use super::exact::{Spelt, Text, literal};
use super::job::{Arg, Buffer, Fill};
use super::slice::after_captures;
use super::tensor;
use crate::ir::ast::{
    Alias, Expr, ExprKind, FunctionDef, Init, Name, Path, StructDef, TemplateArg, TemplateParamKind, Type,
    Unit,
};
use crate::lower::vendor;
use crate::source::{FileId, Sources, Span};

/// What is known of one parameter; `None` is filled plausibly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// A scalar's value.
    pub value: Option<f64>,
    /// Numbers in a struct, in the order of its fields.
    pub fields: Vec<Option<f64>>,
    /// Bytes of the buffer behind a pointer.
    pub extent_bytes: Option<u64>,
    /// Integers in the buffer are in `0..limit`.
    pub index_limit: Option<u64>,
}

/// What integers become that nothing is known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    Equal(u32),
    /// An uneven size for the first parameter, 2 for the others.
    FirstLarge,
    LastLarge,
}

impl Sizes {
    /// For the parameter at `place` of `count`.
    fn at(self, place: usize, count: usize) -> u32 {
        let is_large = match self {
            Sizes::Equal(size) => return size,
            Sizes::FirstLarge => place == 0,
            Sizes::LastLarge => place + 1 == count,
        };
        if is_large { UNEVEN } else { 2 }
    }

    /// Integers in buffers are below it.
    fn limit(self) -> u32 {
        match self {
            Sizes::Equal(size) => size,
            Sizes::FirstLarge | Sizes::LastLarge => UNEVEN,
        }
    }
}

/// No multiple of a warp, so that the last tile and the last block are cut.
const UNEVEN: u32 = 1000;
/// Bytes of a buffer whose extent is not known: room for 4096 x 4096 elements of 4 bytes.
const EXTENT_BYTES: u64 = 64 << 20;
/// Constants computed one from another.
const CONSTANT_DEPTH: usize = 3;
/// No tensor has more dimensions (`at::kMaxDims`).
const MOST_DIMENSIONS: u64 = 64;
/// Of what no file has.
const NOWHERE: Span = Span { file: FileId(0), start: 0, end: 0 };
/// Rows behind a pointer to pointers, and the bytes of each.
const ROWS: usize = 64;
const ROW_BYTES: u64 = 4 << 20;

/// Types of a project by name.
#[derive(Debug, Default)]
pub struct Types<'a> {
    structs: FxHashMap<Name, &'a StructDef>,
    aliases: FxHashMap<Name, &'a Type>,
    /// Those inside classes, for a name that means nothing else.
    members: FxHashMap<Name, &'a Type>,
    constants: FxHashMap<Name, i64>,
    enums: FxHashMap<Name, Option<&'a Type>>,
    macros: FxHashMap<Name, TemplateArg>,
    enumerators: FxHashSet<Name>,
    /// Functions that a kernel may be handed as a template argument.
    functions: FxHashSet<Name>,
}

/// What one set of arguments is made by.
struct Making<'m> {
    env: &'m Env,
    /// For the parameter that is made.
    size: u32,
    limit: u32,
    known: &'m dyn Fn(&str) -> Known,
}

/// Template arguments by parameter name.
type Env = FxHashMap<Name, TemplateArg>;

/// What a value looks like in memory.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Int(u64),
    Float(u64),
    Pointer(Box<Type>),
    /// Size, alignment, byte offsets of the fields.
    Struct(u64, u64, Vec<(u64, Shape)>),
    Array(u64, Box<Shape>),
    /// A tensor accessor: the elements' type, the number of dimensions, the bytes of each size and stride.
    Tensor(Box<Type>, u64, u64),
}

impl Shape {
    fn bytes(&self) -> u64 {
        match self {
            Shape::Int(bytes) | Shape::Float(bytes) | Shape::Struct(bytes, _, _) => *bytes,
            Shape::Pointer(_) => 8,
            Shape::Array(count, of) => count.saturating_mul(of.bytes()),
            Shape::Tensor(_, dimensions, index) => {
                dimensions.saturating_mul(2 * index).saturating_add(8).next_multiple_of(8)
            }
        }
    }

    fn align(&self) -> u64 {
        match self {
            Shape::Int(bytes) | Shape::Float(bytes) => *bytes,
            Shape::Struct(_, align, _) => *align,
            Shape::Pointer(_) | Shape::Tensor(..) => 8,
            Shape::Array(_, of) => of.align(),
        }
        .max(1)
    }
}

impl<'a> Types<'a> {
    pub fn of(units: impl IntoIterator<Item = &'a Unit>) -> Types<'a> {
        let mut types = Types::default();
        let mut globals: Vec<(Name, &Expr)> = Vec::new();
        for unit in units {
            for definition in unit.structs.iter().filter(|definition| definition.specialization.is_none()) {
                types.structs.entry(definition.name).or_insert(definition);
                for Alias { name, ty, .. } in &definition.aliases {
                    types.members.entry(*name).or_insert(ty);
                }
            }
            for Alias { name, ty, .. } in &unit.aliases {
                types.aliases.entry(*name).or_insert(ty);
            }
            for definition in &unit.enums {
                types.enums.entry(definition.name).or_insert(definition.underlying.as_ref());
                types.enumerators.extend(definition.items.iter().map(|(name, _)| *name));
            }
            let device = unit.functions.iter().filter(|function| function.qualifiers.device);
            types.functions.extend(device.map(|function| function.name));
            let known = unit.globals.iter().filter_map(|global| match &global.init {
                crate::ir::ast::Init::Assign(value) => Some((global.name, value.as_ref())),
                _ => None,
            });
            globals.extend(known);
        }
        // One constant may be computed from another, which another file may have.
        for _ in 0..CONSTANT_DEPTH {
            for (name, value) in &globals {
                if !types.constants.contains_key(name)
                    && let Some(value) = types.constant(value, &Env::default())
                {
                    types.constants.insert(*name, i64::try_from(value).unwrap_or(i64::MAX));
                }
            }
        }
        types
    }

    /// `#define REAL float`, `-D N=16`: a macro that stands for a type or a number.
    pub fn define(&mut self, name: &str, body: &str) {
        if let Some(meaning) = parsed(body) {
            self.macros.entry(Name::new(name)).or_insert(meaning);
        }
    }

    /// The instance of a template kernel to run, and the arguments that had to be made up because no launch gives them: types
    /// become `float`, as the analysis assumes; numbers the block's width where their name speaks of it, else 4.
    pub fn instance(&self, kernel: &FunctionDef, instance: &str, width: u32) -> (String, Vec<String>) {
        let (plain, inside) = match instance.split_once('<') {
            Some((plain, rest)) => (plain, rest.rsplit_once('>').map_or(rest, |(inside, _)| inside)),
            None => (instance, ""),
        };
        let written = split(inside);
        let (mut made, mut args, mut is_rewritten) = (Vec::new(), Vec::new(), false);
        for (index, param) in kernel.template.iter().enumerate() {
            let is_type = matches!(param.kind, TemplateParamKind::Type { .. });
            let fits = |text: &&String| {
                let is_function = self.functions.contains(&Name::new(text));
                let fits_kind = match parsed(text) {
                    _ if is_function => !is_type,
                    Some(TemplateArg::Value(_)) => !is_type,
                    // A lone name may be either.
                    Some(TemplateArg::Type(Type::Named(_))) | None => true,
                    Some(TemplateArg::Type(_)) => is_type,
                };
                fits_kind && self.is_known(text)
            };
            let given = written.get(index).filter(fits);
            let arg = match (&param.kind, given) {
                (TemplateParamKind::Value { ty: Type::Named(path), .. }, Some(text))
                    if self.enums.contains_key(&path.name)
                        && matches!(parsed(text), Some(TemplateArg::Value(_))) =>
                {
                    // No number becomes an enumerator by itself.
                    is_rewritten = true;
                    format!("({}){text}", path.name)
                }
                (_, Some(text)) => text.clone(),
                (TemplateParamKind::Type { default: Some(_) }, None)
                | (TemplateParamKind::Value { default: Some(_), .. }, None)
                    if written.get(index).is_none() =>
                {
                    break;
                }
                _ if param.is_pack => break,
                (TemplateParamKind::Template, None) => return (instance.to_owned(), Vec::new()),
                (TemplateParamKind::Type { .. }, None) => "float".to_owned(),
                (TemplateParamKind::Value { ty: Type::Bool, .. }, None) => "true".to_owned(),
                (TemplateParamKind::Value { .. }, None) => {
                    let name = param.name.as_str().to_ascii_lowercase();
                    let is_width = ["block", "thread", "bdim"].iter().any(|part| name.contains(part))
                        && !name.contains("per");
                    if is_width { width.to_string() } else { "4".to_owned() }
                }
            };
            if given.is_none() {
                made.push(format!("{} = {arg}", param.name));
            }
            args.push(arg);
        }
        if made.is_empty() && !is_rewritten {
            return (instance.to_owned(), made);
        }
        args.extend(written.into_iter().skip(args.len()));
        (format!("{plain}<{}>", args.join(", ")), made)
    }

    /// Whether every name in a template argument means something where the slice ends.
    fn is_known(&self, text: &str) -> bool {
        const WORDS: [&str; 6] = ["const", "struct", "sizeof", "true", "false", "nullptr"];
        let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let mut names = names.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        names.all(|name| {
            let interned = Name::new(name);
            WORDS.contains(&name)
                || text.contains("::")
                || name.starts_with(closure::PREFIX)
                || integer(&[name]).is_some()
                || builtin(name).is_some()
                || self.structs.contains_key(&interned)
                || self.aliases.contains_key(&interned)
                || self.enums.contains_key(&interned)
                || self.enumerators.contains(&interned)
                || self.constants.contains_key(&interned)
                || self.macros.contains_key(&interned)
                || self.functions.contains(&interned)
        })
    }

    /// `sizeof` a type of the project; `None` where its layout is not known.
    pub fn size(&self, ty: &Type) -> Option<u64> {
        self.shape(ty, &Env::default(), 0).ok().map(|shape| shape.bytes())
    }

    /// What an object-like macro stands for, where that is a type or a number.
    pub fn meaning(&self, name: Name) -> Option<&TemplateArg> {
        self.macros.get(&name)
    }

    pub fn class(&self, name: Name) -> Option<&'a StructDef> {
        self.structs.get(&name).copied()
    }

    /// One argument per parameter of `kernel`, whose instance is `instance`: `k<float, 16>`. Integers that nothing is
    /// known of become `sizes`; for what is passed a lambda, `closures` has its class by the parameter's name.
    pub fn arguments(
        &self,
        kernel: &FunctionDef,
        instance: &str,
        sizes: Sizes,
        closures: &[(String, Closure)],
        known: &dyn Fn(&str) -> Known,
    ) -> Result<Vec<Arg>, String> {
        let params = parameters(kernel, instance)?;
        let closure = |param: &Parameter| {
            closures.iter().find(|(name, _)| *name == param.name).map(|(_, closure)| closure)
        };
        let mut open: Vec<String> = Vec::new();
        for param in &params {
            let shape = self.shape(param.ty, &param.env, 0);
            match closure(param) {
                Some(closure) => self.add_open(closure, &param.name, known, &mut open),
                None if matches!(shape, Ok(Shape::Int(4..))) && known(&param.name).value.is_none() => {
                    open.push(param.name.clone());
                }
                None => {}
            }
        }
        let size = |name: &str| {
            let place = open.iter().position(|open| *open == name);
            place.map_or(sizes.limit(), |place| sizes.at(place, open.len()))
        };
        let params = params.iter().enumerate().map(|(index, param)| {
            let name = param.name.as_str();
            let making = Making { env: &param.env, size: size(name), limit: sizes.limit(), known };
            let what =
                if name.is_empty() { format!("parameter {index}") } else { format!("parameter `{name}`") };
            let made = match closure(param) {
                Some(closure) => self.captured(closure, name, &size, &making),
                None => {
                    self.shape(param.ty, making.env, 0).and_then(|shape| self.argument(&shape, name, &making))
                }
            };
            made.map_err(|why| format!("{what}: {why}"))
        });
        params.collect()
    }

    /// What stands for each argument in the source of a launch.
    pub fn spelt(
        &self,
        kernel: &FunctionDef,
        instance: &str,
        args: &[Arg],
        closures: &[(String, Closure)],
        sources: &Sources,
    ) -> Spelt {
        let params = parameters(kernel, instance).unwrap_or_default();
        let mut spelt = Spelt::default();
        for (param, arg) in params.iter().zip(args) {
            let closure = closures.iter().find(|(name, _)| *name == param.name);
            if let (Some((_, closure)), Arg::Struct { bytes, .. }) = (closure, arg) {
                let lambda = self.spell(closure, bytes, sources, &mut spelt);
                spelt.args.push(lambda);
                continue;
            }
            let is_float = matches!(self.shape(param.ty, &param.env, 0), Ok(Shape::Float(_)));
            let text = match (&param.packed, arg) {
                (None, _) => literal(arg, is_float),
                // Nothing but its type says what a pack holds, and a null pointer loses it.
                (Some(ty), Arg::Buffer(_)) => format!("({ty})cudalint_made_up"),
                (Some(ty), Arg::Scalar { .. }) => format!("({ty}){}", literal(arg, is_float)),
                (Some(_), Arg::Struct { .. }) => literal(arg, is_float),
            };
            spelt.args.push(Text::from(text));
        }
        spelt
    }

    /// A lambda as source, with what it captures declared before it.
    fn spell(&self, closure: &Closure, bytes: &[u8], sources: &Sources, spelt: &mut Spelt) -> Text {
        for (name, ty) in &closure.types {
            spelt.before.push(&format!("using {name} = {ty}; "));
        }
        for (ty, name, value) in &closure.constants {
            spelt.before.push(&format!("const {ty} {name} = {value}; "));
        }
        let fields = self.members(closure).unwrap_or_default();
        for (member, (at, shape)) in closure.members.iter().zip(fields) {
            let range = at as usize..(at + shape.bytes()) as usize;
            let bytes = bytes.get(range).unwrap_or_default();
            match (&member.holds, shape) {
                (Holds::Closure(inner), _) => {
                    let lambda = self.spell(inner, bytes, sources, spelt);
                    spelt.before.push(&format!("auto {} = ", member.name));
                    spelt.before.append(lambda);
                    spelt.before.push("; ");
                }
                (Holds::Value(_), shape @ (Shape::Int(_) | Shape::Float(_))) => {
                    let value =
                        literal(&Arg::Scalar { bytes: bytes.to_vec() }, matches!(shape, Shape::Float(_)));
                    spelt.before.push(&format!("{} = {value}; ", member.declared));
                }
                (
                    Holds::Value(_),
                    Shape::Pointer(_) | Shape::Struct(..) | Shape::Array(..) | Shape::Tensor(..),
                ) => {
                    spelt.params.push(member.resolved.clone());
                }
            }
        }
        spelt.file = Some(closure.lambda.file);
        let text = sources.text(closure.lambda);
        let after = after_captures(text).unwrap_or(0) as u32;
        let mut lambda = Text::from("[=]".to_owned());
        lambda.copy(sources, Span { start: closure.lambda.start + after, ..closure.lambda });
        lambda
    }

    /// The captured integers that nothing is known of: `f.n`.
    fn add_open(&self, closure: &Closure, path: &str, known: &dyn Fn(&str) -> Known, out: &mut Vec<String>) {
        let env = names(closure);
        for member in &closure.members {
            let name = format!("{path}.{}", member.name);
            match &member.holds {
                Holds::Closure(inner) => self.add_open(inner, &name, known, out),
                Holds::Value(ty) => {
                    let is_told = known(&name).value.is_some() || matches!(member.numbers[..], [Some(_)]);
                    if matches!(self.shape(ty, &env, 0), Ok(Shape::Int(4..))) && !is_told {
                        out.push(name);
                    }
                }
            }
        }
    }

    /// The bytes of a lambda's class, with buffers for the pointers that it captures.
    fn captured(
        &self,
        closure: &Closure,
        path: &str,
        size: &dyn Fn(&str) -> u32,
        making: &Making,
    ) -> Result<Arg, String> {
        let fields = self.members(closure)?;
        let mut bytes = vec![0; usize::try_from(class(&fields).bytes()).map_err(|_| "too large".to_owned())?];
        let mut pointers = Vec::new();
        let env = names(closure);
        for (member, (at, shape)) in closure.members.iter().zip(&fields) {
            let full = format!("{path}.{}", member.name);
            let known = (making.known)(&full);
            let making = Making { env: &env, size: size(&full), ..*making };
            match (&member.holds, shape) {
                (Holds::Closure(inner), _) => {
                    let Arg::Struct { bytes: held, pointers: to } =
                        self.captured(inner, &full, size, &making)?
                    else {
                        continue;
                    };
                    bytes.iter_mut().skip(*at as usize).zip(held).for_each(|(to, from)| *to = from);
                    pointers.extend(to.into_iter().map(|(inner, buffer)| (*at as usize + inner, buffer)));
                }
                (Holds::Value(_), Shape::Pointer(to)) => {
                    pointers.push((*at as usize, self.buffer(to, &member.name, &known, &making, 0)?));
                }
                (Holds::Value(_), shape) => {
                    let told = known.value.map(|value| vec![Some(value)]);
                    let mut numbers = told.unwrap_or_else(|| member.numbers.clone()).into_iter();
                    let name = &member.name;
                    self.fill_struct(shape, *at, name, &making, &mut numbers, &mut bytes, &mut pointers)?;
                }
            }
        }
        Ok(Arg::Struct { bytes, pointers })
    }

    /// What a lambda's class holds, by byte offsets.
    fn members(&self, closure: &Closure) -> Result<Vec<(u64, Shape)>, String> {
        let env = names(closure);
        let mut fields: Vec<(u64, Shape)> = Vec::new();
        for member in &closure.members {
            let shape = match &member.holds {
                Holds::Closure(inner) => class(&self.members(inner)?),
                Holds::Value(ty) => self
                    .shape(ty, &env, 0)
                    .map_err(|why| format!("`{}`, which the lambda captures: {why}", member.name))?,
            };
            let end = fields.last().map_or(0, |(at, shape)| at + shape.bytes());
            fields.push((end.next_multiple_of(shape.align()), shape));
        }
        Ok(fields)
    }

    fn argument(&self, shape: &Shape, name: &str, making: &Making) -> Result<Arg, String> {
        let known = (making.known)(name);
        match shape {
            Shape::Pointer(to) => Ok(Arg::Buffer(self.buffer(to, name, &known, making, 0)?)),
            Shape::Int(_) | Shape::Float(_) => {
                let mut bytes = Vec::new();
                scalar(shape, name, known.value, making.size, &mut bytes);
                Ok(Arg::Scalar { bytes })
            }
            Shape::Struct(..) | Shape::Array(..) | Shape::Tensor(..) => {
                let mut bytes = vec![0; usize::try_from(shape.bytes()).map_err(|_| "too large".to_owned())?];
                let mut pointers = Vec::new();
                let mut fields = known.fields.into_iter();
                self.fill_struct(shape, 0, name, making, &mut fields, &mut bytes, &mut pointers)?;
                Ok(Arg::Struct { bytes, pointers })
            }
        }
    }

    /// `numbers` are known, in order; the rest is made up.
    #[expect(clippy::too_many_arguments, reason = "the two last are what is filled, and it calls itself")]
    fn fill_struct(
        &self,
        shape: &Shape,
        at: u64,
        name: &str,
        making: &Making,
        numbers: &mut dyn Iterator<Item = Option<f64>>,
        bytes: &mut [u8],
        pointers: &mut Vec<(usize, Buffer)>,
    ) -> Result<(), String> {
        match shape {
            Shape::Struct(_, _, fields) => {
                for (offset, field) in fields {
                    self.fill_struct(field, at + offset, name, making, numbers, bytes, pointers)?;
                }
            }
            Shape::Array(count, of) => {
                for index in 0..*count {
                    let at = at + index * of.bytes();
                    self.fill_struct(of, at, name, making, numbers, bytes, pointers)?;
                }
            }
            Shape::Tensor(of, dimensions, index) => {
                let buffer = self.buffer(of, name, &Known::default(), making, 1)?;
                let element = self.shape(of, making.env, 0)?.bytes();
                let side = tensor::side(u64::from(making.size), *dimensions, element, buffer.bytes);
                // Contiguous: the last dimension in steps of one.
                let strides = (0..*dimensions)
                    .rev()
                    .map(|inner| side.saturating_pow(u32::try_from(inner).unwrap_or(u32::MAX)));
                let numbers = std::iter::repeat_n(side, *dimensions as usize).chain(strides);
                let width = *index as usize;
                for (place, number) in numbers.enumerate() {
                    let to = bytes.iter_mut().skip(at as usize + 8 + place * width).take(width);
                    to.zip(number.to_le_bytes()).for_each(|(to, byte)| *to = byte);
                }
                pointers.push((at as usize, buffer));
            }
            Shape::Pointer(to) => {
                pointers.push((at as usize, self.buffer(to, name, &Known::default(), making, 1)?));
            }
            Shape::Int(_) | Shape::Float(_) => {
                let mut value = Vec::new();
                scalar(shape, name, numbers.next().flatten(), making.size, &mut value);
                for (place, byte) in bytes.iter_mut().skip(at as usize).zip(value) {
                    *place = byte;
                }
            }
        }
        Ok(())
    }

    fn buffer(
        &self,
        to: &Type,
        name: &str,
        known: &Known,
        making: &Making,
        depth: u32,
    ) -> Result<Buffer, String> {
        let bytes = known.extent_bytes.unwrap_or(EXTENT_BYTES);
        if matches!(to, Type::Void) {
            return Ok(Buffer { bytes, fill: Fill::Zero, pointers: Vec::new() });
        }
        let fill = match self.shape(to, making.env, 0)? {
            Shape::Int(width) => {
                integers(width, name, known.index_limit.unwrap_or(u64::from(making.limit)), bytes)
            }
            Shape::Float(width) => Fill::Float { element_bytes: width as u8 },
            Shape::Pointer(inner) if depth < 2 => {
                let row = Known { extent_bytes: Some(ROW_BYTES), ..known.clone() };
                let rows: Result<Vec<(usize, Buffer)>, String> = (0..ROWS)
                    .map(|row_index| Ok((row_index * 8, self.buffer(&inner, name, &row, making, depth + 1)?)))
                    .collect();
                return Ok(Buffer { bytes: ROWS as u64 * 8, fill: Fill::Zero, pointers: rows? });
            }
            Shape::Pointer(_) => return Err("pointers more than two deep".to_owned()),
            element => {
                let mut pattern = vec![0; element.bytes().min(4096) as usize];
                let mut pointers = Vec::new();
                let mut none = std::iter::empty();
                self.fill_struct(&element, 0, name, making, &mut none, &mut pattern, &mut pointers)?;
                // Pointers in an array of structs are null: a kernel that follows them is not measured.
                Fill::Bytes(pattern)
            }
        };
        Ok(Buffer { bytes, fill, pointers: Vec::new() })
    }

    fn shape(&self, ty: &Type, env: &Env, depth: u32) -> Result<Shape, String> {
        if depth > 20 {
            return Err("its type is nested too deeply".to_owned());
        }
        match ty {
            Type::Bool => Ok(Shape::Int(1)),
            Type::Int { size, .. } => Ok(Shape::Int(u64::from(*size))),
            Type::Float { size } => Ok(Shape::Float(u64::from(*size))),
            Type::Pointer { to, .. } => Ok(Shape::Pointer(to.clone())),
            Type::Array { of, extent: None } => Ok(Shape::Pointer(of.clone())),
            Type::Array { of, extent: Some(extent) } => {
                let count = self.constant(extent, env).ok_or("an array whose extent is not constant")?;
                Ok(Shape::Array(count, Box::new(self.shape(of, env, depth + 1)?)))
            }
            Type::Named(path) => self.named(path, env, depth),
            Type::Void => Err("void".to_owned()),
            Type::Auto | Type::Decltype(_) => Err("its type is deduced".to_owned()),
            Type::Reference { .. } => Err("a reference to host memory".to_owned()),
            Type::Pack(_) => Err("a pack inside another type".to_owned()),
            Type::Unknown(what) => Err((*what).to_owned()),
        }
    }

    fn named(&self, path: &Path, env: &Env, depth: u32) -> Result<Shape, String> {
        let name = path.name;
        if path.scope.is_empty() {
            match env.get(&name) {
                Some(TemplateArg::Type(Type::Named(inner))) if inner.as_simple() == Some(name) => {}
                Some(TemplateArg::Type(ty)) => return self.shape(ty, env, depth + 1),
                Some(TemplateArg::Value(_)) => return Err(format!("`{name}` is a value, not a type")),
                None => {}
            }
        }
        if let Some(shape) = builtin(name.as_str()) {
            return Ok(shape);
        }
        if let Some(alias) = self.aliases.get(&name) {
            return self.shape(alias, env, depth + 1);
        }
        if let Some(definition) = self.structs.get(&name) {
            return self.layout(definition, path, env, depth);
        }
        if let Some(underlying) = self.enums.get(&name) {
            return underlying.map_or(Ok(Shape::Int(4)), |ty| self.shape(ty, env, depth + 1));
        }
        if let Some(TemplateArg::Type(ty)) = self.macros.get(&name) {
            return self.shape(ty, env, depth + 1);
        }
        if let Some(index) = tensor::index_bytes(name.as_str()) {
            return self.accessor(path, index, env);
        }
        if let Some(definition) = vendor::definition(path) {
            return self.layout(definition, path, env, depth);
        }
        if let Some(alias) = self.members.get(&name) {
            return self.shape(alias, env, depth + 1);
        }
        Err(format!("the layout of `{name}` is not known"))
    }

    /// `at::PackedTensorAccessor32<T, N, …>`
    fn accessor(&self, path: &Path, index_bytes: u64, env: &Env) -> Result<Shape, String> {
        let mut args = path.args.iter().flatten().map(|arg| resolved(arg, env));
        let (Some(TemplateArg::Type(of)), Some(TemplateArg::Value(count))) = (args.next(), args.next())
        else {
            return Err(format!("the layout of `{}` is not known", path.name));
        };
        let count = self.constant(&count, env).filter(|count| (1..=MOST_DIMENSIONS).contains(count));
        let count = count.ok_or("a tensor whose number of dimensions is not constant")?;
        Ok(Shape::Tensor(Box::new(of), count, index_bytes))
    }

    /// Fields in order at their alignment, as C++ lays out classes without virtual functions.
    fn layout(&self, definition: &StructDef, path: &Path, env: &Env, depth: u32) -> Result<Shape, String> {
        let mut inner = env.clone();
        for (param, arg) in definition.template.iter().zip(path.args.iter().flatten()) {
            inner.insert(param.name, resolved(arg, env));
        }
        self.class_names(definition, &mut inner);
        let (mut size, mut align) = (0u64, 1u64);
        let mut fields = Vec::new();
        if !definition.bases.is_empty() {
            return Err(format!("`{}` has base classes", definition.name));
        }
        for field in &definition.fields {
            let shape = self.shape(&field.ty, &inner, depth + 1)?;
            let wanted = field.align.as_ref().and_then(|align| self.constant(align, &inner));
            let wanted = if definition.packed { 1 } else { wanted.unwrap_or(shape.align()).max(1) };
            let offset = if definition.is_union { 0 } else { size.next_multiple_of(wanted) };
            align = align.max(wanted);
            size = size.max(offset + shape.bytes());
            fields.push((offset, shape));
        }
        let declared = definition.align.as_ref().and_then(|align| self.constant(align, &inner));
        let align = align.max(declared.unwrap_or(1));
        Ok(Shape::Struct(size.max(1).next_multiple_of(align), align, fields))
    }

    /// What a class calls its own: aliases, constants, enumerators.
    fn class_names(&self, definition: &StructDef, env: &mut Env) {
        for alias in definition.aliases.iter().filter(|alias| alias.template.is_empty()) {
            env.insert(alias.name, TemplateArg::Type(alias.ty.clone()));
        }
        for constant in &definition.constants {
            let Init::Assign(value) = &constant.init else { continue };
            if let Some(number) = self.constant(value, env) {
                env.insert(constant.name, number_arg(number));
            }
        }
        for listed in &definition.enums {
            let mut next = Some(0);
            for (name, value) in &listed.items {
                let number = value.as_ref().map_or(next, |value| self.constant(value, env));
                if let Some(number) = number {
                    env.insert(*name, number_arg(number));
                }
                next = number.and_then(|number: u64| number.checked_add(1));
            }
        }
    }

    fn constant(&self, expr: &Expr, env: &Env) -> Option<u64> {
        match &expr.kind {
            ExprKind::Int { value, .. } => Some(*value),
            ExprKind::Cast { operand, .. } => self.constant(operand, env),
            ExprKind::SizeofType(ty) => self.shape(ty, env, 0).ok().map(|shape| shape.bytes()),
            ExprKind::Name(path) => match env.get(&path.name) {
                Some(TemplateArg::Value(value)) => self.constant(value, &Env::default()),
                _ if self.macros.contains_key(&path.name) => match self.macros.get(&path.name) {
                    Some(TemplateArg::Value(Expr { kind: ExprKind::Int { value, .. }, .. })) => Some(*value),
                    _ => None,
                },
                _ => self.constants.get(&path.name).and_then(|&value| u64::try_from(value).ok()),
            },
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.constant(a, env)?, self.constant(b, env)?);
                match op {
                    crate::ir::ast::BinaryOp::Add => a.checked_add(b),
                    crate::ir::ast::BinaryOp::Sub => a.checked_sub(b),
                    crate::ir::ast::BinaryOp::Mul => a.checked_mul(b),
                    crate::ir::ast::BinaryOp::Div => a.checked_div(b),
                    crate::ir::ast::BinaryOp::Shl => a.checked_shl(u32::try_from(b).ok()?),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A template argument with the outer arguments put in.
fn resolved(arg: &TemplateArg, env: &Env) -> TemplateArg {
    match arg {
        TemplateArg::Type(Type::Named(path)) => {
            path.as_simple().and_then(|name| env.get(&name)).cloned().unwrap_or_else(|| arg.clone())
        }
        TemplateArg::Value(Expr { kind: ExprKind::Name(path), .. }) => {
            path.as_simple().and_then(|name| env.get(&name)).cloned().unwrap_or_else(|| arg.clone())
        }
        other => other.clone(),
    }
}

/// A parameter of an instance: of a pack, one for each argument that it holds.
struct Parameter<'k> {
    /// `args[1]` in a pack.
    name: String,
    ty: &'k Type,
    env: Env,
    /// What the pack's template parameter stands for here.
    packed: Option<String>,
}

/// The parameters of `instance`; the error names a pack of which no launch says what it holds.
fn parameters<'k>(kernel: &'k FunctionDef, instance: &str) -> Result<Vec<Parameter<'k>>, String> {
    let (env, written) = (environment(kernel, instance), written(instance));
    let mut params = Vec::new();
    for param in &kernel.params {
        let Type::Pack(of) = &param.ty else {
            let (name, env) = (param.name.to_string(), env.clone());
            params.push(Parameter { name, ty: &param.ty, env, packed: None });
            continue;
        };
        let place = kernel.template.iter().position(|param| param.is_pack).unwrap_or(kernel.template.len());
        let pack = kernel.template.get(place).map_or(param.name, |pack| pack.name);
        for (at, held) in written.iter().skip(place).enumerate() {
            if held == crate::launch::kernel::LAMBDA {
                return Err(format!(
                    "parameter `{}`: the type of a lambda in a pack has no name",
                    param.name
                ));
            }
            let arg = parsed(held).filter(|_| held != pack.as_str());
            let arg =
                arg.ok_or_else(|| format!("parameter `{}`: no launch says what the pack holds", param.name))?;
            let (name, mut env) = (format!("{}[{at}]", param.name), env.clone());
            env.insert(pack, arg);
            params.push(Parameter { name, ty: of, env, packed: Some(held.clone()) });
        }
    }
    Ok(params)
}

/// The template arguments of an instance: `float` and `16` of `k<float, 16>`.
pub fn written(instance: &str) -> Vec<String> {
    let inside = instance.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>'));
    split(inside.map_or("", |(inside, _)| inside))
}

/// The template arguments that `k<float, 16>` gives, and the defaults of the rest.
fn environment(kernel: &FunctionDef, instance: &str) -> Env {
    let mut env = Env::default();
    let written = written(instance);
    for (index, param) in kernel.template.iter().enumerate().filter(|(_, param)| !param.is_pack) {
        let given = written.get(index).and_then(|text| parsed(text));
        let default = match &param.kind {
            TemplateParamKind::Type { default } => default.clone().map(TemplateArg::Type),
            TemplateParamKind::Value { default, .. } => default.clone().map(TemplateArg::Value),
            TemplateParamKind::Template => None,
        };
        if let Some(arg) = given.or(default) {
            env.insert(param.name, arg);
        }
    }
    env
}

/// What the names mean that a lambda's class has from the host.
fn names(closure: &Closure) -> Env {
    let types = closure.types.iter().map(|(name, ty)| (name, ty));
    let constants = closure.constants.iter().map(|(_, name, value)| (name, value));
    let named = types.chain(constants).filter_map(|(name, text)| Some((Name::new(name), parsed(text)?)));
    named.collect()
}

fn class(fields: &[(u64, Shape)]) -> Shape {
    let align = fields.iter().map(|(_, shape)| shape.align()).max().unwrap_or(1);
    let end = fields.last().map_or(1, |(at, shape)| at + shape.bytes());
    Shape::Struct(end.next_multiple_of(align), align, fields.to_vec())
}

/// Splits at the commas outside brackets.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        depth += i32::from("<([{".contains(c)) - i32::from(">)]}".contains(c));
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn number_arg(value: u64) -> TemplateArg {
    let kind = ExprKind::Int { value, unsigned: false, long: false };
    TemplateArg::Value(Expr { span: NOWHERE, kind })
}

/// `float`, `unsigned int`, `float4*`, `16`, `true`.
pub fn parsed(text: &str) -> Option<TemplateArg> {
    let text = text.trim();
    if let Some(pointee) = text.strip_suffix('*') {
        let Some(TemplateArg::Type(to)) = parsed(pointee) else { return None };
        return Some(TemplateArg::Type(Type::Pointer { to: Box::new(to), is_const: false, restrict: false }));
    }
    let span = NOWHERE;
    match text {
        "true" => return Some(number_arg(1)),
        "false" => return Some(number_arg(0)),
        _ => {}
    }
    if let Ok(number) = text.trim_end_matches(['u', 'U', 'l', 'L']).parse::<u64>() {
        return Some(number_arg(number));
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && let Ok(number) = text.trim_end_matches(['f', 'F']).parse::<f64>()
    {
        let kind = ExprKind::Float { value: number, double: !text.ends_with(['f', 'F']) };
        return Some(TemplateArg::Value(Expr { span, kind }));
    }
    let words: Vec<&str> =
        text.split_whitespace().filter(|word| !["const", "struct"].contains(word)).collect();
    let [name] = words.as_slice() else { return integer(&words).map(TemplateArg::Type) };
    if let Some(ty) = integer(&words) {
        return Some(TemplateArg::Type(ty));
    }
    let plain = name.rsplit("::").next().unwrap_or(name);
    let (plain, args) = match plain.split_once('<') {
        Some((plain, rest)) => {
            (plain, Some(split(rest.trim_end_matches('>')).iter().filter_map(|a| parsed(a)).collect()))
        }
        None => (plain, None),
    };
    Some(TemplateArg::Type(Type::Named(Path { scope: Vec::new(), name: Name::new(plain), args })))
}

fn integer(words: &[&str]) -> Option<Type> {
    const WORDS: [&str; 9] =
        ["unsigned", "signed", "int", "long", "short", "char", "float", "double", "bool"];
    if words.is_empty() || !words.iter().all(|word| WORDS.contains(word)) {
        return None;
    }
    let signed = !words.contains(&"unsigned");
    let size = match words {
        _ if words.contains(&"float") => return Some(Type::Float { size: 4 }),
        _ if words.contains(&"double") => return Some(Type::Float { size: 8 }),
        _ if words.contains(&"bool") => return Some(Type::Bool),
        _ if words.contains(&"char") => 1,
        _ if words.contains(&"short") => 2,
        _ if words.contains(&"long") => 8,
        _ => 4,
    };
    Some(Type::Int { size, signed })
}

/// CUDA's vector types and the names of host headers.
fn builtin(name: &str) -> Option<Shape> {
    let plain = match name {
        "size_t" | "ptrdiff_t" | "int64_t" | "uint64_t" | "intptr_t" | "uintptr_t" | "ulong" | "longlong"
        | "clock_t" => Shape::Int(8),
        "int32_t" | "uint32_t" | "uint" => Shape::Int(4),
        "int16_t" | "uint16_t" | "ushort" => Shape::Int(2),
        "int8_t" | "uint8_t" | "uchar" => Shape::Int(1),
        "half" | "__half" | "nv_bfloat16" | "__nv_bfloat16" => Shape::Float(2),
        "half2" | "__half2" | "nv_bfloat162" | "__nv_bfloat162" => vector(Shape::Float(2), 2, 4),
        "cuComplex" | "cuFloatComplex" => vector(Shape::Float(4), 2, 8),
        "cuDoubleComplex" => vector(Shape::Float(8), 2, 16),
        "dim3" => vector(Shape::Int(4), 3, 4),
        // Types that only carry a constant.
        "bool_constant" | "integral_constant" | "true_type" | "false_type" => Shape::Struct(1, 1, Vec::new()),
        _ => {
            let count = u64::from(name.bytes().last()?.checked_sub(b'0')?);
            let element = match name.get(..name.len() - 1)? {
                "char" | "uchar" => Shape::Int(1),
                "short" | "ushort" => Shape::Int(2),
                "int" | "uint" => Shape::Int(4),
                "long" | "ulong" | "longlong" | "ulonglong" => Shape::Int(8),
                "float" => Shape::Float(4),
                "double" => Shape::Float(8),
                _ => return None,
            };
            if !(1..=4).contains(&count) {
                return None;
            }
            let align = if count == 3 { element.bytes() } else { (element.bytes() * count).min(16) };
            vector(element, count, align)
        }
    };
    Some(plain)
}

fn vector(element: Shape, count: u64, align: u64) -> Shape {
    let bytes = element.bytes();
    Shape::Struct(bytes * count, align, (0..count).map(|i| (i * bytes, element.clone())).collect())
}

/// Integers for a buffer: sorted where the name says rows or offsets, in range in any case.
fn integers(width: u64, name: &str, limit: u64, bytes: u64) -> Fill {
    let name = name.to_ascii_lowercase();
    let room = (bytes / width.max(1)).max(1);
    let limit = if width == 1 { limit.min(100) } else { limit }.min(room);
    let element_bytes = width as u8;
    if ["ptr", "row", "offset", "start", "begin"].iter().any(|part| name.contains(part)) {
        Fill::Ramp { element_bytes, limit }
    } else {
        Fill::Index { element_bytes, limit }
    }
}

/// A scalar's bytes; without a value one that fits its name.
fn scalar(shape: &Shape, name: &str, value: Option<f64>, size: u32, out: &mut Vec<u8>) {
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match shape {
        Shape::Float(4) => out.extend((value.unwrap_or(1.0) as f32).to_le_bytes()),
        Shape::Float(2) => out.extend([0x00, 0x3c]),
        Shape::Float(_) => out.extend(value.unwrap_or(1.0).to_le_bytes()),
        _ => {
            let bytes = shape.bytes() as usize;
            let value = value.unwrap_or(match bytes {
                1 => 1.0,
                _ if has(&["shift", "log", "bits"]) => 3.0,
                _ if has(&["offset", "start", "begin", "idx", "index", "seed"]) => 0.0,
                _ if has(&["iter", "repeat", "step", "trial", "times"]) => 4.0,
                2 => 64.0,
                _ => f64::from(size),
            });
            out.extend((value as i64).to_le_bytes().iter().take(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_types_have_cudas_sizes_and_alignments() {
        // CUDA C++ Programming Guide, table of built-in vector types.
        let wanted = [
            ("float3", 12, 4),
            ("float4", 16, 16),
            ("double2", 16, 16),
            ("char4", 4, 4),
            ("double4", 32, 16),
        ];
        for (name, bytes, align) in wanted {
            let shape = builtin(name).expect(name);
            assert_eq!((shape.bytes(), shape.align()), (bytes, align), "{name}");
        }
        assert_eq!(builtin("float9"), None);
        assert_eq!(builtin("é"), None);
    }

    #[test]
    fn template_arguments() {
        assert_eq!(split("float, S<int, 4>, 16"), ["float", "S<int, 4>", "16"]);
        assert!(matches!(
            parsed("unsigned int"),
            Some(TemplateArg::Type(Type::Int { size: 4, signed: false }))
        ));
        assert!(matches!(parsed("float4*"), Some(TemplateArg::Type(Type::Pointer { .. }))));
        assert!(matches!(parsed("32u"), Some(TemplateArg::Value(_))));
    }

    #[test]
    fn template_arguments_that_no_launch_gives_are_made_up() {
        use crate::lint::check::{Input, analyze};
        let text = "struct S { int a; }; enum E { FIRST }; const int WIDE = 8;\n\
                    template <class T, int blockSize, E n, bool flag, int last = 2>\n\
                    __global__ void k(T* p) { p[threadIdx.x] = 0; }\n";
        let mut input = Input::default();
        input.checked.push(input.sources.add(crate::source::SourceFile::new("a.cu", text.to_owned())));
        let known = analyze(&input);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let types = Types::of(units());
        let kernel = units().flat_map(|unit| &unit.functions).next().expect("a kernel");
        let made = |instance: &str| types.instance(kernel, instance, 128);
        let (name, unknown) = made("ns::k<T, b, FIRST, flag>");
        assert_eq!(name, "ns::k<float, 128, FIRST, true>");
        assert_eq!(unknown, ["T = float", "blockSize = 128", "flag = true"]);
        assert_eq!(made("k").0, "k<float, 128, 4, true>");
        let whole = "k<S, 16, FIRST, false, 3>";
        assert_eq!(made(whole), (whole.to_owned(), Vec::new()));
        assert_eq!(made("k<unsigned int, 2 * WIDE, 3, true>").0, "k<unsigned int, 2 * WIDE, (E)3, true>");
        // The analysis may know less of a type than that it is one.
        assert_eq!(made("k<0, 16, 3, true>").0, "k<float, 16, (E)3, true>");
    }

    #[test]
    fn sizes_may_differ_between_parameters() {
        let at = |sizes: Sizes| -> Vec<u32> { (0..3).map(|place| sizes.at(place, 3)).collect() };
        assert_eq!(at(Sizes::Equal(64)), [64, 64, 64]);
        assert_eq!(at(Sizes::FirstLarge), [1000, 2, 2]);
        assert_eq!(at(Sizes::LastLarge), [2, 2, 1000]);
    }

    #[test]
    fn layouts_of_library_types_and_of_members_by_their_classes_own_names() {
        use crate::lint::check::{Input, analyze};
        let text = "template <class T> struct V { enum { ONE = 1, N }; using Raw = T[N + 1]; Raw parts; };\n\
                    struct W { typedef short Value; static constexpr int SIZE = 4; Value values[SIZE]; };\n\
                    __global__ void k(V<float> v, W w, thrust::complex<double> c, curandState s,\n\
                                      torch::PackedTensorAccessor32<float, 3, torch::RestrictPtrTraits> t) {}\n";
        let mut input = Input::default();
        input.checked.push(input.sources.add(crate::source::SourceFile::new("a.cu", text.to_owned())));
        let known = analyze(&input);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let types = Types::of(units());
        let kernel =
            units().flat_map(|unit| &unit.functions).find(|f| f.qualifiers.kernel).expect("a kernel");
        let args =
            types.arguments(kernel, "k", Sizes::Equal(64), &[], &|_| Known::default()).expect("arguments");
        // 3 floats; 4 shorts; 2 doubles; 6 + 2 words, a float, padding, a double; a pointer, 6 words.
        let sizes: Vec<usize> = args
            .iter()
            .map(|arg| match arg {
                Arg::Struct { bytes, .. } => bytes.len(),
                Arg::Scalar { .. } | Arg::Buffer(_) => 0,
            })
            .collect();
        assert_eq!(sizes, [12, 8, 16, 48, 32]);
        let Some(Arg::Struct { bytes, pointers }) = args.last() else { panic!("{args:?}") };
        assert_eq!(pointers.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0]);
        // 64 elements in each dimension, one after another.
        let words: Vec<i32> =
            bytes.chunks(4).map(|word| i32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words.get(2..), Some(&[64, 64, 64, 64 * 64, 64, 1][..]));
    }

    #[test]
    fn functions_and_types_that_carry_a_constant() {
        use crate::lint::check::{Input, analyze};
        let text = "__device__ void step(float* p) { *p = 1; }\n\
                    template <void (*f)(float*), bool flag>\n\
                    __global__ void k(float* p, std::bool_constant<flag>, int n) { f(p + threadIdx.x); }\n";
        let mut input = Input::default();
        input.checked.push(input.sources.add(crate::source::SourceFile::new("a.cu", text.to_owned())));
        let known = analyze(&input);
        let units = || known.project.files.iter().map(|file| &file.unit);
        let types = Types::of(units());
        let mut kernels = units().flat_map(|unit| &unit.functions).filter(|f| f.qualifiers.kernel);
        let kernel = kernels.next().expect("a kernel");
        assert_eq!(types.instance(kernel, "k<step, flag>", 128).0, "k<step, true>");
        let args = types.arguments(kernel, "k<step, true>", Sizes::Equal(8), &[], &|_| Known::default());
        let args = args.expect("arguments");
        assert_eq!(args.get(1), Some(&Arg::Struct { bytes: vec![0], pointers: Vec::new() }));
    }

    #[test]
    fn values_fit_names() {
        let value = |name: &str| {
            let mut out = Vec::new();
            scalar(&Shape::Int(4), name, None, 1024, &mut out);
            i32::from_le_bytes(out.try_into().expect("four bytes"))
        };
        assert_eq!((value("n"), value("pitch"), value("log_n"), value("offset")), (1024, 1024, 3, 0));
    }
}
