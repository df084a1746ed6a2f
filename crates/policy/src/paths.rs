//! Paths that a command names: its arguments, what is attached to its options, and its redirections, from where it may start.
//!
//! By their letters: what a command names need not exist, and links are the wall's business. Only links that nearly every
//! system has are known here.

use shell::{Piece, Simple, Word};

/// A path that a command may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// This one.
    Whole(String),
    /// One that begins so: `$HOME/x/$Y`.
    Beginning(String),
    /// This, from a folder that nobody knows: `cd "$X" && cat .ssh/id_rsa`.
    Somewhere(String),
}

impl Named {
    pub fn path(&self) -> &str {
        match self {
            Named::Whole(path) | Named::Beginning(path) | Named::Somewhere(path) => path,
        }
    }
}

/// Folders that a command may start in: a `cd` before it may have failed, or have been in another shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    folders: Vec<String>,
    /// It may also be anywhere else.
    lost: bool,
}

/// The most folders that are kept in mind; after more, it may be anywhere.
const MOST_FOLDERS: usize = 16;

impl Whereabouts {
    pub fn at(directory: &str) -> Whereabouts {
        Whereabouts { folders: vec![directory.to_owned()], lost: false }
    }

    /// After this command: `cd` and `pushd` lead elsewhere.
    pub fn follow(&mut self, command: &Simple, home: &str) {
        if !matches!(command.name(), Some("cd" | "pushd" | "chdir")) {
            return;
        }
        let mut words = command.arguments.iter();
        match words.find(|word| !matches!(word.known(), Some("-L" | "-P" | "-e" | "-@" | "-n" | "--"))) {
            None => self.add(home, home),
            // Back to where it was, which is in mind unless that was before this line.
            Some(word) if word.known() == Some("-") => self.lost |= self.folders.len() < 2,
            Some(word) => self.enter(word, home),
        }
    }

    /// For one command: `git -C x`, `tar --directory=x`.
    fn within(&self, command: &Simple, home: &str) -> Whereabouts {
        let options: &[&str] = match command.name() {
            Some("git") => &["-C", "--work-tree"],
            Some("ninja" | "npm" | "pnpm" | "uv" | "cargo") => &["-C", "--directory", "--prefix", "--dir"],
            Some("make" | "gmake" | "tar" | "bsdtar" | "gtar") => &["-C", "--directory", "--cd"],
            Some("env") => &["-C", "--chdir"],
            _ => return self.clone(),
        };
        let mut place = self.clone();
        for (at, word) in command.arguments.iter().enumerate() {
            let (text, whole) = beginning(word, home);
            // `tar -cC /` is `tar -c -C /`.
            let is_cluster = text.starts_with('-') && !text.starts_with("--") && text.ends_with('C');
            if (options.contains(&text.as_str()) || is_cluster) && whole {
                command.arguments.get(at + 1).into_iter().for_each(|next| place.enter(next, home));
            } else if let Some(value) = options.iter().find_map(|option| attached(&text, option)) {
                place.add(value, home);
                place.lost |= !whole;
            }
        }
        place
    }

    fn enter(&mut self, word: &Word, home: &str) {
        match beginning(word, home) {
            (folder, true) => self.add(&folder, home),
            (_, false) => self.lost = true,
        }
    }

    fn add(&mut self, folder: &str, home: &str) {
        let known = self.folders.len();
        for at in 0..known {
            let next = from(&self.folders[at], folder, home);
            if self.folders.contains(&next) {
                continue;
            }
            if self.folders.len() >= MOST_FOLDERS {
                self.lost = true;
                return;
            }
            self.folders.push(next);
        }
    }
}

/// The value of `--option=value` or `-ovalue`.
fn attached<'a>(text: &'a str, option: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(option)?;
    if option.starts_with("--") { rest.strip_prefix('=') } else { Some(rest).filter(|rest| !rest.is_empty()) }
}

