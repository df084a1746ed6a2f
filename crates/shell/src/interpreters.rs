//! Programs that run code: where in their arguments it stands, and whether it comes from their input.

use crate::Word;

/// How a language's interpreter takes code.
pub(crate) struct Interpreter {
    pub language: &'static str,
    /// Options after which code follows, or to which it is attached.
    pub code: &'static [&'static str],
    /// Options with a value that is no code.
    pub values: &'static [&'static str],
    /// The first operand is code, not a file: `awk`.
    pub operand_is_code: bool,
    /// Options that say what runs, so that the input is no code: `python -m`.
    pub instead: &'static [&'static str],
    /// Letters of options that take the rest of their word. Where there are some, options may stand together: `perl -ne`.
    pub attached: Option<&'static str>,
}

/// Where the code of one call comes from.
pub(crate) enum Source {
    /// From the arguments with these numbers, and from where in each it begins.
    Argument(usize, usize),
    /// From a file among the arguments, by its number.
    File(usize),
    /// From its input.
    Input,
    /// From a descriptor that is not its input, by its number among the arguments.
    Descriptor(usize),
    /// From none of them.
    Elsewhere,
}

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "lksh", "pdksh", "oksh", "loksh", "yash", "posh",
    "mrsh", "hush", "osh", "rzsh", "rksh", "bosh",
];
/// Shells that read lines in their own way.
const FOREIGN: &[&str] = &[
    "fish", "csh", "tcsh", "pwsh", "powershell", "elvish", "nu", "nushell", "xonsh", "rc", "es", "ion", "murex", "ysh",
];

pub(crate) fn is_shell(name: &str) -> bool {
    let name = without_version(name);
    SHELLS.contains(&name) || FOREIGN.contains(&name)
}

pub(crate) fn is_foreign(name: &str) -> bool {
    FOREIGN.contains(&without_version(name))
}

/// `bash-static`, `zsh-5.9` and `ksh93` are the shell still.
fn without_version(name: &str) -> &str {
    let name = name.strip_suffix("-static").unwrap_or(name);
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-')
}

/// A file that is whatever a descriptor is, such as the pipe.
pub(crate) fn is_descriptor(file: &str) -> bool {
    let parts = parts(file);
    let first = parts.first().copied().unwrap_or_default();
    let leads_back = parts.contains(&"..") && parts.contains(&"fd");
    let is_pair = |pair: &[&str]| pair[0] == "dev" && (pair[1] == "fd" || pair[1].starts_with("std"));
    file.starts_with('/') && matches!(first, "dev" | "proc")
        || leads_back
        || parts.windows(2).any(is_pair)
        || parts.contains(&"proc") && parts.contains(&"fd")
}

/// A word that may be such a file; `<(…)` comes out as one.
pub(crate) fn is_descriptor_of(word: &Word) -> bool {
    match (word.known(), word.pieces().first()) {
        (Some("/dev/null"), _) => false,
        (Some(file), _) => is_descriptor(file),
        (None, Some(crate::Piece::Text(start))) => is_descriptor(start),
        _ => false,
    }
}

fn is_input(file: &str) -> bool {
    let parts = parts(file);
    parts.ends_with(&["dev", "stdin"]) || parts.ends_with(&["fd", "0"])
}

fn parts(file: &str) -> Vec<&str> {
    file.split('/').filter(|part| !matches!(*part, "" | ".")).collect()
}

/// Where code comes from, if this word is a file.
pub(crate) fn from_file(at: usize, word: &Word) -> Source {
    match word.known() {
        Some(file) if file == "-" || is_input(file) => Source::Input,
        Some("/dev/null") => Source::Elsewhere,
        _ if is_descriptor_of(word) => Source::Descriptor(at),
        _ => Source::File(at),
    }
}

