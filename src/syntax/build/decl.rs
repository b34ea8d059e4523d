//! Declarations of variables, and aliases.

use super::declarator::Declared;
use super::flat::{Field, Kind, Node};
use super::types::Specs;
use super::*;

impl<'a> Builder<'a> {
    /// `__align__(n)` in front of or inside a declaration that masking took out.
    fn masked_align(&mut self, node: Node) -> Option<Box<Expr>> {
        if self.side.aligns.is_empty() {
            return None;
        }
        let start = self.start_with_blanks(node);
        let body = self.flat.field(node, Field::Type).and_then(|ty| self.flat.field(ty, Field::Body));
        let found = match body {
            // What stands between `struct` and `{` belongs to the struct.
            Some(body) => self.align_in(start..node.start).or_else(|| self.align_in(body.end..node.end)),
            None => self.align_in(start..node.end),
        };
        found.map(Box::new)
    }

    pub(super) fn variable(&mut self, node: Node, specs: &Specs, declared: Declared, init: Init) -> VarDecl {
        let name = declared.path.map_or_else(|| Name::new(""), |path| path.name);
        let restrict = declared.restrict;
        let storage = Storage { is_const: declared.is_const, restrict, ..specs.storage };
        let span = self.span(node);
        let align = specs.align.clone();
        VarDecl { name, name_span: declared.name_span, span, ty: declared.ty, init, storage, align }
    }

    /// `= value`, `{…}` or `(…)` behind a declarator.
    fn init_value(&mut self, node: Node, value: Node) -> Init {
        match value.kind {
            Kind::ArgumentList => Init::Paren(self.list(value)),
            Kind::InitializerList
                if !self.flat.children(node).any(|n| n.kind == Kind::Op && self.text(n) == "=") =>
            {
                Init::Brace(self.braces(value))
            }
            _ => Init::Assign(Box::new(self.expr(value))),
        }
    }

    /// The variables of a declaration in a body. Whatever looks like a function there is one of them.
    pub(super) fn local_declaration(&mut self, node: Node, out: &mut Vec<Stmt>) {
        let found = self.declarators(node);
        let mut before = Vec::new();
        std::mem::swap(&mut before, &mut self.defs);
        for def in before {
            out.push(match def {
                Def::Struct(def) => Stmt { span: def.span, kind: StmtKind::Struct(def) },
                Def::Enum(def) => Stmt { span: def.span, kind: StmtKind::Enum(def) },
            });
        }
        let span = self.span(node);
        if !found.variables.is_empty() {
            out.push(Stmt { span, kind: StmtKind::Decl(found.variables) });
        }
    }

    /// Reads every declarator of a declaration; in a body a function declarator is a variable with values.
    pub(super) fn declarators(&mut self, node: Node) -> Declarators {
        let flat = self.flat;
        let mut specs = self.specs(node);
        if specs.align.is_none() {
            specs.align = self.masked_align(node);
        }
        let mut found = Declarators::default();
        let mut children = flat.children(node).peekable();
        while let Some(child) = children.next() {
            if child.field != Field::Declarator {
                continue;
            }
            // In a condition and in a class, the value follows the declarator without a node around both.
            let mut value = flat.field(child, Field::Value).filter(|_| child.kind == Kind::InitDeclarator);
            let mut holder = child;
            let mut brace = false;
            while let Some(next) = children.peek().copied() {
                match (next.field, next.kind) {
                    (Field::Value | Field::DefaultValue, _) => {
                        brace = next.kind == Kind::InitializerList && holder.kind != Kind::Op;
                        value = Some(next);
                    }
                    (_, Kind::Op) => holder = next,
                    (_, Kind::BitfieldClause | Kind::AsmExpression | Kind::AttributeSpecifier) => {}
                    _ => break,
                }
                children.next();
            }
            let declarator = if child.kind == Kind::InitDeclarator {
                flat.field(child, Field::Declarator)
            } else {
                Some(child)
            };
            let Some(declarator) = declarator else { continue };
            let mut declared = self.declare(declarator, specs.ty.clone(), specs.is_const);
            let init = match (declared.function, value) {
                (Some(function), None) if self.in_body => Init::Paren(self.values_of_parameters(function)),
                (Some(_), _) => {
                    found.functions.push(declared);
                    continue;
                }
                (None, Some(value)) if brace => Init::Brace(self.braces(value)),
                (None, Some(value)) => self.init_value(child, value),
                (None, None) => Init::None,
            };
            declared.function = None;
            let span_node = if holder.kind == Kind::Op { declarator } else { child };
            let binding = declared.binding;
            found.variables.push(self.variable(span_node, &specs, declared, init));
            if let Some(binding) = binding {
                self.bindings(binding, &specs, &mut found);
            }
        }
        found.specs = Some(specs);
        found
    }

    /// `auto [a, b] = e;`: names of the first and second member of a variable that no source can name, the last one declared.
    fn bindings(&mut self, binding: Node, specs: &Specs, found: &mut Declarators) {
        let flat = self.flat;
        let Some(whole) = found.variables.last_mut() else { return };
        whole.name = self.name(binding);
        let whole = Path::simple(whole.name);
        for (place, name) in flat.children(binding).filter(|n| n.kind == Kind::Identifier).enumerate() {
            let span = self.span(name);
            let base = Box::new(Expr { span, kind: ExprKind::Name(whole.clone()) });
            let member = Path::simple(Name::member(place));
            let value = Expr { span, kind: ExprKind::Field { base, member, arrow: false } };
            found.variables.push(VarDecl {
                name: self.name(name),
                name_span: span,
                span: self.span(binding),
                ty: Type::Reference { to: Box::new(Type::Auto), is_const: false },
                init: Init::Assign(Box::new(value)),
                storage: specs.storage,
                align: None,
            });
        }
    }

