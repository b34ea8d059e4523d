//! The parse tree as an array in preorder: one cursor walk, then every look at a node is an array access.
//!
//! Comments, punctuation and preprocessor lines are left out. Node `i` covers the array slots `i..next`;
//! its first child is `i + 1`, the sibling of a child `c` is `c.next`.

use std::sync::LazyLock;

macro_rules! kinds {
    ($($variant:ident $text:literal)*) => {
        /// What a node is. `Other` is a named node without a meaning of its own here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind { $($variant,)* Op, Error, MissingSemicolon, Missing, Other, Skip }

        fn kind_of(text: &str) -> Option<Kind> {
            match text { $($text => Some(Kind::$variant),)* _ => None }
        }
    };
}

kinds! {
    AbstractArrayDeclarator "abstract_array_declarator" AbstractFunctionDeclarator "abstract_function_declarator"
    AbstractParenthesizedDeclarator "abstract_parenthesized_declarator"
    AbstractPointerDeclarator "abstract_pointer_declarator" AbstractReferenceDeclarator "abstract_reference_declarator"
    AliasDeclaration "alias_declaration" AlignasQualifier "alignas_qualifier" AlignofExpression "alignof_expression"
    ArgumentList "argument_list" ArrayDeclarator "array_declarator" AssignmentExpression "assignment_expression"
    AttributeSpecifier "attribute_specifier" AttributedDeclarator "attributed_declarator"
    AttributedStatement "attributed_statement" AttributeDeclaration "attribute_declaration" Auto "auto" BaseClassClause "base_class_clause"
    BinaryExpression "binary_expression" BitfieldClause "bitfield_clause" BreakStatement "break_statement"
    CallExpression "call_expression" CaseStatement "case_statement" CastExpression "cast_expression"
    CatchClause "catch_clause" CharLiteral "char_literal" ClassSpecifier "class_specifier"
    CommaExpression "comma_expression" CompoundLiteral "compound_literal_expression"
    CompoundStatement "compound_statement" ConcatenatedString "concatenated_string"
    ConditionClause "condition_clause" ConditionalExpression "conditional_expression"
    ContinueStatement "continue_statement" CoReturnStatement "co_return_statement"
    Declaration "declaration" DeclarationList "declaration_list" Decltype "decltype"
    DefaultMethodClause "default_method_clause" DeleteMethodClause "delete_method_clause"
    PureVirtualClause "pure_virtual_clause" DeleteExpression "delete_expression" DependentName "dependent_name"
    DependentType "dependent_type" DestructorName "destructor_name" DoStatement "do_statement" ElseClause "else_clause"
    EnumSpecifier "enum_specifier" Enumerator "enumerator" EnumeratorList "enumerator_list"
    ExpressionStatement "expression_statement" False "false" FieldDeclaration "field_declaration"
    FieldDeclarationList "field_declaration_list" FieldDesignator "field_designator"
    FieldExpression "field_expression" FieldIdentifier "field_identifier" FieldInitializer "field_initializer"
    FieldInitializerList "field_initializer_list" ForRangeLoop "for_range_loop" ForStatement "for_statement"
    FriendDeclaration "friend_declaration" FunctionDeclarator "function_declarator"
    FunctionDefinition "function_definition" AsmExpression "gnu_asm_expression"
    AsmInputOperand "gnu_asm_input_operand" AsmOutputOperand "gnu_asm_output_operand"
    AsmInputs "gnu_asm_input_operand_list" AsmOutputs "gnu_asm_output_operand_list"
    GotoStatement "goto_statement" Identifier "identifier" IfStatement "if_statement"
    InitDeclarator "init_declarator" InitStatement "init_statement" InitializerList "initializer_list"
    InitializerPair "initializer_pair" KernelCallSyntax "kernel_call_syntax" LabeledStatement "labeled_statement"
    LambdaCaptureInitializer "lambda_capture_initializer" LambdaCaptures "lambda_capture_specifier"
    LambdaDeclarator "lambda_declarator" LambdaExpression "lambda_expression"
    LaunchBounds "launch_bounds" LinkageSpecification "linkage_specification" NamespaceDefinition "namespace_definition"
    NamespaceAlias "namespace_alias_definition" NamespaceIdentifier "namespace_identifier" NestedNamespace "nested_namespace_specifier"
    NewDeclarator "new_declarator" NewExpression "new_expression" Null "null" NumberLiteral "number_literal"
    OperatorCast "operator_cast" OperatorName "operator_name"
    OptionalParameter "optional_parameter_declaration" OptionalTypeParameter "optional_type_parameter_declaration"
    PackExpansion "parameter_pack_expansion" Parameter "parameter_declaration" ParameterList "parameter_list"
    ParenthesizedDeclarator "parenthesized_declarator" ParenthesizedExpression "parenthesized_expression"
    PlaceholderType "placeholder_type_specifier" PointerDeclarator "pointer_declarator"
    PointerExpression "pointer_expression" PointerTypeDeclarator "pointer_type_declarator"
    PreprocElif "preproc_elif" PreprocElifdef "preproc_elifdef" PreprocElse "preproc_else" PreprocIf "preproc_if"
    PreprocIfdef "preproc_ifdef" PrimitiveType "primitive_type" QualifiedIdentifier "qualified_identifier"
    RawString "raw_string_literal" ReferenceDeclarator "reference_declarator" ReturnStatement "return_statement"
    SizedType "sized_type_specifier" SizeofExpression "sizeof_expression"
    StaticAssert "static_assert_declaration" StorageClass "storage_class_specifier" StringLiteral "string_literal"
    StructSpecifier "struct_specifier" StructuredBinding "structured_binding_declarator"
    SubscriptArguments "subscript_argument_list" SubscriptExpression "subscript_expression"
    SwitchStatement "switch_statement" TemplateArguments "template_argument_list"
    TemplateDeclaration "template_declaration" TemplateFunction "template_function"
    TemplateInstantiation "template_instantiation" TemplateMethod "template_method"
    TemplateParameters "template_parameter_list" TemplateTemplateParameter "template_template_parameter_declaration"
    TemplateType "template_type" This "this" ThrowStatement "throw_statement" TrailingReturn "trailing_return_type"
    TranslationUnit "translation_unit" True "true" TryStatement "try_statement" TypeDefinition "type_definition"
    TypeDescriptor "type_descriptor" TypeIdentifier "type_identifier" TypeParameter "type_parameter_declaration"
    TypeQualifier "type_qualifier" UnaryExpression "unary_expression" UnionSpecifier "union_specifier"
    UpdateExpression "update_expression" UserDefinedLiteral "user_defined_literal"
    UsingDeclaration "using_declaration" VariadicDeclarator "variadic_declarator"
    VariadicParameter "variadic_parameter_declaration" VariadicTypeParameter "variadic_type_parameter_declaration"
    WhileStatement "while_statement"
    Global "__global__" Device "__device__" Host "__host__" Constexpr "constexpr"
}

