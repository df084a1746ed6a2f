//! Verdicts as a table in Markdown, and back.

use std::collections::HashMap;
use std::fmt::Write;

use testkit::escapes::InAContainer;
use testkit::{Attack, Contestant, Control, Who, escapes};

pub const BEGIN: &str = "<!-- matrix:begin -->";
pub const END: &str = "<!-- matrix:end -->";

/// The column that needs an engine.
pub const CONTAINER: &str = "belljar container (user)";

/// One column: who is attacked, and as whom.
#[derive(Clone, Copy)]
pub struct Column {
    pub key: &'static str,
    pub contestant: Contestant,
    pub who: Who,
}

pub const COLUMNS: &[Column] = &[
    Column { key: "no sandbox", contestant: Contestant::Bare, who: Who::Ordinary },
    Column { key: "belljar (root)", contestant: Contestant::Belljar, who: Who::Root },
    Column { key: "belljar (user)", contestant: Contestant::Belljar, who: Who::Ordinary },
    Column { key: "belljar gvisor (root)", contestant: Contestant::Gvisor, who: Who::Root },
    Column { key: "belljar gvisor (user)", contestant: Contestant::Gvisor, who: Who::Ordinary },
    // Root's own files are not granted to a container: the field is the ordinary user's.
    Column { key: CONTAINER, contestant: Contestant::Container, who: Who::Ordinary },
    Column { key: "bubblewrap", contestant: Contestant::Bubblewrap, who: Who::Ordinary },
    Column { key: "srt", contestant: Contestant::Srt, who: Who::Ordinary },
    Column { key: "codex", contestant: Contestant::Codex, who: Who::Ordinary },
];

