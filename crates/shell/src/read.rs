//! Tree → commands: who runs, with what, and whose output reaches whom.

use std::borrow::Cow;

use crate::holes::{filled, of as with_holes};
use crate::interpreters::is_descriptor_of;
use crate::parse::{Tree, tree};
use crate::printed::{PRINTING, printed};
use crate::simple::{last_part, shown};
use crate::sleeping::Sleeping;
use crate::start::is_looked_into;
use crate::tree::{Command, Compound, Flows, Kind, List, Plain, Redirect, Run, Target, Written};
use crate::{DEEPEST, LONGEST, Reading, Simple, Word};

/// More commands than this are not listed.
const MOST_COMMANDS: usize = 10_000;
/// More words in all than this are not listed.
const MOST_LISTED: usize = 200_000;
/// Names that are remembered of those that feed a pipe.
pub(crate) const MOST_NAMES: usize = 32;
/// Redirections of one command that are listed.
const MOST_FILES: usize = 64;
/// Letters of a sentence, or of a name that is said with every command it reaches.
const MOST_LETTERS: usize = 90;
/// Words that nothing has to be unwrapped of are read up to this length in all.
const MOST_WORDS: usize = 8 * LONGEST;

pub(crate) fn line(line: &str) -> Reading {
    let (mut reader, around) = (Reader::default(), Around::default());
    let Some(tree) = reader.parsed(line, &around) else { return reader.reading() };
    reader.tree(&tree, &around, true);
    // In a loop, what is set below comes before: so it is read once more, by one who knows.
    if let Some(sleeping) = reader.sleeping.options_alone() {
        reader = Reader { sleeping, read: line.len(), ..Reader::default() };
        reader.tree(&tree, &around, true);
    }
    reader.reading()
}

pub(crate) fn words(words: &[String]) -> Reading {
    let mut reader = Reader::default();
    if words.iter().map(String::len).sum::<usize>() > MOST_WORDS {
        reader.doubt("the words are too long to be read".to_owned());
    } else if words.iter().any(|word| word.contains('\0')) {
        reader.doubt("a word holds a zero byte".to_owned());
    } else if let Some((program, arguments)) =
        words.split_first().filter(|(program, _)| !is_looked_into(last_part(program)))
    {
        reader.commands.push(of_known(program, arguments));
    } else {
        let given = words.iter().map(|word| Given::of(Word::Known(word.clone()))).collect();
        reader.start(given, Vec::new(), &Around::default());
    }
    reader.reading()
}

/// A command that starts nothing but itself: most are, so they are not made to wait.
fn of_known(program: &str, arguments: &[String]) -> Simple {
    let program = Word::Known(program.to_owned());
    let arguments: Vec<Word> = arguments.iter().map(|word| Word::Known(word.clone())).collect();
    let text = shown(std::iter::once(&program).chain(&arguments));
    Simple {
        program,
        arguments,
        assignments: Vec::new(),
        fed_by: Vec::new(),
        writes: Vec::new(),
        reads: Vec::new(),
        through: Vec::new(),
        code: None,
        script: None,
        text,
    }
}

#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) commands: Vec<Simple>,
    unclear: Vec<String>,
    /// Something is unclear that has nothing to do with what programs print.
    otherwise_unclear: bool,
    /// Names that `alias` gave a meaning.
    pub(crate) aliases: Vec<String>,
    /// Names of programs that print what they are given, if the line makes functions of them.
    pub(crate) functions: Vec<String>,
    /// A shell or an interpreter was taken to run what such a program prints.
    pub(crate) trusts_printed: bool,
    /// What the command before prints, if that is known.
    printed: Option<Given>,
    pub(crate) sleeping: Sleeping,
    /// Variables whose value came from programs, and these programs' names.
    sources: Vec<(String, Vec<String>)>,
    /// Variables that change what later commands do.
    lasting: Vec<(String, Word)>,
    /// Words of all commands so far. Behind wrappers they are listed again, so they count again.
    listed: usize,
    /// Bytes read so far. Code within code is read again, so it counts again.
    read: usize,
}

/// A word and the programs whose output is in it.
#[derive(Clone)]
pub(crate) struct Given {
    pub word: Word,
    pub from: Vec<String>,
    /// Holds a variable that the line sets to something which may begin with `-`.
    pub may_be_option: bool,
}

