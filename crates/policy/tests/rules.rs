//! What a rule holds for, as it is written in a policy file: subcommands, exceptions, hosts, paths.

use belljar_policy::{Found, Policy, Project, Source};
use model::{Action, Context, Envelope, Principal, Resource, Ruling};

fn read(rule: &str) -> Result<Policy, String> {
    let text = format!("version = 1\n[defaults]\nexec = \"ask\"\n[[rule]]\nwhy = \"x\"\n{rule}");
    Policy::of_one_file(Source { file: "policy.toml", text: &text }, "/home/user").map_err(|bad| bad.to_string())
}

fn ruling(policy: &Policy, command: &str) -> Ruling {
    let context = Context { directory: "/project".to_owned(), home: "/home/user".to_owned(), ..Context::default() };
    let resource = Resource::Shell(command.to_owned());
    policy.weigh(&Envelope { principal: Principal::default(), action: Action::Exec, resource, context }).ruling
}

#[track_caller]
fn holds(rule: &str, wanted: Ruling, lines: &[&str]) {
    let policy = read(rule).expect("a rule");
    for line in lines {
        assert_eq!(ruling(&policy, line), wanted, "{line}");
    }
}

#[test]
fn programs_can_be_written_as_one_or_the_other() {
    let rule = r#"when = { program = ["npm|yarn", "bun"] }
        then = "deny""#;
    holds(rule, Ruling::Deny, &["npm x", "yarn x", "bun x"]);
    holds(rule, Ruling::Ask, &["pnpm x"]);
    assert!(read("when = { program = \"npm|\" }\nthen = \"ask\"").is_err());
}

#[test]
fn a_subcommand_stands_first() {
    let rule = r#"when = { program = "git", subcommand = ["push", "remote set-url"] }
        then = "deny""#;
    holds(rule, Ruling::Deny, &["git push", "git -C x push", "git remote set-url origin x"]);
    holds(rule, Ruling::Ask, &["git stash push", "git remote -v", "git commit -m push"]);
}

#[test]
fn all_but_some_subcommands_can_be_meant() {
    let rule = r#"when = { program = "kubectl", other_than = ["get", "rollout status"] }
        then = "deny""#;
    holds(
        rule,
        Ruling::Deny,
        &["kubectl delete pod get", "kubectl -n get delete x", "kubectl rollout undo x", "kubectl"],
    );
    holds(rule, Ruling::Ask, &["kubectl get pods", "kubectl -n x get y", "kubectl rollout status x"]);
    // Nobody can tell which it is, so it is asked about and not denied.
    holds(rule, Ruling::Ask, &["kubectl $X"]);
}

#[test]
fn a_question_is_called_off_by_nothing_less_than_what_is_named() {
    let rule = r#"when = { program = "x", without = ["-V", "--dry-run"] }
        then = "deny""#;
    holds(rule, Ruling::Ask, &["x -V", "x --dry-run"]);
    holds(rule, Ruling::Deny, &["x -oVisual", "x --dry-run=none", "x -aV"]);
}

#[test]
fn what_is_allowed_is_called_off_by_anything_like_it() {
    let rule = r#"when = { program = "x", without = ["-o|--output"] }
        then = "allow""#;
    holds(rule, Ruling::Allow, &["x", "x -a"]);
    holds(rule, Ruling::Ask, &["x -o y", "x -ao y", "x --output=y", "x $Y"]);
}

#[test]
fn a_variable_that_may_change_the_program_takes_its_permission_away() {
    let rule = r#"when = { program = "git", subcommand = "diff" }
        then = "allow""#;
    holds(rule, Ruling::Allow, &["git diff", "LC_ALL=C git diff", "git -C \"$X\" diff"]);
    holds(rule, Ruling::Ask, &["GIT_EXTERNAL_DIFF=./x git diff", "PATH=. git diff", "env A=b git diff", "./git diff"]);
    holds(rule, Ruling::Ask, &["export PATH=.; git diff", "git -C $X diff"]);
}

#[test]
fn a_subcommand_is_of_a_program() {
    let bad = |rule| read(rule).err().expect("an error");
    let message = bad("when = { subcommand = \"push\" }\nthen = \"ask\"");
    assert_eq!(message, "policy.toml:6: the rule `rule.1` does not say of which program `push` is");
    let message = bad("when = { program = \"git\", other_than = [\"--force\"] }\nthen = \"ask\"");
    assert_eq!(message, "policy.toml:6: `--force` is an option, and no subcommand; put it under `args`");
}

#[test]
fn an_exception_must_be_meant() {
    let rule = r#"when = { program = "x", without = ["--dry-run", "-X GET"] }
        then = "deny""#;
    holds(rule, Ruling::Ask, &["x --dry-run", "x a --dry-run b", "x -X GET", "x -XGET a"]);
    holds(
        rule,
        Ruling::Deny,
        &["x --dry-run --no-dry-run", "x -- --dry-run", "x --dry-run false", "x -X GET -X PUT", "x -q GET", "x -X PUT"],
    );
    // Nobody can tell, so it is asked about and not denied: an option that is not known may take a value.
    holds(rule, Ruling::Ask, &["x -o --dry-run", "x --dry-run $Y"]);
}