macro_rules! fields {
    ($($variant:ident $text:literal)*) => {
        /// The role of a node in its parent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Field { $($variant,)* None }

        fn field_of(text: &str) -> Field {
            match text { $($text => Field::$variant,)* _ => Field::None }
        }
    };
}

fields! {
    Alternative "alternative" Argument "argument" Arguments "arguments" Base "base" Body "body" Captures "captures"
    Clobbers "clobbers" Condition "condition" Consequence "consequence" Constraint "constraint" Declarator "declarator"
    DefaultType "default_type" DefaultValue "default_value" Designator "designator" Member "field" Function "function"
    Indices "indices" Label "label" Initializer "initializer" Inputs "input_operands" Left "left" Length "length" Name "name"
    Operator "operator" Outputs "output_operands" Parameters "parameters" Pattern "pattern" Right "right" Scope "scope" Size "size"
    Template "assembly_code" Type "type" Update "update" Value "value"
}

/// A node, by value: 20 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    index: u32,
    next: u32,
    pub start: u32,
    pub end: u32,
    pub kind: Kind,
    pub field: Field,
    /// An ERROR or MISSING below, not counting those inside a nested list of statements or members.
    pub bad: bool,
}

impl Node {
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[derive(Default)]
pub(super) struct Flat {
    nodes: Vec<Node>,
    /// The deepest nesting, for choosing a stack.
    pub depth: usize,
}

struct Tables {
    kinds: Vec<Kind>,
    fields: Vec<Field>,
}

/// Kinds and fields by the grammar's numbers.
static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let language = super::language();
    let kinds = (0..language.node_kind_count() as u16)
        .map(|id| {
            let text = language.node_kind_for_id(id).unwrap_or("");
            // A keyword may be spelt like a node: `decltype`.
            let marks =
                |kind: &Kind| matches!(kind, Kind::Global | Kind::Device | Kind::Host | Kind::Constexpr);
            match (kind_of(text), language.node_kind_is_named(id)) {
                (Some(kind), true) => kind,
                (None, true) => named_without_meaning(text),
                (kind, false) => match kind.filter(marks) {
                    Some(kind) => kind,
                    None if is_operator(text) => Kind::Op,
                    None => Kind::Skip,
                },
            }
        })
        .collect();
    let fields = (0..=language.field_count() as u16)
        .map(|id| language.field_name_for_id(id).map_or(Field::None, field_of))
        .collect();
    Tables { kinds, fields }
});

fn named_without_meaning(text: &str) -> Kind {
    match text {
        "comment"
        | "preproc_call"
        | "preproc_def"
        | "preproc_function_def"
        | "preproc_include"
        | "preproc_arg" => Kind::Skip,
        _ => Kind::Other,
    }
}

