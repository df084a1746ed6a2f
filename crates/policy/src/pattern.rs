//! Patterns in rules: names and paths. Each takes time in proportion to what it is tried on.

use std::borrow::Cow;

use model::names::folded;

/// How a name is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// For what allows: a twin by case or by letters that nobody sees is another name.
    Exact,
    /// For what asks or denies: twins count as the same.
    Forgiving,
}

fn plain(text: &str, care: Care) -> Cow<'_, str> {
    match care {
        Care::Exact => Cow::Borrowed(text),
        Care::Forgiving if is_plain(text) => Cow::Borrowed(text),
        Care::Forgiving => Cow::Owned(folded(text)),
    }
}

/// Whether its twins are no others than itself.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}

/// A name in which `*` stands for any letters and `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    written: String,
    /// As twins are compared, where that is another text.
    folded: Option<String>,
    is_wild: bool,
}

impl Glob {
    pub fn new(text: &str) -> Glob {
        let folded = match plain(text, Care::Forgiving) {
            Cow::Borrowed(_) => None,
            Cow::Owned(folded) => Some(folded),
        };
        Glob { written: text.to_owned(), folded, is_wild: text.contains(['*', '?']) }
    }

    /// Stands for one name only.
    pub fn is_plain(&self) -> bool {
        !self.is_wild
    }

    pub fn written(&self) -> &str {
        &self.written
    }

    pub fn matches(&self, name: &str, care: Care) -> bool {
        let pattern = match (care, &self.folded) {
            (Care::Forgiving, Some(folded)) => folded,
            _ => &self.written,
        };
        let name = plain(name, care);
        if self.is_wild { wild(pattern, &name) } else { *pattern == name }
    }
}

/// Goes back only to the last `*`, so the time is at most the product of both lengths.
pub fn wild(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.find(['*', '?']) else { return pattern == text };
    // Most names differ at once.
    if !text.starts_with(&pattern[..first]) {
        return false;
    }
    // Piece by piece, each as early as possible; the search for a piece is the library's, and takes no detours.
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|start| without_start(text, start)) else { return false };
    let Some(mut piece) = pieces.next() else { return rest.is_empty() };
    for next in pieces {
        let Some(found) = after_first(rest, piece) else { return false };
        rest = found;
        piece = next;
    }
    let letters = piece.chars().count();
    let start = rest.char_indices().rev().nth(letters.saturating_sub(1)).map_or(0, |(at, _)| at);
    let end = if letters == 0 { "" } else { &rest[start..] };
    without_start(end, piece).is_some_and(str::is_empty)
}

/// `?` stands for any one letter.
fn without_start<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let mut letters = text.chars();
    for known in start.chars() {
        letters.next().filter(|letter| known == '?' || known == *letter)?;
    }
    Some(letters.as_str())
}

fn after_first<'a>(text: &'a str, piece: &str) -> Option<&'a str> {
    if !piece.contains('?') {
        return text.find(piece).map(|at| &text[at + piece.len()..]);
    }
    text.char_indices()
        .map(|(at, _)| at)
        .chain(std::iter::once(text.len()))
        .find_map(|at| without_start(&text[at..], piece))
}

/// A path, and everything below it. `*` stays within a name, `**` is any number of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// As it was written, for people.
    pub written: String,
    /// Begins at the root, and not at a workspace.
    absolute: bool,
    names: Vec<Glob>,
    any: Vec<bool>,
    /// The same from the root, where links lead to on this host.
    elsewhere: Vec<PathPattern>,
    /// How each path begins that it is about, in plain letters; nothing if that can't be told.
    start: String,
}

/// Where paths in a policy file begin.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    pub home: &'a str,
    /// The folder of a project's file; other files speak of every workspace.
    pub project: Option<&'a str>,
}

