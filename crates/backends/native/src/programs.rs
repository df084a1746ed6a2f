//! Programs that are started inside: who, by whom, with which words. Seen when the kernel is asked to start them.
//!
//! Whoever asks could change the words in memory between our look and the kernel's, with a second thread. So this tells
//! what was asked for; nothing is decided by it.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use model::{Goes, Sample, Started, Trouble, Wall, Witness};
use sys::memory;
use sys::seccomp::{self, Asked};
use syscalls::Sysno as Call;

/// Of one run: more are counted. A build has thousands; whoever starts more has something else in mind.
const MOST: u64 = 20_000;
const MOST_WORDS: usize = 64;
const LONGEST_WORD: usize = 512;
const SHORT_WORD: usize = 64;
const PAGE: u64 = 4096;
/// That wait to be told, and for how long.
const MOST_WAITING: usize = 200;
const LONGEST_WAIT: Duration = Duration::from_millis(200);

pub struct Programs {
    witness: Option<Box<dyn Witness>>,
    /// Words of what is ours to start: the memory of whoever starts it is nobody's to look at.
    ours: VecDeque<Vec<String>>,
    /// Where more than the first is ours to start, who starts them.
    starter: Option<Starter>,
    /// Who starts the first of all others, where that is nobody who stays.
    first_process: Option<i32>,
    /// What a carrier starts is part of it, and what is started behind it is not seen.
    only_first: bool,
    seen: u64,
    /// Not told yet, in their order: an attempt may turn out to have failed.
    waiting: Vec<Attempt>,
    since: Option<Instant>,
}

/// A first process that stays.
struct Starter {
    process: i32,
    /// What it runs itself.
    program: Option<PathBuf>,
}

impl Starter {
    /// Whether it is the first process that asks, or rather what it made to become the program. Somebody else's child
    /// that became the first's could only pass for it by giving up to be looked at, and then tells a lie about itself.
    fn began(&self, (parent, runs): &(Option<i32>, Option<PathBuf>)) -> bool {
        *parent == Some(self.process) && (runs.is_none() || *runs == self.program)
    }
}

struct Attempt {
    started: Started,
    /// What its process ran when it asked.
    instead_of: Option<PathBuf>,
}

impl Programs {
    /// `proven`: the walls that were tried before any of them.
    pub fn new(
        mut witness: Option<Box<dyn Witness>>,
        first: Vec<String>,
        proven: &[Wall],
        only_first: bool,
    ) -> Programs {
        if let Some(witness) = &mut witness {
            witness.armed(proven);
        }
        let ours = VecDeque::from([first]);
        let (starter, first_process) = (None, None);
        Programs { witness, ours, starter, first_process, only_first, seen: 0, waiting: Vec::new(), since: None }
    }

    /// The first is started by this process, by no other name than its own: the kernel need not be asked about it.
    pub fn started_by(self, first_process: i32) -> Programs {
        Programs { first_process: Some(first_process), ..self }
    }

    /// Of a sandbox whose first process stays, as `process`, and starts what is expected.
    pub fn of_a_host(witness: Option<Box<dyn Witness>>, proven: &[Wall], process: i32) -> Programs {
        let program = std::fs::read_link("/proc/self/exe").ok();
        let starter = Some(Starter { process, program });
        Programs { ours: VecDeque::new(), starter, ..Programs::new(witness, Vec::new(), proven, false) }
    }

    /// Of a sandbox in which somebody is already who becomes `words` without the kernel being asked.
    pub fn of_a_copy(witness: Option<Box<dyn Witness>>, proven: &[Wall], words: Vec<String>, parent: i32) -> Programs {
        let mut cut = false;
        let arguments: Vec<String> = words.into_iter().map(|word| shortened(word, &mut cut)).collect();
        let program = arguments.first().cloned().unwrap_or_default();
        let (at, process, parent) = (SystemTime::now(), parent, None);
        let first = Attempt { started: Started { at, process, parent, program, arguments, cut }, instead_of: None };
        let programs = Programs::new(witness, Vec::new(), proven, false);
        Programs { ours: VecDeque::new(), seen: 1, waiting: vec![first], since: Some(Instant::now()), ..programs }
    }

    /// These words are those of the next that the first process starts.
    pub fn expect(&mut self, words: Vec<String>) {
        self.ours.push_back(words);
    }

    /// The oldest of those expected was not started.
    pub fn expect_no_more(&mut self) {
        self.ours.pop_front();
    }

