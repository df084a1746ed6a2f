//! The kinds of nodes that the reader makes, called as the parser calls them, so that one table of roles serves both.

use crate::grammar::Role;
use crate::grammars::python::KINDS;
use crate::readers::{kinds, roles};
use crate::tree::{Kinds, Names};

kinds! {
    MODULE "module" BLOCK "block" EXPRESSION_STATEMENT "expression_statement" ASSIGNMENT "assignment"
    AUGMENTED_ASSIGNMENT "augmented_assignment" YIELD "yield" PASS "pass_statement" BREAK "break_statement"
    CONTINUE "continue_statement" GLOBAL "global_statement" NONLOCAL "nonlocal_statement" DELETE "delete_statement"
    RAISE "raise_statement" RETURN "return_statement" ASSERT "assert_statement" IMPORT "import_statement"
    IMPORT_FROM "import_from_statement" FUTURE_IMPORT "future_import_statement" DOTTED_NAME "dotted_name"
    ALIASED_IMPORT "aliased_import" RELATIVE_IMPORT "relative_import" IMPORT_PREFIX "import_prefix"
    WILDCARD_IMPORT "wildcard_import" IF "if_statement" ELIF "elif_clause" ELSE "else_clause" FOR "for_statement"
    WHILE "while_statement" TRY "try_statement" EXCEPT "except_clause" FINALLY "finally_clause" WITH "with_statement"
    WITH_CLAUSE "with_clause" WITH_ITEM "with_item" FUNCTION "function_definition" CLASS "class_definition"
    DECORATED "decorated_definition" DECORATOR "decorator" PARAMETERS "parameters"
    LAMBDA_PARAMETERS "lambda_parameters" TYPED_PARAMETER "typed_parameter" DEFAULT_PARAMETER "default_parameter"
    TYPED_DEFAULT_PARAMETER "typed_default_parameter" KEYWORD_SEPARATOR "keyword_separator"
    POSITIONAL_SEPARATOR "positional_separator" LIST_SPLAT_PATTERN "list_splat_pattern"
    DICTIONARY_SPLAT_PATTERN "dictionary_splat_pattern" PATTERN_LIST "pattern_list" TUPLE_PATTERN "tuple_pattern"
    LIST_PATTERN "list_pattern" AS_PATTERN "as_pattern" AS_PATTERN_TARGET "as_pattern_target"
    EXPRESSION_LIST "expression_list" IDENTIFIER "identifier" INTEGER "integer" FLOAT "float" TRUE "true" FALSE "false"
    NONE "none" ELLIPSIS "ellipsis" STRING "string" STRING_CONTENT "string_content" INTERPOLATION "interpolation"
    CONCATENATED_STRING "concatenated_string" ATTRIBUTE "attribute" SUBSCRIPT "subscript" SLICE "slice" CALL "call"
    ARGUMENT_LIST "argument_list" KEYWORD_ARGUMENT "keyword_argument" LIST_SPLAT "list_splat"
    DICTIONARY_SPLAT "dictionary_splat" LIST "list" SET "set" TUPLE "tuple" DICTIONARY "dictionary" PAIR "pair"
    LIST_COMPREHENSION "list_comprehension" SET_COMPREHENSION "set_comprehension"
    DICTIONARY_COMPREHENSION "dictionary_comprehension" GENERATOR_EXPRESSION "generator_expression"
    FOR_IN_CLAUSE "for_in_clause" IF_CLAUSE "if_clause" PARENTHESIZED "parenthesized_expression"
    CONDITIONAL "conditional_expression" LAMBDA "lambda" NAMED_EXPRESSION "named_expression" NOT "not_operator"
    BOOLEAN "boolean_operator" BINARY "binary_operator" UNARY "unary_operator" COMPARISON "comparison_operator"
    AWAIT "await"
}

pub const OURS: Kinds = Kinds { names: Names::Ours(NAMES), roles: &ROLES };

/// Looked up when this is built: nothing of it costs a scan.
static ROLES: [Role; NAMES.len()] = roles(NAMES, KINDS);
