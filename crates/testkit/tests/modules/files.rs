//! What modules may do to files: the rights that were granted, each with the control that others have them.

use std::fs;

use belljar_testkit::Who;
use belljar_testkit::modules::Kind;
use belljar_testkit::twice::Check;

use crate::table::{Table, ended, says, shown, text};

pub const ALL: &[(&str, Check)] = &[
    ("relative_paths_lead_to_where_a_module_starts", relative),
    ("what_a_module_writes_is_a_change_that_can_be_seen_and_applied", layered),
    ("what_may_only_be_read_can_not_be_changed_in_any_way", read_only),
    ("a_read_only_workspace_stays_as_it_is", read_only_workspace),
    ("what_is_hidden_is_not_there", hidden),
    ("a_module_has_a_home_and_a_place_for_temporary_files", scratch),
    ("a_single_file_is_given_alone_or_refused_by_name", single),
    ("a_module_in_a_layer_is_the_one_that_runs", in_a_layer),
];

fn relative(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        says(&ended(table.run(kind, &[], &["read", "notes/first.txt"])?, 0)?, "first")?;
        says(&ended(table.run(kind, &["--cwd", "notes"], &["read", "first.txt"])?, 127)?, "no module")?;
        let below = ["run", "-q", "--cwd", "notes", "--", &format!("../{}", kind.file()), "read", "first.txt"];
        says(&ended(table.belljar(&below)?, 0)?, "first")?;
        let whole = shown(&table.project.work.join("notes/first.txt"));
        says(&ended(table.run(kind, &[], &["read", &whole])?, 0)?, "first")?;
    }
    Ok(())
}

fn layered(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let first = table.project.work.join("notes/first.txt");
    ended(table.run(Kind::Plain, &[], &["write", "notes/first.txt", "second\n"])?, 0)?;
    if fs::read_to_string(&first).map_err(|error| error.to_string())? != "first\n" {
        return Err("the real file changed".to_owned());
    }
    says(&ended(table.belljar(&["diff", "--patch", "last"])?, 0)?, "+second")?;
    ended(table.belljar(&["apply", "last"])?, 0)?;
    match fs::read_to_string(&first).map_err(|error| error.to_string())?.as_str() {
        "second\n" => Ok(()),
        other => Err(format!("after applying it is `{other}`")),
    }
}

const CHANGES: &[&[&str]] = &[
    &["write", "first.txt", "x"],
    &["append", "first.txt", "x"],
    &["truncate", "first.txt"],
    &["truncate-by-opening", "first.txt"],
    &["touch", "first.txt"],
    &["link", "first.txt", "second.txt"],
    &["rename", "first.txt", "second.txt"],
    &["write", "new.txt", "x"],
    &["make-folder", "new"],
    &["remove-folder", "empty"],
    &["remove", "first.txt"],
];

fn changes(folder: &str, change: &[&str]) -> Vec<String> {
    let (what, names) = change.split_first().map_or(("", &[] as &[&str]), |(what, names)| (*what, names));
    let mut words = vec![what.to_owned()];
    let text = usize::from(matches!(what, "write" | "append"));
    for (at, name) in names.iter().enumerate() {
        let is_text = text == 1 && at + 1 == names.len();
        words.push(if is_text { (*name).to_owned() } else { format!("{folder}/{name}") });
    }
    words
}

fn library(table: &Table) -> Result<String, String> {
    let library = table.project.work.with_file_name("library");
    for folder in [library.clone(), library.join("empty")] {
        fs::create_dir_all(&folder).and_then(|()| table.project.give(&folder)).map_err(|error| error.to_string())?;
    }
    let file = library.join("first.txt");
    fs::write(&file, "first\n").and_then(|()| table.project.give(&file)).map_err(|error| error.to_string())?;
    Ok(shown(&library))
}

