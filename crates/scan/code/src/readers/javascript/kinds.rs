//! The kinds of nodes that the reader makes, called as the parser calls them.

use crate::grammar::Role;
use crate::grammars::javascript::KINDS;
use crate::readers::{kinds, roles};
use crate::tree::{Kinds, Names};

kinds! {
    PROGRAM "program" HASH_BANG "hash_bang_line" EXPORT "export_statement" NAMESPACE_EXPORT "namespace_export"
    EXPORT_CLAUSE "export_clause" EXPORT_SPECIFIER "export_specifier" IMPORT "import" IMPORT_STATEMENT "import_statement"
    IMPORT_CLAUSE "import_clause" NAMESPACE_IMPORT "namespace_import" NAMED_IMPORTS "named_imports"
    IMPORT_SPECIFIER "import_specifier" DEBUGGER "debugger_statement" EXPRESSION_STATEMENT "expression_statement"
    VARIABLE_DECLARATION "variable_declaration" LEXICAL_DECLARATION "lexical_declaration"
    VARIABLE_DECLARATOR "variable_declarator" BLOCK "statement_block" ELSE "else_clause" IF "if_statement"
    SWITCH "switch_statement" FOR "for_statement" FOR_IN "for_in_statement" WHILE "while_statement" DO "do_statement"
    TRY "try_statement" BREAK "break_statement" CONTINUE "continue_statement" RETURN "return_statement"
    THROW "throw_statement" EMPTY "empty_statement" LABELED "labeled_statement" LABEL "statement_identifier"
    SWITCH_BODY "switch_body" SWITCH_CASE "switch_case" SWITCH_DEFAULT "switch_default" CATCH "catch_clause"
    FINALLY "finally_clause" PARENTHESIZED "parenthesized_expression" SEQUENCE "sequence_expression"
    YIELD "yield_expression" OBJECT "object" OBJECT_PATTERN "object_pattern" ASSIGNMENT_PATTERN "assignment_pattern"
    OBJECT_ASSIGNMENT_PATTERN "object_assignment_pattern" ARRAY "array" ARRAY_PATTERN "array_pattern" CLASS "class"
    CLASS_DECLARATION "class_declaration" CLASS_HERITAGE "class_heritage" CLASS_BODY "class_body"
    FUNCTION_EXPRESSION "function_expression" FUNCTION_DECLARATION "function_declaration"
    GENERATOR "generator_function" GENERATOR_DECLARATION "generator_function_declaration" ARROW "arrow_function"
    OPTIONAL_CHAIN "optional_chain" CALL "call_expression" NEW "new_expression" AWAIT "await_expression"
    MEMBER "member_expression" SUBSCRIPT "subscript_expression" ASSIGNMENT "assignment_expression"
    AUGMENTED "augmented_assignment_expression" SPREAD "spread_element" TERNARY "ternary_expression"
    BINARY "binary_expression" UNARY "unary_expression" UPDATE "update_expression" STRING "string"
    FRAGMENT "string_fragment" ESCAPE "escape_sequence" TEMPLATE "template_string"
    SUBSTITUTION "template_substitution" REGEX "regex" REGEX_PATTERN "regex_pattern" REGEX_FLAGS "regex_flags"
    NUMBER "number" IDENTIFIER "identifier" PROPERTY "property_identifier" PRIVATE "private_property_identifier"
    SHORTHAND "shorthand_property_identifier" SHORTHAND_PATTERN "shorthand_property_identifier_pattern"
    META "meta_property" THIS "this" SUPER "super" TRUE "true" FALSE "false" NULL "null" UNDEFINED "undefined"
    ARGUMENTS "arguments" FIELD "field_definition" PARAMETERS "formal_parameters" STATIC_BLOCK "class_static_block"
    REST "rest_pattern" METHOD "method_definition" PAIR "pair" PAIR_PATTERN "pair_pattern"
    COMPUTED "computed_property_name"
}

pub const OURS: Kinds = Kinds { names: Names::Ours(NAMES), roles: &ROLES };

/// Looked up when this is built: nothing of it costs a scan.
static ROLES: [Role; NAMES.len()] = roles(NAMES, KINDS);
