//! Writes more than anybody wants to read, and must neither get it all out nor be kept waiting.

use std::io::Write;

use model::Wall;

use crate::{Attack, Control, Verdict};

const WRITTEN: usize = 8 << 20;

pub const ATTACK: Attack = Attack {
    id: "resources/output_flood",
    wall: Wall::Disk,
    about: "write 8 MiB to standard output and to standard error with --output 1M",
    flags: &["--output", "1M"],
    prepare: |_| Ok(()),
    inside: |_| {
        let line = vec![b'x'; WRITTEN];
        std::io::stdout().write_all(&line)?;
        std::io::stderr().write_all(&line)
    },
    judge: Some(|_, run| {
        for (name, output) in [("output", &run.stdout), ("error", &run.stderr)] {
            if output.len() > (1 << 20) + 1024 {
                return Verdict::Broken(format!("{} bytes of {name} got through", output.len()));
            }
        }
        let dropped = run.result["output_dropped"].as_u64();
        let all = run.result.is_null() || dropped == Some(2 * (WRITTEN as u64 - (1 << 20)));
        if all { Verdict::Held } else { Verdict::Unclear(format!("{dropped:?} dropped")) }
    }),
    control: Control::Bare,
};
