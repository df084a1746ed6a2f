//! A process name that would be a command to the terminal on which the report is read.

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/name_on_terminal",
    wall: Wall::Terminal,
    about: "put terminal commands into the report by way of a process name",
    flags: &["--json"],
    prepare: |_| Ok(()),
    inside: |_| {
        // Erases, renames the window and goes back in the line.
        for name in [c"\x1b[2J\x1b]0;x\x07", c"\xc2\x9b2J\r\x08z", c"\xff\xfe\n\n"] {
            // A process each: a second refusal of the same process is only counted.
            let child = support::fork(|| {
                let named = call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, name.as_ptr() as u64, 0, 0, 0, 0]);
                let refused = call(libc::SYS_swapoff, [0; 6]);
                if named.is_err() || refused.is_ok() {
                    std::process::exit(1);
                }
            })?;
            support::wait(child)?;
        }
        Ok(())
    },
    judge: Some(|_, run| {
        let shown = String::from_utf8_lossy(&run.stderr);
        let denials = run.result["denials"].as_array().cloned().unwrap_or_default();
        let names = denials.iter().filter_map(|denial| denial["program"].as_str());
        for text in names.chain([shown.trim_end()]) {
            if let Some(letter) = text.chars().find(|letter| letter.is_control()) {
                return Verdict::Broken(format!("{letter:?} got into the report: {text:?}"));
            }
        }
        match run.result.is_null() || denials.len() == 3 {
            true => Verdict::Held,
            false => Verdict::Unclear(format!("{} refusals", denials.len())),
        }
    }),
    control: Control::None("without a sandbox there is no report"),
};
