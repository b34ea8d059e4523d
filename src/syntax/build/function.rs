//! Function definitions and declarations, templates and explicit instantiations.

use super::declarator::Declared;
use super::flat::{Field, Kind, Node};
use super::types::Specs;
use super::*;

impl<'a> Builder<'a> {
    /// A function with or without a body; `None` where no name was found.
    pub(super) fn function(&mut self, node: Node, template: Vec<TemplateParam>) -> Option<FunctionDef> {
        let specs = self.specs(node);
        let declarator = self.flat.field(node, Field::Declarator)?;
        if declarator.kind == Kind::OperatorCast {
            return self.conversion(node, declarator, &specs, template);
        }
        let declared = self.declare(declarator, specs.ty.clone(), specs.is_const);
        self.function_from(node, &specs, declared, template)
    }

    /// `operator float() const`
    fn conversion(
        &mut self,
        node: Node,
        declarator: Node,
        specs: &Specs,
        template: Vec<TemplateParam>,
    ) -> Option<FunctionDef> {
        let target = self.specs(declarator);
        let layer = self.flat.field(declarator, Field::Declarator);
        let declared = Declared {
            path: Some(Path::simple(Name::new("operator"))),
            name_span: self.span(declarator),
            ty: target.ty,
            is_const: false,
            restrict: false,
            function: layer,
            binding: None,
            is_pack: false,
        };
        self.function_from(node, specs, declared, template)
    }

    /// The function that a declaration's specifiers and one of its declarators make.
    pub(super) fn function_from(
        &mut self,
        node: Node,
        specs: &Specs,
        declared: Declared,
        template: Vec<TemplateParam>,
    ) -> Option<FunctionDef> {
        let flat = self.flat;
        let layer = declared.function?;
        let path = declared.path?;
        let body = flat.field(node, Field::Body).or_else(|| flat.child(node, Kind::TryStatement));
        let params = flat.field(layer, Field::Parameters).map_or_else(Vec::new, |list| self.parameters(list));
        let ret = match flat.child(layer, Kind::TrailingReturn).and_then(|n| flat.first(n)) {
            Some(ty) => self.type_descriptor(ty),
            None => declared.ty,
        };
        let (scope, class) = self.home(&path);
        let head = self.start_with_blanks(node)..body.map_or(node.end, |body| body.start);
        let mut launch_bounds = self.bounds_in(head);
        if launch_bounds.is_empty() {
            launch_bounds = specs.bounds.clone();
        }
        let qualifiers = FunctionQualifiers {
            kernel: specs.kernel || self.side.kernels.iter().any(|kernel| kernel == path.name.as_str()),
            device: specs.storage.device,
            host: specs.host,
            is_static: specs.storage.is_static,
            is_constexpr: specs.storage.is_constexpr,
            is_const: flat.children(layer).any(|n| n.kind == Kind::TypeQualifier && self.text(n) == "const"),
        };
        let initializers = flat.child(node, Kind::FieldInitializerList);
        let initializers = initializers.map_or_else(Vec::new, |list| self.initializers(list));
        let defaulted = flat.child(node, Kind::DefaultMethodClause).is_some();
        Some(FunctionDef {
            name: path.name,
            name_span: declared.name_span,
            span: self.span(node),
            body_span: body
                .map(|body| self.span_of(body.start + 1, body.end.saturating_sub(1).max(body.start + 1))),
            scope,
            class,
            class_args: path.scope.last().and_then(|part| part.args.clone()),
            template,
            specialization: path.args,
            ret,
            params,
            qualifiers,
            launch_bounds,
            initializers,
            body: body.map(|body| self.function_body(body)).or(defaulted.then(Vec::new)),
        })
    }

    fn function_body(&mut self, body: Node) -> Vec<Stmt> {
        let was_in_body = std::mem::replace(&mut self.in_body, true);
        let outer_defs = std::mem::take(&mut self.defs);
        let statements = self.block(body);
        self.defs = outer_defs;
        self.in_body = was_in_body;
        statements
    }

    /// Where a function lives: the enclosing scopes and those its name spells; and its class.
    fn home(&self, path: &Path) -> (Vec<Name>, Option<Name>) {
        let mut scope = self.scope.clone();
        scope.extend(path.scope.iter().map(|part| part.name));
        let spelt =
            path.scope.last().filter(|part| !self.namespaces.contains(&part.name)).map(|part| part.name);
        (scope, spelt.or(self.class))
    }

