//! Types, paths and template arguments.

use super::flat::{Field, Kind, Node};
use super::*;

/// What stands in front of a declarator.
pub(super) struct Specs {
    pub ty: Type,
    /// `const` in front of the type: of what a pointer points to, else of the variable.
    pub is_const: bool,
    pub storage: Storage,
    pub kernel: bool,
    pub host: bool,
    pub align: Option<Box<Expr>>,
    pub bounds: Vec<Expr>,
}

impl<'a> Builder<'a> {
    /// Everything in a declaration that is not a declarator.
    pub(super) fn specs(&mut self, node: Node) -> Specs {
        let mut specs = Specs {
            ty: Type::Void,
            is_const: false,
            storage: Storage::default(),
            kernel: false,
            host: false,
            align: None,
            bounds: Vec::new(),
        };
        let flat = self.flat;
        for child in flat.children(node) {
            match child.kind {
                _ if child.field == Field::Type => specs.ty = self.ty(child),
                Kind::TypeQualifier => self.qualifier(child, &mut specs),
                Kind::StorageClass => match self.text(child) {
                    "static" => specs.storage.is_static = true,
                    "extern" => specs.storage.external = true,
                    _ => {}
                },
                Kind::Global => specs.kernel = true,
                Kind::Device => specs.storage.device = true,
                Kind::Host => specs.host = true,
                Kind::LaunchBounds => {
                    specs.bounds =
                        flat.children(child).filter(|n| n.kind != Kind::Op).map(|n| self.expr(n)).collect();
                }
                Kind::AlignasQualifier => specs.align = self.alignas(child).map(Box::new),
                Kind::AttributeSpecifier => {
                    specs.align = self.aligned_attribute(child).map(Box::new).or(specs.align)
                }
                Kind::CompoundStatement => break,
                _ => {}
            }
        }
        self.masked_specifiers(node, &mut specs);
        specs
    }

    fn masked_specifiers(&mut self, node: Node, specs: &mut Specs) {
        if self.side.specifiers.is_empty() {
            return;
        }
        let end = self.flat.field(node, Field::Declarator).map_or(node.end, |declarator| declarator.start);
        for word in self.specifiers_in(self.start_with_blanks(node)..end).split_ascii_whitespace() {
            match word {
                "static" => specs.storage.is_static = true,
                "constexpr" => specs.storage.is_constexpr = true,
                "__global__" => specs.kernel = true,
                "__device__" => specs.storage.device = true,
                "__host__" => specs.host = true,
                "__shared__" => specs.storage.shared = true,
                "__constant__" => specs.storage.constant = true,
                "__managed__" => specs.storage.managed = true,
                _ => {}
            }
        }
    }

    fn qualifier(&mut self, node: Node, specs: &mut Specs) {
        if let Some(alignas) = self.flat.child(node, Kind::AlignasQualifier) {
            specs.align = self.alignas(alignas).map(Box::new);
            return;
        }
        match self.text(node) {
            "const" => specs.is_const = true,
            "constexpr" | "constinit" => {
                specs.is_const = true;
                specs.storage.is_constexpr = true;
            }
            "volatile" => specs.storage.is_volatile = true,
            "__shared__" => specs.storage.shared = true,
            "__constant__" => specs.storage.constant = true,
            "__managed__" => specs.storage.managed = true,
            "__device__" => specs.storage.device = true,
            _ => {}
        }
    }

    /// `alignas(n)`; of a type: its alignment.
    pub(super) fn alignas(&mut self, node: Node) -> Option<Expr> {
        let inner = self.flat.first(node)?;
        if inner.kind == Kind::TypeDescriptor {
            let ty = Box::new(self.type_descriptor(inner));
            return Some(Expr { span: self.span(inner), kind: ExprKind::AlignofType(ty) });
        }
        Some(self.expr(inner))
    }

    /// `__attribute__((aligned(n)))`
    pub(super) fn aligned_attribute(&mut self, node: Node) -> Option<Expr> {
        let text = self.text(node);
        let rest = text.split_once("aligned")?.1.trim_start_matches('_').trim_start().strip_prefix('(')?;
        let (argument, _) = rest.split_once(')')?;
        parse_expr(argument, self.span(node))
    }

    /// A type specifier without its declarator.
    pub(super) fn ty(&mut self, node: Node) -> Type {
        match node.kind {
            Kind::PrimitiveType => self.primitive(node),
            Kind::SizedType => self.sized(node),
            Kind::TypeIdentifier | Kind::QualifiedIdentifier | Kind::TemplateType | Kind::Identifier => {
                self.named(node)
            }
            Kind::DependentType => match self.flat.first(node) {
                Some(inner) => self.ty(inner),
                None => Type::Unknown("dependent type"),
            },
            Kind::PlaceholderType | Kind::Auto => Type::Auto,
            Kind::Decltype => match self.flat.first(node) {
                Some(inner) if inner.kind != Kind::Auto => Type::Decltype(Box::new(self.expr(inner))),
                _ => Type::Auto,
            },
            Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier => self.struct_type(node),
            Kind::EnumSpecifier => self.enum_type(node),
            Kind::TypeDescriptor => self.type_descriptor(node),
            _ => Type::Unknown("type"),
        }
    }

