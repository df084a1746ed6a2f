//! Which files somebody means: a folder or a pattern, from a workspace on. Names are tried one by one while a tree is
//! walked, so what can't match any more is not walked into; and no pattern takes more than its length times the path's.

/// A path in which `*` stands for any letters of one name, `?` for one letter, and `**` for any number of names. What it
/// matches is meant with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `**`
    Any,
    Like(Vec<u8>),
}

/// How far a path has come in one pattern: bit `n` is set if its names so far are matched by the first `n` parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach(u64);

/// A bit for each part, and one for the end.
const MOST_PARTS: usize = 63;
pub const LONGEST_PATTERN: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    #[error("it is empty; `.` means the whole workspace")]
    Empty,
    #[error("it has {0} bytes; {LONGEST_PATTERN} is the most")]
    TooLong(usize),
    #[error("it has {0} names; {MOST_PARTS} is the most")]
    TooDeep(usize),
    #[error("it goes up with `..`; write the path that is meant, from the workspace on")]
    Up,
    #[error("it has a control character in it")]
    Control,
}

impl Pattern {
    /// A slash at the beginning means the workspace, as everything does.
    pub fn read(text: &str) -> Result<Pattern, BadPattern> {
        if text.is_empty() {
            return Err(BadPattern::Empty);
        }
        if text.len() > LONGEST_PATTERN {
            return Err(BadPattern::TooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(BadPattern::Control);
        }
        let mut parts: Vec<Part> = Vec::new();
        for name in text.split('/').filter(|name| !matches!(*name, "" | ".")) {
            match name {
                ".." => return Err(BadPattern::Up),
                "**" if parts.last() == Some(&Part::Any) => {}
                "**" => parts.push(Part::Any),
                name => parts.push(Part::Like(name.as_bytes().to_vec())),
            }
        }
        match parts.len() {
            count if count > MOST_PARTS => Err(BadPattern::TooDeep(count)),
            _ => Ok(Pattern(parts)),
        }
    }

    /// Before the first name.
    pub fn start(&self) -> Reach {
        self.closed(1)
    }

    /// One name further.
    pub fn step(&self, from: Reach, name: &[u8]) -> Reach {
        let mut reached = 0;
        for (number, part) in self.0.iter().enumerate().filter(|(number, _)| from.0 & 1 << number != 0) {
            match part {
                Part::Any => reached |= 1 << number,
                Part::Like(like) if is_like(like, name) => reached |= 1 << (number + 1),
                Part::Like(_) => {}
            }
        }
        // What is below what is meant is meant.
        reached |= from.0 & 1 << self.0.len();
        self.closed(reached)
    }

    pub fn along(&self, path: &[u8]) -> Reach {
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.fold(self.start(), |reach, name| self.step(reach, name))
    }

    pub fn means(&self, reach: Reach) -> bool {
        reach.0 & 1 << self.0.len() != 0
    }

    /// Names in it could be meant, and one that is written out is next: so it was meant to be a folder.
    pub fn leads_into(&self, reach: Reach) -> bool {
        let next = |(number, part): (usize, &Part)| reach.0 & 1 << number != 0 && matches!(part, Part::Like(_));
        !self.0.contains(&Part::Any) && self.0.iter().enumerate().any(next)
    }

    /// `**` may stand for nothing at all.
    fn closed(&self, mut reached: u64) -> Reach {
        for (number, part) in self.0.iter().enumerate() {
            if *part == Part::Any && reached & 1 << number != 0 {
                reached |= 1 << (number + 1);
            }
        }
        Reach(reached)
    }
}

impl Reach {
    /// Nothing at or below this can be meant.
    pub fn is_dead(self) -> bool {
        self.0 == 0
    }
}

/// Goes back only to the last `*`, so the time is at most the product of both lengths.
fn is_like(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
                continue;
            }
            Some(b'?') => {
                at += 1;
                in_name = after_letter(name, in_name);
                continue;
            }
            Some(letter) if *letter == name[in_name] => {
                at += 1;
                in_name += 1;
                continue;
            }
            _ => {}
        }
        let Some((star_at, taken)) = star else { return false };
        star = Some((star_at, taken + 1));
        at = star_at + 1;
        in_name = taken + 1;
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// A letter may be several bytes; what is no text goes byte by byte.
fn after_letter(name: &[u8], at: usize) -> usize {
    let is_inner = |byte: &&u8| (0x80..0xc0).contains(*byte);
    let inner = if name[at] >= 0xc0 { name[at + 1..].iter().take(3).take_while(is_inner).count() } else { 0 };
    at + 1 + inner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(pattern: &str, path: &str) -> bool {
        let pattern = Pattern::read(pattern).expect("it is one");
        pattern.means(pattern.along(path.as_bytes()))
    }

    #[test]
    fn a_folder_is_meant_with_all_that_is_in_it() {
        assert!(means("out", "out"));
        assert!(means("out", "out/a/b"));
        assert!(means("./out//", "out/a"));
        assert!(means(".", "anything/at/all"));
        assert!(!means("out", "outer"));
        assert!(!means("out", "a/out"));
    }

    #[test]
    fn a_star_stays_within_a_name_and_two_do_not() {
        assert!(means("out/*.png", "out/a.png"));
        assert!(!means("out/*.png", "out/a/b.png"));
        assert!(means("**/*.png", "b.png"));
        assert!(means("**/*.png", "out/a/b.png"));
        assert!(means("a/**/z", "a/z"));
        assert!(means("a/**/z", "a/b/c/z"));
        assert!(!means("a/**/z", "a/b/c"));
        assert!(means("a**c", "abc"));
        assert!(means("**", "a/b"));
        assert!(means("?.txt", "ä.txt"));
        assert!(!means("?.txt", "ab.txt"));
        assert!(!means("*.txt", "a.txt.gz"));
    }

    #[test]
    fn what_would_lead_out_or_cost_too_much_is_no_pattern() {
        assert_eq!(Pattern::read(""), Err(BadPattern::Empty));
        assert_eq!(Pattern::read("a/../b"), Err(BadPattern::Up));
        assert_eq!(Pattern::read(".."), Err(BadPattern::Up));
        assert_eq!(Pattern::read("a\nb"), Err(BadPattern::Control));
        assert_eq!(Pattern::read(&"a/".repeat(64)), Err(BadPattern::TooDeep(64)));
        assert_eq!(Pattern::read(&"a".repeat(1025)), Err(BadPattern::TooLong(1025)));
        assert!(Pattern::read(&"a/".repeat(63)).is_ok());
    }

    #[test]
    fn nothing_below_a_dead_end_can_be_meant() {
        let pattern = Pattern::read("out/*.png").expect("it is one");
        assert!(pattern.along(b"src").is_dead());
        assert!(!pattern.along(b"out").is_dead());
        assert!(pattern.leads_into(pattern.along(b"out")));
        assert!(!pattern.leads_into(pattern.along(b"src")));
        let anywhere = Pattern::read("**/x").expect("it is one");
        assert!(!anywhere.along(b"any/where").is_dead());
        assert!(!anywhere.leads_into(anywhere.along(b"any")));
    }

    #[test]
    fn a_name_made_to_take_long_does_not() {
        let pattern = Pattern::read(&format!("{}b", "*a".repeat(500))).expect("it is one");
        assert!(!pattern.means(pattern.along(&b"a".repeat(255))));
    }

    proptest::proptest! {
        #[test]
        fn a_pattern_without_wild_letters_means_itself(path in "[a-z.]{1,3}(/[a-zäö]{1,4}){0,5}") {
            if path != "." && !path.starts_with("./") && !path.contains("..") {
                proptest::prop_assert!(means(&path, &path));
                proptest::prop_assert!(means("**", &path));
                let (below, longer) = (format!("{path}/below"), format!("{path}x"));
                proptest::prop_assert!(means(&path, &below));
                proptest::prop_assert!(!means(&path, &longer));
            }
        }

        #[test]
        fn whatever_bytes_a_name_has_nothing_breaks(
            text in "[a*?/]{1,40}", name in proptest::collection::vec(proptest::num::u8::ANY, 0..60)
        ) {
            if let Ok(pattern) = Pattern::read(&text) {
                let reach = pattern.along(&name);
                proptest::prop_assert!(!(pattern.means(reach) && reach.is_dead()));
            }
        }
    }
}
