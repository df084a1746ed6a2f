//! What is fetched, saved and run: a file is followed by its path, or by the variable that holds it, since what is put
//! into it is no longer a value of the program.

use std::rc::Rc;

use crate::evaluate::Evaluator;
use crate::tree::{Node, field};
use crate::value::{FILE, Item, Labels, NETWORK, Value, WRITTEN};

/// Files that are followed, of one program.
const FILES: usize = 16;
/// How much of a call is looked at for their names.
const LONGEST_CALL: usize = 4096;
/// How much of all calls of one program is looked at, each file counted: what is hostile costs no more.
const LOOKED_AT: usize = 256 << 20;

#[derive(Default)]
pub(crate) struct Saved {
    paths: Vec<String>,
    /// Variables, and the outermost function that they are used in: elsewhere the same name is another thing.
    variables: Vec<(Option<Rc<str>>, String)>,
    /// Something from the network was put into one of them.
    is_fetched: bool,
    looked_at: usize,
}

impl<'t> Evaluator<'_, 't> {
    /// A file that is opened to be written, or (`is_filled`) that what was fetched is put into.
    /// The first `skipped` arguments are no paths.
    pub fn saves(&mut self, items: &[Item], skipped: usize, base: &Value, node: Node<'_>, is_filled: bool) {
        let values = items.iter().skip(skipped).map(|item| &item.value).chain([base]);
        for path in values.filter(|value| value.labels & NETWORK == 0).filter_map(Value::exact) {
            let is_path = path.len() > 3 && path.len() < 512 && !path.contains("://") && !path.contains(['\n', ' ']);
            if is_path && self.saved.paths.len() < FILES && !self.saved.paths.iter().any(|known| known == path) {
                self.saved.paths.push(path.to_owned());
            }
        }
        let within = self.within.first().cloned();
        let arguments = node.part(field::ARGUMENTS).unwrap_or(node);
        for (item, child) in items.iter().zip(arguments.children()).skip(skipped).take(4) {
            if item.value.labels & NETWORK != 0 {
                continue;
            }
            let name = self.text_of(child);
            let variable = (within.clone(), name.to_owned());
            if is_name(name) && self.saved.variables.len() < FILES && !self.saved.variables.contains(&variable) {
                self.saved.variables.push(variable);
            }
            // So it is for whoever is given it, or gets it back.
            if self.saved.is_fetched && is_name(name) && !name.contains('.') {
                let value = Value { labels: item.value.labels | WRITTEN, ..item.value.clone() };
                self.set(name, value);
            }
        }
        if is_filled {
            self.fills(FILE | NETWORK);
        }
    }

    /// A call that is given a file and what comes from the network puts one into the other.
    pub fn fills(&mut self, given: Labels) {
        if given & (FILE | NETWORK) == FILE | NETWORK && !self.saved.is_fetched {
            self.saved.is_fetched = true;
            // Functions above may run what is saved below.
            self.changed = true;
        }
    }

    /// What a call is given, if a file is named in it that holds what was fetched: then so marked.
    pub fn given_saved(&mut self, items: &[Item], node: Node<'_>) -> Option<Vec<Item>> {
        if !self.saved.is_fetched || items.is_empty() {
            return None;
        }
        let written = self.text_of(node.part(field::ARGUMENTS).unwrap_or(node));
        let mut end = written.len().min(LONGEST_CALL);
        while !written.is_char_boundary(end) {
            end -= 1;
        }
        let written = &written[..end];
        let files = self.saved.paths.len() + self.saved.variables.len();
        self.saved.looked_at = self.saved.looked_at.saturating_add(files.saturating_mul(end));
        if self.saved.looked_at > LOOKED_AT {
            self.found.left.too_many = true;
            return None;
        }
        let within = self.within.first();
        let by_path = self.saved.paths.iter().any(|path| {
            holds(written, path, b"")
                || items.iter().any(|item| {
                    item.value.shown().is_some_and(|text| text.len() < LONGEST_CALL && holds(text, path, b""))
                })
        });
        let is_meant = by_path
            || self
                .saved
                .variables
                .iter()
                .any(|(of, name)| (of.as_ref() == within || is_shared(name)) && holds(written, name, b"-.'\"/"));
        is_meant.then(|| {
            let mut marked = items.to_vec();
            marked.iter_mut().take(1).for_each(|item| item.value.labels |= WRITTEN);
            marked
        })
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic() || "_$".contains(letter))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(&byte))
}

/// A name that means the same in every function: a constant, or what an object has.
fn is_shared(name: &str) -> bool {
    let is_constant = name.contains(|letter: char| letter.is_ascii_uppercase());
    name.starts_with("self.") || name.starts_with("this.") || is_constant && name == name.to_ascii_uppercase()
}

/// Does the word stand in the text, with nothing of a longer word, nor any of `others`, around it?
fn holds(text: &str, word: &str, others: &[u8]) -> bool {
    let is_bare = |byte: Option<&u8>| {
        byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_' && !others.contains(byte))
    };
    text.match_indices(word).any(|(at, _)| {
        let bytes = text.as_bytes();
        is_bare(at.checked_sub(1).and_then(|before| bytes.get(before))) && is_bare(bytes.get(at + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::holds;
    use crate::{Language, Rules, Scanner, Source};

    fn runs_what_was_saved(language: Language, text: &str) -> bool {
        let source = Source { name: "x", language: Some(language), bytes: text.as_bytes() };
        let found = Scanner::new(Rules::built_in()).scan(&source).findings;
        found.iter().any(|finding| finding.rule == "dynamic.python-download-run")
    }

    const FETCH: &str = "import os, sys, subprocess, urllib.request\n";

    #[test]
    fn a_file_saved_in_one_function_and_run_in_another_is_followed() {
        for (save, run) in [
            (
                "def save(folder):\n  p = os.path.join(folder, 'x')\n  f = open(p, 'wb')\n  \
                 f.write(urllib.request.urlopen(sys.argv[1]).read())\n  return p\n",
                "def main():\n  subprocess.run([save(sys.argv[2])])\nmain()\n",
            ),
            (
                "P = os.path.join(sys.argv[2], 'x')\ndef save():\n  f = open(P, 'wb')\n  \
                 f.write(urllib.request.urlopen(sys.argv[1]).read())\n",
                "def run():\n  subprocess.run([P])\nsave()\nrun()\n",
            ),
            (
                "class A:\n def save(self):\n  f = open(self.path, 'wb')\n  \
                 f.write(urllib.request.urlopen(sys.argv[1]).read())\n",
                " def run(self):\n  subprocess.run([self.path])\n",
            ),
        ] {
            assert!(runs_what_was_saved(Language::Python, &format!("{FETCH}{save}{run}")), "{save}{run}");
            // The control: another is run.
            let other =
                run.replace("[save(sys.argv[2])]", "['ls']").replace("[P]", "['ls']").replace("[self.path]", "['ls']");
            assert!(!runs_what_was_saved(Language::Python, &format!("{FETCH}{save}{other}")), "{save}{other}");
        }
    }

    #[test]
    fn a_word_is_held_only_as_a_whole() {
        assert!(holds("(p)", "p", b"-"));
        assert!(holds("chmod +x /tmp/x && /tmp/x", "/tmp/x", b""));
        for text in ["(path)", "('-p')", "(q)"] {
            assert!(!holds(text, "p", b"-"), "{text}");
        }
    }
}
