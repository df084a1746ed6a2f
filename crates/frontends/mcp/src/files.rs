//! Tools for files: carried out inside the sandbox, behind its walls, so a path leads where it would lead a command there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{FileOperation, OnlyIf};
use serde_json::Value;
use service::Task;

use crate::arguments as take;
use crate::calls::Ended;
use crate::deeds::{good, path_of};
use crate::house::Worker;
use crate::output as give;
use crate::said::Failure;

/// Of a file in one answer, in bytes; and if nobody says how much.
const MOST_READ: u64 = 1 << 20;
const READ: u64 = 256 << 10;
/// Of a file that is edited.
const MOST_EDITED: u64 = 4 << 20;

async fn work(
    worker: &Worker,
    sandbox: &str,
    operation: FileOperation,
    input: Option<Vec<u8>>,
) -> Result<(Value, Vec<u8>), Failure> {
    worker.contents(Task::Files { id: sandbox.to_owned(), operation }, input, "sandbox").await
}

pub async fn read_file(worker: Worker, arguments: take::ReadFile) -> Ended {
    let take::ReadFile { sandbox, path, from, length } = arguments;
    let length = length.unwrap_or(READ);
    if !(1..=MOST_READ).contains(&length) {
        return Err(
            Failure::wrong(format!("`length` is between 1 and {MOST_READ}")).fix("read it in parts, with `from`")
        );
    }
    let sandbox = worker.sandbox(sandbox).await?;
    let operation = FileOperation::Read { path: path.clone(), from, length: Some(length) };
    let (answer, bytes) = work(&worker, &sandbox, operation, None).await?;
    let (count, size) = (bytes.len() as u64, answer["entries"][0]["size"].as_u64().unwrap_or_default());
    let redacted = answer["redacted"].as_u64().unwrap_or_default();
    let whole = from == 0 && redacted == 0 && count == size;
    let digest = whole.then(|| blake3::hash(&bytes).to_string());
    let cut = from.saturating_add(length) < size;
    let (text, base64) = as_text(bytes);
    let said = text.clone().unwrap_or_else(|| format!("{count} bytes that are no text, in `base64`"));
    good(&give::FileRead { sandbox, path, text, base64, bytes: count, size, cut, digest, redacted }, said)
}

/// Text where it is; what a part of a file cuts in two at its end is not lost: then it is bytes.
fn as_text(bytes: Vec<u8>) -> (Option<String>, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (Some(text), None),
        Ok(text) => (None, Some(STANDARD.encode(text))),
        Err(error) => (None, Some(STANDARD.encode(error.into_bytes()))),
    }
}

pub async fn write_file(worker: Worker, arguments: take::WriteFile) -> Ended {
    let take::WriteFile { sandbox, path, text, base64, new, digest, executable } = arguments;
    let bytes = match (text, base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(encoded)) => {
            STANDARD.decode(encoded).map_err(|error| Failure::wrong(format!("`base64` is none: {error}")))?
        }
        _ => return Err(Failure::wrong("say either `text` or `base64`")),
    };
    let only = match (new, digest) {
        (false, None) => OnlyIf::Always,
        (true, None) => OnlyIf::New,
        (false, Some(digest)) => OnlyIf::Digest(digest),
        (true, Some(_)) => return Err(Failure::wrong("say either `new` or `digest`")),
    };
    let sandbox = worker.sandbox(sandbox).await?;
    let mode = executable.then_some(0o755);
    let operation = FileOperation::Write { path: path.clone(), mode, only, parents: true };
    let count = bytes.len() as u64;
    let (answer, _) = work(&worker, &sandbox, operation, Some(bytes)).await?;
    let said = format!("{count} bytes written to {path}");
    good(&written(sandbox, path, count, &answer, 0), said)
}

fn written(sandbox: String, path: String, bytes: u64, answer: &Value, replaced: u64) -> give::FileWritten {
    give::FileWritten { sandbox, path, bytes, digest: answer["digest"].as_str().map(str::to_owned), replaced }
}

pub async fn edit_file(worker: Worker, arguments: take::EditFile) -> Ended {
    let take::EditFile { sandbox, path, edits } = arguments;
    let sandbox = worker.sandbox(sandbox).await?;
    let operation = FileOperation::Read { path: path.clone(), from: 0, length: Some(MOST_EDITED + 1) };
    let (answer, bytes) = work(&worker, &sandbox, operation, None).await?;
    if bytes.len() as u64 > MOST_EDITED {
        return Err(Failure::new("too-large", format!("`{path}` has more than {MOST_EDITED} bytes"))
            .fix("edit it with a command, such as `sed -i`"));
    }
    let digest = blake3::hash(&bytes).to_string();
    // What is read comes without secrets; written back, the file would have lost them.
    if answer["redacted"].as_u64().unwrap_or_default() > 0 {
        return Err(Failure::new("has-secrets", format!("`{path}` has secrets in it, which do not come out"))
            .rule("release.redact")
            .fix("edit it with a command, such as `sed -i`, which sees all of it"));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::new("wrong-kind", format!("`{path}` is no text")).fix("write all of it with `write_file`")
    })?;
    let (text, replaced) = edited(text, &edits)?;
    // Only if it still is what was read: somebody else may have written to it meanwhile.
    let only = OnlyIf::Digest(digest);
    let operation = FileOperation::Write { path: path.clone(), mode: None, only, parents: false };
    let count = text.len() as u64;
    let (answer, _) = work(&worker, &sandbox, operation, Some(text.into_bytes())).await?;
    let said = format!("{replaced} places changed in {path}");
    good(&written(sandbox, path, count, &answer, replaced), said)
}

