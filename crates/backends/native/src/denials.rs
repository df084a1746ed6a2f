//! Refused calls: answered, recorded once each, counted after that.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use model::{Denial, Wall};
use sys::seccomp::{self, Answer, Asked};

use crate::calls;
use crate::programs::Programs;

/// What has been refused so far. Bounded, whatever the guest does.
#[derive(Default)]
pub struct Denials {
    pub list: Vec<Denial>,
    pub not_listed: u64,
    answered: u64,
}

const MOST_LISTED: usize = 200;
const MOST_OF_ONE: usize = 20;
/// From here on every answer is late: whoever asks this often would otherwise keep us as busy as itself.
const PATIENCE: u64 = 2_000;
const PAUSE: Duration = Duration::from_millis(1);

impl Denials {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.list.iter().map(|denial| denial.times).sum::<u64>() + self.not_listed
    }

    /// Answers one waiting call. `programs` is told of those that start one.
    pub fn answer_next(&mut self, listener: BorrowedFd<'_>, programs: &mut Programs) -> io::Result<()> {
        let Some(asked) = seccomp::receive(listener)? else {
            return Ok(());
        };
        let answer = calls::answer(&asked);
        if answer == Answer::Proceed {
            let told = programs.note(listener, &asked);
            // Even if it could not be told: whoever waits must not wait for ever. Then the run ends.
            seccomp::answer(listener, &asked, answer)?;
            programs.rest();
            return told.map_err(|trouble| io::Error::other(trouble.to_string()));
        }
        if answer != Answer::Pretend {
            self.record(&asked, || {
                let program = program_of(asked.thread);
                // Read, then asked whether it was about the caller: a number can come to mean somebody else.
                if seccomp::still_waits(listener, &asked) { program } else { "(ended)".to_owned() }
            });
        }
        self.answered += 1;
        if self.answered > PATIENCE {
            std::thread::sleep(PAUSE);
        }
        seccomp::answer(listener, &asked, answer)
    }

    /// `program` is only looked up for what is new.
    pub fn record(&mut self, asked: &Asked, program: impl FnOnce() -> String) {
        let (call, detail) = calls::describe(asked);
        let known = self
            .list
            .iter_mut()
            .find(|known| known.process == asked.thread && known.call == call && known.detail == detail);
        if let Some(known) = known {
            known.times += 1;
            return;
        }
        let program = program();
        let alike =
            self.list.iter_mut().find(|known| known.program == program && known.call == call && known.detail == detail);
        if let Some(known) = alike {
            known.times += 1;
            return;
        }
        // One that is refused in ever new ways must not push others off the list.
        let same_call = self.list.iter().filter(|known| known.call == call).count();
        if same_call >= MOST_OF_ONE || self.list.len() >= MOST_LISTED {
            self.not_listed += 1;
            return;
        }
        self.list.push(Denial { wall: Wall::SystemCalls, call, detail, program, process: asked.thread, times: 1 });
    }
}

fn program_of(thread: i32) -> String {
    program_name(&std::fs::read(format!("/proc/{thread}/comm")).unwrap_or_default())
}

/// From /proc/PID/comm. The guest chooses its name: nothing of it may reach a terminal as it is.
pub fn program_name(comm: &[u8]) -> String {
    let name = String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(comm));
    name.chars().map(|letter| if letter == ' ' || letter.is_ascii_graphic() { letter } else { '?' }).collect()
}