    /// The parameters of a function or lambda; `(void)` has none.
    pub(super) fn parameters(&mut self, list: Node) -> Vec<VarDecl> {
        let flat = self.flat;
        let parameters = flat.children(list).filter(|n| {
            matches!(n.kind, Kind::Parameter | Kind::OptionalParameter | Kind::VariadicParameter)
        });
        let mut out: Vec<VarDecl> = parameters.map(|parameter| self.parameter(parameter)).collect();
        if let [only] = out.as_slice()
            && only.ty == Type::Void
            && only.name.as_str().is_empty()
        {
            out.clear();
        }
        out
    }

    fn parameter(&mut self, node: Node) -> VarDecl {
        let flat = self.flat;
        let specs = self.specs(node);
        let declared = match flat.field(node, Field::Declarator) {
            Some(declarator) => self.declare(declarator, specs.ty.clone(), specs.is_const),
            None => Declared {
                path: None,
                name_span: self.span(node),
                ty: specs.ty.clone(),
                is_const: specs.is_const,
                restrict: false,
                function: None,
                binding: None,
                is_pack: false,
            },
        };
        // Masking blanks the dots of `Args &&...args`.
        let is_dotted = || {
            let after = self.original.get(node.range()).and_then(|text| text.rsplit_once("..."));
            after.is_some_and(|(_, name)| name.trim().chars().all(|c| c.is_alphanumeric() || c == '_'))
        };
        let is_pack = node.kind == Kind::VariadicParameter || declared.is_pack || is_dotted();
        let is_function = declared.function.is_some();
        let init = flat
            .field(node, Field::DefaultValue)
            .map_or(Init::None, |value| Init::Assign(Box::new(self.expr(value))));
        let mut variable = self.variable(node, &specs, declared, init);
        if is_pack {
            variable.ty = Type::Pack(Box::new(variable.ty));
        } else if is_function {
            variable.ty = Type::Unknown("function type");
        }
        variable
    }

    /// `using A = T;`
    pub(super) fn alias(&mut self, node: Node, template: Vec<TemplateParam>) -> Option<Alias> {
        let flat = self.flat;
        let (name, ty) = (flat.field(node, Field::Name)?, flat.field(node, Field::Type)?);
        let ty = self.type_descriptor(ty);
        Some(Alias { name: self.name(name), scope: self.scope.clone(), template, ty })
    }

    /// `namespace cg = cooperative_groups;`: an alias whose "type" is the namespace's name.
    pub(super) fn namespace_alias(&mut self, node: Node) -> Option<Alias> {
        let flat = self.flat;
        let name = flat.field(node, Field::Name)?;
        let target = flat.children(node).find(|n| n.field == Field::None && n.kind != Kind::Op)?;
        let words = self.text(target).split("::").map(str::trim).filter(|word| !word.is_empty());
        let mut scope: Vec<_> = words.map(|word| PathPart { name: self.name_of(word), args: None }).collect();
        let last = scope.pop()?;
        let path = Path { scope, name: last.name, args: None };
        let name = self.name(name);
        self.namespaces.insert(name);
        Some(Alias { name, scope: self.scope.clone(), template: Vec::new(), ty: Type::Named(path) })
    }

    /// `typedef T A, *B;`; `typedef struct {…} A;` gives the struct its name.
    pub(super) fn typedef(&mut self, node: Node) -> Vec<Alias> {
        let flat = self.flat;
        let names: Vec<Node> = flat.children(node).filter(|n| n.field == Field::Declarator).collect();
        let mut specs = self.specs_named(node, names.first().copied());
        if specs.align.is_none() {
            specs.align = self.masked_align(node);
        }
        let mut aliases = Vec::new();
        for name in names {
            let declared = self.declare(name, specs.ty.clone(), specs.is_const);
            let Some(path) = declared.path else { continue };
            // The struct already has this name.
            if specs.ty == Type::Named(Path::simple(path.name)) && declared.ty == specs.ty {
                continue;
            }
            let ty = if declared.function.is_some() { Type::Unknown("function type") } else { declared.ty };
            aliases.push(Alias { name: path.name, scope: self.scope.clone(), template: Vec::new(), ty });
        }
        aliases
    }

    fn specs_named(&mut self, node: Node, first: Option<Node>) -> Specs {
        let flat = self.flat;
        let anonymous = flat.field(node, Field::Type).filter(|ty| {
            matches!(
                ty.kind,
                Kind::StructSpecifier | Kind::UnionSpecifier | Kind::ClassSpecifier | Kind::EnumSpecifier
            ) && flat.field(*ty, Field::Name).is_none()
        });
        if anonymous.is_some()
            && let Some(name) = first.filter(|n| matches!(n.kind, Kind::TypeIdentifier | Kind::PrimitiveType))
        {
            self.typedef_name = Some(self.name(name));
        }
        let specs = self.specs(node);
        self.typedef_name = None;
        specs
    }
}

/// What one declaration declares.
#[derive(Default)]
pub(super) struct Declarators {
    pub variables: Vec<VarDecl>,
    pub functions: Vec<Declared>,
    pub specs: Option<Specs>,
}
