//! Links that lead what is written somewhere else.

use std::fs;

use belljar_testkit::Who;

use crate::Attack;
use crate::bench::{Bench, Without, attack};

pub const ATTACKS: &[Attack] = &[
    ("links/folder_swapped_for_a_link_out", swapped_in_the_layer),
    ("links/folder_swapped_on_the_host_before_apply", swapped_on_the_host),
    ("links/folder_swapped_between_two_runs", swapped_between_runs),
    ("links/whole_workspace_swapped", workspace_swapped),
    ("links/link_where_the_host_has_a_folder", link_over_a_folder),
    ("links/detours", detours),
    ("links/hard_links", hard_links),
];

fn has_anything(bench: &Bench) -> bool {
    fs::read_dir(bench.root.join("outside")).unwrap().next().is_some()
}

/// A link out that somebody writes through later is only taken when it is named.
fn swapped_in_the_layer(who: Who) {
    attack(
        who,
        Without::Layers,
        "mkdir d; echo a > d/f",
        "rm -rf d; ln -s ../outside d; ln -s /etc/passwd users; ln -s \"$(dirname $PWD)/outside\" e",
        |bench| ["d", "e", "users"].iter().any(|link| fs::read_link(bench.project(link)).is_ok()),
    );
}

/// The human's folder becomes a link out while the sandbox has files in it. A copier follows it.
fn swapped_on_the_host(who: Who) {
    for gate in [false, true] {
        let bench = Bench::new(who);
        bench.host("mkdir -p d/e; echo a > d/f; echo b > d/e/g");
        bench.guest(&[], "echo planted > d/f; echo planted > d/new; echo planted > d/e/g; rm d/e/h; echo w > witness");
        bench.host("rm -rf d; ln -s ../outside d");
        if gate {
            let said = bench.apply(&[]);
            assert_eq!(bench.read("witness"), "w\n", "the rest is taken: {said:?}");
            assert_eq!(said.code, 1, "a conflict is said: {said:?}");
            bench.belljar(&["apply", "--theirs"]);
        } else {
            let layer = bench.layer();
            bench.host(&format!("cp -a {}/d/. d/", layer.display()));
        }
        assert_eq!(has_anything(&bench), !gate, "gate: {gate}");
    }
}

fn swapped_between_runs(who: Who) {
    for gate in [false, true] {
        let bench = Bench::new(who);
        bench.host("mkdir -p d; echo a > d/f");
        let id = bench.create();
        bench.exec(&id, "echo one > d/new");
        bench.host("mv d old; ln -s ../outside d");
        bench.exec(&id, "echo two > d/newer; echo w > witness");
        if gate {
            bench.apply(&[]);
            bench.belljar(&["apply", "--theirs"]);
        } else {
            let layer = bench.layer();
            bench.host(&format!("cp -a {}/d/. d/", layer.display()));
        }
        assert_eq!(has_anything(&bench), !gate, "gate: {gate}");
    }
}

fn workspace_swapped(who: Who) {
    for gate in [false, true] {
        let bench = Bench::new(who);
        let id = bench.create();
        bench.exec(&id, "echo planted > f");
        bench.host("cd ..; mv project moved; ln -s outside project");
        if gate {
            for words in [&["apply", &id][..], &["diff", &id], &["exec", &id, "--", "/bin/true"]] {
                let said = bench.belljar(words);
                assert_eq!(said.code, 125, "{words:?}: {said:?}");
            }
        } else {
            bench.copy_over();
        }
        assert_eq!(has_anything(&bench), !gate, "gate: {gate}");
        // Another folder at the same path is another workspace.
        bench.host("cd ..; rm project; mkdir project");
        let said = bench.belljar(&["apply", &id]);
        assert_eq!(said.code, 125, "{said:?}");
        assert!(said.err.contains("not the folder"), "{said:?}");
    }
}

fn link_over_a_folder(who: Who) {
    attack(
        who,
        Without::Layers,
        "mkdir -p d/e; echo a > d/e/f; echo keep > d/keep",
        "rm -rf d; ln -s /etc d",
        |bench| fs::read_link(bench.project("d")).is_ok(),
    );
}

fn detours(who: Who) {
    let links = [
        ("a", "x/../../outside"),
        ("b", "./../outside"),
        ("c", "/usr/../srv"),
        ("sub/d", "../../outside"),
        ("e", ".."),
    ];
    let script: Vec<String> = links.iter().map(|(name, target)| format!("ln -s {target} {name}")).collect();
    attack(who, Without::Layers, "mkdir sub x", &script.join("\n"), |bench| {
        links.iter().any(|(name, _)| fs::read_link(bench.project(name)).is_ok())
    });
    let bench = Bench::new(who);
    bench.host("mkdir sub");
    bench.guest(&[], "ln -s ../f sub/in; ln -s /usr/bin/env tool; ln -s \"$PWD/f\" absolute; echo f > f");
    bench.apply(&[]);
    for link in ["sub/in", "tool", "absolute"] {
        assert!(fs::read_link(bench.project(link)).is_ok(), "{link} leads nowhere else, and is taken");
    }
}

/// Two names of one file in the layer are two files on the host: who writes to one later does not change the other.
fn hard_links(who: Who) {
    attack(
        who,
        Without::Layers,
        "git init -q .; rm -rf .git/hooks; mkdir .git/hooks; echo ok > .git/hooks/update",
        "ln .git/hooks/update data; echo x > one; ln one two",
        |bench| {
            use std::os::unix::fs::MetadataExt;
            let links = |path: &str| fs::metadata(bench.project(path)).map_or(1, |stat| stat.nlink());
            links("data") > 1 || links("one") > 1
        },
    );
}