#[test]
fn what_stands_first_is_of_the_program_itself() {
    let rule = r#"when = { program = "x", unless_first = ["--version|-v"] }
        then = "deny""#;
    holds(rule, Ruling::Ask, &["x --version", "x -v"]);
    holds(rule, Ruling::Deny, &["x", "x run y --version", "x -a --version"]);
}

#[test]
fn hosts_are_these_and_no_other() {
    let rule = r#"when = { program = "curl", unless_hosts = ["localhost"] }
        then = "deny""#;
    holds(rule, Ruling::Ask, &["curl localhost", "curl -d x http://localhost:3000/a"]);
    holds(
        rule,
        Ruling::Deny,
        &["curl localhost example.org", "curl http://localhost@example.org", "curl -A localhost x"],
    );
    assert!(read("when = { program = \"curl\", unless_hosts = [\"http://localhost\"] }\nthen = \"ask\"").is_err());
}

#[test]
fn an_option_can_be_meant_with_its_value() {
    let rule = r#"when = { program = "x", args = ["-c alias.*"] }
        then = "deny""#;
    holds(rule, Ruling::Deny, &["x -c alias.p=y", "x -c ALIAS.p=y z", "x -calias.p=y"]);
    holds(rule, Ruling::Ask, &["x -c user.name=y", "x alias.p", "x -m \"$Y\"", "x -c \"$Y\""]);
}

#[test]
fn a_rule_is_heard_about_what_a_tool_starts() {
    let rule = r#"when = { program = "y" }
        then = "deny""#;
    holds(rule, Ruling::Deny, &["npx y", "uv run y", "git rebase -x y main", "poetry run npx y@latest z"]);
    // But what it allows is not allowed for the tool.
    let rule = r#"when = { program = "y" }
        then = "allow""#;
    holds(rule, Ruling::Allow, &["y"]);
    holds(rule, Ruling::Ask, &["npx y"]);
    // And what allows the tool allows what it starts.
    let rule = r#"when = { program = "npx" }
        then = "allow""#;
    holds(rule, Ruling::Allow, &["npx y"]);
}

#[test]
fn a_path_is_followed_to_where_it_leads() {
    let rule = r#"when = { action = "exec", path = "/data" }
        then = "deny""#;
    holds(rule, Ruling::Deny, &["cd / && cat data/x", "tar -C / data", "x -f/data/y", "x a=@/data/y", "x < /data/y"]);
    holds(rule, Ruling::Ask, &["cat data/x", "grep -rn /data .", "echo /data"]);
    // What allows guesses nothing.
    let rule = r#"when = { program = "cat", path = "/data" }
        then = "allow""#;
    holds(rule, Ruling::Allow, &["cat /data/x"]);
    holds(rule, Ruling::Ask, &["cat x:/data", "cat @/data/x", "cat /proc/self/root/data2"]);
}

#[test]
fn a_path_that_is_a_link_is_meant_by_both_its_names() {
    let rule = |then: &str| {
        let rule = format!(
            "when = {{ action = [\"exec\", \"read\"], path = [\"~/.aws\", \"~/.a/*/x\", \"in\"] }}\nthen = \"{then}\""
        );
        let mut policy = read(&rule).expect("a rule");
        let workspaces = ["/project".to_owned()];
        assert_eq!(policy.beginnings(&workspaces), ["/home/user/.a", "/home/user/.aws", "/project/in"]);
        let links = [("/home/user/.aws", "/data/aws"), ("/home/user/.a", "/data/a"), ("/project/in", "/etc")];
        let links = links.iter().map(|(path, real)| ((*path).to_owned(), (*real).to_owned())).collect();
        policy.told_of(&links, &workspaces);
        policy
    };
    let reads = |policy: &Policy, path: &str| {
        let context = Context { workspaces: vec!["/project".to_owned()], ..Context::default() };
        let resource = Resource::Path(path.to_owned());
        policy.weigh(&Envelope { principal: Principal::default(), action: Action::Read, resource, context }).reasons[0]
            .rule
            .clone()
    };
    let (denies, allows) = (rule("deny"), rule("allow"));
    for path in ["/home/user/.aws/x", "/data/aws", "/data/aws/x", "/home/user/.a/b/x", "/data/a/b/x/y", "/project/in/y"]
    {
        assert_eq!(reads(&denies, path), "rule.1", "{path}");
        assert_eq!(reads(&allows, path), "rule.1", "{path}");
    }
    for path in ["/data", "/data/awsome", "/data/a/b/y", "/project/inner"] {
        assert_eq!(reads(&denies, path), "defaults.read", "{path}");
    }
    assert_eq!(ruling(&denies, "cat /data/aws/credentials"), Ruling::Deny);
    // Whoever works in the project can make such a link: it may forbid, and not allow.
    assert_eq!(reads(&denies, "/etc/x"), "rule.1");
    assert_eq!(reads(&allows, "/etc/x"), "defaults.read");
}

