//! Reads where in the host's control groups it is: services and containers have their names there.

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

const NAMED: &str = "group";

pub const ATTACK: Attack = Attack {
    id: "files/control_group_path",
    wall: Wall::ControlGroups,
    about: "read one's place in the host's control groups",
    flags: &[],
    prepare: |field| {
        let places = std::fs::read_to_string("/proc/self/cgroup")?;
        let longest = places.lines().filter_map(|line| line.splitn(3, ':').nth(2)).max_by_key(|place| place.len());
        field.tell(NAMED, longest.unwrap_or_default());
        Ok(())
    },
    inside: |inside| {
        let names = ["self/cgroup", "thread-self/cgroup", "1/cgroup", "self/mountinfo", "self/mounts", "self/cpuset"];
        support::steal_any(inside, names.map(|name| format!("/proc/{name}").into()))
    },
    judge: Some(|field, _| {
        let place = field.hint(NAMED).unwrap_or_default();
        let loot = String::from_utf8_lossy(&field.loot()).into_owned();
        match (place.len() > 1, loot.contains(&place)) {
            (false, _) => Verdict::Unclear("this host keeps everything in the first group".to_owned()),
            (true, true) => Verdict::Broken(format!("its place `{place}` was read")),
            (true, false) => Verdict::Held,
        }
    }),
    // A host may keep everything in its first group; ours names the session's.
    control: Control::Bare,
};
