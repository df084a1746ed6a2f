//! Patches are judged by those who will read them: the real `git apply` and GNU `patch`.

use belljar_workspace::patch::{Patch, Side, write};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::{ffi::OsStrExt, fs::PermissionsExt, fs::symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const FILE: u32 = 0o100644;
const PROGRAM: u32 = 0o100755;
const LINK: u32 = 0o120000;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    mode: u32,
    content: Vec<u8>,
}

type Tree = BTreeMap<Vec<u8>, Node>;

/// One path before and after. Renamed if the two differ.
#[derive(Clone, Debug)]
struct Step {
    old: Option<(Vec<u8>, Node)>,
    new: Option<(Vec<u8>, Node)>,
}

/// A folder of its own for each tree, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn with(tree: &Tree) -> Folder {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("patches-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let folder = Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        fs::create_dir_all(&folder.0).expect("a folder for the tree");
        for (name, node) in tree {
            folder.put(name, node);
        }
        folder
    }

    fn put(&self, name: &[u8], node: &Node) {
        let path = self.0.join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().expect("it is below the folder")).expect("a folder for the file");
        if node.mode == LINK {
            symlink(OsStr::from_bytes(&node.content), &path).expect("a link");
        } else {
            fs::write(&path, &node.content).expect("a file");
            fs::set_permissions(&path, Permissions::from_mode(node.mode & 0o777)).expect("its mode");
        }
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let kind = fs::symlink_metadata(&path).expect("it is there");
                if kind.is_dir() {
                    folders.push(path);
                    continue;
                }
                let node = if kind.is_symlink() {
                    let target = fs::read_link(&path).expect("a link");
                    Node { mode: LINK, content: target.as_os_str().as_bytes().to_vec() }
                } else {
                    let mode = if kind.permissions().mode() & 0o100 == 0 { FILE } else { PROGRAM };
                    Node { mode, content: fs::read(&path).expect("a file") }
                };
                let name = path.strip_prefix(&self.0).expect("it is below the folder");
                tree.insert(name.as_os_str().as_bytes().to_vec(), node);
            }
        }
        tree
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("nothing holds it");
    }
}

/// Who reads the patch.
#[derive(Clone, Copy, Debug)]
enum Reader {
    Git,
    Patch,
}

impl Reader {
    fn command(self) -> Command {
        let mut command = match self {
            Reader::Git => Command::new("git"),
            Reader::Patch => Command::new("patch"),
        };
        command.stdin(Stdio::null()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LC_ALL", "C").env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        // The folder may lie in belljar's own repository, whose index is not meant.
        command.env("GIT_CEILING_DIRECTORIES", env!("CARGO_TARGET_TMPDIR"));
        command
    }

    #[expect(clippy::print_stderr, reason = "a test that did not look says so")]
    fn is_here(self) -> bool {
        let here = self.command().arg("--version").output().is_ok_and(|output| output.status.success());
        if !here {
            eprintln!("skipped: there is no {self:?} on this machine");
        }
        here
    }

    fn apply(self, patch: &[u8], before: &Tree) -> Result<Tree, String> {
        let folder = Folder::with(before);
        let sheet = folder.0.with_extension("patch");
        fs::write(&sheet, patch).expect("the patch is written");
        let mut command = self.command();
        match self {
            Reader::Git => command.args(["apply", "--whitespace=nowarn"]).arg(&sheet),
            Reader::Patch => command.args(["-p1", "--batch", "--fuzz=0", "--no-backup-if-mismatch", "-i"]).arg(&sheet),
        };
        let output = command.current_dir(&folder.0).output().expect("it starts");
        fs::remove_file(&sheet).expect("the patch is ours");
        match output.status.success() {
            true => Ok(folder.tree()),
            false => Err(format!(
                "{self:?} refused it: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}

fn patch_of(steps: &[Step]) -> Vec<u8> {
    fn side((path, node): &(Vec<u8>, Node)) -> Side<'_> {
        Side { path, mode: node.mode, content: &node.content }
    }
    let mut out = Vec::new();
    for Step { old, new } in steps {
        write(&Patch { old: old.as_ref().map(side), new: new.as_ref().map(side) }, &mut out);
    }
    out
}

fn check(reader: Reader, steps: &[Step]) -> Result<(), TestCaseError> {
    let before: Tree = steps.iter().filter_map(|step| step.old.clone()).collect();
    let after: Tree = steps.iter().filter_map(|step| step.new.clone()).collect();
    let patch = patch_of(steps);
    if patch.is_empty() {
        prop_assert_eq!(before, after);
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&patch).into_owned();
    match reader.apply(&patch, &before) {
        Ok(tree) => prop_assert_eq!(tree, after, "{}", shown),
        Err(complaint) => prop_assert!(false, "{complaint}\n{shown}"),
    }
    Ok(())
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"a"[..],
        b"b",
        b"x",
        b" ",
        b"\t",
        b"\n",
        b"\r",
        b"\"",
        b"\\",
        b"\x01",
        b"\x7f",
        b"\xff",
        b"-",
        b"'",
        b"{}",
        "é".as_bytes(),
    ]);
    let folder = prop::sample::select(vec![&b""[..], b"", b"folder/", b"a folder/deep/", "dé\tjà/".as_bytes()]);
    // A number makes it unlike any other, and no folder's.
    (folder, prop::collection::vec(piece, 0..5), 0..1000u32, prop::collection::vec(piece_at_the_end(), 0..2)).prop_map(
        |(folder, pieces, number, end)| {
            [folder, &pieces.concat(), number.to_string().as_bytes(), &end.concat()].concat()
        },
    )
}

fn piece_at_the_end() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(vec![&b" "[..], b"\"", b"\\", b"\n", b" b/x"])
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        "one", "two", "  three", "}", "", "crlf\r", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "\\ No newline", "é\u{1}",
        "diff --git a/x b/x", "four", "five", "six", "seven",
    ]);
    (prop::collection::vec(line, 0..25), any::<bool>()).prop_map(|(lines, ended)| {
        let mut text = lines.join("\n").into_bytes();
        if ended && !lines.is_empty() {
            text.push(b'\n');
        }
        text
    })
}