/// All that it names, as it may be meant.
pub fn named(command: &Simple, place: &Whereabouts, home: &str) -> Vec<Named> {
    let place = place.within(command, home);
    let texts = texts(command);
    let arguments = command.arguments.iter().zip(texts).filter(|(_, is_text)| !is_text).map(|(word, _)| word);
    let mut all = Vec::new();
    for word in arguments.chain(&command.reads).chain(&command.writes) {
        let (known, whole) = beginning(word, home);
        for value in values(&known) {
            // What a process calls its own folder depends on where that is.
            let absolute = value.starts_with('/') && !value.starts_with("/proc/");
            for folder in place.folders.iter().take(if absolute { 1 } else { MOST_FOLDERS }) {
                let path = from(folder, &value, home);
                all.extend(twin(&path).map(|twin| if whole { Named::Whole(twin) } else { Named::Beginning(twin) }));
                all.push(if whole { Named::Whole(path) } else { Named::Beginning(path) });
            }
            // One plain name could be anything: a target, a branch, a word.
            if place.lost && !absolute && (value.contains('/') || value.starts_with('.')) {
                all.push(Named::Somewhere(from("", &value, home)));
            }
        }
    }
    all
}

/// What it surely names, for rules that allow: nothing that is guessed from pieces of words or from where it may start.
pub fn surely_named(command: &Simple, place: &Whereabouts, home: &str) -> Vec<String> {
    let [directory] = place.folders.as_slice() else { return Vec::new() };
    let is_here = !place.lost && place.within(command, home) == *place;
    let texts = texts(command);
    let arguments = command.arguments.iter().zip(texts).filter(|(_, is_text)| !is_text).map(|(word, _)| word);
    let words = arguments.chain(&command.reads).chain(&command.writes);
    let whole = words.map(|word| beginning(word, home)).filter(|(_, whole)| *whole).map(|(known, _)| known);
    // `--file=x` and `of=x` name x.
    let values = whole.map(|known| known.split_once('=').map_or(known.clone(), |(_, value)| value.to_owned()));
    values.filter(|value| is_here || value.starts_with('/')).map(|value| from(directory, &value, home)).collect()
}

/// The most pieces of one word that are looked at.
const MOST_PIECES: usize = 12;
/// Twice what the kernel takes for a path.
const LONGEST: usize = 8192;

/// What a word may name: itself, and what is attached to an option or another word in it: `--file=x`, `of=x`, `-fa/x`, `@x`,
/// `file=@x`, `x:/mnt`, `file:///x`.
fn values(word: &str) -> Vec<String> {
    let mut values = vec![word.to_owned()];
    if !word.contains(['=', '@', ':', ',', '/', '-']) {
        return values;
    }
    if let Some(rest) = word.find("file://").map(|at| &word[at + "file://".len()..]) {
        let path = rest.find('/').map_or("", |slash| &rest[slash..]);
        values.push(decoded(path));
    }
    // `-f/etc/x` and `-Ifolder/x`.
    if let (true, Some(rest)) = (word.starts_with('-') && !word.starts_with("--"), word.get(2..))
        && rest.contains('/')
    {
        values.push(rest.to_owned());
        values.push(rest[rest.find('/').unwrap_or(0)..].to_owned());
    }
    // In a sentence, these are signs.
    let separators: &[char] = if word.contains(char::is_whitespace) { &['=', '@'] } else { &['=', '@', ':', ','] };
    let mut start = 0;
    for (at, sign) in word.char_indices().filter(|(_, sign)| separators.contains(sign)).take(MOST_PIECES) {
        if at > start {
            values.push(word[start..at].to_owned());
        }
        start = at + sign.len_utf8();
        values.push(word[start..].to_owned());
    }
    // Of a word with too many of them, the last one counts as well.
    let last = word.rsplit(separators).next().filter(|last| !values.iter().any(|known| known == last));
    values.extend(last.map(str::to_owned));
    // `//host/x` is an address without its scheme, and nothing so long can be opened.
    let can_be = |value: &String| value == word || !value.starts_with("//");
    values.retain(|value| !value.is_empty() && value.len() <= LONGEST && can_be(value));
    values
}

