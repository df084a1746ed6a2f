//! What is read, and what is refused with which words.

use super::*;

const ANYTHING: &str = "permit(principal, action, resource);";

#[test]
fn what_is_no_cedar_is_refused_with_its_line() {
    let bad = refused("permit(principal, action, resource);\n\npermit(principal, acton, resource);");
    assert_eq!((bad.file.as_str(), bad.line), ("org.cedar", 3));
    assert_eq!(refused("permit(principal, action, resource)").line, 1);
    assert_eq!(refused("\n\nallow(principal, action, resource);").line, 3);
    assert_eq!(refused("\npermit(principal, action, resource) when { \"open };").line, 2);
}

#[test]
fn an_unknown_annotation_is_refused_with_what_was_meant() {
    let bad = refused(&format!("{ANYTHING}\n@id(\"a\")\n@aks {ANYTHING}"));
    assert_eq!(
        (bad.line, bad.message.as_str(), bad.hint.as_str()),
        (3, "`@aks` means nothing here", "did you mean `@ask`?")
    );
    assert_eq!(refused(&format!("@severity(\"high\") {ANYTHING}")).hint, "known are `@id`, `@ask` and `@why`");
}

#[test]
fn annotations_that_say_nothing_or_hide_something_are_refused() {
    for annotation in
        ["@id", "@id(\"\")", "@why", "@why(\"\\u{202e}\")", "@ask(\"a\\nb\")", "@id(\"a b\")", "@id(\"cedar.7\")"]
    {
        assert_eq!(refused(&format!("\n{annotation}\n{ANYTHING}")).line, 2, "{annotation}");
    }
}

#[test]
fn a_name_is_given_once_over_all_files() {
    let text = format!("\n@id(\"a\") {ANYTHING}");
    let files = ["one.cedar", "two.cedar"].map(|file| RuleText { file, text: &text });
    let Err(bad) = Cedar.read(&files) else { panic!("was read") };
    assert_eq!((bad.file.as_str(), bad.line), ("two.cedar", 2));
    assert_eq!(bad.message, "another rule is called `a` already: one.cedar:2");
}

#[test]
fn a_template_is_no_rule() {
    let bad = refused(&format!("// ?\n{ANYTHING}\npermit(principal == ?principal, action, resource);"));
    assert_eq!((bad.line, bad.message.as_str()), (3, "a template is no rule"));
}

#[test]
fn what_the_schema_does_not_know_is_refused_in_the_file_it_is_in() {
    let wrong = [
        r#"permit(principal, action == Action::"run", resource);"#,
        r#"permit(principal == Person::"bob", action, resource);"#,
        r#"permit(principal, action == Action::"exec", resource) when { resource.port == 1 };"#,
        r#"permit(principal, action == Action::"exec", resource) when { resource.line == 1 };"#,
        r#"permit(principal, action, resource) when { context.weather == "fine" };"#,
    ];
    for text in wrong {
        let text = format!("\n\n{text}");
        let files = [RuleText { file: "a.cedar", text: ANYTHING }, RuleText { file: "b.cedar", text: &text }];
        let Err(bad) = Cedar.read(&files) else { panic!("was read: {text}") };
        assert_eq!((bad.file.as_str(), bad.line), ("b.cedar", 3), "{bad:?}");
    }
}

