//! Programs that do something else, and run a line of their arguments on the way.

use crate::holes::{HOLE, filled, of as with_holes};
use crate::read::{Around, Given, Reader};

/// Names that are looked at here.
pub(crate) const TOOLS: &[&str] = &["tar", "gtar", "sort", "gsort", "zip", "man", "rsync"];

impl Reader {
    pub(crate) fn tool(&mut self, number: usize, name: &str, rest: &[Given], around: &Around) {
        match name {
            "tar" | "gtar" => {
                let long =
                    ["--to-command", "--use-compress-program", "--info-script", "--new-volume-script", "--rsh-command"];
                self.lines_of_options(number, name, (&long, &['I', 'F']), rest, around);
                self.checkpoints(number, rest, around);
            }
            "sort" | "gsort" => self.lines_of_options(number, name, (&["--compress-program"], &[]), rest, around),
            "zip" => self.lines_of_options(number, name, (&["--unzip-command", "-TT"], &[]), rest, around),
            "man" => self.lines_of_options(number, name, (&["--pager"], &['P']), rest, around),
            "rsync" => self.lines_of_options(number, name, (&["--rsh"], &['e']), rest, around),
            _ => {}
        }
    }

    /// Options whose value is a line. They may stand anywhere, the long ones be shortened, the short ones stand together.
    fn lines_of_options(
        &mut self,
        number: usize,
        name: &str,
        (long, short): (&[&str], &[char]),
        rest: &[Given],
        around: &Around,
    ) {
        for (place, given) in rest.iter().enumerate() {
            let text = with_holes(&given.word);
            let (option, value) =
                text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
            let is_long =
                option.len() > 3 && long.iter().any(|known| known.starts_with(option)) || long.contains(&option);
            let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            let attached = letters.and_then(|letters| letters.split_once(short)).map(|(_, value)| value);
            let next = || rest.get(place + 1).map(|given| with_holes(&given.word));
            let line = match (is_long, value, attached) {
                (true, Some(value), _) | (false, _, Some(value)) if !value.is_empty() => Some(value.to_owned()),
                (true, ..) | (false, _, Some(_)) => next(),
                _ => None,
            };
            if let Some(line) = line {
                let around = around.behind(format!("{name} {option}"));
                self.line_of(number, &[given.with(filled(line, false))], &around, false);
            }
            let may_be = |option: &&str| given.word.may_start_with(option);
            if given.hides_option() && (long.iter().any(may_be) || !short.is_empty()) {
                self.doubt(format!("what `{name}` starts depends on `{}`", given.word.text()));
            }
        }
    }

    /// `tar --checkpoint-action=exec=LINE`.
    fn checkpoints(&mut self, number: usize, rest: &[Given], around: &Around) {
        for (place, given) in rest.iter().enumerate() {
            let text = with_holes(&given.word);
            let (option, value) =
                text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
            if option.len() < 13 || !"--checkpoint-action".starts_with(option) {
                continue;
            }
            let next = || rest.get(place + 1).map(|given| with_holes(&given.word)).unwrap_or_default();
            let action = value.map_or_else(next, str::to_owned);
            if let Some(line) = action.strip_prefix("exec=") {
                let line = given.with(filled(line.to_owned(), false));
                self.line_of(number, &[line], &around.behind("tar --checkpoint-action"), false);
            } else if action.contains(HOLE) {
                self.doubt("what `tar` does at a checkpoint is only known when it runs".to_owned());
            }
        }
    }
}
