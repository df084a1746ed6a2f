//! Writes the run's result itself, so that the caller reads what the attacker likes.

use std::fs;

use model::Wall;

use crate::{Attack, Control, Verdict};

const FORGED: &str = r#"{"version":1,"outcome":"ran","code":0,"exit":0,"forged":true}"#;

pub const ATTACK: Attack = Attack {
    id: "resources/forge_result",
    wall: Wall::Files,
    about: "overwrite the result that the supervisor writes",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let result = inside.workspace.with_file_name("result.json");
        // By its name, and through every descriptor that may have been left open.
        for descriptor in 3..64 {
            if fs::write(format!("/proc/self/fd/{descriptor}"), FORGED).is_ok() {
                // Which it was, the host will see.
            }
        }
        println!("{FORGED}");
        fs::write(result, FORGED)
    },
    judge: Some(|field, run| {
        let text = fs::read_to_string(field.root.join("result.json")).unwrap_or_default();
        match text.contains("forged") || run.result["forged"] == true {
            true => Verdict::Broken("the result is the attacker's".to_owned()),
            false => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