/// The heading of a column, with the version for peers; `None` if not installed.
pub fn heading(column: Column) -> Option<String> {
    match column.contestant {
        Contestant::Bare | Contestant::Belljar | Contestant::Gvisor | Contestant::Container => {
            Some(column.key.to_owned())
        }
        peer => peer.version().map(|version| format!("{} {version}", column.key)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Held,
    Broken,
    Unclear,
    /// Not tried.
    Not,
}

impl Cell {
    /// What a trial in another process answered.
    pub fn from_answer(answer: &str) -> Cell {
        match answer.split_whitespace().next() {
            Some("held") => Cell::Held,
            Some("broken") => Cell::Broken,
            Some("none") => Cell::Not,
            _ => Cell::Unclear,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Cell::Held => "held",
            Cell::Broken => "**broken**",
            Cell::Unclear => "unclear",
            Cell::Not => "–",
        }
    }

    fn parse(text: &str) -> Cell {
        let known = [Cell::Held, Cell::Broken, Cell::Unclear, Cell::Not];
        known.into_iter().find(|cell| cell.text() == text).unwrap_or(Cell::Unclear)
    }
}

pub struct Matrix {
    attacks: Vec<&'static Attack>,
    /// With the heading as shown.
    columns: Vec<(&'static Column, String)>,
    /// By the attack's sentence, which is what the table shows, and the column's key.
    cells: HashMap<(String, &'static str), Cell>,
    /// Columns that were not tried here, but taken over.
    kept: Vec<&'static str>,
}

impl Matrix {
    pub fn of(attacks: Vec<&'static Attack>) -> Matrix {
        let columns = COLUMNS.iter().filter_map(|column| Some((column, heading(*column)?))).collect();
        Matrix { attacks, columns, cells: HashMap::new(), kept: Vec::new() }
    }

    pub fn parse(text: &str) -> Matrix {
        let mut columns: Vec<(&'static Column, String)> = Vec::new();
        let mut cells = HashMap::new();
        for line in text.lines().filter(|line| line.starts_with("| ") || line.starts_with("|:")) {
            let line = line.replace("\\|", "\u{1}");
            let parts: Vec<String> =
                line.trim_matches('|').split('|').map(|part| part.trim().replace('\u{1}', "|")).collect();
            let [about, _, rest @ ..] = parts.as_slice() else {
                continue;
            };
            if about == "Attack" {
                let of = |title: &String| COLUMNS.iter().find(|column| title.starts_with(column.key));
                columns = rest.iter().filter_map(|title| Some((of(title)?, title.clone()))).collect();
                continue;
            }
            for ((column, _), cell) in columns.iter().zip(rest) {
                cells.insert((about.clone(), column.key), Cell::parse(cell));
            }
        }
        Matrix { attacks: Vec::new(), columns, cells, kept: Vec::new() }
    }

    /// Takes the peers' columns over from `written`: they are facts about others, found out when it was written.
    pub fn keep_peers(&mut self, written: &Matrix) {
        let is_peer = |column: &Column| Contestant::PEERS.contains(&column.contestant);
        self.columns.retain(|(column, _)| !is_peer(column));
        self.columns.extend(written.columns.iter().filter(|(column, _)| is_peer(column)).cloned());
        self.kept = self.columns.iter().filter(|(column, _)| is_peer(column)).map(|(column, _)| column.key).collect();
        let kept = written.cells.iter().filter(|((_, column), _)| self.kept.contains(column));
        self.cells.extend(kept.map(|(key, cell)| (key.clone(), *cell)));
    }

    /// Takes one column of ours over, because it can't be tried here.
    pub fn keep(&mut self, key: &'static str, written: &Matrix) {
        self.kept.push(key);
        let kept = written.cells.iter().filter(|((_, column), _)| *column == key);
        self.cells.extend(kept.map(|(key, cell)| (key.clone(), *cell)));
    }

    /// What the tests demand of belljar and of the controls.
    pub fn demand(&mut self) {
        let attacks = self.attacks.clone();
        for (column, attack) in COLUMNS.iter().flat_map(|column| attacks.iter().map(move |attack| (column, *attack))) {
            match (column.contestant, attack.control) {
                (Contestant::Gvisor, _) if escapes::not_on_a_kernel_of_its_own(attack).is_some() => {
                    self.set(attack.id, column.key, Cell::Not);
                }
                (Contestant::Container, _) => {
                    let cell = match escapes::in_a_container(attack) {
                        None => Cell::Held,
                        Some((InAContainer::Open, _)) => Cell::Broken,
                        Some((InAContainer::Meaningless, _)) => Cell::Not,
                    };
                    self.set(attack.id, column.key, cell);
                }
                (Contestant::Belljar | Contestant::Gvisor, _) => self.set(attack.id, column.key, Cell::Held),
                (Contestant::Bare, Control::None(_)) => self.set(attack.id, column.key, Cell::Not),
                (Contestant::Bare, _) => self.set(attack.id, column.key, Cell::Broken),
                _ => {}
            }
        }
    }

    pub fn columns_to_try(&self) -> Vec<&'static Column> {
        let columns = self.columns.iter().map(|(column, _)| *column);
        columns.filter(|column| !self.kept.contains(&column.key)).collect()
    }

    pub fn cell(&self, attack: &Attack, column: &Column) -> Option<Cell> {
        self.cells.get(&(attack.about.to_owned(), column.key)).copied()
    }

    pub fn set(&mut self, attack: &str, column: &'static str, cell: Cell) {
        if let Some(attack) = self.attacks.iter().find(|known| known.id == attack) {
            self.cells.insert((attack.about.to_owned(), column), cell);
        }
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            text += &words;
            text.push('\n');
        };
        let mut folders: Vec<&str> = self.attacks.iter().map(|attack| folder(attack)).collect();
        folders.dedup();
        for name in folders {
            line(format!("### {name}\n"));
            line(format!("| Attack | Wall |{}", self.row(|_, title| format!(" {title} |"))));
            line(format!("|:--|:--|{}", self.row(|_, _| ":--|".to_owned())));
            for attack in self.attacks.iter().filter(|attack| folder(attack) == name) {
                let cells = self.row(|column, _| format!(" {} |", self.shown(attack, column).text()));
                line(format!("| {} | {} |{cells}", attack.about.replace('|', "\\|"), attack.wall));
            }
            line(String::new());
        }
        line("### Counts\n".to_owned());
        line(format!("| |{}", self.row(|_, title| format!(" {title} |"))));
        line(format!("|:--|{}", self.row(|_, _| "--:|".to_owned())));
        for (name, cell) in
            [("held", Cell::Held), ("broken", Cell::Broken), ("unclear", Cell::Unclear), ("not tried", Cell::Not)]
        {
            let count =
                |column: &Column| self.attacks.iter().filter(|attack| self.shown(attack, column) == cell).count();
            // Not ours to read back: no `| ` at its start.
            line(format!("|{name} |{}", self.row(|column, _| format!(" {} |", count(column)))));
        }
        line(String::new());
        line(self.legend());
        text
    }

    fn shown(&self, attack: &Attack, column: &Column) -> Cell {
        self.cell(attack, column).unwrap_or(Cell::Not)
    }

    fn row(&self, part: impl Fn(&Column, &str) -> String) -> String {
        self.columns.iter().map(|(column, title)| part(column, title)).collect()
    }

    fn legend(&self) -> String {
        let mut text = LEGEND.to_owned();
        let without: Vec<_> = self
            .attacks
            .iter()
            .filter_map(|attack| match attack.control {
                Control::None(why) => Some((attack.about, why)),
                Control::Bare | Control::BareAsRoot => None,
            })
            .collect();
        if !without.is_empty() {
            text += "\nAttacks without a control, and why:\n\n";
            for (about, why) in without {
                // Writing to a String does not fail.
                if writeln!(text, "- {about}: {why}").is_err() {
                    break;
                }
            }
        }
        text += "\nAttacks that are not tried behind gVisor, and why:\n\n";
        for (id, why) in escapes::NOT_ON_A_KERNEL_OF_ITS_OWN {
            let about = self.attacks.iter().find(|attack| attack.id == *id).map_or(*id, |attack| attack.about);
            if writeln!(text, "- {about}: {why}").is_err() {
                break;
            }
        }
        for (what, title) in [
            (InAContainer::Open, "Attacks that succeed in a container, and why that is declared and not mended"),
            (InAContainer::Meaningless, "Attacks that are not tried in a container, and why"),
        ] {
            text += &format!("\n{title}:\n\n");
            for (id, _, why) in escapes::IN_A_CONTAINER.iter().filter(|(_, known, _)| *known == what) {
                let about = self.attacks.iter().find(|attack| attack.id == *id).map_or(*id, |attack| attack.about);
                if writeln!(text, "- {about}: {why}").is_err() {
                    break;
                }
            }
        }
        let open: Vec<_> =
            escapes::known_open().map(|attack| format!("- {} ({})", attack.about, attack.wall)).collect();
        text += &format!(
            "\nDeclared limits: attacks that succeed against belljar, as root or as a user. The suite tries them too, and\nfails when one of them no longer succeeds.\n\n{}\n",
            open.join("\n")
        );
        text.trim_end().to_owned()
    }
}

const LEGEND: &str = "\
*held*: the attack came to its end and the host shows no trace of success. **broken**: the host shows that it
succeeded. *unclear*: neither can be said, mostly because the attack could not run to its end there. –: not tried.

*no sandbox* is the control: the same attack with no sandbox, as an ordinary user, or as root where only root could do
it at all. An attack that succeeds nowhere would prove nothing.

How each was run, with one writable workspace and nothing else granted: belljar with `--write WORKSPACE` and the limits
that the attack is about, and *belljar gvisor* with `--backend gvisor` besides, *belljar container* with `--image`, in an engine (Docker) of the
suite's own and an image that has a shell and what the attacker's program needs; bubblewrap as the ordinary user with `--unshare-all --die-with-parent --ro-bind / / --dev /dev
--proc /proc --tmpfs /tmp --bind WORKSPACE WORKSPACE`, a configuration of ours, since it has none by itself; srt as the
ordinary user with no domains allowed, the workspace in `allowWrite` and nothing in `denyRead`, as its default is; codex
as the ordinary user with `codex sandbox --permission-profile :workspace`.

Peers do not claim all of these walls. All three show the whole file system for reading unless told otherwise, and none
limits memory, processes, processor time or disk; rows about these say what is so, not that a promise was broken. A
stricter configuration of a peer may hold more.
";

fn folder(attack: &Attack) -> &'static str {
    attack.id.split('/').next().unwrap_or_default()
}

pub fn between_markers(document: &str) -> Result<&str, String> {
    let from = document.find(BEGIN).ok_or("THREATS.md has no line `<!-- matrix:begin -->`")? + BEGIN.len();
    let to = document.find(END).ok_or("THREATS.md has no line `<!-- matrix:end -->`")?;
    document.get(from..to).ok_or_else(|| "the markers in THREATS.md are the wrong way round".to_owned())
}

pub fn replace(document: &str, text: &str) -> Result<String, String> {
    let old = between_markers(document)?;
    let from = old.as_ptr() as usize - document.as_ptr() as usize;
    Ok(format!("{}\n{}\n{}", &document[..from], text.trim(), &document[from + old.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_matrix_reads_back_as_it_was() {
        let mut matrix = Matrix::of(testkit::escapes::all().collect());
        let first = matrix.attacks[0];
        matrix.set(first.id, "no sandbox", Cell::Broken);
        matrix.set(first.id, "belljar (user)", Cell::Held);
        let read = Matrix::parse(&matrix.to_text());
        let column = |key: &str| COLUMNS.iter().find(|column| column.key == key).unwrap_or(&COLUMNS[0]);
        assert_eq!(read.cell(first, column("no sandbox")), Some(Cell::Broken));
        assert_eq!(read.cell(first, column("belljar (user)")), Some(Cell::Held));
        assert_eq!(read.cell(first, column("belljar (root)")), Some(Cell::Not));
    }

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let document = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let replaced = replace(&document, "new\n").unwrap_or_default();
        assert_eq!(replaced, format!("before\n{BEGIN}\nnew\n{END}\nafter\n"));
        assert!(replace("no markers", "new").is_err());
    }

    #[test]
    fn no_two_attacks_share_a_sentence() {
        let mut sentences: Vec<_> = testkit::escapes::all().map(|attack| attack.about).collect();
        let all = sentences.len();
        sentences.sort_unstable();
        sentences.dedup();
        assert_eq!(sentences.len(), all);
    }
}