impl Given {
    pub(crate) fn of(word: Word) -> Given {
        Given { word, from: Vec::new(), may_be_option: false }
    }

    /// The same, with another word.
    pub(crate) fn with(&self, word: Word) -> Given {
        Given { word, ..self.clone() }
    }

    /// Is it not known, and could it be an option? Most words in quotes are taken for what they seem to be.
    pub(crate) fn hides_option(&self) -> bool {
        let begins = matches!(self.word.pieces().first(), Some(crate::Piece::Text(text)) if text.starts_with('-'));
        let is_loose = begins || self.may_be_option || self.word.may_be_many();
        self.word.known().is_none() && is_loose && self.word.may_start_with("-")
    }
}

/// What a command finds around it.
#[derive(Clone, Default)]
pub(crate) struct Around {
    pub depth: usize,
    pub through: Vec<String>,
    /// Programs whose output is its input.
    pub feeding: Vec<String>,
    /// The text that is its input.
    pub document: Option<Given>,
    /// Where its input comes from, if nobody can tell what that is.
    pub other_input: Option<String>,
    pub writes: Vec<Word>,
    pub reads: Vec<Word>,
}

impl Around {
    /// The same, behind `wrapper`.
    pub(crate) fn behind(&self, wrapper: impl Into<String>) -> Around {
        let mut around = self.clone();
        around.depth += 1;
        around.through.push(shortened(wrapper.into()));
        around
    }

    /// For a list within a word: the redirections are not its own.
    fn of_a_run(&self, feeding: Vec<String>) -> Around {
        Around { depth: self.depth, through: self.through.clone(), feeding, ..Around::default() }
    }
}

impl Reader {
    fn reading(mut self) -> Reading {
        if let Some(sentence) = self.sleeping.sentence() {
            self.doubt(sentence);
        }
        // In a loop, what is defined below comes before.
        if let Some(name) = self.functions.first().filter(|_| self.trusts_printed).cloned() {
            self.doubt(format!("what `{name}` prints is not known, since it is a function"));
        }
        let only_printed = !self.unclear.is_empty() && !self.otherwise_unclear;
        Reading { commands: self.commands, unclear: self.unclear, only_printed }
    }

    pub(crate) fn doubt(&mut self, sentence: String) {
        self.otherwise_unclear = true;
        self.note(sentence);
    }

    /// A doubt that nobody has who trusts what is printed.
    pub(crate) fn doubt_printed(&mut self, sentence: String) {
        self.note(sentence);
    }

    fn note(&mut self, sentence: String) {
        let sentence = shortened(sentence);
        if self.unclear.len() < MOST_NAMES && !self.unclear.contains(&sentence) {
            self.unclear.push(sentence);
        }
    }

    /// Reads `text` as a line. Other shells than bash read some of it in another way.
    pub(crate) fn line(&mut self, text: &str, around: &Around, is_bash: bool) {
        if let Some(tree) = self.parsed(text, around) {
            self.tree(&tree, around, is_bash);
        }
    }

    /// What stands there, if it may be read.
    fn parsed(&mut self, text: &str, around: &Around) -> Option<Tree> {
        self.read += text.len();
        if text.len() > LONGEST || self.read > 4 * LONGEST {
            self.doubt(format!("it is longer than {} KiB", LONGEST / 1024));
            return None;
        }
        if text.contains('\0') {
            self.doubt("it holds a zero byte".to_owned());
            return None;
        }
        Some(tree(text, around.depth))
    }

    fn tree(&mut self, tree: &Tree, around: &Around, is_bash: bool) {
        let Tree { list, documents, odd, only_bash, counts, stop } = tree;
        if let Some(counts) = counts {
            self.sleeping.counts(counts);
        }
        for document in documents {
            self.sleeping.words(std::iter::once(&document.word));
        }
        self.list(list, documents, around);
        odd.iter().for_each(|sentence| self.doubt(sentence.clone()));
        if *only_bash && !is_bash {
            self.doubt("not every shell reads `[[`, `((` and the like as bash does".to_owned());
        }
        if let Some(stop) = stop {
            self.doubt(stop.clone());
        }
    }

