//! A process name that turns the direction of writing, so that the report reads as something else.

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/name_turns_the_line",
    wall: Wall::Terminal,
    about: "turn the direction of writing in the report by way of a process name",
    flags: &["--json"],
    prepare: |_| Ok(()),
    inside: |_| {
        for name in [c"\xe2\x80\xaetxt.exe", c"\xe2\x81\xa6gnp.sh"] {
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
            let dangerous = |letter: char| {
                letter.is_control()
                    || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            if let Some(letter) = text.chars().find(|letter| dangerous(*letter)) {
                return Verdict::Broken(format!("{letter:?} got into the report: {text:?}"));
            }
        }
        match run.result.is_null() || denials.len() == 2 {
            true => Verdict::Held,
            false => Verdict::Unclear(format!("{} refusals", denials.len())),
        }
    }),
    control: Control::None("without a sandbox there is no report"),
};