    /// Notes one that is about to be started.
    pub fn note(&mut self, listener: BorrowedFd<'_>, asked: &Asked) -> Result<(), Trouble> {
        let look = || (parent_of(asked.thread), std::fs::read_link(format!("/proc/{}/exe", asked.thread)).ok());
        let mut looked = None;
        let is_ours = match &self.starter {
            _ if self.ours.is_empty() => false,
            None => true,
            Some(starter) => starter.began(looked.insert(look())),
        };
        let first = if is_ours { self.ours.pop_front() } else { None };
        if self.only_first && first.is_none() {
            return Ok(());
        }
        let Some(witness) = &mut self.witness else { return Ok(()) };
        self.seen += 1;
        if self.seen > MOST {
            witness.one_more();
            return Ok(());
        }
        let known = self.first_process.filter(|_| first.is_some());
        let (program, mut arguments, mut cut) = match first {
            Some(words) => {
                let mut cut = false;
                let words: Vec<String> = words.into_iter().map(|word| shortened(word, &mut cut)).collect();
                (words.first().cloned().unwrap_or_default(), words, cut)
            }
            None => words(asked),
        };
        if arguments.len() > MOST_WORDS {
            arguments.truncate(MOST_WORDS);
            cut = true;
        }
        let (parent, instead_of) = match known {
            Some(_) => (known, None),
            None => looked.unwrap_or_else(look),
        };
        // Read, then asked whether it was about the caller: a number can come to mean somebody else.
        if !seccomp::still_waits(listener, asked) {
            return Ok(());
        }
        // Whoever looks along PATH asks for one after the other. That it asks again, with the same words and as the
        // same program, says that the one before was not there.
        let same = |known: &Attempt| known.started.process == asked.thread;
        if let Some(last) = self.waiting.iter().rposition(same)
            && self.waiting[last].started.arguments == arguments
            && self.waiting[last].instead_of == instead_of
        {
            self.waiting.remove(last);
        }
        let started = Started { at: SystemTime::now(), process: asked.thread, parent, program, arguments, cut };
        self.waiting.push(Attempt { started, instead_of });
        self.since.get_or_insert_with(Instant::now);
        if self.waiting.len() >= MOST_WAITING { self.tell() } else { Ok(()) }
    }

    /// The first of them goes its way: a moment in which nobody waits for us.
    pub fn rest(&mut self) {
        if self.seen == 1
            && let Some(witness) = &mut self.witness
        {
            witness.resting();
        }
    }

    /// Tells what is used so far, and before that what was started.
    pub fn sampled(&mut self, sample: &Sample) -> Result<Goes, Trouble> {
        self.tell()?;
        self.witness.as_mut().map_or(Ok(Goes::On), |witness| witness.sampled(sample))
    }

    /// When those that wait should be told.
    pub fn next(&self) -> Option<Instant> {
        self.since.map(|since| since + LONGEST_WAIT)
    }

    /// No more will come.
    pub fn ending(&mut self) {
        if let Some(witness) = &mut self.witness {
            witness.ending();
        }
    }

    pub fn tell(&mut self) -> Result<(), Trouble> {
        self.tell_all(false)
    }

    /// There will be no more.
    pub fn tell_last(&mut self) -> Result<(), Trouble> {
        self.tell_all(true)
    }

    fn tell_all(&mut self, last: bool) -> Result<(), Trouble> {
        self.since = None;
        let started: Vec<Started> = self.waiting.drain(..).map(|attempt| attempt.started).collect();
        match &mut self.witness {
            Some(witness) if !started.is_empty() => witness.started(started, last),
            _ => Ok(()),
        }
    }
}

fn shortened(mut word: String, cut: &mut bool) -> String {
    if word.len() > LONGEST_WORD {
        word.truncate(word.floor_char_boundary(LONGEST_WORD));
        *cut = true;
    }
    word
}

/// The program's path and its words, as far as they can be read, and whether some are missing.
fn words(asked: &Asked) -> (String, Vec<String>, bool) {
    // execveat has a folder first.
    let at = usize::from(asked.number == Call::execveat.id() as u32);
    let mut cut = false;
    let program = text(asked.thread, asked.arguments[at], &mut cut);
    let mut pointers = [0u8; (MOST_WORDS + 1) * 8];
    let read = memory::read_of(asked.thread, asked.arguments[at + 1], &mut pointers).unwrap_or(0);
    let addresses =
        pointers[..read].chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    let addresses: Vec<u64> = addresses.take_while(|address| *address != 0).collect();
    let ended = addresses.len() < read / 8;
    let addresses = &addresses[..addresses.len().min(MOST_WORDS)];
    // Most words are short, and all of those are read with one call.
    let mut starts = [0u8; MOST_WORDS * SHORT_WORD];
    let there = memory::read_parts_of(asked.thread, addresses, SHORT_WORD, &mut starts).unwrap_or(0);
    let short = starts.chunks_exact(SHORT_WORD).take(there).map(|start| {
        let end = start.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&start[..end]).into_owned())
    });
    let mut arguments = Vec::with_capacity(addresses.len());
    for (address, short) in addresses.iter().zip(short.chain(std::iter::repeat(None))) {
        arguments.push(short.unwrap_or_else(|| text(asked.thread, *address, &mut cut)));
    }
    (program, arguments, cut || !ended)
}

/// Up to its zero byte, or to as much of it as somebody reads.
fn text(process: i32, address: u64, cut: &mut bool) -> String {
    let mut bytes = Vec::new();
    let mut place = address;
    while bytes.len() < LONGEST_WORD {
        // Not over the end of a page: the next one may not be there.
        let most = (PAGE - place % PAGE).min((LONGEST_WORD - bytes.len()) as u64);
        let mut part = vec![0; usize::try_from(most).unwrap_or(0)];
        let Ok(count @ 1..) = memory::read_of(process, place, &mut part) else {
            break;
        };
        if let Some(end) = part[..count].iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&part[..end]);
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        bytes.extend_from_slice(&part[..count]);
        place += count as u64;
    }
    *cut = true;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The fourth word of its line, which comes after a name that may have anything in it.
fn parent_of(process: i32) -> Option<i32> {
    let stat = sys::paths::read_short(format!("/proc/{process}/stat").as_ref()).ok()?;
    let after = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    std::str::from_utf8(after).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}
