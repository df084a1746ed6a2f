//! The matrix of attacks as modules: on nobody, and on the wasm backend.

use testkit::module_attacks::{self, ALL, ModuleAttack};
use testkit::{Verdict, Who};

use super::matrix::Cell;

/// Columns: the control, and belljar as each user.
const COLUMNS: [(&str, Option<Who>); 3] =
    [("no sandbox", None), ("belljar wasm (root)", Some(Who::Root)), ("belljar wasm (user)", Some(Who::Ordinary))];

/// What the tests demand.
pub fn demanded() -> String {
    table(|_, who| if who.is_some() { Cell::Held } else { Cell::Broken })
}

/// As they answer here, one after the other: some are about time.
pub fn tried() -> String {
    table(|attack, who| {
        let verdict = match who {
            None => module_attacks::control(attack, Who::Ordinary),
            Some(who) => module_attacks::trials(attack, who),
        };
        let cell = match &verdict {
            Verdict::Held => Cell::Held,
            Verdict::Broken(_) => Cell::Broken,
            Verdict::Unclear(_) => Cell::Unclear,
        };
        let wanted = if who.is_some() { Cell::Held } else { Cell::Broken };
        if cell != wanted {
            println!("{} as {}: {verdict:?}", attack.id, who.map_or("the control", Who::name));
        }
        cell
    })
}

fn table(cell: impl Fn(&ModuleAttack, Option<Who>) -> Cell) -> String {
    let row = |part: &dyn Fn(&str, Option<Who>) -> String| -> String {
        COLUMNS.iter().map(|(title, who)| part(title, *who)).collect()
    };
    let mut text = format!("### modules\n\n| Attack | Wall |{}\n", row(&|title, _| format!(" {title} |")));
    text += &format!("|:--|:--|{}\n", row(&|_, _| ":--|".to_owned()));
    for attack in ALL {
        let cells = row(&|_, who| format!(" {} |", cell(attack, who).text()));
        text += &format!("| {} | {} |{cells}\n", attack.about, attack.wall);
    }
    text += "\nAll other attacks make system calls, which a module has no way to make: there is nothing to be tried. *Held* means held\n\
             as a module of preview 1 and as a component. The control is the same program, built for the machine.\n";
    text
}