fn edited(mut text: String, edits: &[take::Edit]) -> Result<(String, u64), Failure> {
    if edits.is_empty() {
        return Err(Failure::wrong("`edits` is empty"));
    }
    let mut replaced = 0;
    for (number, take::Edit { old, new, all }) in edits.iter().enumerate() {
        let wrong = |what: &str, fix: &str| Failure::new("no-match", format!("edit {}: {what}", number + 1)).fix(fix);
        if old.is_empty() {
            return Err(wrong("`old` is empty", "say what is to be replaced"));
        }
        match (text.matches(old.as_str()).count(), *all) {
            (0, _) => {
                return Err(wrong(
                    "`old` is not there",
                    "read the file again, and use its text exactly; nothing was changed",
                ));
            }
            (1, _) | (_, true) => {}
            (count, false) => {
                let what = format!("`old` is there {count} times");
                return Err(wrong(&what, "take in more of what is around it, or say `all`; nothing was changed"));
            }
        }
        replaced += text.matches(old.as_str()).count() as u64;
        text = text.replace(old.as_str(), new);
        if text.len() as u64 > MOST_EDITED * 2 {
            return Err(Failure::new("too-large", "the file would become too large").fix("write it with a command"));
        }
    }
    Ok((text, replaced))
}

pub async fn list_files(worker: Worker, arguments: take::ListFiles) -> Ended {
    let take::ListFiles { sandbox, path, depth } = arguments;
    if !(1..=32).contains(&depth) {
        return Err(Failure::wrong("`depth` is between 1 and 32"));
    }
    let sandbox = worker.sandbox(sandbox).await?;
    let operation = FileOperation::List { path: path.unwrap_or_else(|| ".".to_owned()), depth };
    let (answer, _) = work(&worker, &sandbox, operation, None).await?;
    let entries = answer["entries"].as_array().cloned().unwrap_or_default();
    let lines = entries.iter().map(|entry| {
        let mark = if entry["kind"] == "folder" { "/" } else { "" };
        format!("{}{mark}", path_of(&entry["path"]))
    });
    let text = if entries.is_empty() { "it is empty".to_owned() } else { lines.collect::<Vec<_>>().join("\n") };
    good(&give::FileList { sandbox, entries, cut: answer["cut"] == true }, text)
}

pub async fn search_files(worker: Worker, arguments: take::SearchFiles) -> Ended {
    let take::SearchFiles { sandbox, pattern, path, regex, ignore_case, names, most } = arguments;
    if pattern.is_empty() {
        return Err(Failure::wrong("`pattern` is empty"));
    }
    let sandbox = worker.sandbox(sandbox).await?;
    let path = path.unwrap_or_else(|| ".".to_owned());
    let operation = FileOperation::Search { path, pattern, regex, ignore_case, names, most };
    let (answer, _) = work(&worker, &sandbox, operation, None).await?;
    let matches = answer["matches"].as_array().cloned().unwrap_or_default();
    let lines = matches.iter().map(|found| {
        format!("{}:{}: {}", path_of(&found["path"]), found["line"], found["text"].as_str().unwrap_or_default())
    });
    let text = if matches.is_empty() { "nothing was found".to_owned() } else { lines.collect::<Vec<_>>().join("\n") };
    let skipped = answer["skipped"].as_u64().unwrap_or_default();
    good(&give::FileMatches { sandbox, matches, skipped, cut: answer["cut"] == true }, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, all: bool) -> take::Edit {
        take::Edit { old: old.to_owned(), new: new.to_owned(), all }
    }

    #[test]
    fn an_edit_is_of_one_place_unless_it_says_all() {
        let text = || "one two two".to_owned();
        assert_eq!(edited(text(), &[edit("one", "1", false)]), Ok(("1 two two".to_owned(), 1)));
        assert_eq!(edited(text(), &[edit("two", "2", true)]), Ok(("one 2 2".to_owned(), 2)));
        assert_eq!(edited(text(), &[edit("one", "x", false), edit("x", "y", false)]), Ok(("y two two".to_owned(), 2)));
        for wrong in [edit("two", "2", false), edit("three", "3", true), edit("", "x", true)] {
            assert_eq!(edited(text(), &[wrong]).err().map(|failure| failure.kind), Some("no-match"));
        }
        assert!(edited(text(), &[]).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_come_as_they_are() {
        assert_eq!(as_text(b"a".to_vec()), (Some("a".to_owned()), None));
        assert_eq!(as_text(vec![0xff]), (None, Some("/w==".to_owned())));
        assert_eq!(as_text(vec![0]), (None, Some("AA==".to_owned())));
    }
}
