//! What git starts for its subcommands, its settings and its variables.

use shell::{Simple, Word};

use super::{Carried, line_or_words};

pub fn carried(command: &Simple) -> Vec<Carried> {
    let mut carried = Vec::new();
    for (name, value) in &command.assignments {
        if is_variable_of_a_program(name) {
            carried.extend(program_of(value.clone(), name.contains("SSH")));
        }
    }
    let (before, rest) = parts(&command.arguments);
    for setting in settings(before) {
        carried.extend(setting_starts(setting, rest));
    }
    // Its own parts, or its settings, come from somewhere else.
    let elsewhere = |word: &&Word| {
        word.known().is_some_and(|text| text.starts_with("--exec-path=") || text.starts_with("--config-env"))
    };
    carried.extend(before.iter().filter(elsewhere).map(|word| Carried::Unknown(word.clone())));
    let Some((subcommand, rest)) = rest.split_first() else { return carried };
    // `git clone -c` is for what it makes, and for itself.
    if subcommand.known() == Some("clone") {
        let attached = rest.iter().filter_map(|word| word.known()?.strip_prefix("--config="));
        let attached = attached.map(|setting| Word::Known(setting.to_owned()));
        let separate = rest.windows(2).filter(|pair| matches!(pair[0].known(), Some("-c" | "--config")));
        let all: Vec<Word> = attached.chain(separate.map(|pair| pair[1].clone())).collect();
        carried.extend(all.iter().filter_map(|setting| setting_starts(setting, &[])));
    }
    match subcommand.known() {
        Some("rebase") => carried.extend(values(rest, 'x', &["--exec"])),
        Some("difftool") => carried.extend(values(rest, 'x', &["--extcmd"])),
        Some("grep") => carried.extend(values(rest, 'O', &["--open-files-in-pager"])),
        Some("filter-branch") => carried.extend(filters(rest)),
        Some("submodule") => carried.extend(after_word(rest, "foreach").and_then(line_or_words)),
        Some("bisect") => carried.extend(after_word(rest, "run").map(|words| Carried::Words(words.to_vec()))),
        Some("for-each-repo") => carried.extend(for_each(rest)),
        Some("merge-index") => {
            let program = rest.iter().find(|word| !word.may_start_with("-"));
            carried.extend(program.map(|program| Carried::Words(vec![program.clone()])));
        }
        Some("clone" | "fetch" | "pull" | "ls-remote" | "fetch-pack" | "archive" | "push" | "send-pack") => {
            // The other side's program: on this machine, where the other side is a folder.
            let long = &["--upload-pack", "--receive-pack", "--exec"];
            carried.extend(values(rest, if subcommand.known() == Some("clone") { 'u' } else { '\0' }, long));
        }
        _ => {}
    }
    carried.retain(|one| !matches!(one, Carried::Words(words) if words.is_empty()));
    carried
}

/// Variables that name a program for git, which is started by a shell.
fn is_variable_of_a_program(name: &str) -> bool {
    const PROGRAMS: &[&str] = &[
        "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "VISUAL",
        "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND",
    ];
    PROGRAMS.contains(&name) || name.starts_with("GIT_CONFIG_VALUE_")
}

/// Options before the subcommand, and the rest.
fn parts(arguments: &[Word]) -> (&[Word], &[Word]) {
    let mut at = 0;
    while let Some(text) = arguments.get(at).and_then(Word::known).filter(|text| text.starts_with('-')) {
        let takes = matches!(
            text,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--super-prefix"
                | "--config-env"
                | "--attr-source"
        );
        at += 1 + usize::from(takes);
    }
    arguments.split_at(at.min(arguments.len()))
}

/// The values of `-c`.
fn settings(before: &[Word]) -> impl Iterator<Item = &Word> {
    before.windows(2).filter(|pair| pair[0].known() == Some("-c")).map(|pair| &pair[1])
}

