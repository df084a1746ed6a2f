//! A taking as a question: which changes, the changes themselves, and what of them is not shown.

use model::{Proposed, Taken, Thing, ThingKind, Unshown};

/// Characters of the list of changes.
const LONGEST_LIST: usize = 15_000;

/// Everything of it that a person sees, each with its name.
pub fn shown(taken: &Taken, workspaces: &[String]) -> Vec<(String, String)> {
    let Taken { sandbox, proposed, asked_digest, .. } = taken;
    let mut shown = vec![("take the changes of".to_owned(), sandbox.clone())];
    shown.extend(workspaces.iter().map(|workspace| ("workspace".to_owned(), workspace.clone())));
    let several = workspaces.len() > 1;
    let (list, unlisted) = list(proposed, several);
    shown.push(("changes".to_owned(), list));
    let mut unseen = 0;
    for change in proposed {
        let Proposed { diff, unshown, .. } = change;
        if !diff.is_empty() {
            shown.push(("diff".to_owned(), diff.clone()));
        }
        match unshown {
            None => {}
            Some(_) if diff.is_empty() => unseen += 1,
            Some(Unshown { lines, bytes, digest }) => {
                let path = path(change, several);
                let rest =
                    format!("{lines} more lines, {bytes} bytes, of {path}; the whole diff has the digest {digest}");
                shown.push(("not shown".to_owned(), rest));
            }
        }
    }
    if unlisted > 0 {
        shown.push(("not listed".to_owned(), format!("{unlisted} more changes")));
    }
    if unseen > 0 {
        shown.push(("not shown".to_owned(), format!("the diffs of {unseen} changes")));
    }
    if unlisted > 0 || shown.iter().any(|(name, _)| name == "not shown") {
        shown.push(("to see all of it".to_owned(), format!("belljar diff {sandbox}")));
    }
    // Of all of it, whether it is shown or not: nothing else is taken with this answer.
    shown.push(("contents".to_owned(), asked_digest.clone()));
    shown
}

/// A line for each change, as many as can be read, and how many are left.
fn list(proposed: &[Proposed], several: bool) -> (String, usize) {
    let mut list = String::new();
    let mut characters = 0;
    for (at, change) in proposed.iter().enumerate() {
        let line = line(change, several);
        characters += line.chars().count() + 1;
        if characters > LONGEST_LIST {
            return (list, proposed.len() - at);
        }
        if at > 0 {
            list.push('\n');
        }
        list += &line;
    }
    (list, 0)
}

fn line(change: &Proposed, several: bool) -> String {
    let Proposed { was, is, lines, .. } = change;
    let what = match (was, is) {
        (None, _) => "added",
        (_, None) => "deleted",
        (Some(was), Some(is)) if was.kind != is.kind => "replaced",
        _ => "modified",
    };
    let mut line = format!("{what} {}", path(change, several));
    let kind = |thing: &Thing| match thing.kind {
        ThingKind::File => None,
        ThingKind::Folder => Some("a folder".to_owned()),
        ThingKind::Special => Some("a device, socket or pipe".to_owned()),
        ThingKind::Link => {
            Some(format!("a link to {}", thing.target.as_ref().map_or("nobody knows where".into(), |to| plain(to))))
        }
    };
    let size = |thing: &Option<Thing>| thing.as_ref().map_or(0, |thing| thing.size);
    match (lines, is.as_ref().or(was.as_ref()).and_then(kind)) {
        (_, Some(kind)) => line += &format!(", {kind}"),
        (Some((added, removed)), None) => line += &format!(", +{added} -{removed}"),
        (None, None) => line += &format!(", no text, {} bytes now and {} then", size(was), size(is)),
    }
    match (was, is) {
        (Some(was), Some(is)) if was.mode != is.mode && is.kind != ThingKind::Link => {
            line += &format!(", mode {:o} to {:o}", was.mode, is.mode);
        }
        (None, Some(is)) if is.kind == ThingKind::File => line += &format!(", mode {:o}", is.mode),
        _ => {}
    }
    line
}

