//! Hits become findings: places in lines and letters, excerpts that are safe to show.

use std::cell::OnceCell;

use model::{Finding, Severity, Spot};

use crate::limits::EXCERPT;
use crate::rule::Rule;

/// A text with the places where its lines begin.
pub(crate) struct Places<'a> {
    name: &'a str,
    bytes: &'a [u8],
    /// Counted when somebody asks: most texts have no findings.
    lines: OnceCell<Vec<usize>>,
}

impl<'a> Places<'a> {
    pub fn of(name: &'a str, bytes: &'a [u8]) -> Places<'a> {
        Places { name, bytes, lines: OnceCell::new() }
    }

    fn lines(&self) -> &[usize] {
        let ends = || memchr::memchr_iter(b'\n', self.bytes).map(|at| at + 1);
        self.lines.get_or_init(|| std::iter::once(0).chain(ends()).collect())
    }

    pub fn spot(&self, start: usize, end: usize) -> Spot {
        let (line, column) = self.line_and_column(start);
        Spot { name: self.name.to_owned(), line, column, start: start as u64, end: end as u64, inside: Vec::new() }
    }

    pub fn contains(&self, text: &str) -> bool {
        self.bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes())
    }

    pub fn line_and_column(&self, at: usize) -> (u32, u32) {
        let at = at.min(self.bytes.len());
        let lines = self.lines();
        let line = lines.partition_point(|start| *start <= at).max(1);
        let from = lines[line - 1];
        // Letters begin with a byte that continues none. Very long lines are counted as far as anyone would look.
        let within = &self.bytes[from.max(at.saturating_sub(1 << 20))..at];
        let column = within.iter().filter(|byte| **byte & 0xc0 != 0x80).count() + 1;
        (line as u32, column as u32)
    }

    pub fn finding(&self, rule: &Rule, start: usize, end: usize) -> Finding {
        Finding {
            rule: rule.id.to_string(),
            class: rule.class.to_string(),
            severity: rule.severity,
            cwe: (rule.cwe != 0).then_some(rule.cwe),
            message: rule.message.to_string(),
            fix: rule.fix.to_string(),
            at: self.spot(start, end),
            excerpt: self.excerpt(start, end),
        }
    }

    /// Something about the text as a whole, which no file of rules says.
    pub fn note(&self, rule: &str, severity: Severity, message: String, fix: &str, start: usize) -> Finding {
        Finding {
            rule: rule.to_owned(),
            class: rule.split('.').next().unwrap_or(rule).to_owned(),
            severity,
            cwe: None,
            message,
            fix: fix.to_owned(),
            at: self.spot(start, start),
            excerpt: String::new(),
        }
    }

    fn excerpt(&self, start: usize, end: usize) -> String {
        let end = end.min(self.bytes.len());
        let stretch = &self.bytes[start.min(end)..end.min(start + EXCERPT * 4)];
        let text = String::from_utf8_lossy(stretch);
        let mut shown = String::new();
        for (count, letter) in text.chars().enumerate() {
            if count >= EXCERPT {
                shown.push('…');
                break;
            }
            match letter {
                '\n' => shown.push(' '),
                letter if is_safe(letter) => shown.push(letter),
                letter => shown.extend(letter.escape_unicode()),
            }
        }
        shown
    }
}

/// May it be shown as it is? Nothing that moves, hides or turns what stands around it.
fn is_safe(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}
