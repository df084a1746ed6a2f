//! Thousands of refused calls, from ever new processes with ever new names: each wants a line in the report.

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

const PROCESSES: u64 = 600;
const CALLS: u64 = 10;

pub const ATTACK: Attack = Attack {
    id: "resources/denial_flood",
    wall: Wall::SystemCalls,
    about: "blow up the supervisor and its report with 6,000 refused calls under 600 names",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |_| {
        for number in 0..PROCESSES {
            let child = support::fork(|| {
                let name = format!("flood-{number}\0");
                for _ in 0..CALLS {
                    let named = call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, name.as_ptr() as u64, 0, 0, 0, 0]);
                    let refused = call(libc::SYS_swapoff, [0; 6]);
                    if named.is_err() || refused.is_ok() {
                        std::process::exit(1);
                    }
                }
            })?;
            support::wait(child)?;
        }
        Ok(())
    },
    judge: Some(|_, run| {
        if run.result.is_null() {
            return Verdict::Held;
        }
        let size = run.result.to_string().len();
        let listed = run.result["denials"].as_array().map_or(0, Vec::len);
        let times = |denial: &serde_json::Value| denial["times"].as_u64().unwrap_or(0);
        let counted: u64 = run.result["denials"].as_array().into_iter().flatten().map(times).sum();
        let counted = counted + run.result["denials_not_listed"].as_u64().unwrap_or(0);
        if size > 128 << 10 || listed > 200 {
            return Verdict::Broken(format!("a report of {size} bytes with {listed} refusals"));
        }
        match counted == PROCESSES * CALLS {
            true => Verdict::Held,
            false => Verdict::Unclear(format!("{counted} of {} refusals counted", PROCESSES * CALLS)),
        }
    }),
    control: Control::None("without a sandbox there is no report to blow up"),
};
