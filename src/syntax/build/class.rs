//! Classes, unions and enums.

use super::flat::{Field, Kind, Node};
use super::*;

impl<'a> Builder<'a> {
    /// `struct S` as a type; with a body it is defined on the way.
    pub(super) fn struct_type(&mut self, node: Node) -> Type {
        let path = self.flat.field(node, Field::Name).and_then(|name| self.path(name));
        if self.flat.field(node, Field::Body).is_none() {
            return path.map_or(Type::Unknown("type name"), Type::Named);
        }
        match self.deeper(node, 1, |this| this.struct_def(node, Vec::new())).flatten() {
            Some(def) => {
                let name = def.name;
                self.defs.push(Def::Struct(Arc::new(def)));
                Type::Named(Path::simple(name))
            }
            None => Type::Unknown(TOO_DEEP),
        }
    }

    /// A name no source can have, for a type without one.
    fn anonymous(&self, node: Node) -> Name {
        let at = self.span(node);
        Name::new(&format!("<anonymous {}:{}>", at.file.0, at.start))
    }

    pub(super) fn struct_def(&mut self, node: Node, template: Vec<TemplateParam>) -> Option<StructDef> {
        let flat = self.flat;
        let body = flat.field(node, Field::Body)?;
        let given = self.typedef_name.take();
        let path = flat.field(node, Field::Name).and_then(|name| self.path(name));
        let (name, specialization) = match path {
            Some(path) => (path.name, path.args),
            None => (given.unwrap_or_else(|| self.anonymous(node)), None),
        };
        let head = self.start_with_blanks(node)..body.start;
        let mut def = StructDef {
            name,
            span: self.span(node),
            scope: self.scope.clone(),
            template,
            specialization,
            bases: Vec::new(),
            is_union: node.kind == Kind::UnionSpecifier,
            align: self.align_in(head.clone()),
            packed: self.is_packed_in(head) || self.is_packed_in(body.end..node.end + 1),
            fields: Vec::new(),
            constants: Vec::new(),
            methods: Vec::new(),
            aliases: Vec::new(),
            structs: Vec::new(),
            enums: Vec::new(),
        };
        for child in flat.children(node) {
            match child.kind {
                Kind::BaseClassClause => {
                    let bases = flat.children(child).filter(|n| {
                        matches!(
                            n.kind,
                            Kind::TypeIdentifier | Kind::QualifiedIdentifier | Kind::TemplateType
                        )
                    });
                    def.bases = bases.map(|base| self.ty(base)).collect();
                }
                Kind::AlignasQualifier => def.align = self.alignas(child),
                Kind::AttributeSpecifier => {
                    def.packed |= self.text(child).contains("packed");
                    def.align = self.aligned_attribute(child).or(def.align);
                }
                _ => {}
            }
        }
        let outer_class = self.class.replace(name);
        let outer_defs = std::mem::take(&mut self.defs);
        self.scope.push(name);
        self.members(body, &mut def);
        self.scope.pop();
        self.defs = outer_defs;
        self.class = outer_class;
        Some(def)
    }

    fn members(&mut self, list: Node, def: &mut StructDef) {
        let flat = self.flat;
        for member in flat.children(list) {
            match member.kind {
                _ if matches!(member.field, Field::Condition | Field::Name) => {}
                Kind::FieldDeclaration | Kind::Declaration if !member.bad => {
                    self.fields(member, Vec::new(), def)
                }
                Kind::FunctionDefinition => self.method(member, Vec::new(), def),
                Kind::TemplateDeclaration => self.member_template(member, Vec::new(), def),
                Kind::AliasDeclaration => def.aliases.extend(self.alias(member, Vec::new())),
                Kind::TypeDefinition => {
                    let aliases = self.typedef(member);
                    def.aliases.extend(aliases);
                }
                Kind::PreprocIf
                | Kind::PreprocIfdef
                | Kind::PreprocElse
                | Kind::PreprocElif
                | Kind::PreprocElifdef => {
                    self.deeper(member, 1, |this| this.members(member, def));
                }
                Kind::FriendDeclaration => {
                    if let Some(function) = flat.child(member, Kind::FunctionDefinition)
                        && let Some(function) = self.function(function, Vec::new())
                    {
                        self.unit.functions.push(Arc::new(function));
                    }
                }
                Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier | Kind::EnumSpecifier => {
                    self.ty(member);
                }
                _ if member.bad => self.gap(member, SYNTAX_ERROR),
                _ => {}
            }
            self.take_defs(def);
        }
    }

    fn take_defs(&mut self, def: &mut StructDef) {
        for inner in std::mem::take(&mut self.defs) {
            match inner {
                Def::Struct(inner) => def.structs.push(inner),
                Def::Enum(inner) => def.enums.push(inner),
            }
        }
    }