    /// `: a(x), b{y}`
    fn initializers(&mut self, list: Node) -> Vec<(Name, Vec<Expr>)> {
        let flat = self.flat;
        let mut out = Vec::new();
        for item in flat.children(list).filter(|n| n.kind == Kind::FieldInitializer) {
            let Some(path) = flat.first(item).and_then(|name| self.path(name)) else { continue };
            let values =
                flat.children(item).find(|n| matches!(n.kind, Kind::ArgumentList | Kind::InitializerList));
            let values = match values {
                Some(list) if list.kind == Kind::ArgumentList => self.list(list),
                Some(list) => self.braces(list),
                None => Vec::new(),
            };
            out.push((path.name, values));
        }
        out
    }

    /// The parameters of a `template <…>` after those of the templates around it.
    pub(super) fn template_params(&mut self, node: Node, outer: Vec<TemplateParam>) -> Vec<TemplateParam> {
        let flat = self.flat;
        let mut params = outer;
        if let Some(list) = flat.field(node, Field::Parameters) {
            params.extend(self.template_list(list));
        }
        params
    }

    pub(super) fn template_list(&mut self, list: Node) -> Vec<TemplateParam> {
        let flat = self.flat;
        flat.children(list).filter_map(|param| self.template_param(param)).collect()
    }

    fn template_param(&mut self, node: Node) -> Option<TemplateParam> {
        let flat = self.flat;
        let mut name = flat.child(node, Kind::TypeIdentifier).map_or_else(|| Name::new(""), |n| self.name(n));
        let mut is_pack = false;
        let kind = match node.kind {
            Kind::TypeParameter => TemplateParamKind::Type { default: None },
            Kind::VariadicTypeParameter => {
                is_pack = true;
                TemplateParamKind::Type { default: None }
            }
            Kind::OptionalTypeParameter => {
                name = flat.field(node, Field::Name).map_or_else(|| Name::new(""), |n| self.name(n));
                let default = flat.field(node, Field::DefaultType).map(|ty| self.ty(ty));
                TemplateParamKind::Type { default }
            }
            Kind::TemplateTemplateParameter => {
                let inner = flat.children(node).filter(|n| n.field == Field::None);
                let inner =
                    inner.filter_map(|n| flat.field(n, Field::Name).or(flat.child(n, Kind::TypeIdentifier)));
                name = inner.last().map_or_else(|| Name::new(""), |n| self.name(n));
                TemplateParamKind::Template
            }
            Kind::Parameter | Kind::OptionalParameter | Kind::VariadicParameter => {
                is_pack = node.kind == Kind::VariadicParameter;
                let specs = self.specs(node);
                let (mut ty, mut given) = (specs.ty, None);
                if let Some(declarator) = flat.field(node, Field::Declarator) {
                    let declared = self.declare(declarator, ty, specs.is_const);
                    (ty, given) = (declared.ty, declared.path);
                    is_pack |= declared.is_pack;
                }
                name = given.map_or_else(|| Name::new(""), |path| path.name);
                let default = flat.field(node, Field::DefaultValue).map(|value| self.expr(value));
                TemplateParamKind::Value { ty, default }
            }
            _ => return None,
        };
        Some(TemplateParam { name, kind, is_pack })
    }

    /// `template __global__ void k<float>(float*);`, `template class Solver<double>;`
    pub(super) fn instantiation(&mut self, node: Node) {
        let specs = self.specs(node);
        let is_class = self
            .flat
            .children(node)
            .any(|child| matches!(child.kind, Kind::ClassSpecifier | Kind::StructSpecifier));
        if is_class && let Type::Named(class) = &specs.ty {
            let (class, span) = (class.clone(), self.span(node));
            self.unit.class_instantiations.push(ClassInstantiation { class, span });
            return;
        }
        let Some(declarator) = self.flat.field(node, Field::Declarator) else { return };
        let declared = self.declare(declarator, specs.ty, specs.is_const);
        let (Some(function), Some(layer)) = (declared.path, declared.function) else { return };
        let params =
            self.flat.field(layer, Field::Parameters).map_or_else(Vec::new, |list| self.parameters(list));
        let span = self.span(node);
        self.unit.instantiations.push(Instantiation { function, params, span });
    }
}