#[test]
fn a_mistake_is_told_with_what_was_meant() {
    let told = |text: &str| {
        let bad = refused(text);
        (bad.message, bad.hint)
    };
    let pair = |message: &str, hint: &str| (message.to_owned(), hint.to_owned());
    assert_eq!(
        told(r#"permit(principal, action == Action::"exce", resource);"#),
        pair(r#"for policy `cedar.1`, unrecognized action `Action::"exce"`"#, r#"did you mean `Action::"exec"`?"#)
    );
    assert_eq!(
        told(r#"permit(principal, action == Action::"exec", resource) when { resource.prgram == "a" };"#),
        pair("for policy `cedar.1`, attribute `prgram` on entity type `Command` not found", "did you mean `program`?")
    );
    assert_eq!(told(ANYTHING.trim_end_matches(';')), pair("unexpected end of input", "expected `;` or identifier"));
}

#[test]
fn a_rule_that_never_applies_is_refused() {
    let never = [
        r#"forbid(principal, action == Action::"exec", resource is Host);"#,
        r#"forbid(principal, action, resource) when { false };"#,
        r#"forbid(principal, action == Action::"exec", resource) when { resource has port };"#,
        r#"forbid(principal, action, resource in Domain::"Example.org");"#,
        r#"forbid(principal, action, resource == Host::"example.org.");"#,
        r#"forbid(principal, action == Action::"read", resource in Path::"/etc/");"#,
        r#"forbid(principal, action == Action::"read", resource) when { resource in [Path::"/a", Path::"b"] };"#,
    ];
    for text in never {
        assert_eq!(refused(&format!("{ANYTHING}\n{text}")).line, 2, "{text}");
    }
}

#[test]
fn letters_that_look_like_others_are_refused() {
    let looks = [
        // A Cyrillic letter among Latin ones; a turn of direction, plain and escaped; one in a comment.
        "forbid(principal, action == Action::\"exec\", resource) when { resource.program == \"c\u{443}rl\" };",
        "forbid(principal, action == Action::\"exec\", resource) when { resource.program == \"a\u{202e}b\" };",
        "forbid(principal, action == Action::\"exec\", resource) when { resource.program == \"a\\u{202e}b\" };",
        "// \u{202e}",
    ];
    for text in looks {
        assert_eq!(refused(&format!("{ANYTHING}\n{text}")).line, 2, "{text}");
    }
}

#[test]
fn too_much_text_is_refused() {
    let comment = "// more\n".repeat((1 << 20) / 8);
    assert_eq!(read(&comment).count(), 0);
    let files = [RuleText { file: "a.cedar", text: &comment }, RuleText { file: "b.cedar", text: ANYTHING }];
    let Err(bad) = Cedar.read(&files) else { panic!("was read") };
    assert_eq!((bad.file.as_str(), bad.line), ("b.cedar", 1));
}

/// On the small stack of a test's thread, in a build that uses much of it.
#[test]
fn no_text_is_too_deep_for_the_stack() {
    let condition = |inner: &str| format!("permit(principal, action, resource) when {{ {inner} }};");
    for (before, middle, after) in [
        ("(", "true", ")"),
        ("!(", "true", ")"),
        ("[", "1", "]"),
        ("{a: ", "1", "}"),
        ("if true then true else ", "true", ""),
        ("if ", "true", " then true else true"),
        ("true && (", "true", ")"),
        ("1 + ", "1", " == 1"),
        ("true || ", "true", ""),
        ("context.", "mode", ""),
        ("", "context", ".mode"),
        ("", "context", "[\"mode\"]"),
        ("", "context", ".contains(1)"),
        ("!", "true", ""),
        ("-", "1", " == 1"),
    ] {
        for depth in [4, 16, 18, 20, 300, 999, 10_000, 100_000] {
            let text = condition(&format!("{}{middle}{}", before.repeat(depth), after.repeat(depth)));
            if let Ok(rules) = Cedar.read(&[RuleText { file: "org.cedar", text: &text }]) {
                rules.judge(&by("codex", exec("git log")));
            }
        }
    }
}

#[test]
fn a_chain_as_long_as_may_be_is_read_and_judged() {
    let chain = |count: usize| {
        let parts: Vec<String> = (0..count).map(|at| format!("resource.program == \"p{at}\"")).collect();
        format!("forbid(principal, action == Action::\"exec\", resource) when {{ {} }};", parts.join(" || "))
    };
    assert_eq!(ruling(&chain(300), &exec("p299 x")), Some(Ruling::Deny));
    assert!(refused(&chain(600)).message.contains("operators"));
}

#[test]
fn a_long_list_is_read() {
    let hosts: Vec<String> = (0..2000).map(|at| format!("Domain::\"h{at}.org\"")).collect();
    let text = format!(
        "forbid(principal, action == Action::\"connect\", resource) when {{ resource in [{}] }};",
        hosts.join(", ")
    );
    assert_eq!(ruling(&text, &connect("a.h1999.org", 443)), Some(Ruling::Deny));
}

#[test]
fn the_schema_is_there_to_be_read() {
    assert!(Cedar.schema().contains("action \"secret.use\""));
    assert_eq!((Cedar.name(), Cedar.extension()), ("Cedar", "cedar"));
}
