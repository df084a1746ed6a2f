//! What is known of the options of programs: which of them take the next word as their value.
//!
//! Of an option that is not known nobody can tell, so the next word may be either.

use shell::Word;

use crate::argument::Told;

/// Of one program, in one place of its command line.
pub struct Options {
    /// The next word is their value.
    values: &'static [&'static str],
    /// It is not.
    flags: &'static [&'static str],
    /// It is, if it is a number.
    numbers: &'static [&'static str],
}

/// Flags that mean the same wherever they are known.
const COMMON: &[&str] =
    &["-h", "--help", "-q", "--quiet", "--silent", "--verbose", "-y", "--yes", "--debug", "--offline"];

impl Options {
    /// `next`: the word after it.
    pub fn takes_value(&self, option: &str, next: Option<&Word>) -> Told {
        let is_flag = option.contains('=') || option.starts_with("--no-") || option.starts_with('+');
        match option {
            option if self.numbers.contains(&option) => next.is_some_and(may_be_number).into(),
            option if self.values.contains(&option) => Told::Yes,
            option if is_flag || self.flags.contains(&option) || COMMON.contains(&option) => Told::No,
            _ => Told::Maybe,
        }
    }
}

/// `make -j $(nproc)` means a number; to take it for a target would be to ask about every build.
fn may_be_number(word: &Word) -> bool {
    word.known().is_none_or(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// `+nightly` chooses a toolchain; what it stands before is the subcommand.
pub fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with(['-', '+'])
}

/// After the first plain word. Most programs take the same options everywhere; git's subcommands have their own, and
/// `-P` before one is nothing like `-P` after it.
pub fn after_first(program: &str) -> Options {
    match program {
        "git" => Options { values: &[], flags: &[], numbers: &[] },
        program => of(program),
    }
}

/// Before the first plain word.
pub fn of(program: &str) -> Options {
    let mut numbers: &[&str] = &[];
    let (values, flags): (&[&str], &[&str]) = match program {
        "git" => (
            &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"],
            &[
                "-p", "-P", "--paginate", "--bare", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs",
                "--icase-pathspecs", "--exec-path", "-v", "--version",
            ],
        ),
        "npm" | "pnpm" | "yarn" | "bun" | "npx" | "bunx" | "pnpx" => (
            &[
                "--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "--filter", "-F", "--registry",
                "--userconfig", "-p", "--package",
            ],
            &["-s", "-r", "--recursive", "-g", "--global", "-ws", "--workspaces", "-v", "--version", "--bun"],
        ),
        "cargo" => (
            &["-C", "-Z", "--config", "--color", "--manifest-path", "--target-dir"],
            &["-v", "-vv", "--locked", "--frozen", "-V", "--version"],
        ),
        "uv" | "poetry" | "pdm" | "hatch" => (
            &["-C", "--directory", "-P", "--project", "--config-file", "-e", "--env"],
            &["-n", "-v", "-vv", "-vvv", "-V", "--version"],
        ),
        "docker" | "podman" | "docker-compose" => (
            &[
                "-c", "--context", "--config", "-H", "--host", "-l", "--log-level", "-f", "--file", "-p",
                "--project-name", "--profile", "--env-file", "--project-directory",
            ],
            &["-D", "--tls", "-v", "--version"],
        ),
        "kubectl" | "oc" | "helm" => (
            &[
                "-n", "--namespace", "--context", "--kube-context", "--kubeconfig", "--cluster", "--user", "-s",
                "--server", "--token", "--as", "--as-group", "--request-timeout",
            ],
            &["--version"],
        ),
        "gh" | "glab" => (&["-R", "--repo", "--hostname"], &["--version"]),
        "aws" => (
            &["--profile", "--region", "--output", "--endpoint-url", "--query", "--color", "--ca-bundle"],
            &["--version"],
        ),
        "gcloud" | "az" | "gsutil" => (
            &["--project", "--account", "--configuration", "--verbosity", "--format", "--subscription", "-o", "-i"],
            &["-m", "-D", "--version"],
        ),
        "make" | "gmake" => {
            numbers = &["-j", "--jobs", "-l", "--load-average", "--max-load"];
            (
                &[
                    "-C", "--directory", "-f", "--file", "--makefile", "-I", "--include-dir", "-o", "-W", "--old-file",
                    "--what-if", "--eval", "-E",
                ],
                &["-B", "-k", "-s", "-n", "-i", "-e", "-r", "-R", "-w", "-d", "-p", "-S", "-t"],
            )
        }
        "mount" => (&["-o", "-t", "-O", "-L", "-U", "-T", "--options", "--types"], &["-l", "-v", "-n", "-r", "-w"]),
        "systemctl" => (&["-H", "-M"], &["--user", "--system", "--no-pager", "--all", "-a", "-l"]),
        "belljar" => (&[], &["--json", "-V", "--version"]),
        _ => (&[], &["--version"]),
    };
    Options { values, flags, numbers }
}

/// Flags that people put before one that calls a question off: `git push --force --dry-run`.
fn flags_between(program: &str) -> &'static [&'static str] {
    match program {
        "git" => &[
            "-u", "--set-upstream", "-f", "--force", "--force-with-lease", "--tags", "--all", "--mirror", "--prune",
            "--porcelain", "--atomic", "-v", "--follow-tags", "-d", "--delete",
        ],
        "npm" | "pnpm" | "yarn" | "bun" => &["--json", "--ignore-scripts"],
        "cargo" => &["--allow-dirty", "--workspace", "--all-features"],
        "kubectl" | "oc" => &["--server-side", "--force", "--recursive", "-R", "--all"],
        "poetry" => &["--build"],
        "aws" => &["--recursive", "--delete"],
        "ansible" | "ansible-playbook" => &["--diff", "-D", "-b", "--become", "-v"],
        "goreleaser" => &["--clean"],
        _ => &[],
    }
}