impl PathPattern {
    pub fn read(written: &str, roots: Roots<'_>) -> Result<PathPattern, String> {
        let full = match written {
            "" => return Err("a path is empty; name a file or folder".to_owned()),
            "~" => roots.home.to_owned(),
            text if text.starts_with("~/") => format!("{}{}", roots.home, &text[1..]),
            text if text.starts_with('~') => {
                return Err(format!("`{text}`: only your own home has a short form, `~/`; write the whole path"));
            }
            text if text.starts_with('/') => text.to_owned(),
            text => match roots.project {
                Some(project) => format!("{project}/{text}"),
                None => text.to_owned(),
            },
        };
        if full.chars().any(char::is_control) {
            return Err(format!("`{}` has a control character in it", written.escape_debug()));
        }
        let absolute = full.starts_with('/');
        let names: Vec<&str> = full.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.contains(&"..") {
            return Err(format!("`{written}` goes up with `..`; write the path that is meant"));
        }
        if let Some(name) = names.iter().find(|name| name.contains("**") && **name != "**") {
            return Err(format!("`{name}`: `**` stands for whole names; write `**/` or `/**`"));
        }
        let any = names.iter().map(|name| *name == "**").collect();
        let names: Vec<Glob> = names.into_iter().map(Glob::new).collect();
        Ok(PathPattern::of(written, absolute, names, any))
    }

    fn of(written: &str, absolute: bool, names: Vec<Glob>, any: Vec<bool>) -> PathPattern {
        let mut start = String::new();
        for name in names.iter().take_while(|name| absolute && !name.is_wild) {
            start.push('/');
            start += name.folded.as_ref().unwrap_or(&name.written);
        }
        PathPattern { written: written.to_owned(), absolute, names, any, elsewhere: Vec::new(), start }
    }

    /// Not, if it surely is not about a path that is absolute, without `.` and `..`, and in plain letters. Most paths are none of
    /// most patterns', and this takes no time.
    pub fn may_be_about(&self, plain: &str) -> bool {
        // Both have a slash first; the next letter tells most of them apart.
        let next = |text: &str| text.as_bytes().get(1).copied();
        let differs = !self.start.is_empty() && next(plain) != next(&self.start);
        !self.elsewhere.is_empty() || !differs && plain.starts_with(&self.start)
    }

    /// Where it begins, as far as that is written out: in each workspace, if it is relative.
    pub fn beginnings(&self, workspaces: &[String]) -> Vec<String> {
        let known: Vec<&str> =
            self.names.iter().take_while(|name| !name.is_wild).map(|name| name.written.as_str()).collect();
        if known.is_empty() {
            return Vec::new();
        }
        let known = known.join("/");
        match self.absolute {
            true => vec![format!("/{known}")],
            false => workspaces.iter().map(|folder| format!("{}/{known}", folder.trim_end_matches('/'))).collect(),
        }
    }

    /// Remembers that a beginning of it leads to another place, of which it is then meant as well.
    pub fn leads_to(&mut self, real: &str) {
        // A name with a star in it would be taken for a pattern.
        if real.contains(['*', '?']) {
            return;
        }
        let known = self.names.iter().take_while(|name| !name.is_wild).count();
        let mut names: Vec<Glob> = real.split('/').filter(|name| !name.is_empty()).map(Glob::new).collect();
        let mut any = vec![false; names.len()];
        names.extend_from_slice(&self.names[known..]);
        any.extend_from_slice(&self.any[known..]);
        self.elsewhere.push(PathPattern::of(&self.written, true, names, any));
    }

    /// The path itself, if it has neither `*` nor `?`.
    pub fn literal(&self) -> Option<String> {
        let names: Vec<&str> = self.names.iter().map(Glob::written).collect();
        let wild = self.names.iter().any(|name| name.is_wild);
        let start = if self.absolute { "/" } else { "" };
        (!wild).then(|| format!("{start}{}", names.join("/")))
    }

    /// Whether an absolute path is it or below it; of several workspaces, in any.
    pub fn matches(&self, path: &str, workspaces: &[String], care: Care) -> bool {
        if self.elsewhere.iter().any(|pattern| pattern.covers(path, care)) {
            return true;
        }
        if self.absolute {
            return self.covers(path, care);
        }
        workspaces.iter().any(|workspace| {
            let below = path.strip_prefix(workspace.trim_end_matches('/'));
            below.is_some_and(|below| (below.is_empty() || below.starts_with('/')) && self.covers(below, care))
        })
    }

