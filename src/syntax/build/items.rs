//! What stands at file scope and in namespaces.

use super::flat::{Field, Kind, Node};
use super::*;

impl<'a> Builder<'a> {
    pub(super) fn unit(&mut self) -> Unit {
        if let Some(root) = self.flat.root() {
            self.items(root);
        }
        std::mem::take(&mut self.unit)
    }

    fn items(&mut self, list: Node) {
        let flat = self.flat;
        let read = |this: &mut Self| {
            for item in flat.children(list) {
                this.item(item, Vec::new());
                this.take_defs_to_unit();
            }
        };
        self.deeper(list, 1, read);
    }

    fn take_defs_to_unit(&mut self) {
        for def in std::mem::take(&mut self.defs) {
            match def {
                Def::Struct(def) => self.unit.structs.push(def),
                Def::Enum(def) => self.unit.enums.push(def),
            }
        }
    }

    fn item(&mut self, node: Node, template: Vec<TemplateParam>) {
        // A name or a condition in front of `#if`'s lines is not an item.
        if matches!(node.field, Field::Condition | Field::Name | Field::Value) {
            return;
        }
        let flat = self.flat;
        match node.kind {
            Kind::FunctionDefinition => self.free_function(node, template),
            Kind::Declaration => self.global_declaration(node, template),
            Kind::TemplateDeclaration => self.template(node, template),
            Kind::TemplateInstantiation => self.instantiation(node),
            Kind::NamespaceDefinition => self.namespace(node),
            Kind::LinkageSpecification
            | Kind::DeclarationList
            | Kind::PreprocIf
            | Kind::PreprocIfdef
            | Kind::PreprocElse
            | Kind::PreprocElif
            | Kind::PreprocElifdef => self.items(node),
            Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier => {
                if node.bad {
                    self.gap(node, SYNTAX_ERROR);
                }
                let def = self.struct_def(node, template);
                self.unit.structs.extend(def.map(Arc::new));
            }
            Kind::EnumSpecifier => {
                self.ty(node);
            }
            Kind::TypeDefinition => {
                let aliases = self.typedef(node);
                self.unit.aliases.extend(aliases);
            }
            Kind::NamespaceAlias => {
                let alias = self.namespace_alias(node);
                self.unit.aliases.extend(alias);
            }
            Kind::AliasDeclaration => {
                let alias = self.alias(node, template);
                self.unit.aliases.extend(alias);
            }
            Kind::Error => {
                self.gap(node, SYNTAX_ERROR);
                self.items(node);
            }
            // Left of a definition whose head was not understood.
            Kind::CompoundStatement if flat.first(node).is_some() => {
                self.gap(node, "statements outside of a function")
            }
            _ => {}
        }
    }

    fn free_function(&mut self, node: Node, template: Vec<TemplateParam>) {
        if node.bad {
            let head = flat_bad_part(self.flat, node);
            self.gap(head, SYNTAX_ERROR);
        }
        match self.function(node, template) {
            Some(function) => self.unit.functions.push(Arc::new(function)),
            None if flat_is_brace_definition(self.flat, node) => self.gap(node, "function without a name"),
            None => {}
        }
    }

    fn global_declaration(&mut self, node: Node, template: Vec<TemplateParam>) {
        if node.bad {
            self.gap(node, SYNTAX_ERROR);
            if self.flat.field(node, Field::Declarator).is_none() {
                return;
            }
        }
        let found = self.declarators(node);
        let Some(specs) = found.specs else { return };
        for declared in found.functions {
            if let Some(function) = self.function_from(node, &specs, declared, template.clone()) {
                self.unit.functions.push(Arc::new(function));
            }
        }
        self.unit.globals.extend(found.variables);
    }

    fn template(&mut self, node: Node, outer: Vec<TemplateParam>) {
        let template = self.template_params(node, outer);
        let flat = self.flat;
        for child in flat.children(node).filter(|n| n.field != Field::Parameters) {
            if self.deeper(child, 1, |this| this.item(child, template.clone())).is_none() {
                return;
            }
        }
    }

    /// `namespace a::b { … }`
    fn namespace(&mut self, node: Node) {
        let flat = self.flat;
        let before = self.scope.len();
        if let Some(name) = flat.field(node, Field::Name) {
            for word in self.text(name).split("::") {
                let word = word.trim();
                let word = word.strip_prefix("inline ").unwrap_or(word).trim();
                let name = self.name_of(word);
                self.namespaces.insert(name);
                self.scope.push(name);
            }
        }
        if let Some(body) = flat.field(node, Field::Body) {
            self.items(body);
        }
        self.scope.truncate(before);
    }
}

/// The part of a definition in which the error lies.
fn flat_bad_part(flat: &Flat, node: Node) -> Node {
    flat.children(node).find(|child| child.bad).unwrap_or(node)
}

fn flat_is_brace_definition(flat: &Flat, node: Node) -> bool {
    flat.field(node, Field::Body).is_some()
}
