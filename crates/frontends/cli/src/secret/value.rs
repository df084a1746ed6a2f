//! Reads the value of a secret: from a terminal that does not show it, or from standard input. All that held it is wiped.

use std::io::Write;
use std::os::fd::BorrowedFd;

use model::{LONGEST_SECRET, SecretText, Trouble};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcsetattr,
};
use zeroize::Zeroizing;

/// A value and the end of its line.
const MOST: usize = LONGEST_SECRET + 2;

pub fn read(name: &str) -> Result<SecretText, Trouble> {
    let input = rustix::stdio::stdin();
    let bytes = match isatty(input) {
        true => typed(input, name)?,
        false => given(input)?,
    };
    SecretText::read(&bytes).map_err(|why| Trouble {
        message: format!("the value of `{name}` can't be used: {why}"),
        fix: "give it as one line, without anything around it; nothing was changed".to_owned(),
    })
}

/// All of the input. Not by the standard library, which would keep a copy.
fn given(input: BorrowedFd<'_>) -> Result<Zeroizing<Vec<u8>>, Trouble> {
    let mut bytes = Zeroizing::new(vec![0; MOST + 1]);
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::read(input, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(unheard(error)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// A line from the terminal. Letter by letter: a terminal that edits lines itself cuts them off after 4095.
fn typed(input: BorrowedFd<'_>, name: &str) -> Result<Zeroizing<Vec<u8>>, Trouble> {
    let quiet = Quiet::make(input).map_err(unheard)?;
    tell(&format!("value of {name} (it is not shown): "));
    let line = letters(input);
    drop(quiet);
    // The end of the line was not shown either.
    tell("\n");
    line?.ok_or_else(|| Trouble {
        message: "no value was given".to_owned(),
        fix: "nothing was changed; do it again, or give it on standard input".to_owned(),
    })
}

/// `None`: the person would rather not.
fn letters(input: BorrowedFd<'_>) -> Result<Option<Zeroizing<Vec<u8>>>, Trouble> {
    let mut line = Zeroizing::new(Vec::with_capacity(MOST + 1));
    let mut part = Zeroizing::new([0u8; 1024]);
    loop {
        let count = match rustix::io::read(input, &mut part[..]) {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(unheard(error)),
        };
        for byte in &part[..count] {
            match byte {
                b'\n' | b'\r' => return Ok(Some(line)),
                // Ctrl-C, Ctrl-\, and Ctrl-D before anything else.
                3 | 28 => return Ok(None),
                4 if line.is_empty() => return Ok(None),
                8 | 127 => drop(line.pop()),
                21 => line.clear(),
                // What is too long is refused as such; more of it says no more.
                _ if line.len() > MOST => {}
                byte => line.push(*byte),
            }
        }
    }
}

/// A terminal that shows nothing of what is typed, and hands over every key, also those that would end us: so it is always
/// made as it was.
struct Quiet<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn make(terminal: BorrowedFd<'a>) -> Result<Quiet<'a>, Errno> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        quiet.input_modes -= InputModes::IXON;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before it was asked for was shown, and is thrown away.
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Quiet { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        if tcsetattr(self.terminal, OptionalActions::Flush, &self.before).is_err() {
            crate::words::say("belljar: the terminal could not be made as it was; type `stty sane`");
        }
    }
}

/// Who does not see the question is still not shown what they type.
fn tell(text: &str) {
    let mut out = std::io::stderr();
    match out.write_all(crate::words::line(text.trim_end_matches('\n')).as_bytes()) {
        Ok(()) | Err(_) => {}
    }
    if text.ends_with('\n') {
        match out.write_all(b"\n") {
            Ok(()) | Err(_) => {}
        }
    }
}

fn unheard(error: Errno) -> Trouble {
    Trouble {
        message: format!("the value can't be read from standard input: {error}"),
        fix: "type it at a terminal, or give it through a pipe".to_owned(),
    }
}
