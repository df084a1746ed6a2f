//! Code that a command is given: in its arguments, in its input, or from another program.

use crate::holes::{HOLE, filled, of as with_holes, shown};
use crate::interpreters::{Source, is_descriptor_of, is_foreign, of_shell};
use crate::read::{Around, Given, Reader, merge};
use crate::{Code, Origin, Script, Word};

impl Reader {
    pub(crate) fn shell(&mut self, number: usize, name: &str, rest: &[Given], around: &Around) {
        if is_foreign(name) && !rest.is_empty() {
            self.doubt(format!("`{name}` reads lines in its own way"));
        }
        for pair in rest.windows(2) {
            if matches!(pair[0].word.known(), Some("--rcfile" | "--init-file")) {
                merge(&mut self.commands[number].fed_by, pair[1].from.clone());
                if is_descriptor_of(&pair[1].word) {
                    self.doubt(format!("`{name}` runs what comes through `{}`", pair[1].word.text()));
                }
            }
            if matches!(pair[1].word.known(), Some("expand_aliases" | "histexpand" | "keyword")) {
                self.doubt(format!("`{name} {}` may change what commands mean", pair[0].word.text()));
            }
        }
        let words: Vec<&Word> = rest.iter().map(|given| &given.word).collect();
        match of_shell(&words) {
            Ok(source) => {
                let language = if name == "fish" { "fish" } else { "shell" };
                self.code(number, language, name, source, rest, around);
            }
            Err(word) => {
                merge(&mut self.commands[number].fed_by, rest.iter().flat_map(|given| given.from.clone()).collect());
                self.doubt(format!("what `{name}` runs depends on `{word}`"));
            }
        }
    }

    pub(crate) fn code(
        &mut self,
        number: usize,
        language: &'static str,
        name: &str,
        source: Source,
        rest: &[Given],
        around: &Around,
    ) {
        let (code, inner) = match source {
            Source::Elsewhere => return,
            Source::File(at) => {
                if let Some(file) = rest.get(at) {
                    merge(&mut self.commands[number].fed_by, file.from.clone());
                    let origin = Origin::File(file.word.clone());
                    self.commands[number].script = Some(Script { language, origin });
                }
                return;
            }
            Source::Descriptor(at) => {
                let Some(file) = rest.get(at) else { return };
                let mut from = file.from.clone();
                if from.is_empty() {
                    merge(&mut from, around.feeding.clone());
                }
                merge(&mut self.commands[number].fed_by, from);
                self.commands[number].script = Some(Script { language, origin: Origin::Printed });
                return self.doubt(format!("`{name}` runs what comes through `{}`", file.word.text()));
            }
            Source::Argument(at, from) => {
                let Some(given) = rest.get(at) else { return };
                let text = with_holes(&given.word);
                let word = filled(text.get(from..).unwrap_or_default().to_owned(), false);
                (given.with(word), around.behind(format!("{name} -c")))
            }
            Source::Input => {
                merge(&mut self.commands[number].fed_by, around.feeding.clone());
                let Some(document) = around.document.clone() else {
                    // What others print, nobody can read before. Through `cat`, a script is a file as any other.
                    if !around.feeding.is_empty() {
                        self.commands[number].script = Some(Script { language, origin: Origin::Printed });
                    }
                    let is_file = language != "shell" && around.feeding == ["cat"];
                    if is_file && !self.functions.iter().any(|name| name == "cat") {
                        return;
                    }
                    match (around.feeding.last(), &around.other_input) {
                        (Some(source), None) => self.doubt_printed(format!("`{name}` runs what comes from `{source}`")),
                        (Some(source), Some(_)) => self.doubt(format!("`{name}` runs what comes from `{source}`")),
                        (None, Some(source)) => self.doubt(format!("`{name}` runs what comes from {source}")),
                        (None, None) => {
                            self.commands[number].script = Some(Script { language, origin: Origin::Input });
                        }
                    }
                    return;
                };
                self.trusts_printed |= !around.feeding.is_empty();
                (document, Around { document: None, feeding: Vec::new(), ..around.behind(name) })
            }
        };
        match language {
            "shell" | "fish" => {
                let is_bash =
                    matches!(name, "bash" | "bash-static" | "rbash" | "zsh" | "ksh" | "ksh93" | "mksh" | "source");
                // It has signs and words of its own: `=git`, `*(e:…:)`, `repeat 2 …`.
                let text = with_holes(&code.word);
                let is_odd =
                    text.contains(['(', '{', '=', '^', '#']) || text.contains("repeat") || text.contains("foreach");
                if name.starts_with("zsh") && is_odd {
                    self.doubt(format!("`{name}` reads some of it in its own way"));
                }
                self.line_of(number, &[code], &inner, is_bash);
                self.commands[number].code.iter_mut().for_each(|code| code.language = language);
            }
            language => self.given_code(number, language, &code),
        }
    }

    pub(crate) fn given_code(&mut self, number: usize, language: &'static str, code: &Given) {
        merge(&mut self.commands[number].fed_by, code.from.clone());
        let text = shown(&with_holes(&code.word));
        if code.word.known().is_none() {
            let text = text.trim_end();
            let start: String = text.chars().take(40).collect();
            let dots = if start.len() < text.len() { "…" } else { "" };
            self.doubt(format!("the code `{start}{dots}` is only known when it runs"));
        }
        self.commands[number].code = Some(Code { language, text });
    }

    /// The command with this number runs these words, joined, as a line.
    pub(crate) fn line_of(&mut self, number: usize, given: &[Given], around: &Around, is_bash: bool) {
        let parts: Vec<String> = given.iter().map(|given| with_holes(&given.word)).collect();
        let line = parts.join(" ");
        let from = given.iter().flat_map(|given| given.from.clone()).collect();
        self.given_code(number, "shell", &Given { from, ..Given::of(filled(line.clone(), false)) });
        // Of code that is all unknown, all is said.
        if !line.trim_matches([HOLE, ' ', '\n']).is_empty() {
            self.line(&line, around, is_bash);
        }
    }
}
