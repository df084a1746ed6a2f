//! Names that command a terminal, begin a line, look like flags, or are no text.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::bench::{Bench, same};

pub const ALL: &[(&str, Check)] = &[("whatever_a_file_is_called_it_is_listed_safely_and_handed_out", names)];

const NAMES: &[&str] = &[
    "-rf", "a\nbelljar: exit 0", "\u{1b}[2J\u{1b}]0;owned\u{7}", "\u{202e}gnp.exe", "zero\u{200b}width", "back\\slash",
    "$(touch owned)", "e\u{301}", "\u{e9}", "*", "..x",
];

fn names(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    // As arguments, so that no shell reads them; the last is no text at all.
    let long = "x".repeat(255);
    let mut script =
        String::from("mkdir out && cd out && for name in \"$@\"; do printf %s \"$name\" > \"./$name\"; done");
    script += " && printf bytes > \"$(printf '\\377\\376')\"";
    let result = bench.home.join("result.json").display().to_string();
    let start = ["run", "--artifact", "out", "--result-file", &result, "--", "sh", "-c", &script, "sh"];
    let words: Vec<&str> = start.into_iter().chain(NAMES.iter().copied()).chain([long.as_str()]).collect();
    let said = bench.project.done(words)?;
    if said.error.contains('\u{1b}') || said.error.contains('\u{202e}') || said.error.trim_end().lines().count() != 1 {
        return Err(format!("the summary is not safe: {said:?}"));
    }
    let list = bench.project.json(["artifacts", "ls", "--json"])?;
    let list = list.as_array().ok_or("a list")?;
    if list.len() != NAMES.len() + 2 {
        return Err(format!("{} are listed: {list:#?}", list.len()));
    }
    for name in NAMES.iter().copied().chain([long.as_str()]) {
        let path = format!("out/{name}");
        let one = list.iter().find(|one| one["path"] == path).ok_or_else(|| format!("no {name:?}"))?;
        let id = one["id"].as_str().ok_or("an id")?;
        // A name that is made to mislead keeps its file back, and no other does.
        match one["released"] == true {
            true => same(bench.get(id)?, name)?,
            false if name.contains('\u{202e}') && one["rule"].to_string().contains("findings.") => {}
            false => return Err(format!("withheld: {one}")),
        }
    }
    let bytes = list.iter().find(|one| one["path"]["bytes"].is_array()).ok_or("no name that is no text")?;
    same(bench.get(bytes["id"].as_str().ok_or("an id")?)?, "bytes")?;

    let said = bench.project.done(["artifacts", "ls"])?;
    let page = String::from_utf8(said.out).map_err(|error| error.to_string())?;
    let safe = page
        .chars()
        .all(|letter| letter == '\n' || !letter.is_control() && letter != '\u{202e}' && letter != '\u{200b}');
    match safe && page.lines().count() == list.len() + 1 && !page.lines().any(|line| line.starts_with("belljar:")) {
        true => Ok(()),
        false => Err(format!("the list is not safe: {page:?}")),
    }
}
