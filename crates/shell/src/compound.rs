//! Groups, loops, choices and tests.

use crate::parse::{Parser, Stop, runs_when_counted};
use crate::tree::{Command, Compound};

/// Tests that look at words as at numbers or names.
const COUNTING: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];

impl Parser<'_> {
    pub(crate) fn compound(&mut self) -> Result<Command, Stop> {
        let mut compound = Compound::default();
        if self.sees("((")
            && let Some(counted) = self.arithmetic()?
        {
            self.only_bash = true;
            compound.words.push(counted);
        } else if self.take("(") {
            compound.bodies.push(self.list_in_parentheses()?);
        } else if self.take_reserved("{") {
            compound.bodies.push(self.list()?);
            self.expect("}")?;
        } else if self.take_reserved("if") {
            self.choice(&mut compound)?;
        } else if self.take_reserved("while") || self.take_reserved("until") {
            compound.bodies.push(self.list()?);
            self.loop_body(&mut compound)?;
        } else if self.take_reserved("for") || self.take_reserved("select") {
            self.each(&mut compound)?;
        } else if self.take_reserved("case") {
            self.cases(&mut compound)?;
        } else if self.take_reserved("[[") {
            self.test(&mut compound)?;
        } else {
            return Err(self.unexpected());
        }
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => compound.redirects.push(redirect),
                None => return Ok(Command::Compound(compound)),
            }
        }
    }

    pub(crate) fn choice(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        loop {
            compound.bodies.push(self.list()?);
            self.expect("then")?;
            compound.bodies.push(self.list()?);
            if self.take_reserved("elif") {
                continue;
            }
            if self.take_reserved("else") {
                compound.bodies.push(self.list()?);
            }
            return self.expect("fi");
        }
    }

    pub(crate) fn loop_body(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.skip_lines()?;
        let end = match self.take_reserved("{") {
            true => "}",
            false => {
                self.expect("do")?;
                "done"
            }
        };
        compound.bodies.push(self.list()?);
        self.expect(end)
    }

    pub(crate) fn each(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.skip_blanks();
        if self.sees("((") {
            let counted = self.arithmetic()?.ok_or_else(|| self.unexpected())?;
            compound.words.push(counted);
        } else {
            let name = self.written()?;
            compound.variable = name.word.known().map(str::to_owned);
            compound.words.push(name);
            self.skip_lines()?;
            if self.take_reserved("in") {
                loop {
                    self.skip_blanks();
                    if matches!(self.byte(), None | Some(b';' | b'\n' | b'&' | b'|' | b')')) {
                        break;
                    }
                    compound.words.push(self.written()?);
                }
            }
        }
        self.skip_blanks();
        self.take(";");
        self.loop_body(compound)
    }

    pub(crate) fn cases(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.skip_blanks();
        compound.words.push(self.written()?);
        self.expect("in")?;
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                return Ok(());
            }
            self.take("(");
            loop {
                self.skip_blanks();
                compound.words.push(self.written()?);
                self.skip_blanks();
                if self.take(")") {
                    break;
                }
                if !self.take("|") {
                    return Err(self.unexpected());
                }
            }
            compound.bodies.push(self.list()?);
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                return self.expect("esac");
            }
        }
    }

    /// `[[ … ]]`: only the words matter here, so its own operators are passed over.
    pub(crate) fn test(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.only_bash = true;
        loop {
            while matches!(self.byte(), Some(b' ' | b'\t' | b'\n')) || self.sees("\\\n") {
                match self.byte() {
                    // A comment would not end here.
                    Some(b'\n') => self.line_end()?,
                    Some(b'\\') => self.join(),
                    _ => self.at += 1,
                }
            }
            if self.sees("]]") && self.byte_after(2).is_none_or(|byte| b" \t\n;&|<>()".contains(&byte)) {
                self.at += 2;
                return Ok(());
            }
            let is_process = self.sees("<(") || self.sees(">(");
            match self.byte() {
                None => return Err(self.unexpected()),
                Some(b'(' | b')' | b'<' | b'>' | b'&' | b'|') if !is_process => self.at += 1,
                Some(b';' | b'#') => return Err(self.unexpected()),
                Some(_) => {
                    let written = self.written()?;
                    let text = crate::holes::of(&written.word);
                    if COUNTING.contains(&text.as_str()) {
                        self.counts.get_or_insert_with(|| format!("[[ {text} ]]"));
                    }
                    if runs_when_counted(&text) {
                        self.odd.push(format!("`{}` may run commands when it is counted with", written.word.text()));
                    }
                    compound.words.push(written);
                }
            }
        }
    }
}