    fn list(&mut self, list: &List, documents: &[Written], around: &Around) {
        for pipeline in list {
            let mut flowing = around.feeding.clone();
            for (place, command) in pipeline.iter().enumerate() {
                let first = self.commands.len();
                if place == 0 {
                    self.command(command, documents, around);
                } else {
                    let mut piped = around.clone();
                    piped.feeding.clone_from(&flowing);
                    piped.document = self.printed.take();
                    piped.other_input = None;
                    self.command(command, documents, &piped);
                }
                self.names_since(first, &mut flowing);
            }
        }
    }

    /// Adds the base names of the commands found since there were `first`.
    fn names_since(&mut self, first: usize, names: &mut Vec<String>) {
        for simple in self.commands.iter().skip(first) {
            let name = simple.name().unwrap_or_else(|| last_part(simple.program.text()));
            if names.iter().any(|known| known == name) {
                continue;
            }
            if names.len() >= MOST_NAMES {
                return self.doubt(format!("more than {MOST_NAMES} programs are joined"));
            }
            names.push(shortened(name.to_owned()));
        }
    }

    fn command(&mut self, command: &Command, documents: &[Written], around: &Around) {
        match command {
            Command::Simple(plain) => self.plain(plain, documents, around),
            Command::Compound(compound) => self.compound(compound, documents, around),
        }
    }

    fn compound(&mut self, compound: &Compound, documents: &[Written], around: &Around) {
        let Compound { variable, words, bodies, redirects, is_coprocess, function } = compound;
        let mut out: Vec<&Run> = Vec::new();
        let mut from = Vec::new();
        let before = self.commands.len();
        for word in words {
            out.extend(word.runs.iter().filter(|run| run.flows == Flows::Out));
            let given = self.given(word, documents, around);
            if let Some(variable) = variable {
                self.assign(variable, &given);
            }
            self.sleeping.words(std::iter::once(&given.word));
            merge(&mut from, given.from);
        }
        self.fed(&out, before, documents, around);
        if let Some(variable) = variable {
            self.names_variable("for", variable);
        }
        let mut inner = around.clone();
        let out = self.redirects(redirects, documents, &mut inner);
        if inner.document.take().is_some() {
            // Each takes a part of it, and nobody can tell which.
            inner.other_input = Some("a text that several commands read".to_owned());
        }
        if *is_coprocess {
            inner.feeding.push("coproc".to_owned());
        }
        if let Some(name) = function {
            if PRINTING.contains(&name.as_str()) {
                self.functions.push(name.clone());
            }
            inner.other_input = Some(format!("the input of `{name}`"));
        }
        let first = self.commands.len();
        for body in bodies {
            self.list(body, documents, &inner);
        }
        self.fed(&out, first, documents, around);
        self.printed = None;
    }

    fn plain(&mut self, plain: &Plain, documents: &[Written], around: &Around) {
        let Plain { assignments, words, redirects } = plain;
        let mut out: Vec<&Run> = Vec::new();
        let mut set = Vec::new();
        for (name, value) in assignments {
            out.extend(value.runs.iter().filter(|run| run.flows == Flows::Out));
            let value = self.given(value, documents, around);
            self.assign(name, &value);
            set.push((name.clone(), value.word));
        }
        let mut given = Vec::with_capacity(words.len());
        for word in words {
            out.extend(word.runs.iter().filter(|run| run.flows == Flows::Out));
            given.push(self.given(word, documents, around));
        }
        let mut inner = Cow::Borrowed(around);
        if !redirects.is_empty() {
            out.extend(self.redirects(redirects, documents, inner.to_mut()));
        }
        let first = self.commands.len();
        if given.is_empty() {
            set.iter().for_each(|(name, value)| self.keep(name, value));
            if !redirects.is_empty() {
                given.push(Given::of(Word::Known(":".to_owned())));
            }
        }
        if !given.is_empty() {
            self.start(given, set, &inner);
        }
        self.fed(&out, first, documents, around);
        let alone = self.commands.get(first..).and_then(|found| found.first().filter(|_| found.len() == 1));
        let is_itself = |name: &str| !self.functions.iter().chain(&self.aliases).any(|other| other == name);
        self.printed = alone
            .filter(|simple| simple.name().is_some_and(|name| PRINTING.contains(&name) && is_itself(name)))
            .filter(|simple| simple.assignments.is_empty())
            .and_then(|simple| printed(simple, inner.document.as_ref()));
    }

