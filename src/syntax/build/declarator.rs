//! Declarators: from the outside in, each layer wraps the type, until the name is reached.

use super::flat::{Field, Kind, Node};
use super::*;

/// A declarator read to its end.
pub(super) struct Declared {
    /// `None` for an abstract one.
    pub path: Option<Path>,
    pub name_span: Span,
    /// The variable's type; a function's return type where `function` is set.
    pub ty: Type,
    /// The variable itself is const.
    pub is_const: bool,
    /// The outermost pointer is `__restrict__`.
    pub restrict: bool,
    /// `name(parameters)`: the function declarator directly around the name.
    pub function: Option<Node>,
    /// `[a, b]`
    pub binding: Option<Node>,
    pub is_pack: bool,
}

impl<'a> Builder<'a> {
    /// Applies a declarator to the type in front of it.
    pub(super) fn declare(&mut self, node: Node, ty: Type, is_const: bool) -> Declared {
        let flat = self.flat;
        let mut out = Declared {
            path: None,
            name_span: self.span(node),
            ty,
            is_const,
            restrict: false,
            function: None,
            binding: None,
            is_pack: false,
        };
        let mut at = Some(node);
        for _ in 0..MAX_DEPTH {
            let Some(node) = at else { return out };
            at = match node.kind {
                Kind::PointerDeclarator | Kind::PointerTypeDeclarator | Kind::AbstractPointerDeclarator => {
                    self.pointer(node, &mut out);
                    flat.field(node, Field::Declarator)
                }
                Kind::ReferenceDeclarator | Kind::AbstractReferenceDeclarator => {
                    let to = Box::new(std::mem::replace(&mut out.ty, Type::Void));
                    out.ty = Type::Reference { to, is_const: out.is_const };
                    out.is_const = false;
                    flat.first(node)
                }
                Kind::ArrayDeclarator | Kind::AbstractArrayDeclarator => {
                    let extent = flat.field(node, Field::Size).filter(|n| n.kind != Kind::Op);
                    let extent = extent.map(|size| Box::new(self.expr(size)));
                    let of = Box::new(std::mem::replace(&mut out.ty, Type::Void));
                    out.ty = Type::Array { of, extent };
                    flat.field(node, Field::Declarator)
                }
                Kind::FunctionDeclarator | Kind::AbstractFunctionDeclarator => {
                    self.function_layer(node, &mut out)
                }
                Kind::ParenthesizedDeclarator | Kind::AbstractParenthesizedDeclarator => flat.first(node),
                Kind::AttributedDeclarator | Kind::InitDeclarator => flat.first(node),
                Kind::VariadicDeclarator => {
                    out.is_pack = true;
                    flat.first(node)
                }
                Kind::StructuredBinding => {
                    out.binding = Some(node);
                    None
                }
                Kind::Op | Kind::Missing | Kind::MissingSemicolon | Kind::Error => None,
                _ => {
                    out.name_span = self.span(innermost_name(flat, node));
                    out.path = self.path(node);
                    None
                }
            };
        }
        out.ty = Type::Unknown(TOO_DEEP);
        out
    }

    fn pointer(&mut self, node: Node, out: &mut Declared) {
        let (mut is_const, mut restrict) = (false, false);
        for qualifier in self.flat.children(node).filter(|n| n.kind == Kind::TypeQualifier) {
            match self.text(qualifier) {
                "const" => is_const = true,
                "restrict" | "__restrict__" | "__restrict" => restrict = true,
                _ => {}
            }
        }
        // MSVC's spelling is a modifier of its own in the grammar.
        restrict |= self.flat.children(node).any(|n| n.kind == Kind::Other && self.text(n) == "__restrict");
        let inner = self.flat.field(node, Field::Declarator).map_or(node.end, |inner| inner.start);
        restrict |= self.is_restrict_in(node.start..inner);
        if !matches!(out.ty, Type::Unknown("function type")) {
            let to = Box::new(std::mem::replace(&mut out.ty, Type::Void));
            out.ty = Type::Pointer { to, is_const: out.is_const, restrict };
        }
        out.is_const = is_const;
        out.restrict = restrict;
    }

    /// `f(…)` around a name declares a function; around anything else the type is a function's.
    fn function_layer(&mut self, node: Node, out: &mut Declared) -> Option<Node> {
        let inner = self.flat.field(node, Field::Declarator);
        let names = inner.is_some_and(|inner| {
            !matches!(
                inner.kind,
                Kind::ParenthesizedDeclarator
                    | Kind::AbstractParenthesizedDeclarator
                    | Kind::PointerDeclarator
                    | Kind::ReferenceDeclarator
                    | Kind::ArrayDeclarator
                    | Kind::FunctionDeclarator
            )
        });
        if names && out.function.is_none() {
            out.function = Some(node);
        } else {
            out.ty = Type::Unknown("function type");
        }
        inner
    }
}

/// The node that spells the last part of a name.
fn innermost_name(flat: &Flat, node: Node) -> Node {
    let mut node = node;
    while matches!(
        node.kind,
        Kind::QualifiedIdentifier | Kind::TemplateFunction | Kind::TemplateMethod | Kind::TemplateType
    ) {
        let Some(name) = flat.children(node).filter(|n| n.field == Field::Name).last() else { break };
        node = name;
    }
    node
}
