//! Edits of people at the worst moment: never lost.

use std::fs::{self, OpenOptions};
use std::io::{Seek, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use belljar_testkit::Who;

use crate::Attack;
use crate::bench::Bench;

pub const ATTACKS: &[Attack] = &[
    ("human/rewrites_in_place_meanwhile", in_place),
    ("human/replaces_meanwhile", by_rename),
    ("human/replaces_what_is_deleted_meanwhile", deleted),
    ("human/writes_late_through_an_open_file", late_writer),
    ("human/edit_that_was_merged_stays", merged_then_changed),
    ("human/version_that_was_kept_stays", kept_then_changed),
    ("human/edit_before_and_during_the_run", around_the_run),
    ("human/folder_of_old_files_moved_in", moved_in),
    ("human/both_make_the_same_path", same_path),
];

const ROUNDS: usize = 25;

/// Somebody writes ever new versions while the sandbox's is taken, and stops at a moment that nobody chose. At the end
/// their last version is there, or the sandbox's over a version that they had not changed yet.
fn race(who: Who, script: &str, write: impl Fn(&Bench, usize) + Sync) {
    let mut beaten = 0;
    for round in 0..ROUNDS {
        let bench = Bench::new(who);
        bench.host("echo start > f; chmod 666 f; chmod 777 .");
        bench.guest(&[], script);
        let stop = AtomicBool::new(false);
        let (last, said) = std::thread::scope(|scope| {
            let human = scope.spawn(|| {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    write(&bench, number);
                }
                number
            });
            std::thread::sleep(Duration::from_micros(200 * (round as u64 % 7)));
            // As much as they like: who insists on the sandbox's version insists on what was seen, not on what came since.
            let said = bench.belljar(if round % 2 == 0 { &["apply"] } else { &["apply", "--theirs"] });
            std::thread::sleep(Duration::from_micros(100));
            stop.store(true, Ordering::Relaxed);
            (human.join().unwrap(), said)
        });
        // Who writes on after the taking has the last word.
        assert_eq!(bench.read("f"), format!("human {last:08}\n"), "round {round}: {said:?}");
        assert!(said.code == 0 || said.code == 1 || said.code == 125, "{said:?}");
        beaten += usize::from(said.code != 0);
        let left = bench.host("ls -A").out;
        assert!(
            !left.lines().any(|name| name.starts_with(".belljar-")) || said.code == 125,
            "left behind: {left} {said:?}"
        );
    }
    assert!(beaten > 0, "nobody was ever in the way");
}

fn text(number: usize) -> String {
    format!("human {number:08}\n")
}

fn in_place(who: Who) {
    race(who, "echo sandbox > f", |bench, number| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(bench.project("f")).unwrap();
        file.write_all(text(number).as_bytes()).unwrap();
        file.set_len(15).unwrap();
    });
}

fn replace(bench: &Bench, number: usize) {
    let draft = bench.project(".draft~");
    fs::write(&draft, text(number)).unwrap();
    fs::rename(&draft, bench.project("f")).unwrap();
}

fn by_rename(who: Who) {
    race(who, "echo sandbox > f", replace);
}

fn deleted(who: Who) {
    race(who, "rm f", replace);
}

/// They opened the file before it was taken, and write after: the file that they have is still the one of that name.
fn late_writer(who: Who) {
    for gate in [false, true] {
        for script in ["echo sandbox > f; echo w > witness", "rm f; echo w > witness"] {
            let bench = Bench::new(who);
            bench.host("echo before > f");
            bench.guest(&[], script);
            let mut file = OpenOptions::new().write(true).open(bench.project("f")).unwrap();
            match gate {
                true => {
                    let said = bench.apply(&[]);
                    assert_eq!(said.code, 1, "it is said: {said:?}");
                    assert_eq!(bench.read("witness"), "w\n");
                }
                // As everybody replaces files.
                false => drop(bench.host("echo sandbox > .f; mv .f f")),
            }
            file.rewind().unwrap();
            file.write_all(b"human!\n").unwrap();
            drop(file);
            assert_eq!(bench.read("f") == "human!\n", gate, "{script}: the edit went to a file without a name");
            if gate {
                bench.apply(&["--theirs"]);
            }
        }
    }
}

/// The human's line has as many bytes as before, so that only contents tell.
fn merged_then_changed(who: Who) {
    let bench = Bench::new(who);
    bench.host("printf 'a\\nb\\nc\\nd\\ne\\n' > f; echo x > other");
    let id = bench.create();
    bench.exec(&id, "sed -i s/e/E/ f; echo y > other");
    bench.host("sed -i s/a/H/ f");
    bench.apply(&[&id, "f"]);
    assert_eq!(bench.read("f"), "H\nb\nc\nd\nE\n");
    bench.exec(&id, "sed -i s/E/Q/ f");
    bench.apply(&[&id, "f"]);
    assert_eq!(bench.read("f"), "H\nb\nc\nd\nQ\n", "the human's line is gone");
}

fn kept_then_changed(who: Who) {
    let bench = Bench::new(who);
    bench.host("echo base > f; echo x > other");
    let id = bench.create();
    bench.exec(&id, "echo sand > f; echo y > other");
    bench.host("echo mine > f");
    let said = bench.belljar(&["apply", &id, "f"]);
    assert_eq!(said.code, 1, "{said:?}");
    bench.apply(&["--ours", &id, "f"]);
    assert_eq!(bench.read("f"), "mine\n");
    bench.exec(&id, "echo more > f");
    bench.apply(&[&id, "f"]);
    assert_eq!(bench.read("f"), "mine\n", "it was to stay");
}

fn around_the_run(who: Who) {
    let bench = Bench::new(who);
    bench.host("echo base > f; echo base > g");
    let id = bench.create();
    // The sandbox never saw this base.
    bench.host("echo mine > f");
    bench.exec(&id, "cat f; echo sand > f");
    bench.apply(&[&id]);
    assert_eq!(bench.read("f"), "sand\n", "it saw the human's version, and changed that");
    // While it runs, after it has read the file.
    let id = bench.create();
    bench.exec_while(&id, "cat g > /dev/null; echo s > g", || {
        fs::write(bench.project("g"), "mine\n").unwrap();
    });
    let said = bench.apply(&[&id]);
    assert_eq!((said.code, bench.read("g").as_str()), (1, "mine\n"), "{said:?}");
}

/// Its files are older than the run: by their times they look untouched.
fn moved_in(who: Who) {
    let bench = Bench::new(who);
    bench.host("mkdir d other; echo base > d/f; echo mine > other/f; touch -d '2 days ago' d/f other/f d other");
    let id = bench.create();
    bench.exec_while(&id, "echo sand > d/f; echo new > d/n; rm -rf other", || {
        bench.host("mv d gone; mv other d");
    });
    bench.belljar(&["apply", &id]);
    assert_eq!(bench.read("d/f"), "mine\n", "a file that the sandbox never saw is written over");
    assert_eq!(bench.read("gone/f"), "base\n");
}

fn same_path(who: Who) {
    let bench = Bench::new(who);
    bench.guest(&[], "echo sand > new; mkdir d; echo s > d/f; echo s > e");
    bench.host("echo mine > new; echo mine > d; mkdir e; echo mine > e/f");
    let said = bench.apply(&[]);
    assert_eq!(said.code, 1, "{said:?}");
    bench.belljar(&["apply", "--theirs"]);
    assert_eq!(bench.read("e/f"), "mine\n", "a folder with something in it is not replaced");
}
