//! What the names of types stand for, and values nobody gives.

use std::rc::Rc;
use std::sync::Arc;

use super::exec::Exec;
use super::overload::with_defaults;
use super::project::Entry;
use super::types::{FieldTy, FloatKind, StructTy, TemplateEnv, TemplateValue, Ty, named_scalar, vector_type};
use super::value::{ArrayVal, Obj, Place, Pointer, SlotId, Val};
use crate::index::expr::ExprId;
use crate::index::limits;
use crate::ir::ast::{self, Expr, ExprKind, Name, Path, StructDef, TemplateArg, TemplateParamKind, Type};
use crate::ir::facts::MemorySpace;
use crate::source::FileId;

impl Exec<'_> {
    pub fn ty(&mut self, ty: &Type) -> Ty {
        match ty {
            Type::Void => Ty::Void,
            Type::Bool => Ty::Bool,
            Type::Int { size, signed } => Ty::Int { size: *size, signed: *signed },
            Type::Float { size } => Ty::Float(FloatKind::of_size(*size)),
            Type::Auto => Ty::Auto,
            Type::Pointer { to, .. } => Ty::Ptr(Rc::new(self.ty(to))),
            Type::Reference { to, .. } => Ty::Ref(Rc::new(self.ty(to))),
            Type::Array { of, extent } => {
                let of = self.ty(of);
                let extent = extent.as_ref().map(|extent| {
                    let value = self.quietly(|exec| exec.value(extent));
                    self.atom(&value)
                });
                Ty::Array(Rc::new(of), extent)
            }
            Type::Decltype(expr) => self.quietly(|exec| {
                let value = exec.value(expr);
                exec.type_of(&value)
            }),
            Type::Named(path) => self.named_type(path),
            Type::Pack(_) => Ty::Unknown("parameter pack"),
            Type::Unknown(reason) => Ty::Unknown(reason),
        }
    }

    pub fn named_type(&mut self, path: &Path) -> Ty {
        self.deeper(|exec| exec.named_type_of(path)).unwrap_or(Ty::Unknown("nested too deeply"))
    }

    pub(super) fn named_type_of(&mut self, path: &Path) -> Ty {
        const UNSEEN: Ty = Ty::Unknown("type that is not seen");
        let name = path.name;
        if path.args.is_none() && path.scope.is_empty() {
            match self.env().get(name) {
                Some(TemplateValue::Type(ty)) => return ty.clone(),
                Some(TemplateValue::Value(_)) => return Ty::Unknown("template value"),
                None => {}
            }
        }
        if let Some(owner) = path.scope.last() {
            let owner_path = Path {
                scope: path.scope[..path.scope.len() - 1].to_vec(),
                name: owner.name,
                args: owner.args.clone(),
            };
            if let Ty::Struct(of) = self.named_type(&owner_path) {
                return self.member_type(&of, path).unwrap_or(UNSEEN);
            }
        }
        if let Some(this) = self.frames.last().and_then(|frame| frame.this.clone())
            && path.scope.is_empty()
            && let Ty::Struct(of) = self.type_of_place(&this)
        {
            let is_complete = of.size.is_some() || !of.fields.is_empty();
            if is_complete && of.def.as_ref().is_some_and(|def| def.name == name) && path.args.is_none() {
                return Ty::Struct(of);
            }
            if let Some(ty) = self.member_type(&of, path) {
                return ty;
            }
        }
        if path.args.is_none() {
            if let Some(ty) = named_scalar(name.as_str()) {
                return ty;
            }
            if let Some(of) = self.structs.get(name.as_str())
                && of.is_vector
            {
                return Ty::Struct(of.clone());
            }
            if let Some(of) = vector_type(name.as_str()) {
                let of = Rc::new(of);
                self.structs.insert(name.to_string(), of.clone());
                return Ty::Struct(of);
            }
        }
        if name.as_str() == "cudaLaunchConfig_t" {
            return self.launch_config_type();
        }
        if self.frames.len() > 3 * limits::CALL_DEPTH || self.out_of_budget() {
            return UNSEEN;
        }
        if let Some(ty) = self.transformed_type(path) {
            return ty;
        }
        if let Some(ty) = self.accessor_type(path).or_else(|| self.struct_named(path)) {
            return ty;
        }
        if let Some(entry) = self.project.alias(&self.tu, name).cloned() {
            return self.alias_type(&entry.item, path.args.as_deref());
        }
        if let Some(entry) = self.project.enumeration(&self.tu, name).cloned() {
            return entry.item.underlying.as_ref().map_or(Ty::INT, |ty| self.ty(ty));
        }
        if path.scope.is_empty() && path.args.is_none() {
            let at = self.nowhere();
            let lookup = |name: Name| self.project.macro_at(&self.tu, name, at.file, u32::MAX);
            if let Some(found) = lookup(name)
                && found.params.is_none()
                && let Some(text) = super::macros::expand_call(&found, None, &lookup)
                && let Some(ty) = crate::syntax::parse_type(&text, at)
                && !matches!(&ty, Type::Named(inner) if inner.name == name)
            {
                return self.ty(&ty);
            }
        }
        self.pytorch_type(path).or_else(|| self.vendor_type(path)).unwrap_or(UNSEEN)
    }

    pub(super) fn pytorch_type(&mut self, path: &Path) -> Option<Ty> {
        let arg = path.args.as_ref()?.first()?;
        if path.name.as_str() == "ScalarTypeToCPPTypeT" {
            return match arg {
                TemplateArg::Type(Type::Named(scalar)) => super::pytorch::scalar_type(scalar.name.as_str()),
                TemplateArg::Value(Expr { kind: ExprKind::Name(scalar), .. }) => {
                    super::pytorch::scalar_type(scalar.name.as_str())
                }
                TemplateArg::Type(_) | TemplateArg::Value(_) => None,
            };
        }
        let TemplateArg::Type(of) = arg else { return None };
        let of = self.ty(of);
        super::pytorch::computing_type(path.name.as_str(), &of)
    }

    pub(super) fn alias_type(&mut self, alias: &ast::Alias, args: Option<&[TemplateArg]>) -> Ty {
        if alias.template.is_empty() {
            return self.with_env(Rc::default(), |exec| exec.ty(&alias.ty));
        }
        let mut env = TemplateEnv::default();
        for (param, arg) in alias.template.iter().zip(args.unwrap_or(&[])) {
            let value = self.template_value(arg, matches!(param.kind, TemplateParamKind::Value { .. }));
            env.args.insert(param.name, value);
        }
        self.with_env(Rc::new(env), |exec| exec.ty(&alias.ty))
    }

    pub(super) fn member_type(&mut self, of: &Rc<StructTy>, path: &Path) -> Option<Ty> {
        let def = of.def.clone()?;
        let name = path.name;
        if let Some(alias) = def.aliases.iter().find(|alias| alias.name == name) {
            let env = of.env.clone();
            let alias = alias.clone();
            return Some(self.with_env(env, |exec| exec.ty(&alias.ty)));
        }
        if let Some(inner) = def.structs.iter().find(|inner| inner.name == name) {
            let args = path.args.clone().unwrap_or_default();
            return Some(self.instantiate(inner, of.file, &args, of.env.clone()));
        }
        if def.enums.iter().any(|item| item.name == name) {
            return Some(Ty::INT);
        }
        of.fields.iter().find_map(|field| match &field.ty {
            Ty::Struct(base) if field.name.as_str().is_empty() => self.member_type(&base.clone(), path),
            _ => None,
        })
    }

    pub(super) fn struct_named(&mut self, path: &Path) -> Option<Ty> {
        let candidates = self.project.structs(&self.tu, path.name);
        let primary = candidates
            .iter()
            .find(|entry| entry.item.specialization.is_none() && has_content(&entry.item))
            .or_else(|| candidates.iter().find(|entry| entry.item.specialization.is_none()))
            .or(candidates.first())
            .map(|entry| (**entry).clone())?;
        let args = path.args.clone().unwrap_or_default();
        let special: Vec<Entry<Arc<ast::StructDef>>> = candidates
            .iter()
            .filter(|entry| entry.item.specialization.is_some() && has_content(&entry.item))
            .map(|entry| (**entry).clone())
            .collect();
        let complete = with_defaults(&args, &primary.item.template);
        for entry in special {
            if let Some(args) = self.specialized(&entry.item, &complete) {
                return Some(self.instantiate(&entry.item, entry.file, &args, Rc::default()));
            }
        }
        Some(self.instantiate(&primary.item, primary.file, &args, Rc::default()))
    }

    /// The arguments of a specialisation's own parameters, where it is one for the arguments given: `<T, 4>` for `<float, 4>`
    /// has `float` for its `T`.
    pub(super) fn specialized(
        &mut self,
        def: &ast::StructDef,
        given: &[TemplateArg],
    ) -> Option<Vec<TemplateArg>> {
        let wanted = def.specialization.as_ref().filter(|wanted| wanted.len() == given.len())?;
        let param_of = |arg: &TemplateArg| {
            let path = match arg {
                TemplateArg::Type(Type::Named(path)) => path,
                TemplateArg::Value(Expr { kind: ExprKind::Name(path), .. }) => path,
                TemplateArg::Type(_) | TemplateArg::Value(_) => return None,
            };
            def.template.iter().position(|param| Some(param.name) == path.as_simple())
        };
        let mut own: Vec<Option<TemplateArg>> = vec![None; def.template.len()];
        for (wanted, given) in wanted.iter().zip(given) {
            match param_of(wanted) {
                Some(place) => *own.get_mut(place)? = Some(given.clone()),
                None if self.is_same_argument(wanted, given) => {}
                None => return None,
            }
        }
        own.into_iter().collect()
    }

    /// The class with its template arguments put in: fields, offsets, size.
    pub fn instantiate(
        &mut self,
        def: &Arc<StructDef>,
        file: FileId,
        args: &[TemplateArg],
        outer: Rc<TemplateEnv>,
    ) -> Ty {
        // Types count as work, too: libraries compute with them.
        self.types += 1;
        if self.types > limits::TYPES_PER_KERNEL {
            return Ty::Unknown("type that takes long to work out");
        }
        self.steps += limits::STEPS_PER_TYPE;
        let mut env = TemplateEnv { outer: Some(outer), ..TemplateEnv::default() };
        let mut spelling = Vec::new();
        for (place, param) in def.template.iter().enumerate() {
            let value = match (args.get(place), &param.kind) {
                (Some(arg), kind) => {
                    Some(self.template_value(arg, matches!(kind, TemplateParamKind::Value { .. })))
                }
                (None, TemplateParamKind::Type { default: Some(ty) }) => {
                    let ty = ty.clone();
                    Some(TemplateValue::Type(self.with_env(Rc::new(env.clone()), |exec| exec.ty(&ty))))
                }
                (None, TemplateParamKind::Value { default: Some(expr), .. }) => {
                    let expr = expr.clone();
                    let env = Rc::new(env.clone());
                    Some(TemplateValue::Value(
                        self.with_env(env, |exec| exec.quietly(|exec| exec.value(&expr))),
                    ))
                }
                _ => None,
            };
            spelling.push(match &value {
                Some(TemplateValue::Type(ty)) => ty.name(),
                Some(TemplateValue::Value(value)) => {
                    let atom = self.atom(value);
                    self.arena.display(atom).to_string()
                }
                None => "?".to_owned(),
            });
            if let Some(value) = value {
                env.args.insert(param.name, value);
            }
        }
        let name = if spelling.is_empty() {
            def.name.to_string()
        } else {
            format!("{}<{}>", def.name, spelling.join(", "))
        };
        let key = format!("{name}@{}:{}", file.0, def.span.start);
        if let Some(known) = self.structs.get(&key) {
            return Ty::Struct(known.clone());
        }
        let placeholder = StructTy {
            name: name.clone(),
            size: None,
            align: 1,
            fields: Vec::new(),
            def: None,
            file,
            env: Rc::default(),
            is_vector: false,
        };
        self.structs.insert(key.clone(), Rc::new(placeholder));
        let env = Rc::new(env);
        // Its members may be declared with its own aliases and constants.
        let within = StructTy {
            name: name.clone(),
            size: None,
            align: 1,
            fields: Vec::new(),
            def: Some(def.clone()),
            file,
            env: env.clone(),
            is_vector: false,
        };
        let mut of = self.with_env(env.clone(), |exec| {
            if let Some(frame) = exec.frames.last_mut() {
                let of = Obj { ty: Rc::new(within), fields: Vec::new(), origin: None };
                frame.this = Some(Rc::new(Place::Value(Val::Obj(Rc::new(of)))));
            }
            exec.layout(def)
        });
        of.name = name;
        of.file = file;
        of.env = env;
        of.def = Some(def.clone());
        let of = Rc::new(of);
        self.structs.insert(key, of.clone());
        Ty::Struct(of)
    }

    pub(super) fn layout(&mut self, def: &Arc<StructDef>) -> StructTy {
        let mut fields = Vec::new();
        let (mut offset, mut align, mut known) = (0i64, 1i64, true);
        let mut size = 0i64;
        let bases = def.bases.iter().map(|base| (Name::new(""), base.clone(), None));
        let members = def.fields.iter().map(|field| (field.name, field.ty.clone(), field.align.clone()));
        for (name, ty, declared) in bases.chain(members).take(256) {
            let ty = self.ty(&ty);
            if name.as_str().is_empty()
                && let Ty::Struct(base) = &ty
                && base.fields.is_empty()
            {
                continue;
            }
            let mut field_align = if def.packed { 1 } else { ty.align() };
            if let Some(expr) = declared {
                let value = self.quietly(|exec| exec.value(&expr));
                let atom = self.atom(&value);
                field_align = self.arena.as_const(atom).unwrap_or(field_align).max(field_align);
            }
            align = align.max(field_align);
            // Whether two structs share a sector is not told by made-up sizes.
            let bytes = self.constant_size(&ty).filter(|_| !ty.is_guessed());
            let start = if def.is_union { 0 } else { round_up(offset, field_align) };
            fields.push(FieldTy { name, ty, offset: known.then_some(start) });
            match bytes {
                Some(bytes) => {
                    offset = start.saturating_add(bytes);
                    size = size.max(offset);
                }
                None => known = false,
            }
        }
        if let Some(expr) = &def.align {
            let value = self.quietly(|exec| exec.value(expr));
            let atom = self.atom(&value);
            align = self.arena.as_const(atom).unwrap_or(align).clamp(align, 1024);
        }
        StructTy {
            name: String::new(),
            size: known.then_some(round_up(size.max(1), align)),
            align,
            fields,
            def: None,
            file: FileId(0),
            env: Rc::default(),
            is_vector: false,
        }
    }

    pub(super) fn launch_config_type(&mut self) -> Ty {
        if let Some(of) = self.structs.get("cudaLaunchConfig_t") {
            return Ty::Struct(of.clone());
        }
        let dim3 = self.named_type(&Path::simple(Name::new("dim3")));
        let field = |name, ty: &Ty| FieldTy { name: Name::new(name), ty: ty.clone(), offset: Some(0) };
        let of = Rc::new(StructTy {
            name: "cudaLaunchConfig_t".into(),
            size: Some(56),
            align: 8,
            fields: vec![
                field("gridDim", &dim3),
                field("blockDim", &dim3),
                field("dynamicSmemBytes", &Ty::SIZE),
            ],
            def: None,
            file: FileId(0),
            env: Rc::default(),
            is_vector: false,
        });
        self.structs.insert("cudaLaunchConfig_t".into(), of.clone());
        Ty::Struct(of)
    }

    pub fn size_of(&mut self, ty: &Ty) -> Option<ExprId> {
        match ty {
            Ty::Array(of, len) => {
                let of = self.size_of(of)?;
                Some(self.arena.mul((*len)?, of))
            }
            Ty::Void => Some(self.arena.constant(1)),
            other => other.scalar_size().map(|size| self.arena.constant(size)),
        }
    }

    pub fn constant_size(&mut self, ty: &Ty) -> Option<i64> {
        let size = self.size_of(ty)?;
        self.arena.as_const(size)
    }

    /// A value of which only the type is known: a kernel parameter.
    /// An object of a class whose members may be anything: what a method is called on.
    pub fn some_object(&mut self, class: &Path) -> Option<(Rc<Place>, Rc<StructTy>)> {
        let Ty::Struct(of) = self.named_type(class) else { return None };
        let fields =
            of.fields.iter().map(|field| self.symbolic(&field.ty, field.name.as_str(), None)).collect();
        let value = Val::Obj(Rc::new(Obj { ty: of.clone(), fields, origin: None }));
        let slot = SlotId(self.slots.len() as u32);
        self.slots.push(super::value::Slot {
            name: class.name,
            ty: Ty::Struct(of.clone()),
            value,
            is_reference: false,
        });
        Some((Rc::new(Place::Slot { slot, path: Vec::new() }), of))
    }

    pub fn symbolic(&mut self, ty: &Ty, name: &str, param: Option<usize>) -> Val {
        match ty {
            Ty::Int { .. } => Val::Int(self.named_unknown(name), ty.clone()),
            Ty::Bool => {
                let value = self.marked_unknown(name, |unknown| unknown.is_bool = true);
                Val::Int(value, Ty::Bool)
            }
            Ty::Float(kind) => Val::Float(None, self.named_unknown(name), *kind),
            Ty::Ptr(to) => {
                let base = self.named_base(name, MemorySpace::Global, to, param);
                let offset = self.arena.constant(0);
                Val::Ptr(Pointer { base, offset, to: (**to).clone() })
            }
            Ty::Ref(to) => {
                let base = self.named_base(name, MemorySpace::Global, to, param);
                let offset = self.arena.constant(0);
                let pointer = Pointer { base, offset, to: (**to).clone() };
                Val::Ref(Rc::new(Place::Memory { pointer, aggregate: None }))
            }
            Ty::Struct(of) if !of.fields.is_empty() => {
                if let Some(accessor) = self.symbolic_accessor(of, name, param) {
                    return accessor;
                }
                let of = of.clone();
                let fields = of
                    .fields
                    .iter()
                    .map(|field| {
                        let full = if field.name.as_str().is_empty() {
                            name.to_owned()
                        } else {
                            format!("{name}.{}", field.name)
                        };
                        self.symbolic(&field.ty, &full, param)
                    })
                    .collect();
                Val::Obj(Rc::new(Obj { ty: of, fields, origin: None }))
            }
            Ty::Array(of, len) => {
                let len_known = len.and_then(|len| self.arena.as_const(len)).filter(|&len| len <= 16);
                let mut known = std::collections::BTreeMap::new();
                for at in 0..len_known.unwrap_or(0) {
                    known.insert(at, self.symbolic(of, &format!("{name}[{at}]"), param));
                }
                let rest = self.named_unknown(name);
                Val::Array(Rc::new(ArrayVal { of: (**of).clone(), len: *len, known, rest, origin: None }))
            }
            other => Val::Opaque(other.clone(), self.named_unknown(name)),
        }
    }
}

pub(super) fn has_content(def: &StructDef) -> bool {
    let members = !def.fields.is_empty() || !def.methods.is_empty() || !def.constants.is_empty();
    members
        || !def.bases.is_empty()
        || !def.aliases.is_empty()
        || !def.structs.is_empty()
        || !def.enums.is_empty()
}

pub(super) fn round_up(value: i64, to: i64) -> i64 {
    let to = to.max(1);
    (value + to - 1) / to * to
}