fn read_only(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    for kind in Kind::MODULES {
        for change in CHANGES {
            let library = library(&table)?;
            let words = changes(&library, change);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = table.run(kind, &["--read", &library], &words)?;
            if said.code == Some(0) || !said.error.contains("kept from it") {
                return Err(format!("{kind:?} {change:?} on what may only be read: {said:?}"));
            }
            let stat = fs::metadata(format!("{library}/first.txt")).map_err(|error| error.to_string())?;
            let times = stat.modified().map_err(|error| error.to_string())?;
            if stat.len() != 6 || times == std::time::SystemTime::UNIX_EPOCH {
                return Err(format!("{change:?} changed it"));
            }
            // The control: with the right to, it can.
            let said = table.run(kind, &["--write", &library], &words)?;
            ended(said, 0).map_err(|said| format!("{kind:?} {change:?} on what may be written: {said}"))?;
            fs::remove_dir_all(&library).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn read_only_workspace(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    fs::create_dir_all(table.project.work.join("notes/empty")).map_err(|error| error.to_string())?;
    for change in CHANGES {
        let words = changes("notes", change);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = table.run(Kind::Plain, &["--workspace-mode", "readonly"], &words)?;
        if said.code != Some(3) {
            return Err(format!("{change:?}: {said:?}"));
        }
    }
    Ok(())
}

fn hidden(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("notes/secret.txt", "bell under glass\n")?;
    for kind in Kind::MODULES {
        says(&ended(table.run(kind, &[], &["read", "notes/secret.txt"])?, 0)?, "bell under glass")?;
        let said = table.run(kind, &["--hide", "notes/secret.txt"], &["read", "notes/secret.txt"])?;
        if text(&said).contains("bell") {
            return Err(format!("it was read: {said:?}"));
        }
        let said = table.run(kind, &["--hide", "notes"], &["list", "notes"])?;
        if text(&said).contains("secret") {
            return Err(format!("it was seen: {said:?}"));
        }
    }
    Ok(())
}

fn scratch(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let home = shown(table.project.work.parent().unwrap_or(&table.project.work));
    for kind in Kind::MODULES {
        ended(table.run(kind, &[], &["write", "/tmp/a", "x"])?, 0)?;
        let listed = ended(table.run(kind, &[], &["list", "/tmp"])?, 0)?;
        if text(&listed) != "\n" {
            return Err(format!("/tmp is not its own, or not fresh: {listed:?}"));
        }
        ended(table.run(kind, &[], &["write", &format!("{home}/mine"), "x"])?, 0)?;
        let listed = ended(table.run(kind, &[], &["list", &home])?, 0)?;
        if text(&listed) != "\n" {
            return Err(format!("its home is not its own, or not fresh: {listed:?}"));
        }
    }
    Ok(())
}

fn single(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    let folder = library(&table)?;
    let [first, beside, new] = ["first.txt", "beside.txt", "new.txt"].map(|name| format!("{folder}/{name}"));
    fs::write(&beside, "not granted").map_err(|error| error.to_string())?;
    let kept_from = |kind, flag, words: &[&str]| -> Result<(), String> {
        let said = table.run(kind, &[flag, &first], words)?;
        match said.code != Some(0) && said.error.contains("kept from it") {
            true => Ok(()),
            false => Err(format!("{kind:?} {flag} {words:?}: {said:?}")),
        }
    };
    for kind in Kind::MODULES {
        says(&ended(table.run(kind, &["--read", &first], &["read", &first])?, 0)?, "first")?;
        for words in
            [&["read", beside.as_str()][..], &["write", &first, "x"], &["truncate", &first], &["write", &new, "x"]]
        {
            kept_from(kind, "--read", words)?;
        }
        ended(table.run(kind, &["--write", &first], &["append", &first, "and more"])?, 0)?;
        kept_from(kind, "--write", &["read", &beside])?;
        kept_from(kind, "--write", &["remove", &first])?;
        // What it makes beside the file is in the jar's own memory, if anywhere.
        for path in [&beside, &new] {
            table.run(kind, &["--write", &first], &["write", path, "x"])?;
        }
        let kept = fs::read_to_string(&beside).map_err(|error| error.to_string())?;
        if kept != "not granted" || std::path::Path::new(&new).exists() {
            return Err(format!("{kind:?} got at the folder around it: {kept}"));
        }
    }
    let written = fs::read_to_string(&first).map_err(|error| error.to_string())?;
    if !written.ends_with("and moreand more") {
        return Err(format!("what may be written to was not: {written}"));
    }
    let said = ended(table.run(Kind::Plain, &["--read", "/etc/hostname"], &["say"])?, 125)?;
    says(&said, "a module can only be given folders")
}

fn in_a_layer(who: Who) -> Result<(), String> {
    let table = Table::laid(who)?;
    table.put("new.wat", crate::stories::HELLO)?;
    let other = crate::stories::HELLO.replace("hello from text", "it was changed!");
    table.put("other.wat", &other)?;
    let id = table.project.create()?;
    let exec = |words: &[&str]| table.belljar(&[&["exec", "-q", &id, "--"], words].concat());
    says(&ended(exec(&["new.wat"])?, 0)?, "hello from text")?;
    ended(exec(&[Kind::Plain.file(), "rename", "other.wat", "new.wat"])?, 0)?;
    says(&ended(exec(&["new.wat"])?, 0)?, "it was changed!")
}