fn binary() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any::<u8>(), 0..300), 0..300usize).prop_map(|(mut bytes, zeros)| {
        bytes.resize(bytes.len() + zeros + 1, 0);
        bytes
    })
}

fn file(content: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Node> {
    (prop::sample::select(vec![FILE, PROGRAM]), content).prop_map(|(mode, content)| Node { mode, content })
}

fn link() -> impl Strategy<Value = Node> {
    name().prop_map(|content| Node { mode: LINK, content })
}

fn any_node() -> impl Strategy<Value = Node> {
    prop_oneof![3 => file(text()), 2 => file(binary()), 1 => link()]
}

/// Of nodes of one kind: how a path may come to be what it is.
fn steps<S: Strategy<Value = Node>>(node: fn() -> S) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (name(), node()).prop_map(|new| Step { old: None, new: Some(new) }),
        (name(), node()).prop_map(|old| Step { old: Some(old), new: None }),
        (name(), node(), node())
            .prop_map(|(name, old, new)| Step { old: Some((name.clone(), old)), new: Some((name, new)) }),
        (name(), name(), node(), node(), any::<bool>()).prop_map(|(from, to, old, other, moved_only)| {
            let new = if moved_only { old.clone() } else { other };
            Step { old: Some((from, old)), new: Some((to, new)) }
        }),
    ];
    prop::collection::vec(step, 1..6).prop_filter("each name once", |steps| {
        let mut names: Vec<&Vec<u8>> = Vec::new();
        for Step { old, new } in steps {
            let mut own: Vec<&Vec<u8>> = old.iter().chain(new).map(|(name, _)| name).collect();
            own.dedup();
            names.extend(own);
        }
        let all = names.len();
        names.sort();
        names.dedup();
        names.len() == all
    })
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn git_makes_of_a_patch_what_the_tree_became() {
    if Reader::Git.is_here() {
        proptest!(cases(200), |(steps in steps(any_node))| check(Reader::Git, &steps)?);
    }
}

#[test]
fn gnu_patch_makes_of_a_text_what_it_became() {
    if Reader::Patch.is_here() {
        proptest!(cases(200), |(steps in steps(|| file(text())))| check(Reader::Patch, &steps)?);
    }
}

#[test]
fn gnu_patch_knows_links_too() {
    if Reader::Patch.is_here() {
        let node = || prop_oneof![file(text()), link()];
        proptest!(cases(100), |(steps in steps(node))| check(Reader::Patch, &steps)?);
    }
}

fn node(mode: u32, content: &[u8]) -> Node {
    Node { mode, content: content.to_vec() }
}

