//! One command that would be started.

use crate::Word;

/// A program and what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// `:` where a line only redirects.
    pub program: Word,
    pub arguments: Vec<Word>,
    /// Variables set for it, by itself or earlier in the line where they change what later commands do (`PATH`).
    pub assignments: Vec<(String, Word)>,
    /// Base names of programs whose output it would run as code: `curl x | sh`, `bash <(curl x)`, `eval "$(curl x)"`.
    pub fed_by: Vec<String>,
    /// Files that a redirection writes; neither `/dev/null` nor descriptors.
    pub writes: Vec<Word>,
    /// Files that `<` reads.
    pub reads: Vec<Word>,
    /// What it was found behind, outermost first: `sudo`, `env`, `xargs`, `bash -c`, `find -exec`.
    pub through: Vec<String>,
    /// Code that it is given as text, if it is an interpreter.
    pub code: Option<Code>,
    /// Code that it would read, if it is an interpreter.
    pub script: Option<Script>,
    /// The command for people: `git push --force`.
    pub text: String,
}

/// Code given to an interpreter as text, not as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// `shell`, `python`, `node`, `ruby`, `perl`, `php`, `awk`, `lua`, `r`, `julia`, `elixir`, `tcl` or `fish`.
    pub language: &'static str,
    /// What is not known of it stands as `…`.
    pub text: String,
}

/// Code that an interpreter would read from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// As for [`Code`].
    pub language: &'static str,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file among its arguments.
    File(Word),
    /// Its input, which nothing in the line feeds but perhaps a file (`reads`).
    Input,
    /// What other commands of the line print (`fed_by`).
    Printed,
}

/// Folders where a program is the system's own.
pub const STANDARD: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];

impl Simple {
    /// The last part of the program's path: `/usr/bin/git` is `git`. `None` if the program is not known.
    pub fn name(&self) -> Option<&str> {
        self.program.known().map(last_part).filter(|name| !name.is_empty())
    }

    /// Is it surely the program of that name: a bare name, or one in a folder of the system?
    pub fn is_standard(&self) -> bool {
        let Some(program) = self.program.known() else { return false };
        match program.rsplit_once('/') {
            None => !program.is_empty(),
            Some((folder, name)) => !name.is_empty() && STANDARD.contains(&folder),
        }
    }
}

pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Words as a person would write them, with quotes where a shell would need them.
pub(crate) fn shown<'a>(words: impl Iterator<Item = &'a Word>) -> String {
    let mut line = String::with_capacity(64);
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        match word {
            Word::Known(text) if text.is_empty() || text.contains(needs_quotes) => line.push_str(&quoted(text)),
            plain => line.push_str(plain.text()),
        }
    }
    line
}

/// A word as a person would write it, with quotes where a shell would need them.
pub fn quoted(word: &str) -> String {
    match word.is_empty() || word.contains(needs_quotes) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.to_owned(),
    }
}

fn needs_quotes(letter: char) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%^{}[]".contains(&byte);
    match u8::try_from(letter) {
        Ok(byte) if byte.is_ascii() => !is_plain(byte),
        _ => !letter.is_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use crate::of_words;

    #[test]
    fn a_name_is_the_last_part_and_standard_only_in_folders_of_the_system() {
        for (program, name, is_standard) in [
            ("git", Some("git"), true),
            ("/usr/bin/git", Some("git"), true),
            ("/usr/local/bin/git", Some("git"), true),
            ("./git", Some("git"), false),
            ("/tmp/usr/bin/git", Some("git"), false),
            ("/usr/bin/../../tmp/git", Some("git"), false),
            ("/proc/self/root/usr/bin/npx", Some("npx"), false),
            ("/usr/bin/", None, false),
            ("", None, false),
        ] {
            let simple = of_words(&[program.to_owned()]).commands.remove(0);
            assert_eq!((simple.name(), simple.is_standard()), (name, is_standard), "{program}");
        }
    }
}