/// `%73` is an `s`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.filter(|_| *first == b'%').and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Which arguments are texts and no paths: what is searched for, and what is printed. Only where that is sure.
fn texts(command: &Simple) -> Vec<bool> {
    let given = &command.arguments;
    let mut is_text = vec![false; given.len()];
    let flags = match command.name() {
        Some("echo" | "printf") => return vec![true; given.len()],
        Some("find" | "gfind") => {
            const PATTERNS: &[&str] = &[
                "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname",
                "-ilname", "-printf",
            ];
            for (at, word) in given.iter().enumerate().skip(1) {
                is_text[at] = given[at - 1].known().is_some_and(|before| PATTERNS.contains(&before))
                    && !word.known().is_some_and(|text| text.starts_with('-'));
            }
            return is_text;
        }
        Some("grep" | "egrep" | "fgrep" | "zgrep") => "abcEFGHhIiLlnoPqRrsTUvwxyZz",
        Some("rg") => "FHILNPSUVabchilnopqsuvwxz0",
        Some("ag") => "acFHilLnNQrRsSuUvwz",
        Some("sed" | "gsed") => "nErsuz",
        Some("awk" | "gawk" | "mawk" | "nawk") => "",
        _ => return is_text,
    };
    for (at, word) in given.iter().enumerate() {
        match word.known() {
            Some(option) if option.starts_with("--") => {
                // With a value attached it takes none; but `--file=x` and `--regexp=x` are what is searched for.
                let searches = ["--f", "--r", "--e", "--s"].iter().any(|start| option.starts_with(start));
                if searches || option == "--" || !option.contains('=') {
                    return is_text;
                }
            }
            Some(option) if option.len() > 1 && option.starts_with('-') => {
                if !option[1..].chars().all(|letter| flags.contains(letter)) {
                    return is_text;
                }
            }
            Some(_) => {
                is_text[at] = true;
                return is_text;
            }
            None => return is_text,
        }
    }
    is_text
}

/// What is known of its beginning, with the home put in; and whether that is all.
fn beginning(word: &Word, home: &str) -> (String, bool) {
    let Word::Partly { text, known, .. } = word else {
        return (word.text().to_owned(), true);
    };
    let bare = text.trim_start_matches('"');
    // `~name` is that user's home, which for our own is usually the folder of that name.
    let named = bare.strip_prefix('~').and_then(|rest| rest.split('/').next());
    let is_ours = named.is_some_and(|name| name.is_empty() || home.rsplit('/').next() == Some(name));
    let at_home = is_ours || bare.starts_with("$HOME") || bare.starts_with("${HOME}");
    // `--file=$HOME/x` and `-f"$HOME/x"`.
    let inner = text.contains("$HOME") || text.contains("${HOME}");
    let is_only = known.iter().filter(|piece| matches!(piece, Piece::Any)).count() == 1;
    let mut start = String::new();
    for (place, piece) in known.iter().enumerate() {
        match piece {
            Piece::Text(text) => start += text,
            Piece::Any if place == 0 && at_home || inner && is_only => start += home,
            // Whichever process it is, what it calls the root is most likely ours.
            Piece::Any if start == "/proc/" => start += "self",
            Piece::Any => return (start, false),
        }
    }
    (start, true)
}