    /// The outermost folder around a path, or itself, of which everything is meant: `deploy` for `deploy/a/b`, of
    /// `deploy` as of `deploy/**`.
    pub fn root_of<'a>(&self, path: &'a str, workspaces: &[String], care: Care) -> Option<&'a str> {
        if let Some(root) = self.elsewhere.iter().find_map(|pattern| pattern.root_of(path, workspaces, care)) {
            return Some(root);
        }
        if !self.matches(path, workspaces, care) {
            return None;
        }
        let last = self.any.iter().rposition(|any| !any).map_or(0, |last| last + 1);
        let whole = PathPattern::of("", self.absolute, self.names[..last].to_vec(), self.any[..last].to_vec());
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]).filter(|folder| !folder.is_empty());
        let meant = if last == 0 { self } else { &whole };
        folders.chain([path]).find(|folder| meant.matches(folder, workspaces, care))
    }

    /// Whether what it is about lies below this path: then whatever stands there decides what that is. What may be
    /// anywhere (`**/x`) is below nothing in particular.
    pub fn is_below(&self, path: &str, workspaces: &[String]) -> bool {
        let leads = |path: &str| {
            let mut fixed = self.names.iter().zip(&self.any).take_while(|(_, any)| !**any).map(|(name, _)| name);
            let mut count = 0;
            let mut names = path.split('/').filter(|name| !name.is_empty());
            let all = names.all(|name| {
                count += 1;
                fixed.next().is_some_and(|known| known.matches(name, Care::Forgiving))
            });
            all && count > 0 && count < self.names.len()
        };
        if self.elsewhere.iter().any(|pattern| pattern.is_below(path, workspaces)) {
            return true;
        }
        if self.absolute {
            return leads(path);
        }
        workspaces.iter().any(|workspace| {
            let below = path.strip_prefix(workspace.trim_end_matches('/'));
            below.is_some_and(|below| below.starts_with('/') && leads(below))
        })
    }

    /// Whether a path that ends so can be it, or below it, in some folder: its last names are the first of these. A name that may
    /// be any would be all of them.
    pub fn may_end_in(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let last: Vec<&Glob> = self.names.iter().rev().take_while(|name| !name.is_wild).collect();
        (1..=last.len().min(names.len())).any(|count| {
            let ours = last[..count].iter().rev();
            ours.zip(&names).all(|(known, name)| known.matches(name, Care::Forgiving))
        })
    }

    fn covers(&self, path: &str, care: Care) -> bool {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        if !self.any.contains(&true) {
            return self.names.iter().all(|known| names.next().is_some_and(|name| known.matches(name, care)));
        }
        // Most paths differ before anything may be any.
        let fixed = self.any.iter().position(|any| *any).unwrap_or(0);
        let mut first = names.clone();
        if !self.names[..fixed].iter().all(|known| first.next().is_some_and(|name| known.matches(name, care))) {
            return false;
        }
        // reached[i]: the first i names of the pattern can stand for what was read so far.
        let mut reached = vec![false; self.names.len() + 1];
        reached[0] = true;
        self.skip_any(&mut reached);
        if reached[self.names.len()] {
            return true;
        }
        for name in names {
            let mut next = vec![false; self.names.len() + 1];
            for at in 0..self.names.len() {
                if !reached[at] {
                    continue;
                }
                if self.any[at] {
                    next[at] = true;
                    // At the end, whatever is below is enough.
                    next[at + 1] |= at + 1 == self.names.len();
                } else if self.names[at].matches(name, care) {
                    next[at + 1] = true;
                }
            }
            self.skip_any(&mut next);
            if next[self.names.len()] {
                // What is below a path that matches does, too.
                return true;
            }
            reached = next;
        }
        false
    }

    /// `**` can stand for no name at all, but at the end it stands for something below.
    fn skip_any(&self, reached: &mut [bool]) {
        for at in 0..self.names.len() {
            if reached[at] && self.any[at] && at + 1 < self.names.len() {
                reached[at + 1] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOTS: Roots<'static> = Roots { home: "/home/a", project: None };

    fn path(pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::read(pattern, ROOTS).expect("a pattern");
        pattern.matches(path, &["/project".to_owned()], Care::Exact)
    }

    #[test]
    fn a_path_covers_itself_and_what_is_below() {
        assert!(path("src", "/project/src"));
        assert!(path("src", "/project/src/a/b"));
        assert!(path("src/", "/project/src/a"));
        assert!(!path("src", "/project/src2"));
        assert!(!path("src", "/src"));
        assert!(path("/etc", "/etc/passwd"));
        assert!(path("~/x", "/home/a/x/y"));
    }

    #[test]
    fn stars_stay_within_a_name_and_two_do_not() {
        assert!(path("*.pem", "/project/key.pem"));
        assert!(!path("*.pem", "/project/a/key.pem"));
        assert!(path("**/*.pem", "/project/a/b/key.pem"));
        assert!(path("**/*.pem", "/project/key.pem"));
        assert!(path("deploy/**", "/project/deploy/a"));
        assert!(!path("deploy/**", "/project/deploy"));
        assert!(path("a/**/z", "/project/a/z"));
        assert!(path("**", "/project/anything"));
        assert!(!path("**", "/elsewhere"));
    }

    #[test]
    fn the_root_of_a_path_is_the_folder_that_is_meant_as_a_whole() {
        let root = |pattern: &str, path: &'static str| {
            let pattern = PathPattern::read(pattern, ROOTS).expect("a pattern");
            pattern.root_of(path, &["/project".to_owned()], Care::Forgiving)
        };
        assert_eq!(root("deploy", "/project/deploy/a/b"), Some("/project/deploy"));
        assert_eq!(root("deploy/**", "/project/deploy/a/b"), Some("/project/deploy"));
        assert_eq!(root("Deploy", "/project/deploy"), Some("/project/deploy"));
        assert_eq!(root("deploy/*", "/project/deploy/a/b"), Some("/project/deploy/a"));
        assert_eq!(root("**/keys", "/project/a/keys/b"), Some("/project/a/keys"));
        assert_eq!(root("**/*.pem", "/project/a/b.pem"), Some("/project/a/b.pem"));
        assert_eq!(root("**", "/project/a/b"), Some("/project/a"));
        assert_eq!(root("~/x", "/home/a/x/y"), Some("/home/a/x"));
        assert_eq!(root("/**", "/a/b"), Some("/a"));
        assert_eq!(root("deploy/**", "/project/deploy"), None);
        assert_eq!(root("deploy", "/project/deployed"), None);
    }

    #[test]
    fn twins_count_where_it_is_about_asking() {
        let pattern = PathPattern::read("deploy/keys", ROOTS).expect("a pattern");
        let workspaces = ["/project".to_owned()];
        assert!(pattern.matches("/project/Deploy/KEYS", &workspaces, Care::Forgiving));
        assert!(pattern.matches("/project/de\u{200b}ploy/keys", &workspaces, Care::Forgiving));
        assert!(!pattern.matches("/project/Deploy/KEYS", &workspaces, Care::Exact));
    }

    #[test]
    fn a_path_that_goes_up_is_refused() {
        assert!(PathPattern::read("a/../../etc", ROOTS).is_err());
        assert!(PathPattern::read("a**", ROOTS).is_err());
        assert!(PathPattern::read("", ROOTS).is_err());
    }

    #[test]
    fn the_end_of_a_path_may_be_of_one() {
        let may = |pattern: &str, path: &str| PathPattern::read(pattern, ROOTS).expect("a pattern").may_end_in(path);
        assert!(may("~/.ssh", "/.ssh/id_rsa"));
        assert!(may("~/.config/gh", "/gh/hosts.yml"));
        assert!(may("~/.config/gh", "/.config/gh/hosts.yml"));
        assert!(!may("~/.config/gh", "/.config/x"));
        assert!(!may("~/.ssh", "/src/.ssh2"));
        assert!(!may("/dev/sd*", "/sdk/x"));
    }

    #[test]
    fn wild_letters_stand_for_what_they_say() {
        fn slowly(pattern: &[char], text: &[char]) -> bool {
            match (pattern, text) {
                ([], _) => text.is_empty(),
                (['*', rest @ ..], _) => (0..=text.len()).any(|at| slowly(rest, &text[at..])),
                ([known, rest @ ..], [letter, more @ ..]) => (*known == '?' || known == letter) && slowly(rest, more),
                _ => false,
            }
        }
        // Every pattern and every text of up to five letters.
        let all = |letters: &[char]| {
            let mut all = vec![String::new()];
            for length in 0..5 {
                let longer: Vec<String> = all
                    .iter()
                    .filter(|text| text.chars().count() == length)
                    .flat_map(|text| letters.iter().map(move |letter| format!("{text}{letter}")))
                    .collect();
                all.extend(longer);
            }
            all
        };
        for pattern in all(&['a', 'ä', '*', '?']) {
            for text in all(&['a', 'ä']) {
                let (left, right): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
                assert_eq!(wild(&pattern, &text), slowly(&left, &right), "{pattern} and {text}");
            }
        }
    }

    #[test]
    fn many_stars_take_no_long_time() {
        let pattern = "*a".repeat(200);
        assert!(!wild(&pattern, &"a".repeat(20_000).replace("aaaaaaaaaa", "aaaaaaaaab")));
    }
}