fn is_operator(text: &str) -> bool {
    matches!(
        text,
        "and"
            | "or"
            | "not"
            | "xor"
            | "bitand"
            | "bitor"
            | "compl"
            | "not_eq"
            | "and_eq"
            | "or_eq"
            | "xor_eq"
    ) || (!text.is_empty() && text.bytes().all(|byte| b"+-*/%<>=!&|^~.".contains(&byte)))
}

/// Nodes whose children say nothing more.
fn is_leaf(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::StringLiteral
            | Kind::RawString
            | Kind::CharLiteral
            | Kind::NumberLiteral
            | Kind::Identifier
            | Kind::TypeIdentifier
            | Kind::FieldIdentifier
            | Kind::StaticAssert
            | Kind::UsingDeclaration
            | Kind::Skip
    )
}

/// An ERROR stops here: the list has it as an element of its own.
fn is_list(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::CompoundStatement | Kind::DeclarationList | Kind::FieldDeclarationList | Kind::TranslationUnit
    )
}

impl Flat {
    pub fn of(tree: &tree_sitter::Tree, text: &str) -> Flat {
        let tables = &*TABLES;
        let root = tree.root_node();
        let checked = root.has_error();
        let mut flat = Flat { nodes: Vec::with_capacity(text.len() / 8 + 16), depth: 0 };
        let mut open: Vec<u32> = Vec::new();
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let mut kind = tables.kinds.get(node.kind_id() as usize).copied().unwrap_or(Kind::Error);
            if checked && node.is_missing() {
                kind = if node.kind() == ";" { Kind::MissingSemicolon } else { Kind::Missing };
            }
            let (start, end) = (node.start_byte(), node.end_byte());
            if kind == Kind::Error && only_qualifiers(text.get(start..end).unwrap_or("")) {
                kind = Kind::Skip;
            }
            let recorded = kind != Kind::Skip;
            if recorded {
                let field = cursor.field_id().and_then(|id| tables.fields.get(id.get() as usize).copied());
                let bad = matches!(kind, Kind::Error | Kind::Missing);
                flat.nodes.push(Node {
                    index: flat.nodes.len() as u32,
                    next: flat.nodes.len() as u32 + 1,
                    start: start as u32,
                    end: end as u32,
                    kind,
                    field: field.unwrap_or(Field::None),
                    bad,
                });
            }
            if !is_leaf(kind) && cursor.goto_first_child() {
                open.push(flat.nodes.len() as u32 - 1);
                flat.depth = flat.depth.max(open.len());
                continue;
            }
            if recorded && let Some(&Node { bad: true, .. }) = flat.nodes.last() {
                flat.mark_parent(&open);
            }
            loop {
                if cursor.goto_next_sibling() {
                    break;
                }
                let Some(parent) = open.pop() else { return flat };
                cursor.goto_parent();
                let next = flat.nodes.len() as u32;
                let mut bad = false;
                if let Some(node) = flat.nodes.get_mut(parent as usize) {
                    node.next = next;
                    bad = node.bad;
                }
                if bad {
                    flat.mark_parent(&open);
                }
            }
        }
    }

    fn mark_parent(&mut self, open: &[u32]) {
        if let Some(&parent) = open.last()
            && let Some(parent) = self.nodes.get_mut(parent as usize)
            && !is_list(parent.kind)
        {
            parent.bad = true;
        }
    }

    pub fn root(&self) -> Option<Node> {
        self.nodes.first().copied()
    }

    pub fn all(&self) -> &[Node] {
        &self.nodes
    }

    pub fn children(&self, node: Node) -> Children<'_> {
        Children { nodes: &self.nodes, at: node.index + 1, end: node.next }
    }

    pub fn field(&self, node: Node, field: Field) -> Option<Node> {
        self.children(node).find(|child| child.field == field)
    }

    pub fn child(&self, node: Node, kind: Kind) -> Option<Node> {
        self.children(node).find(|child| child.kind == kind)
    }

    /// The first child that is not an operator token.
    pub fn first(&self, node: Node) -> Option<Node> {
        self.children(node).find(|child| child.kind != Kind::Op)
    }
}

/// Function qualifiers where the grammar has no place for them, as on a lambda: not worth an error.
fn only_qualifiers(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek().is_some()
        && words.all(|word| matches!(word, "__device__" | "__host__" | "__forceinline__" | "__noinline__"))
}

#[derive(Clone)]
pub(super) struct Children<'a> {
    nodes: &'a [Node],
    at: u32,
    end: u32,
}

impl Iterator for Children<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        if self.at >= self.end {
            return None;
        }
        let node = *self.nodes.get(self.at as usize)?;
        self.at = node.next;
        Some(node)
    }
}
