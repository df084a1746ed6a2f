//! A process name that would be a command to the terminal on which the report is read.

use model::Wall;

use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/name_on_terminal",
    wall: Wall::Terminal,
    about: "put terminal commands into the report by way of a process name",
    flags: &["--json"],
    prepare: |_| Ok(()),
    inside: |_| {
        // Erases, renames the window, goes back in the line, and turns the direction of writing.
        for name in [c"\x1b[2J\x1b]0;x\x07", c"\xc2\x9b2J\r\x08z", c"\xe2\x80\xaetxt.exe", c"\xff\xfe\n\n"] {
            call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, name.as_ptr() as u64, 0, 0, 0, 0])?;
            if call(libc::SYS_swapoff, [0; 6]).is_ok() {
                return Err(std::io::Error::other("it was not refused"));
            }
        }
        Ok(())
    },
    judge: Some(|_, run| {
        let shown = String::from_utf8_lossy(&run.stderr);
        let denials = run.result["denials"].as_array().cloned().unwrap_or_default();
        let names = denials.iter().filter_map(|denial| denial["program"].as_str());
        for text in names.chain([shown.trim_end()]) {
            let dangerous = |letter: char| {
                letter.is_control()
                    || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            if let Some(letter) = text.chars().find(|letter| dangerous(*letter)) {
                return Verdict::Broken(format!("{letter:?} got into the report: {text:?}"));
            }
        }
        match run.result.is_null() || !denials.is_empty() {
            true => Verdict::Held,
            false => Verdict::Unclear("nothing was refused".to_owned()),
        }
    }),
    control: Control::None("without a sandbox there is no report"),
};