fn path(change: &Proposed, several: bool) -> String {
    match several {
        true => plain(&change.workspace.join(&change.path.0)),
        false => plain(&change.path),
    }
}

/// A name with a line of its own in it would look like another change.
fn plain(path: &std::path::Path) -> String {
    let letters = path.to_string_lossy();
    letters
        .chars()
        .flat_map(|letter| {
            let escaped = letter.is_control().then(|| letter.escape_default());
            let itself = escaped.is_none().then_some(letter);
            escaped.into_iter().flatten().chain(itself)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use model::{LONGEST_QUESTION, LONGEST_VALUE, Shown};

    use super::*;

    fn file(size: u64, mode: u32) -> Option<Thing> {
        Some(Thing { kind: ThingKind::File, mode, size, target: None })
    }

    fn change(path: &str) -> Proposed {
        Proposed {
            workspace: Shown("/project".into()),
            path: Shown(path.into()),
            was: file(10, 0o644),
            is: file(20, 0o755),
            lines: Some((3, 1)),
            diff: format!("--- a/{path}\n+++ b/{path}"),
            unshown: None,
        }
    }

    fn page(proposed: Vec<Proposed>) -> String {
        let taken = Taken { sandbox: "3f2a".into(), asked_digest: "d1".into(), proposed, ..Taken::default() };
        let shown = shown(&taken, &["/project".to_owned()]);
        shown.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    #[test]
    fn a_person_sees_the_changes_themselves() {
        let link = Thing { kind: ThingKind::Link, mode: 0o777, size: 4, target: Some(Shown("/etc".into())) };
        let cut = Unshown { lines: 7, bytes: 99, digest: "abc".into() };
        let page = page(vec![
            change("a"),
            Proposed { was: None, unshown: Some(cut), ..change("b\nadded c") },
            Proposed { is: None, lines: None, ..change("c") },
            Proposed { is: Some(link), ..change("d") },
        ]);
        assert_eq!(
            page,
            "take the changes of: 3f2a\nworkspace: /project\n\
             changes: modified a, +3 -1, mode 644 to 755\n\
             added b\\nadded c, +3 -1, mode 755\n\
             deleted c, no text, 10 bytes now and 0 then\n\
             replaced d, a link to /etc\n\
             diff: --- a/a\n+++ b/a\n\
             diff: --- a/b\nadded c\n+++ b/b\nadded c\n\
             not shown: 7 more lines, 99 bytes, of b\\nadded c; the whole diff has the digest abc\n\
             diff: --- a/c\n+++ b/c\ndiff: --- a/d\n+++ b/d\n\
             to see all of it: belljar diff 3f2a\ncontents: d1\n"
        );
    }

    #[test]
    fn of_very_many_changes_it_is_said_how_many_are_not_seen() {
        let unseen = |path: String| {
            let unshown = Some(Unshown { lines: 1, bytes: 1, digest: "abc".into() });
            Proposed { diff: String::new(), unshown, ..change(&path) }
        };
        let proposed: Vec<Proposed> = (0..50_000).map(|number| unseen(format!("folder/{number}"))).collect();
        let taken = Taken { proposed, ..Taken::default() };
        let shown = shown(&taken, &["/project".to_owned()]);
        assert!(shown.iter().all(|(_, value)| value.chars().count() <= LONGEST_VALUE));
        assert!(shown.iter().map(|(_, value)| value.chars().count()).sum::<usize>() < LONGEST_QUESTION);
        let listed = shown.iter().find(|(name, _)| name == "changes").map_or(0, |(_, list)| list.lines().count());
        assert!(shown.contains(&("not listed".to_owned(), format!("{} more changes", 50_000 - listed))));
        assert!(shown.contains(&("not shown".to_owned(), "the diffs of 50000 changes".to_owned())));
    }
}
