//! Walks all numbers of system calls, known and unknown, and those of the x32 ABI, with arguments that are bad for
//! anyone. Those that the kernel answers must be on the published list.

use model::Wall;

use super::support::{BAD, answer, is_refusal, judge_by_loot};
use crate::{Attack, Control};

const X32: u32 = 0x4000_0000;

/// Numbers that `native::calls` lets through, always or for some arguments, as first and last of a run. Written
/// out once more: who changes the one has to mean it here as well.
const PUBLISHED: &[(u32, u32)] = &[
    (0, 102),
    (104, 133),
    (135, 135),
    (137, 138),
    (140, 152),
    (157, 158),
    (160, 160),
    (162, 162),
    (186, 204),
    (206, 210),
    (213, 213),
    (216, 226),
    (228, 235),
    (237, 245),
    (247, 247),
    (251, 255),
    (257, 278),
    (280, 297),
    (299, 299),
    (302, 302),
    (306, 307),
    (309, 312),
    (314, 319),
    (322, 322),
    (324, 334),
    (424, 424),
    (434, 434),
    (436, 436),
    (438, 441),
    (444, 446),
    (448, 449),
    (451, 456),
    (462, 462),
];

/// uretprobe and uprobe: the kernel lets them pass every filter since 6.14, and answers them only where it has put
/// the calling instruction itself.
const PAST_ALL_FILTERS: [u32; 2] = [335, 336];

pub const ATTACK: Attack = Attack {
    id: "kernel/walk",
    wall: Wall::SystemCalls,
    about: "reach any call that is not on the published list, by number, from 0 to 1023 and among x32's",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        // Listed ones are left out: with bad arguments some of them would hit whoever stands near.
        let closed = (0..1024).filter(|number| !PUBLISHED.iter().any(|(from, to)| (from..=to).contains(&number)));
        let closed = closed.filter(|number| !PAST_ALL_FILTERS.contains(number));
        for number in closed.chain((0..600).map(|number| number | X32)) {
            let answer = answer(libc::c_long::from(number), [BAD; 6])?;
            if !is_refusal(answer) {
                inside.loot(format!("{number} answered {answer}\n"))?;
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
