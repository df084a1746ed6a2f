//! The caller's terminal while the container has one of its own: raw, and put back in the end.

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

pub struct Screen {
    before: Option<Termios>,
}

impl Screen {
    pub fn take() -> Screen {
        let caller = rustix::stdio::stdin();
        let before = tcgetattr(caller).ok().filter(|set| {
            let mut raw = set.clone();
            raw.make_raw();
            // A terminal that can't be made raw still works, line by line.
            tcsetattr(caller, OptionalActions::Now, &raw).is_ok()
        });
        Screen { before }
    }

    /// Rows and columns of the caller's terminal.
    pub fn size() -> Option<(u16, u16)> {
        let outer = [rustix::stdio::stdout(), rustix::stdio::stdin(), rustix::stdio::stderr()];
        let size = tcgetwinsize(outer.into_iter().find(|fd| isatty(fd))?).ok()?;
        Some((size.ws_row, size.ws_col)).filter(|(rows, columns)| *rows > 0 && *columns > 0)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before).is_err()
        {
            // The caller's terminal has gone away; there is nothing to put back.
        }
    }
}
