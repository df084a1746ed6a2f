//! What a rule holds for, as it is written in a policy file: subcommands, exceptions, hosts, paths.

use belljar_policy::{Policy, Source};
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