    /// What stands in `>(…)` reads what the commands since `first` print.
    fn fed(&mut self, out: &[&Run], first: usize, documents: &[Written], around: &Around) {
        if out.is_empty() {
            return;
        }
        let mut feeding = around.feeding.clone();
        self.names_since(first, &mut feeding);
        let inner = around.of_a_run(feeding);
        for run in out {
            self.list(&run.list, documents, &inner);
        }
    }

    /// Puts redirections into what is around; returns what would read from them.
    fn redirects<'t>(&mut self, redirects: &'t [Redirect], documents: &[Written], around: &mut Around) -> Vec<&'t Run> {
        let mut out = Vec::new();
        for Redirect { kind, is_stdin, target } in redirects {
            let written = match target {
                Target::Word(written) => written,
                Target::Here(number) => match documents.get(*number) {
                    Some(document) => document,
                    None => continue,
                },
            };
            let given = self.given(written, documents, &around.of_a_run(Vec::new()));
            if let Target::Word(written) = target {
                self.sleeping.words(std::iter::once(&given.word));
                out.extend(written.runs.iter().filter(|run| run.flows == Flows::Out));
            }
            let is_process = written.runs.iter().any(|run| run.flows == Flows::Out);
            if *is_stdin {
                // A document takes the place of the pipe. A file may be the pipe by another name.
                match kind {
                    Kind::Text => around.feeding.clone_from(&given.from),
                    _ => merge(&mut around.feeding, given.from.clone()),
                }
                around.document = None;
                let written = given.word.text();
                around.other_input = match kind {
                    Kind::Duplicate if !matches!(given.word.known(), Some("-" | "0")) => Some(format!("`<&{written}`")),
                    Kind::Read | Kind::ReadWrite if given.from.is_empty() && is_descriptor_of(&given.word) => {
                        Some(format!("`<{written}`"))
                    }
                    Kind::Duplicate => around.other_input.take(),
                    _ => None,
                };
            }
            if around.reads.len() + around.writes.len() >= MOST_FILES {
                self.doubt(format!("it redirects more than {MOST_FILES} times"));
                continue;
            }
            match kind {
                Kind::Read if !given.from.is_empty() => {}
                Kind::Read => around.reads.push(given.word),
                Kind::Write | Kind::ReadWrite => {
                    if given.word.known() != Some("/dev/null") && !is_process {
                        around.writes.push(given.word);
                    }
                }
                Kind::Text if *is_stdin => {
                    around.document = Some(match target {
                        Target::Here(_) => given,
                        // The line end that follows it may be hidden by its last letter.
                        Target::Word(_) => given.with(filled(with_holes(&given.word) + "\n", false)),
                    });
                }
                Kind::Text | Kind::Duplicate => {}
            }
        }
        out
    }

    /// The word, after what runs within it was read.
    fn given(&mut self, written: &Written, documents: &[Written], around: &Around) -> Given {
        let mut from = Vec::new();
        for run in written.runs.iter().filter(|run| run.flows == Flows::In) {
            let first = self.commands.len();
            let mut inner = around.of_a_run(around.feeding.clone());
            inner.depth += 1;
            self.list(&run.list, documents, &inner);
            self.names_since(first, &mut from);
        }
        let mut may_be_option = false;
        for variable in &written.variables {
            may_be_option |= self.sleeping.finds_option(variable);
            if let Some((_, names)) = self.sources.iter().find(|(name, _)| name == variable) {
                merge(&mut from, names.clone());
            }
        }
        Given { word: written.word.clone(), from, may_be_option }
    }

    pub(crate) fn remember(&mut self, variable: &str, from: Vec<String>) {
        if from.is_empty() {
            return;
        }
        if let Some((_, names)) = self.sources.iter_mut().find(|(name, _)| name == variable) {
            merge(names, from);
        } else if self.sources.len() < MOST_NAMES {
            self.sources.push((variable.to_owned(), from));
        }
    }

    /// A variable that is set for the rest of the line.
    pub(crate) fn keep(&mut self, name: &str, value: &Word) {
        if !changes_others(name) {
            return;
        }
        self.lasting.retain(|(kept, _)| kept != name);
        match self.lasting.len() < MOST_NAMES {
            true => self.lasting.push((name.to_owned(), value.clone())),
            false => self.doubt(format!("`{name}` is set for what follows")),
        }
    }

    /// Lists a command; returns its number, or `None` if there are too many.
    pub(crate) fn found(&mut self, words: Vec<Word>, set: Vec<(String, Word)>, around: &Around) -> Option<usize> {
        self.listed += words.len();
        if self.listed > MOST_LISTED {
            self.doubt(format!("its commands have more than {MOST_LISTED} words"));
            return None;
        }
        if self.commands.len() >= MOST_COMMANDS {
            self.doubt(format!("it starts more than {MOST_COMMANDS} commands"));
            return None;
        }
        if around.depth > DEEPEST {
            self.doubt(format!("it is nested more than {DEEPEST} levels deep"));
            return None;
        }
        self.sleeping.words(words.iter());
        let text = shown(words.iter());
        let mut arguments = words.into_iter();
        let program = arguments.next()?;
        let mut assignments: Vec<_> =
            self.lasting.iter().filter(|(kept, _)| !set.iter().any(|(name, _)| name == kept)).cloned().collect();
        assignments.extend(set);
        self.commands.push(Simple {
            program,
            arguments: arguments.collect(),
            assignments,
            fed_by: Vec::new(),
            writes: around.writes.clone(),
            reads: around.reads.clone(),
            through: around.through.clone(),
            code: None,
            script: None,
            text,
        });
        Some(self.commands.len() - 1)
    }
}