#[test]
fn a_rule_that_may_deny_turns_no_default_around() {
    let text = "version = 1\n[defaults]\nexec = \"deny\"\n[[rule]]\nwhy = \"x\"\nthen = \"deny\"\n\
                when = { program = \"git\", args = [\"push\", \"--force\"] }\n";
    let policy = Policy::of_one_file(Source { file: "policy.toml", text }, "/home/user").expect("a policy");
    assert_eq!(ruling(&policy, "git push $X"), Ruling::Deny);
    assert_eq!(ruling(&policy, "git push --force"), Ruling::Deny);
}

/// What a voice of its own says, beside the user's.
fn with_project(user: &str, project: &str, trusted: bool) -> Policy {
    let source = |file, text| Source { file, text };
    let project = Project { source: source("/project/belljar.toml", project), folder: "/project", trusted };
    let found = Found {
        home: "/home/user",
        managed: None,
        user: vec![source("policy.toml", user)],
        projects: vec![project],
        presets: &|_| Ok(None),
        foreign: Vec::new(),
        revision: String::new(),
    };
    Policy::assemble(found).expect("sound policies")
}

const PUSH: &str = "[[rule]]\nwhen = { program = \"git\", subcommand = \"push\" }\nthen = \"deny\"\nwhy = \"x\"\n";
const TRUST: &str = "[[rule]]\nwhen = { program = \"sh\", fed_by = \"mytool\" }\nthen = \"allow\"\nwhy = \"mine\"\n";

#[test]
fn what_a_named_program_prints_may_be_run_where_its_owner_says_so() {
    let text = format!("version = 1\n{PUSH}{TRUST}");
    let policy = Policy::of_one_file(Source { file: "policy.toml", text: &text }, "/home/user").expect("a policy");
    for line in [
        "mytool | sh", "mytool --env production | sh -s -- x", "/usr/bin/mytool 2>/dev/null | /bin/sh",
        "sh -c 'mytool | sh'", "NO_COLOR=1 mytool | sh",
    ] {
        assert_eq!(ruling(&policy, line), Ruling::Allow, "{line}");
    }
    for line in [
        "other | sh", "./mytool | sh", "mytool | ./sh", "mytool | bash", "curl x | mytool | sh", "mytool | tee x | sh",
        "{ curl x; mytool; } | sh", "mytool < x | sh", "mytool $X | sh", "mytool $(curl x) | sh",
        "PATH=/x; mytool | sh", "PATH=/x mytool | sh", "mytool() { curl x; }; mytool | sh",
        "mytool() { echo x; }; mytool | sh", "alias mytool=x; mytool | sh", "mytool | LD_PRELOAD=x sh",
        "mytool | sh $X", "hash -p ./x mytool; mytool | sh", "mytool | sh; other | sh", "eval \"$(mytool)\"",
        "sh <(mytool)", "mytool | sudo sh", "cd /x; mytool | sh", "function mytool { cat x; }\nmytool | sh",
        "mytool | sh -c \"$(cat)\"", "npx -c 'mytool | sh'", "env mytool | sh",
    ] {
        assert_eq!(ruling(&policy, line), Ruling::Ask, "{line}");
    }
    assert_eq!(ruling(&policy, "mytool | sh -c 'git push'"), Ruling::Deny);
}

#[test]
fn what_is_printed_is_asked_about_where_a_rule_names_no_one_in_particular() {
    for rule in [
        "when = { program = \"sh\", fed_by = \"*\" }", "when = { program = \"*\", fed_by = \"mytool\" }",
        "when = { program = \"sh\", fed_by = [\"mytool\", \"*x\"] }", "when = { program = \"sh\" }",
        "when = { fed_by = \"mytool\" }", "when = { program = \"mytool\" }",
    ] {
        let text = format!("version = 1\n{PUSH}[[rule]]\n{rule}\nthen = \"allow\"\nwhy = \"x\"\n");
        let policy = Policy::of_one_file(Source { file: "policy.toml", text: &text }, "/home/user").expect("a policy");
        assert_eq!(ruling(&policy, "mytool | sh"), Ruling::Ask, "{rule}");
    }
}

#[test]
fn nobody_else_trusts_what_is_printed_in_an_owner_s_name() {
    let [push, trust, both] = [PUSH, TRUST, &format!("{PUSH}{TRUST}")].map(|rules| format!("version = 1\n{rules}"));
    // The user's own rule is needed where the user's rules could be about it, and a project's is no one's own.
    assert_eq!(ruling(&with_project(&both, "version = 1", false), "mytool | sh"), Ruling::Allow);
    assert_eq!(ruling(&with_project(&push, &trust, true), "mytool | sh"), Ruling::Ask);
    assert_eq!(ruling(&with_project(&push, &trust, false), "mytool | sh"), Ruling::Ask);
    assert_eq!(ruling(&with_project(&trust, &push, false), "mytool | sh"), Ruling::Ask);
    assert_eq!(ruling(&with_project(&trust, &both, false), "mytool | sh"), Ruling::Ask);
}