    fn fields(&mut self, node: Node, template: Vec<TemplateParam>, def: &mut StructDef) {
        let flat = self.flat;
        let was_in_body = std::mem::replace(&mut self.in_body, false);
        let found = self.declarators(node);
        self.in_body = was_in_body;
        let Some(specs) = found.specs else { return };
        let nothing = found.variables.is_empty() && found.functions.is_empty();
        for variable in found.variables {
            let target = if specs.storage.is_static { &mut def.constants } else { &mut def.fields };
            target.push(variable);
        }
        for declared in found.functions {
            if let Some(method) = self.function_from(node, &specs, declared, template.clone()) {
                def.methods.push(Arc::new(method));
            }
        }
        // `struct {…};` and `union {…};` lay their members out as members of this one. `int : 4;` has no name either.
        let layout = flat.field(node, Field::Type).is_some_and(|ty| {
            matches!(ty.kind, Kind::StructSpecifier | Kind::UnionSpecifier | Kind::ClassSpecifier)
                && flat.field(ty, Field::Body).is_some()
                && flat.field(ty, Field::Name).is_none()
        });
        if nothing && layout {
            let span = self.span(node);
            let (ty, storage) = (specs.ty, specs.storage);
            let field = VarDecl {
                name: Name::new(""),
                name_span: span,
                span,
                ty,
                init: Init::None,
                storage,
                align: specs.align,
            };
            def.fields.push(field);
        }
    }

    fn method(&mut self, node: Node, template: Vec<TemplateParam>, def: &mut StructDef) {
        if let Some(method) = self.function(node, template) {
            let method = Arc::new(method);
            if !self.in_body {
                self.unit.functions.push(method.clone());
            }
            def.methods.push(method);
        }
    }

    fn member_template(&mut self, node: Node, outer: Vec<TemplateParam>, def: &mut StructDef) {
        let flat = self.flat;
        let template = self.template_params(node, outer);
        for child in flat.children(node) {
            match child.kind {
                Kind::FunctionDefinition => self.method(child, template.clone(), def),
                Kind::FieldDeclaration | Kind::Declaration if !child.bad => {
                    self.fields(child, template.clone(), def)
                }
                Kind::AliasDeclaration => def.aliases.extend(self.alias(child, template.clone())),
                Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier => {
                    let inner =
                        self.deeper(child, 1, |this| this.struct_def(child, template.clone())).flatten();
                    def.structs.extend(inner.map(Arc::new));
                }
                Kind::TemplateDeclaration => {
                    self.deeper(child, 1, |this| this.member_template(child, template.clone(), def));
                }
                _ => {}
            }
        }
    }

    /// `enum E {…}` as a type; with a list it is defined on the way.
    pub(super) fn enum_type(&mut self, node: Node) -> Type {
        let flat = self.flat;
        let path = flat.field(node, Field::Name).and_then(|name| self.path(name));
        let Some(list) = flat.field(node, Field::Body) else {
            return path.map_or(Type::Unknown("type name"), Type::Named);
        };
        let given = self.typedef_name.take();
        let name = path.map(|path| path.name).or(given).unwrap_or_else(|| Name::new(""));
        let underlying = flat.field(node, Field::Base).map(|base| self.ty(base));
        let head = self.text.get(node.start as usize..list.start as usize).unwrap_or("");
        let scoped =
            head.split_ascii_whitespace().nth(1).is_some_and(|word| matches!(word, "class" | "struct"));
        let mut items = Vec::new();
        self.enumerators(list, &mut items);
        let span = self.span(node);
        let size = underlying.clone().unwrap_or(Type::Int { size: 4, signed: true });
        self.defs.push(Def::Enum(Arc::new(EnumDef {
            name,
            span,
            scope: self.scope.clone(),
            scoped,
            underlying,
            items,
        })));
        if name.as_str().is_empty() { size } else { Type::Named(Path::simple(name)) }
    }

    fn enumerators(&mut self, list: Node, items: &mut Vec<(Name, Option<Expr>)>) {
        let flat = self.flat;
        for item in flat.children(list) {
            match item.kind {
                Kind::Enumerator => {
                    let Some(name) = flat.field(item, Field::Name) else { continue };
                    let value = flat.field(item, Field::Value).map(|value| self.expr(value));
                    items.push((self.name(name), value));
                }
                Kind::PreprocIf
                | Kind::PreprocIfdef
                | Kind::PreprocElse
                | Kind::PreprocElif
                | Kind::PreprocElifdef => {
                    self.deeper(item, 1, |this| this.enumerators(item, items));
                }
                _ => {}
            }
        }
    }
}