fn values_between(program: &str) -> &'static [&'static str] {
    match program {
        "kubectl" | "oc" => &["-f", "--filename", "-o", "--output", "-l", "--selector", "-k"],
        "ansible" | "ansible-playbook" => &["-i", "-l", "-e", "-m", "-a", "-u", "--inventory", "--limit"],
        _ => &[],
    }
}

/// Anywhere in a command line, for whoever looks for one word in all of it.
pub fn takes_value_anywhere(program: &str, option: &str, next: Option<&Word>) -> Told {
    match option {
        option if flags_between(program).contains(&option) => Told::No,
        option if values_between(program).contains(&option) => Told::Yes,
        option => of(program).takes_value(option, next),
    }
}

/// Options of programs that talk to hosts. Only with what is listed here can be told which words are hosts: a proxy, a file
/// of settings or a name that is resolved elsewhere leads away from them.
struct Talker {
    flags: &'static str,
    values: &'static str,
    long_flags: &'static [&'static str],
    long_values: &'static [&'static str],
}

fn talker(program: &str) -> Option<Talker> {
    Some(match program {
        "curl" => Talker {
            flags: "0#46afgGiIjJklLNOpqRsSvVZ",
            values: "AbcCdDeFHmorTuUwXyYz",
            long_flags: &[
                "--silent", "--show-error", "--fail", "--fail-with-body", "--location", "--include", "--head",
                "--verbose", "--insecure", "--no-buffer", "--compressed", "--get", "--globoff", "--remote-name",
                "--no-progress-meter", "--progress-bar", "--http1.1", "--http2", "--ipv4", "--ipv6", "--parallel",
            ],
            long_values: &[
                "--request", "--header", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii",
                "--json", "--form", "--form-string", "--upload-file", "--output", "--write-out", "--max-time",
                "--connect-timeout", "--retry", "--retry-delay", "--retry-max-time", "--user", "--user-agent",
                "--cookie", "--cookie-jar", "--referer", "--dump-header", "--range", "--cacert", "--cert", "--key",
            ],
        },
        "ping" | "ping6" => Talker {
            flags: "46aAbdDfLnOqrRUvV",
            values: "cilmMpQsStwW",
            long_flags: &["--help", "--version"],
            long_values: &[],
        },
        "dig" | "nslookup" | "host" | "drill" | "traceroute" | "tracepath" => {
            Talker { flags: "46v", values: "tp", long_flags: &[], long_values: &[] }
        }
        _ => return None,
    })
}

/// The words of a command that are neither options nor their values; `None` where an option is not known.
pub fn operands<'a>(program: &str, given: &'a [Word]) -> Option<Vec<&'a Word>> {
    let talker = talker(program)?;
    let mut operands = Vec::new();
    let mut words = given.iter();
    let mut only_words = false;
    while let Some(word) = words.next() {
        // What is not known may be options, or several words.
        let text = match word.known() {
            Some(text) => text,
            None if word.may_start_with("-") || may_split(word) => return None,
            None => {
                operands.push(word);
                continue;
            }
        };
        let takes = match text {
            "--" => {
                only_words = true;
                continue;
            }
            text if only_words || !is_option(text) => {
                operands.push(word);
                continue;
            }
            text if text.starts_with('+') => false,
            "--url" if program == "curl" => {
                operands.push(words.next().filter(|next| !may_split(next))?);
                continue;
            }
            text if talker.long_flags.contains(&text) => false,
            text if talker.long_values.contains(&text) => true,
            text if text.starts_with("--") => return None,
            text => talker.cluster_takes_value(&text[1..])?,
        };
        if takes && may_split(words.next()?) {
            return None;
        }
    }
    Some(operands)
}

/// Into words that have nothing to do with each other. The names that `a/x?y` stands for all begin as it does.
fn may_split(word: &Word) -> bool {
    word.may_be_many() && word.text().contains(['$', '`', '{'])
}

impl Talker {
    /// Whether the value of the last letter is the next word.
    fn cluster_takes_value(&self, letters: &str) -> Option<bool> {
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operands_of(line: &str) -> Option<Vec<String>> {
        let reading = shell::of_line(line);
        let command = reading.commands.last().expect("a command");
        let found = operands(command.name().expect("a name"), &command.arguments)?;
        Some(found.into_iter().map(|word| word.text().to_owned()).collect())
    }

    #[test]
    fn values_of_options_are_no_operands() {
        let found = operands_of("curl -sX POST -H 'a: b' -d@x --max-time 3 localhost:80 evil").expect("known options");
        assert_eq!(found, ["localhost:80", "evil"]);
        assert_eq!(operands_of("curl --url localhost -d x").expect("known options"), ["localhost"]);
        assert_eq!(operands_of("ping -c 1 localhost").expect("known options"), ["localhost"]);
    }

    #[test]
    fn an_option_that_is_not_known_tells_nothing() {
        for line in [
            "curl -x evil localhost", "curl -sxevil localhost", "curl --proxy evil localhost",
            "curl --url=evil localhost", "curl -K x localhost", "curl $X localhost", "curl \"$X\" localhost",
            "curl -o $X localhost", "curl localhost -o", "wget localhost",
        ] {
            assert_eq!(operands_of(line), None, "{line}");
        }
    }
}