    fn named(&mut self, node: Node) -> Type {
        match self.path(node) {
            Some(path) => Type::Named(path),
            None => Type::Unknown("type name"),
        }
    }

    fn primitive(&mut self, node: Node) -> Type {
        let text = self.text(node);
        match text {
            "void" => Type::Void,
            "bool" => Type::Bool,
            "char" | "int8_t" => Type::Int { size: 1, signed: true },
            "uint8_t" | "char8_t" => Type::Int { size: 1, signed: false },
            "int16_t" => Type::Int { size: 2, signed: true },
            "uint16_t" | "char16_t" => Type::Int { size: 2, signed: false },
            "int" | "int32_t" => Type::Int { size: 4, signed: true },
            "uint32_t" | "char32_t" => Type::Int { size: 4, signed: false },
            "int64_t" => Type::Int { size: 8, signed: true },
            "uint64_t" => Type::Int { size: 8, signed: false },
            "float" => Type::Float { size: 4 },
            "double" => Type::Float { size: 8 },
            _ => Type::Named(Path::simple(self.name_of(text))),
        }
    }

    /// `unsigned long long`, `short int`, `long double`.
    fn sized(&mut self, node: Node) -> Type {
        let (mut signed, mut size, mut longs) = (true, 4, 0);
        for word in self.text(node).split_ascii_whitespace() {
            match word {
                "unsigned" => signed = false,
                "short" => size = 2,
                "char" => size = 1,
                "long" => longs += 1,
                "double" => return Type::Float { size: if longs > 0 { 16 } else { 8 } },
                "__int64" => size = 8,
                "signed" | "int" | "const" | "volatile" => {}
                _ => return Type::Unknown("integer type"),
            }
        }
        Type::Int { size: if longs > 0 { 8 } else { size }, signed }
    }

    /// `const float4 *`: a type with an abstract declarator.
    pub(super) fn type_descriptor(&mut self, node: Node) -> Type {
        let read = |this: &mut Self| {
            let specs = this.specs(node);
            match this.flat.field(node, Field::Declarator) {
                Some(declarator) => this.declare(declarator, specs.ty, specs.is_const).ty,
                None => specs.ty,
            }
        };
        self.deeper(node, 1, read).unwrap_or(Type::Unknown(TOO_DEEP))
    }

    /// A name in any of its spellings.
    pub(super) fn path(&mut self, node: Node) -> Option<Path> {
        self.deeper(node, 1, |this| this.path_parts(node)).flatten()
    }

    fn path_parts(&mut self, node: Node) -> Option<Path> {
        let flat = self.flat;
        let mut scope = Vec::new();
        let mut node = node;
        loop {
            match node.kind {
                Kind::QualifiedIdentifier => {
                    if let Some(part) = flat.field(node, Field::Scope) {
                        scope.push(self.scope_part(part));
                    }
                    // `typename A::template B<T>` and pointers in a qualified name wrap the name once more.
                    node = flat.children(node).filter(|n| n.field == Field::Name).last()?;
                }
                Kind::DependentName | Kind::DependentType => node = flat.first(node)?,
                Kind::TemplateFunction | Kind::TemplateType | Kind::TemplateMethod => {
                    let name = flat.field(node, Field::Name)?;
                    let args = flat.field(node, Field::Arguments).map(|list| self.template_args(list));
                    let name = self.name(name);
                    return Some(Path { scope, name, args: args.or_else(|| Some(Vec::new())) });
                }
                Kind::OperatorName => {
                    let spelt: String = self.text(node).split_ascii_whitespace().collect();
                    return Some(Path { scope, name: Name::new(&spelt), args: None });
                }
                Kind::OperatorCast => return Some(Path { scope, name: Name::new("operator"), args: None }),
                Kind::Identifier
                | Kind::TypeIdentifier
                | Kind::FieldIdentifier
                | Kind::NamespaceIdentifier
                | Kind::PrimitiveType
                | Kind::DestructorName => return Some(Path { scope, name: self.name(node), args: None }),
                Kind::PointerTypeDeclarator => node = flat.field(node, Field::Declarator)?,
                _ => return None,
            }
        }
    }

    fn scope_part(&mut self, node: Node) -> PathPart {
        match self.path(node) {
            Some(path) => PathPart { name: path.name, args: path.args },
            None => PathPart { name: self.name(node), args: None },
        }
    }

    pub(super) fn template_args(&mut self, list: Node) -> Vec<TemplateArg> {
        let flat = self.flat;
        flat.children(list).filter(|n| n.kind != Kind::Op).map(|arg| self.template_arg(arg)).collect()
    }

    /// A bare name is a type: only whoever looks it up can tell.
    fn template_arg(&mut self, node: Node) -> TemplateArg {
        match node.kind {
            Kind::TypeDescriptor => TemplateArg::Type(self.type_descriptor(node)),
            Kind::Identifier | Kind::QualifiedIdentifier | Kind::TemplateFunction => {
                TemplateArg::Type(self.named(node))
            }
            Kind::PackExpansion => TemplateArg::Type(Type::Unknown("pack expansion")),
            _ => TemplateArg::Value(self.expr(node)),
        }
    }
}