/// What a setting has git start: `core.pager=less`, `alias.p=push`, `alias.p=!sh x`.
fn setting_starts(setting: &Word, rest: &[Word]) -> Option<Carried> {
    let Word::Known(text) = setting else {
        // `user.name=$NAME` is known as far as it matters.
        let start = setting.text().trim_start_matches('"');
        let is_told = start.split_once('=').is_some_and(|(key, _)| !key.contains('$') && !starts_programs(key));
        return (!is_told).then(|| Carried::Unknown(setting.clone()));
    };
    let (key, value) = text.split_once('=')?;
    let key = key.to_ascii_lowercase();
    if key.starts_with("alias.") {
        // What follows the other name belongs to what it stands for: `-c alias.p='!git' p push`.
        let line = match value.strip_prefix('!') {
            Some(line) => line.to_owned(),
            None => format!("git {value}"),
        };
        let more = super::written(rest.get(1..).unwrap_or_default());
        return Some(Carried::Line(Word::Known(format!("{line} {more}"))));
    }
    if !starts_programs(&key) || value.is_empty() {
        return None;
    }
    if (key == "credential.helper" || key.starts_with("submodule.")) && !value.starts_with('!') {
        return None;
    }
    program_of(Word::Known(value.trim_start_matches('!').to_owned()), key.ends_with("sshcommand"))
}

/// Settings whose value git starts. Their names have no case; what is in the middle of some is a name of its own.
fn starts_programs(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let Some((section, name)) = key.split_once('.') else { return false };
    let last = name.rsplit('.').next().unwrap_or(name);
    match section {
        "core" => ["pager", "editor", "sshcommand", "askpass", "fsmonitor", "gitproxy", "alternaterefscommand"]
            .contains(&last),
        "alias" | "pager" => true,
        "sequence" => last == "editor",
        "diff" => ["external", "command", "textconv"].contains(&last),
        "difftool" | "mergetool" | "browser" | "man" => ["cmd", "path"].contains(&last),
        "merge" => last == "driver",
        "filter" => ["clean", "smudge", "process"].contains(&last),
        "interactive" => last == "difffilter",
        "gpg" => ["program", "defaultkeycommand"].contains(&last),
        "credential" => last == "helper",
        "remote" => ["uploadpack", "receivepack", "vcs"].contains(&last),
        "uploadpack" => last == "packobjectshook",
        "trailer" => ["command", "cmd"].contains(&last),
        "submodule" => last == "update",
        "sendemail" => true,
        _ => false,
    }
}

/// A program for git, as a shell reads it. That git talks to its host by `ssh` is no news, unless ssh is told to start more.
fn program_of(value: Word, is_ssh: bool) -> Option<Carried> {
    let plain = |text: &str| {
        let name = text.split_ascii_whitespace().next().and_then(|program| program.rsplit('/').next());
        name == Some("ssh")
            && !text.to_ascii_lowercase().contains("command")
            && !text.contains([';', '|', '&', '$', '`', '\n'])
    };
    match value.known() {
        Some(text) if is_ssh && plain(text) => None,
        // `true`, which opens no editor.
        Some("" | ":" | "true" | "cat") => None,
        Some(text) => Some(Carried::Line(Word::Known(text.trim_start_matches('!').to_owned()))),
        None => Some(Carried::Unknown(value)),
    }
}

/// The values of an option that is a line for a shell: `-x LINE`, `-xLINE`, `--exec LINE`, `--exec=LINE`, and the beginnings of
/// its name that git takes for it.
fn values(rest: &[Word], letter: char, names: &[&str]) -> Vec<Carried> {
    let mut carried = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        let Some(text) = word.known() else { continue };
        if text == "--" {
            break;
        }
        let (said, attached) = match text.split_once('=') {
            Some((said, value)) => (said, Some(value.to_owned())),
            None => (text, None),
        };
        let is_long = said.len() > 3 && names.iter().any(|name| name.starts_with(said));
        let cluster = text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-')).unwrap_or_default();
        let value = match cluster.split_once(letter) {
            _ if is_long => attached,
            Some((before, value)) if before.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Some(value.to_owned()).filter(|value| !value.is_empty())
            }
            _ => continue,
        };
        match value {
            Some(value) => carried.push(Carried::Line(Word::Known(value))),
            None => carried.extend(rest.get(at + 1).map(|next| Carried::Line(next.clone()))),
        }
    }
    carried
}

/// `--tree-filter LINE` and the others.
fn filters(rest: &[Word]) -> Vec<Carried> {
    let is_filter = |word: &Word| word.known().is_some_and(|text| text.starts_with("--") && text.ends_with("-filter"));
    let pairs = rest.windows(2).filter(|pair| is_filter(&pair[0]) || pair[0].known() == Some("--setup"));
    pairs.map(|pair| Carried::Line(pair[1].clone())).collect()
}