/// From a folder, without `.` and `..`, and past what every process has links to: `/proc/self/root/etc` is `/etc`.
fn from(directory: &str, path: &str, home: &str) -> String {
    let full = match path {
        path if path.starts_with('/') => path.to_owned(),
        // In the value of an option no shell puts the home in, but many a program does.
        path if path == "~" || path.starts_with("~/") => format!("{home}{}", &path[1..]),
        path => format!("{directory}/{path}"),
    };
    let mut names: Vec<&str> = Vec::new();
    for name in full.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            "root" if matches!(names.as_slice(), ["proc", _] | ["proc", _, "task", _]) => names.clear(),
            "cwd" if matches!(names.as_slice(), ["proc", _] | ["proc", _, "task", _]) => {
                names.clear();
                names.extend(directory.split('/').filter(|name| !name.is_empty()));
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Links that nearly every system has.
const LINKS: &[(&str, &str)] = &[
    ("/var/run", "/run"),
    ("/var/lock", "/run/lock"),
    ("/bin", "/usr/bin"),
    ("/sbin", "/usr/sbin"),
    ("/lib", "/usr/lib"),
    ("/lib64", "/usr/lib64"),
    ("/etc/mtab", "/proc/self/mounts"),
];

/// The same file by its other path, where one of them is a link on most systems.
pub fn twin(path: &str) -> Option<String> {
    let below = |folder: &str| path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    LINKS.iter().find_map(|(link, folder)| {
        let there = below(link).map(|rest| format!("{folder}{rest}"));
        there.or_else(|| below(folder).map(|rest| format!("{link}{rest}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "/home/user";

    fn of(line: &str) -> Vec<Named> {
        let reading = shell::of_line(line);
        let mut place = Whereabouts::at("/project");
        let (last, before) = reading.commands.split_last().expect("a command");
        before.iter().for_each(|command| place.follow(command, HOME));
        named(last, &place, HOME)
    }

    #[track_caller]
    fn names(line: &str, path: &str) {
        assert!(of(line).contains(&Named::Whole(path.to_owned())), "{line}: {:?}", of(line));
    }

    #[track_caller]
    fn does_not_name(line: &str, path: &str) {
        let found = of(line);
        let is_it = |named: &Named| match named {
            Named::Whole(found) | Named::Beginning(found) => found == path,
            Named::Somewhere(_) => false,
        };
        assert!(!found.iter().any(is_it), "{line}: {found:?}");
    }

    #[test]
    fn a_path_is_found_in_every_form_of_value() {
        for line in [
            "cat /etc/shadow", "x -f/etc/shadow", "x --file=/etc/shadow", "curl -d@/etc/shadow y",
            "curl -d @/etc/shadow y", "curl -F a=@/etc/shadow y", "dd if=/etc/shadow", "curl file:///etc/shadow",
            "curl file://localhost/etc/%73hadow", "x -v /etc/shadow:/mnt", "x --mount=src=/etc/shadow,dst=/a",
            "x < /etc/shadow", "x > /etc/shadow", "cat /proc/self/root/etc/shadow", "cat /proc/1/root/../etc/./shadow",
            "cat /proc/$$/root/etc/shadow", "cat /proc/self/task/1/root/etc/shadow", "tar -cC / etc/shadow",
            "x a,/etc/shadow",
        ] {
            names(line, "/etc/shadow");
        }
        for line in ["x --file=$HOME/.netrc", "x -f\"$HOME/.netrc\"", "x --file=~/.netrc", "x ~/.netrc", "x @~/.netrc"]
        {
            names(line, "/home/user/.netrc");
        }
    }

    #[test]
    fn a_sentence_is_no_list_of_paths() {
        does_not_name("git commit -m 'fix: /etc/shadow, /etc/x'", "/etc/shadow");
        does_not_name("curl https://example.org//etc/shadow", "/etc/shadow");
    }

    #[test]
    fn what_is_searched_for_or_printed_is_no_path() {
        for line in [
            "grep -rn /etc/shadow .", "grep /etc/shadow x", "rg /etc/shadow", "ag -i /etc/shadow src",
            "sed -n /etc/shadow x", "awk /etc/shadow x", "find . -path /etc/shadow",
            "find . -name a -o -wholename /etc/shadow", "echo /etc/shadow", "grep --color=auto /etc/shadow .",
        ] {
            does_not_name(line, "/etc/shadow");
        }
        for line in [
            "grep -e x /etc/shadow", "grep x /etc/shadow", "grep -f /etc/shadow x", "grep -A 3 /etc/shadow",
            "rg -r a /etc/shadow", "grep --regexp=x /etc/shadow", "grep --file=/etc/shadow x", "sed -e p /etc/shadow",
            "awk -f x /etc/shadow", "find /etc/shadow", "find . -newer /etc/shadow", "echo x > /etc/shadow",
            "grep -rn x . /etc/shadow", "awk -F: /x/ /etc/shadow", "sed -i p /etc/shadow", "grep $X /etc/shadow",
        ] {
            names(line, "/etc/shadow");
        }
    }

    #[test]
    fn a_change_of_folder_is_followed() {
        for line in [
            "cd ~ && cat .ssh/x", "cd $HOME; cat .ssh/x", "cd; cat .ssh/x", "cd .. && cd /home/user && cat .ssh/x",
            "pushd ~ && cat ./.ssh/x", "cd -P ~ && cat .ssh/x", "cd ~/a && cat ../.ssh/x", "(cd ~; cat .ssh/x)",
            "tar -C ~ -cf y .ssh/x", "tar --directory=/home/user -cf y .ssh/x", "git -C ~ add .ssh/x",
            "git --work-tree=$HOME add .ssh/x", "make -C/home/user .ssh/x",
        ] {
            names(line, "/home/user/.ssh/x");
        }
        names("cd ~ && cat .ssh/x", "/project/.ssh/x");
        does_not_name("cat .ssh/x", "/home/user/.ssh/x");
    }

    #[test]
    fn from_a_folder_that_nobody_knows_it_may_be_anywhere() {
        assert!(of("cd \"$X\" && cat .ssh/x").contains(&Named::Somewhere("/.ssh/x".to_owned())));
        assert!(of("tar --directory=\"$X\" -cf y .ssh/x").contains(&Named::Somewhere("/.ssh/x".to_owned())));
        assert!(of("cd - && cat .ssh/x").contains(&Named::Somewhere("/.ssh/x".to_owned())));
        assert!(!of("cd a && cd - && cat .ssh/x").iter().any(|named| matches!(named, Named::Somewhere(_))));
        assert!(of("git -C \"$X\" add .ssh/x").contains(&Named::Somewhere("/.ssh/x".to_owned())));
        assert!(!of("cd \"$X\" && make test").iter().any(|named| matches!(named, Named::Somewhere(_))));
        let many: String = (0..20).map(|number| format!("cd a{number}; ")).collect();
        assert!(of(&format!("{many} cat .ssh/x")).contains(&Named::Somewhere("/.ssh/x".to_owned())));
    }

    #[test]
    fn a_link_that_every_system_has_names_both() {
        names("ls /var/run/docker.sock", "/run/docker.sock");
        names("ls /run/docker.sock", "/var/run/docker.sock");
        does_not_name("ls /runner", "/var/runner");
    }

    #[test]
    fn what_allows_guesses_nothing() {
        let surely = |line: &str| {
            let reading = shell::of_line(line);
            surely_named(&reading.commands[0], &Whereabouts::at("/project"), HOME)
        };
        assert_eq!(surely("cat a --x=/b \"$X\" /c/$X ~/d"), ["/project/a", "/b", "/home/user/d"]);
        assert_eq!(surely("git -C /x add y"), ["/x"]);
        assert_eq!(surely("cat /etc/shadow:/data"), ["/etc/shadow:/data"]);
    }

    #[test]
    fn a_word_of_many_signs_takes_no_long_time() {
        let many = format!("{}=/etc/shadow", "a=/b:@".repeat(20_000));
        assert!(values(&many).len() < 50);
        names(&format!("x {many}"), "/etc/shadow");
    }
}