fn step(old: Option<(&[u8], Node)>, new: Option<(&[u8], Node)>) -> Step {
    let owned = |side: Option<(&[u8], Node)>| side.map(|(name, node)| (name.to_vec(), node));
    Step { old: owned(old), new: owned(new) }
}

fn shown(old: Option<(&[u8], Node)>, new: Option<(&[u8], Node)>) -> String {
    String::from_utf8(patch_of(&[step(old, new)])).expect("the patch is text")
}

#[test]
fn what_did_not_change_is_not_mentioned() {
    assert_eq!(shown(Some((b"x", node(FILE, b"a\n"))), Some((b"x", node(FILE, b"a\n")))), "");
    assert_eq!(shown(None, None), "");
}

#[test]
fn a_patch_reads_as_git_s() {
    let old = node(FILE, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14");
    let new = node(PROGRAM, b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n");
    let expected = [
        "diff --git \"a/a name\" b/name",
        "old mode 100644",
        "new mode 100755",
        "similarity index 85%",
        "rename from a name",
        "rename to name",
        "index 243f07b0d8f50a611f00e3ab695c0b98a16e3998..abf6244dafdc0b2c31fb2638d42992ced9ead997",
        "--- a/a name\t",
        "+++ b/name",
        "@@ -2,7 +2,7 @@",
        " 2",
        " 3",
        " 4",
        "-5",
        "+five",
        " 6",
        " 7",
        " 8",
        "@@ -11,4 +11,4 @@",
        " 11",
        " 12",
        " 13",
        "-14",
        "\\ No newline at end of file",
        "+14",
        "",
    ];
    assert_eq!(shown(Some((b"a name", old)), Some((b"name", new))), expected.join("\n"));
}

#[test]
fn a_name_is_quoted_as_git_quotes_it() {
    let patch = shown(None, Some((b"\x07\x08\t\n\x0b\x0c\r\"\\\x01\x7f\xc3\xa9", node(FILE, b""))));
    let name = r#"\a\b\t\n\v\f\r\"\\\001\177\303\251"#;
    assert_eq!(patch.lines().next(), Some(format!("diff --git \"a/{name}\" \"b/{name}\"").as_str()));
}

#[test]
fn a_link_that_was_a_file_goes_and_comes() {
    let patch = shown(Some((b"x", node(FILE, b"a\n"))), Some((b"x", node(LINK, b"a"))));
    let expected = [
        "diff --git a/x b/x",
        "deleted file mode 100644",
        "index 78981922613b2afb6025042ff6bd878ac1994e85..0000000000000000000000000000000000000000",
        "--- a/x",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-a",
        "diff --git a/x b/x",
        "new file mode 120000",
        "index 0000000000000000000000000000000000000000..2e65efe2a145dda7ee51d1741299f848e5bf752e",
        "--- /dev/null",
        "+++ b/x",
        "@@ -0,0 +1 @@",
        "+a",
        "\\ No newline at end of file",
        "",
    ];
    assert_eq!(patch, expected.join("\n"));
}

#[test]
fn a_nul_that_git_does_not_see_is_still_carried() {
    let old = [&b"line\n".repeat(2000)[..], b"nul \0 here\n", b"end\n"].concat();
    let new = [&b"line\n".repeat(2000)[..], b"nul \0\0 there\n", b"end\n"].concat();
    let steps = [step(Some((b"x", node(FILE, &old))), Some((b"x", node(FILE, &new))))];
    for reader in [Reader::Git, Reader::Patch] {
        if reader.is_here() {
            check(reader, &steps).expect("it is applied");
        }
    }
}

#[test]
fn a_large_binary_is_carried_whole() {
    let scattered = (0..100_000u32).flat_map(|index| index.wrapping_mul(0x9E37_79B9).to_be_bytes());
    let content: Vec<u8> = scattered.collect();
    if Reader::Git.is_here() {
        check(Reader::Git, &[step(None, Some((b"x", node(FILE, &content))))]).expect("it is applied");
        check(Reader::Git, &[step(Some((b"x", node(FILE, &content))), None)]).expect("it is applied");
    }
}

#[test]
fn a_binary_too_large_for_a_patch_is_only_said_to_differ() {
    let patch = shown(None, Some((b"a name", node(FILE, &vec![0; (64 << 20) + 1]))));
    assert_eq!(patch.lines().last(), Some("Binary files /dev/null and b/a name differ"));
    assert!(patch.len() < 1000);
}