pub(crate) fn interpreter(name: &str) -> Option<Interpreter> {
    let plain = |language, code, values| Interpreter {
        language,
        code,
        values,
        operand_is_code: false,
        instead: &[],
        attached: None,
    };
    // `python3.12`, `perl5.36.0` and `node-22` are the language still.
    let family = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    Some(match family {
        "python" | "pypy" | "ipython" => {
            Interpreter { instead: &["-m"], attached: Some("WX"), ..plain("python", &["-c"], &["-W", "-X"]) }
        }
        "node" | "nodejs" | "bun" | "tsx" => plain(
            "node",
            &["-e", "--eval", "-p", "--print", "-pe", "-ep"],
            &["-r", "--require", "--import", "--loader", "-C", "--conditions", "--env-file"],
        ),
        "deno" => Interpreter { instead: &["run", "test", "fmt", "lint", "task"], ..plain("node", &["eval"], &[]) },
        "ruby" | "jruby" => {
            Interpreter { attached: Some("rICEFKTWx0"), ..plain("ruby", &["-e"], &["-I", "-r", "-C", "-E"]) }
        }
        "perl" => Interpreter { attached: Some("MmIiFCDdx0"), ..plain("perl", &["-e", "-E"], &["-I"]) },
        "php" => plain("php", &["-r", "-R", "-B", "-E", "--run"], &["-d", "-c", "-z"]),
        "lua" | "luajit" => plain("lua", &["-e"], &["-l"]),
        "Rscript" => plain("r", &["-e"], &[]),
        "julia" => plain("julia", &["-e", "-E", "--eval", "--print"], &["-L", "-J", "-t", "-p"]),
        "elixir" => plain("elixir", &["-e", "--eval"], &["-r", "-S", "-pa", "-pz"]),
        "tclsh" | "expect" | "wish" => plain("tcl", &["-c"], &[]),
        "awk" | "gawk" | "mawk" | "nawk" => Interpreter {
            operand_is_code: true,
            instead: &["-f", "--file"],
            ..plain("awk", &["-e", "--source"], &["-F", "-v", "--assign", "--field-separator"])
        },
        _ => return None,
    })
}

impl Interpreter {
    /// Where its code comes from, with these arguments.
    pub(crate) fn source(&self, arguments: &[&Word]) -> Source {
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            // An option that is not known is taken for a file, so that a question is asked about it.
            let Some(text) = word.known() else { return Source::File(at) };
            let option = text.split_once('=').map_or(text, |(name, _)| name);
            if self.code.contains(&text) {
                return Source::Argument(at + 1, 0);
            }
            if self.instead.contains(&option) {
                return match arguments.get(at + 1).filter(|_| self.operand_is_code) {
                    Some(file) => from_file(at + 1, file),
                    None => Source::Elsewhere,
                };
            }
            if self.code.contains(&option) && option.starts_with("--") {
                return Source::Argument(at, option.len() + 1);
            }
            if self.values.contains(&text) {
                at += 2;
                continue;
            }
            if text == "--" {
                return self.operand(at + 1, arguments);
            }
            if text == "-" || !text.starts_with('-') {
                return self.operand(at, arguments);
            }
            if let Some(source) = self.in_cluster(at, text) {
                return source;
            }
            at += 1;
        }
        Source::Input
    }

    fn operand(&self, at: usize, arguments: &[&Word]) -> Source {
        match arguments.get(at) {
            None => Source::Input,
            Some(_) if self.operand_is_code => Source::Argument(at, 0),
            Some(word) => from_file(at, word),
        }
    }

    /// Code after `-lane`, or attached as in `-ecode`.
    fn in_cluster(&self, at: usize, text: &str) -> Option<Source> {
        if text.starts_with("--") {
            return None;
        }
        let is_one = |options: &[&str], letter: char| {
            options.iter().any(|option| option.strip_prefix('-').is_some_and(|name| name.chars().eq([letter])))
        };
        for (place, letter) in text.char_indices().skip(1) {
            if is_one(self.code, letter) {
                let after = place + letter.len_utf8();
                return Some(if after < text.len() {
                    Source::Argument(at, after)
                } else {
                    Source::Argument(at + 1, 0)
                });
            }
            if is_one(self.instead, letter) {
                return Some(Source::Elsewhere);
            }
            if self.attached.is_none_or(|attached| attached.contains(letter)) {
                return None;
            }
        }
        None
    }
}

/// Where a shell's code comes from, with these arguments, and whether `-c` stood there.
pub(crate) fn of_shell(arguments: &[&Word]) -> Result<Source, String> {
    let mut at = 0;
    let (mut is_command, mut is_stdin) = (false, false);
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.known() else {
            // After `-c` it is the code, whatever it begins with.
            if !is_command && (word.may_start_with("-") || word.may_start_with("+")) {
                return Err(word.text().to_owned());
            }
            break;
        };
        at += 1;
        match text {
            "--" | "-" => break,
            "--rcfile" | "--init-file" => at += 1,
            // Fish.
            "--command" => return Ok(Source::Argument(at, 0)),
            long if long.starts_with("--") => {}
            short if short.starts_with(['-', '+']) && short.len() > 1 => {
                // Some shells take what follows it for its value, some for more options.
                if short.find(['o', 'O']).is_some_and(|place| place + 1 < short.len()) {
                    return Err(short.to_owned());
                }
                is_command |= short.starts_with('-') && short.contains('c');
                is_stdin |= short.starts_with('-') && short.contains('s');
                at += short.matches(['o', 'O']).count();
            }
            _ => {
                at -= 1;
                break;
            }
        }
    }
    if is_command {
        return Ok(Source::Argument(at, 0));
    }
    Ok(match arguments.get(at) {
        Some(word) if !is_stdin => from_file(at, word),
        _ => Source::Input,
    })
}