fn after_word<'a>(rest: &'a [Word], wanted: &str) -> Option<&'a [Word]> {
    let at = rest.iter().position(|word| word.known() == Some(wanted))?;
    let after = &rest[at + 1..];
    let options = after.iter().take_while(|word| word.known().is_some_and(|text| text.starts_with('-'))).count();
    Some(&after[options..]).filter(|words| !words.is_empty())
}

/// `git for-each-repo --config=x push` is a push in each.
fn for_each(rest: &[Word]) -> Option<Carried> {
    let mut at = 0;
    while let Some(text) = rest.get(at).and_then(Word::known).filter(|text| text.starts_with('-')) {
        at += 1 + usize::from(text == "--config");
    }
    let words = rest.get(at..).filter(|words| !words.is_empty())?;
    Some(Carried::Words(std::iter::once(Word::Known("git".to_owned())).chain(words.iter().cloned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{carried, is_unclear};

    #[test]
    fn what_git_starts_is_found() {
        for (line, wanted) in [
            ("git -c alias.p=push p", "git push"),
            ("git -c alias.p='!git push' p", "git push"),
            ("git -c alias.p='!git' p push", "git push"),
            ("git -c ALIAS.lfs='!git push' lfs", "git push"),
            ("git -c CORE.Pager='git push' log", "git push"),
            ("git -c pager.log='git push' log", "git push"),
            ("git -c core.sshCommand='git push' fetch", "git push"),
            ("git -c core.sshCommand='ssh -o ProxyCommand=x a' fetch", "ssh -o ProxyCommand=x a"),
            ("git -c diff.external='git push' diff", "git push"),
            ("git -c diff.a.textconv='git push' diff", "git push"),
            ("git -c core.fsmonitor='git push' status", "git push"),
            ("git -c credential.helper='!git push' fetch", "git push"),
            ("git -c filter.a.clean='git push' add .", "git push"),
            ("git rebase -x 'git  push' main", "git push"),
            ("git rebase -ix'git push' main", "git push"),
            ("git rebase --exe 'git push' main", "git push"),
            ("git rebase --exec='git push' main", "git push"),
            ("git submodule foreach 'git -C . push'", "git -C . push"),
            ("git submodule --quiet foreach --recursive git push", "git push"),
            ("git bisect run git push", "git push"),
            ("git difftool -y -x 'git push'", "git push"),
            ("git difftool --extcmd='git push'", "git push"),
            ("git filter-branch --tree-filter 'git push' HEAD", "git push"),
            ("git for-each-repo --config=a.b push", "git push"),
            ("git grep -nO'git push' x", "git push"),
            ("git clone --upload-pack='git push; x' . y", "git push"),
            ("git clone -c core.fsmonitor='git push' x", "git push"),
            ("git clone --config=core.sshCommand='git push' x", "git push"),
            ("git merge-index -o git-push -a", "git push"),
            ("GIT_PAGER='git push' git log", "git push"),
            ("GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='git push' git log", "git push"),
        ] {
            assert!(carried(line).iter().any(|found| found == wanted), "{line}: {:?}", carried(line));
        }
    }

    #[test]
    fn ordinary_git_starts_nothing() {
        for line in [
            "git push", "git log -x", "git rebase main", "git -c user.name=a commit -m x",
            "git -c user.name=\"$X\" commit", "git -c core.pager=cat log", "git -c core.editor=true rebase --continue",
            "git submodule update --init", "git bisect start", "GIT_EDITOR=true git rebase --continue",
            "GIT_SSH_COMMAND='ssh -i key' git fetch", "git clone x", "git grep -n x", "git -c core.fsmonitor= status",
        ] {
            assert_eq!(carried(line), Vec::<String>::new(), "{line}");
            assert!(!is_unclear(line), "{line}");
        }
        assert!(is_unclear("git -c \"$X\" log"));
        assert!(is_unclear("git --exec-path=./x log"));
        assert!(is_unclear("git --config-env=core.pager=X log"));
        assert!(is_unclear("git -c core.pager=\"$X\" log"));
    }
}