pub(crate) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_LETTERS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

pub(crate) fn merge(names: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if names.len() < MOST_NAMES && !names.contains(&name) {
            names.push(name);
        }
    }
}

/// Variables that decide which program a name is, or what a program loads.
fn changes_others(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "SHELL", "HOME", "EDITOR",
        "VISUAL", "PAGER", "BROWSER", "CDPATH", "JAVA_TOOL_OPTIONS", "MAKEFLAGS", "TAR_OPTIONS", "LESSOPEN", "CC",
        "CXX",
    ];
    const STARTS: &[&str] = &[
        "LD_", "DYLD_", "GIT_", "PYTHON", "NODE_", "NPM_", "npm_", "PERL5", "RUBY", "GEM_", "CARGO_", "RUST", "GO",
        "PIP_", "BASH_FUNC_", "MAVEN_", "GRADLE_", "SSH_", "DOCKER_", "KUBE",
    ];
    NAMES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it was before `Sleeping` told whether that could change anything.
    fn always_twice(line: &str) -> Reading {
        let (mut reader, around) = (Reader::default(), Around::default());
        let Some(tree) = reader.parsed(line, &around) else { return reader.reading() };
        reader.tree(&tree, &around, true);
        let sleeping = reader.sleeping.all_options();
        reader = Reader { sleeping, read: line.len(), ..Reader::default() };
        reader.tree(&tree, &around, true);
        reader.reading()
    }

    #[test]
    fn what_is_read_once_would_be_read_the_same_again() {
        let tables = [include_str!("../tests/table.txt"), include_str!("../tests/attacks.txt")];
        let lines = tables.iter().flat_map(|table| table.lines()).filter_map(|line| line.strip_prefix("$ "));
        let ordinary = include_str!("../tests/ordinary.txt").lines();
        let own = ["git grep $x y", "sudo $x rm y", "env \"$x\" z", "xargs -I $x sh -c \"$x\""];
        for line in lines.chain(ordinary).chain(own) {
            // With a variable that may be an option: known before, found out too late, and in a loop.
            for set in ["x=$(y)", "x=-c", "x=a", "HOME=$1 file=$2"] {
                for text in [line.to_owned(), format!("{set}; {line}"), format!("{line}; {set}")] {
                    assert_eq!(super::line(&text), always_twice(&text), "{text}");
                }
                let text = format!("while true; do {line}\n{set}; done");
                assert_eq!(super::line(&text), always_twice(&text), "{text}");
            }
        }
        let many: String = (0..100).map(|number| format!("sudo $v{number} rm; v{number}=$1; ")).collect();
        assert_eq!(super::line(&many), always_twice(&many));
    }
}
