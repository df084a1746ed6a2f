//! What belljar's backend tells this program to do. Nobody else calls it, and what is not understood ends it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

#[derive(Debug, PartialEq, Eq)]
pub enum Words {
    /// Say what this is.
    Version,
    /// Read a module, write what the processor runs to standard output.
    Compile { module: PathBuf },
    /// Run one, as if it were this program.
    Run(Job),
    /// Run many, as asked over standard input.
    Serve(Offer),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Job {
    pub program: Source,
    pub surroundings: Surroundings,
    /// What the module is told it was called with.
    pub arguments: Vec<OsString>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Offer {
    /// What can be asked for, by number.
    pub programs: Vec<PathBuf>,
    pub surroundings: Surroundings,
    /// How long one run may take at most.
    pub time: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// As it was written: compiled here and now.
    Module(PathBuf),
    /// Made by `compile`, and handed to us by belljar, which knows that it was.
    Compiled(PathBuf),
}

/// What a module gets of the jar it is in.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub folders: Vec<Folder>,
    /// Bytes, of all its memories and tables together.
    pub memory: u64,
    /// The jar has a network, and the module may use it.
    pub network: bool,
    /// Where it is told that it starts.
    pub directory: Option<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Folder {
    pub kind: Kind,
    /// In the jar.
    pub from: PathBuf,
    /// For the module.
    pub name: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    /// Its own: made here, empty.
    Scratch,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum Misunderstood {
    #[error("this program is started by belljar; use `belljar run FILE.wasm`")]
    Nothing,
    #[error("`{0}` is not understood; is this program of the same version as belljar?")]
    Word(String),
    #[error("after `{0}`, something is missing")]
    Missing(String),
}

/// Where nobody says how long.
const LONGEST: Duration = Duration::from_secs(60);

impl Words {
    pub fn read(words: impl Iterator<Item = OsString>) -> Result<Words, Misunderstood> {
        let mut words = Reader { words, last: String::new() };
        match words.next().as_deref().map(|word| word.to_string_lossy().into_owned()).as_deref() {
            None => Err(Misunderstood::Nothing),
            Some("version") => Ok(Words::Version),
            Some("compile") => Ok(Words::Compile { module: words.path()? }),
            Some("run") => words.job(),
            Some("serve") => words.offer(),
            Some(other) => Err(Misunderstood::Word(other.to_owned())),
        }
    }
}

struct Reader<W> {
    words: W,
    last: String,
}

impl<W: Iterator<Item = OsString>> Reader<W> {
    fn next(&mut self) -> Option<OsString> {
        let word = self.words.next()?;
        self.last = word.to_string_lossy().into_owned();
        Some(word)
    }

    fn path(&mut self) -> Result<PathBuf, Misunderstood> {
        let after = self.last.clone();
        self.next().map(PathBuf::from).ok_or(Misunderstood::Missing(after))
    }

    fn number(&mut self) -> Result<u64, Misunderstood> {
        let after = self.last.clone();
        let word = self.next().ok_or(Misunderstood::Missing(after))?;
        word.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| Misunderstood::Word(self.last.clone()))
    }

    /// A word about surroundings; false if it is about something else.
    fn surroundings(&mut self, word: &str, into: &mut Surroundings) -> Result<bool, Misunderstood> {
        match word {
            "--read" => into.folders.push(self.folder(Kind::Read)?),
            "--write" => into.folders.push(self.folder(Kind::Write)?),
            "--scratch" => into.folders.push(self.folder(Kind::Scratch)?),
            "--memory" => into.memory = self.number()?,
            "--network" => into.network = true,
            "--directory" => into.directory = Some(self.path()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn folder(&mut self, kind: Kind) -> Result<Folder, Misunderstood> {
        Ok(Folder { kind, from: self.path()?, name: self.path()? })
    }

    fn job(mut self) -> Result<Words, Misunderstood> {
        let mut surroundings = Surroundings::default();
        let mut program = None;
        while let Some(word) = self.next() {
            match word.to_string_lossy().as_ref() {
                "--module" => program = Some(Source::Module(self.path()?)),
                "--compiled" => program = Some(Source::Compiled(self.path()?)),
                "--" => {
                    let program = program.ok_or_else(|| Misunderstood::Missing("run".to_owned()))?;
                    return Ok(Words::Run(Job { program, surroundings, arguments: self.words.collect() }));
                }
                other if self.surroundings(other, &mut surroundings)? => {}
                other => return Err(Misunderstood::Word(other.to_owned())),
            }
        }
        Err(Misunderstood::Missing(self.last))
    }

    fn offer(mut self) -> Result<Words, Misunderstood> {
        let mut offer = Offer { programs: Vec::new(), surroundings: Surroundings::default(), time: LONGEST };
        while let Some(word) = self.next() {
            match word.to_string_lossy().as_ref() {
                "--compiled" => offer.programs.push(self.path()?),
                "--milliseconds" => offer.time = Duration::from_millis(self.number()?),
                other if self.surroundings(other, &mut offer.surroundings)? => {}
                other => return Err(Misunderstood::Word(other.to_owned())),
            }
        }
        Ok(Words::Serve(offer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Words, Misunderstood> {
        Words::read(words.iter().map(OsString::from))
    }

    #[test]
    fn a_job_is_read_whole_and_the_modules_own_words_are_left_alone() {
        let words = ["run", "--compiled", "/a", "--read", "/x", "/y", "--memory", "7", "--", "name", "--memory", "x"];
        let Ok(Words::Run(job)) = read(&words) else { unreachable!("it is understood") };
        assert_eq!(job.program, Source::Compiled("/a".into()));
        assert_eq!(job.surroundings.folders, [Folder { kind: Kind::Read, from: "/x".into(), name: "/y".into() }]);
        assert_eq!((job.surroundings.memory, job.surroundings.network), (7, false));
        assert_eq!(job.arguments, ["name", "--memory", "x"]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert_eq!(read(&[]), Err(Misunderstood::Nothing));
        assert!(matches!(read(&["walk"]), Err(Misunderstood::Word(_))));
        assert!(matches!(read(&["run", "--open", "/", "--"]), Err(Misunderstood::Word(_))));
        assert!(matches!(read(&["run", "--module", "/a", "--memory", "much", "--"]), Err(Misunderstood::Word(_))));
        assert!(matches!(read(&["run", "--"]), Err(Misunderstood::Missing(_))));
        assert!(matches!(read(&["run", "--module", "/a"]), Err(Misunderstood::Missing(_))));
        assert!(matches!(read(&["compile"]), Err(Misunderstood::Missing(_))));
    }
}
