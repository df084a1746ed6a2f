//! Many writers, writers that are killed, and disks that are full.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use belljar_ledger::{Draft, Durable, Ledger, Outside, verify};
use model::EntryQuery;

fn fresh(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("belljar-ledger-{name}-{}", std::process::id()));
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(&path).unwrap();
    path
}

fn draft(writer: usize, number: usize) -> Draft {
    Draft {
        run: Some(format!("{writer:032x}")),
        agent: Some(format!("agent {}", writer % 3)),
        denied: number.is_multiple_of(50),
        ..Draft::now("program.started", format!(r#"{{"program":"/bin/true","number":{number}}}"#))
    }
}

/// This program again, as a writer: it appends and says each number once it is written.
fn writer(folder: &Path, writer: usize, count: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "as_a_writer", "--nocapture", "--ignored"]);
    command.env("WRITER", writer.to_string()).env("COUNT", count.to_string()).env("FOLDER", folder);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "not a test: what the tests start"]
fn as_a_writer() {
    let variable = |name| std::env::var(name).ok();
    let Some(folder) = variable("FOLDER") else { return };
    let writer: usize = variable("WRITER").unwrap().parse().unwrap();
    let count: usize = variable("COUNT").unwrap().parse().unwrap();
    let ledger = Ledger::at(folder.into()).with_segments_of(200_000);
    for number in 0..count {
        let durable = Durable { checkpoint: number % 10 == 9, ..Durable::default() };
        ledger.append(&[draft(writer, number), draft(writer, number)], durable).unwrap();
        // To the pipe at once: what is said here was written.
        let said = format!("\nwritten {writer} {number}\n");
        rustix::io::write(std::io::stdout(), said.as_bytes()).unwrap();
    }
}

fn written(said: &[u8]) -> Vec<(usize, usize)> {
    let text = String::from_utf8_lossy(said);
    let words = text.lines().filter_map(|line| line.strip_prefix("written ")?.split_once(' '));
    words.map(|(writer, number)| (writer.parse().unwrap(), number.parse().unwrap())).collect()
}

#[test]
fn fifty_processes_write_one_chain() {
    let folder = fresh("fifty");
    let children: Vec<_> = (0..50).map(|number| writer(&folder, number, 20).spawn().unwrap()).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let ledger = Ledger::at(folder.clone());
    let report = verify(&ledger, &Outside::default(), &|_, _| {}).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let entries =
        ledger.newest(&EntryQuery { kinds: vec!["program".to_owned()], ..EntryQuery::default() }, usize::MAX).unwrap();
    assert_eq!(entries.len(), 50 * 20 * 2);
    assert!(report.segments > 2);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_written_meanwhile_is_not_taken_for_cut_off() {
    let folder = fresh("meanwhile");
    let mut children: Vec<_> = (0..3).map(|number| writer(&folder, number, 3_000).spawn().unwrap()).collect();
    let ledger = Ledger::at(folder.clone());
    let mut looked = 0;
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        // Nothing may be there yet.
        if let Ok(report) = verify(&ledger, &Outside::default(), &|_, _| {}) {
            assert!(report.is_sound(), "{report:?}");
            looked += 1;
        }
    }
    assert!(looked > 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn five_hundred_kills_lose_nothing_that_was_said_to_be_written() {
    use std::io::Read;
    let folder = fresh("kills");
    let mut acknowledged = Vec::new();
    let mut seed = 88172645463325252u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut killed = 0;
    while killed < 500 {
        // A few at once; each is killed after it has said some lines, wherever it is by then.
        let mut children: Vec<_> =
            (0..4).map(|_| writer(&folder, killed, 1_000_000).process_group(0).spawn().unwrap()).collect();
        for child in &mut children {
            let mut stdout = child.stdout.take().unwrap();
            let mut said = vec![0; usize::try_from(200 + random() % 300).unwrap()];
            stdout.read_exact(&mut said).unwrap();
            child.kill().unwrap();
            stdout.read_to_end(&mut said).unwrap();
            child.wait().unwrap();
            killed += 1;
            acknowledged.extend(written(&said));
        }
    }
    let ledger = Ledger::at(folder.clone());
    // The next writer finds what was torn, and says so.
    ledger.append(&[Draft::now("run.ended", String::new())], Durable::default()).unwrap();
    let report = verify(&ledger, &Outside::default(), &|_, _| {}).unwrap();
    assert!(report.is_sound() && report.torn_bytes == 0, "{report:?}");
    let mut kept = std::collections::BTreeSet::new();
    ledger
        .each(&EntryQuery { kinds: vec!["program.started".to_owned()], ..EntryQuery::default() }, |entry| {
            let writer = usize::from_str_radix(entry.run.as_deref().unwrap(), 16).unwrap();
            kept.insert((writer, usize::try_from(entry.data["number"].as_u64().unwrap()).unwrap()));
            true
        })
        .unwrap();
    assert!(acknowledged.len() > 2000, "{}", acknowledged.len());
    for said in acknowledged {
        assert!(kept.contains(&said), "{said:?} was said to be written");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_way_in_which_the_last_line_can_be_torn_is_recovered_and_said() {
    let folder = fresh("torn");
    let ledger = Ledger::at(folder.clone());
    for number in 0..5 {
        ledger.append(&[draft(1, number)], Durable::default()).unwrap();
    }
    let log = folder.join("00000001.log");
    let (whole, head) = (fs::read(&log).unwrap(), fs::read(folder.join("head")).unwrap());
    ledger.append(&[draft(1, 5)], Durable::default()).unwrap();
    let longer = fs::read(&log).unwrap();
    for length in whole.len()..=longer.len() {
        // As a writer leaves it that was killed while it wrote: the note is still the old one.
        fs::write(&log, &longer[..length]).unwrap();
        fs::write(folder.join("head"), &head).unwrap();
        let before = verify(&ledger, &Outside::default(), &|_, _| {}).unwrap();
        assert!(before.is_sound(), "{length}: {before:?}");
        let torn = length > whole.len() && length < longer.len();
        assert_eq!(before.torn_bytes > 0, torn);
        ledger.append(&[draft(1, 6)], Durable::default()).unwrap();
        let after = verify(&ledger, &Outside::default(), &|_, _| {}).unwrap();
        assert!(after.is_sound() && after.torn_bytes == 0, "{length}: {after:?}");
        let said = ledger
            .newest(&EntryQuery { kinds: vec!["ledger.recovered".to_owned()], ..EntryQuery::default() }, 9)
            .unwrap();
        assert_eq!(said.len(), usize::from(torn), "{length}: {said:?}");
        let last = ledger.newest(&EntryQuery::default(), 1).unwrap();
        assert_eq!(last[0].data["number"], 6);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_record_without_its_note_goes_on() {
    let folder = fresh("note");
    let ledger = Ledger::at(folder.clone()).with_segments_of(1500);
    for number in 0..20 {
        ledger.append(&[draft(1, number)], Durable::default()).unwrap();
        match number % 4 {
            0 => fs::remove_file(folder.join("head")).unwrap(),
            1 => fs::write(folder.join("head"), "no note").unwrap(),
            _ => {}
        }
    }
    let report = verify(&ledger, &Outside::default(), &|_, _| {}).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let entries =
        ledger.newest(&EntryQuery { run: Some(format!("{:032x}", 1)), ..EntryQuery::default() }, 100).unwrap();
    assert_eq!(entries.len(), 20);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_looked_for_is_found_with_and_without_an_index() {
    let folder = fresh("query");
    let ledger = Ledger::at(folder.clone()).with_segments_of(300_000);
    for writer in 0..40 {
        let drafts: Vec<_> = (0..100).map(|number| draft(writer, number)).collect();
        ledger.append(&drafts, Durable::default()).unwrap();
    }
    let all = ledger.newest(&EntryQuery::default(), usize::MAX).unwrap();
    let queries = [
        EntryQuery { denied: true, ..EntryQuery::default() },
        EntryQuery { agent: Some("agent 1".to_owned()), ..EntryQuery::default() },
        EntryQuery { run: Some(format!("{:032x}", 7)), ..EntryQuery::default() },
        EntryQuery { run: Some("0".repeat(31)), ..EntryQuery::default() },
        EntryQuery { kinds: vec!["ledger".to_owned()], ..EntryQuery::default() },
        EntryQuery { since: Some(all[1700].at.clone()), until: Some(all[2300].at.clone()), ..EntryQuery::default() },
        EntryQuery { after: 3000, agent: Some("agent 2".to_owned()), ..EntryQuery::default() },
        EntryQuery { user: Some("nobody".to_owned()), ..EntryQuery::default() },
    ];
    let look = |query: &EntryQuery| {
        let newest = ledger.newest(query, usize::MAX).unwrap();
        let mut each = Vec::new();
        ledger
            .each(query, |entry| {
                each.push(entry);
                true
            })
            .unwrap();
        assert_eq!(newest, each);
        let some = ledger.newest(query, 10).unwrap();
        assert_eq!(some[..], newest[newest.len().saturating_sub(10)..]);
        newest
    };
    let with: Vec<_> = queries.iter().map(look).collect();
    assert_eq!(with[0].len(), 80);
    assert_eq!(with[1].len(), 1300);
    assert_eq!(with[2].len(), 100);
    assert_eq!(with[3].len(), 1600);
    assert!(with[4].len() >= 4);
    assert_eq!(with[7].len(), 0);
    let mut removed = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "index") {
            fs::remove_file(path).unwrap();
            removed += 1;
        }
    }
    assert!(removed > 2, "{removed}");
    let without: Vec<_> = queries.iter().map(look).collect();
    assert!(with == without);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn on_a_full_disk_nothing_begins_and_what_began_has_its_last_words() {
    let folder = fresh("full");
    // A filesystem of its own needs root, or namespaces that an ordinary user may make.
    let script = format!(
        "mount -t tmpfs -o size=5m none '{0}' && exec \"$0\" --exact on_a_small_disk --nocapture --ignored",
        folder.display()
    );
    let mut unshared = Command::new("unshare");
    unshared.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let output = unshared.arg(std::env::current_exe().unwrap()).env("FOLDER", &folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "not a test: what the test before starts on a small disk"]
fn on_a_small_disk() {
    let Some(folder) = std::env::var_os("FOLDER").map(PathBuf::from) else { return };
    let ledger = Ledger::at(folder.join("ledger"));
    fs::write(folder.join("large"), vec![0; 2 << 20]).unwrap();
    let begin =
        |text: &str| ledger.append(&[Draft::now("run.asked", format!("{{\"text\":\"{text}\"}}"))], Durable::default());
    let long = "x".repeat(50_000);
    let error = (0..100).find_map(|_| begin(&long).err()).expect("the disk is full by then");
    assert!(error.is_full(), "{error}");
    assert!(begin("short").is_ok(), "a short one still has room");
    let filler = fs::write(folder.join("filler"), vec![0; 4 << 20]);
    assert!(filler.is_err());
    let error = (0..20).find_map(|_| begin("short").err()).expect("now there is no room at all");
    assert!(error.is_full(), "{error}");
    let durable = Durable { last_words: true, checkpoint: true, ..Durable::default() };
    ledger.append(&[Draft::now("run.ended", format!("{{\"text\":\"{long}\"}}"))], durable).unwrap();
    // The room for last words is gone, so nothing new begins.
    let filler = fs::write(folder.join("filler2"), vec![0; 4 << 20]);
    assert!(filler.is_err());
    assert!(begin("short").is_err());
    let report = verify(&ledger, &Outside::default(), &|_, _| {}).unwrap();
    assert!(report.is_sound(), "{report:?}");
    fs::remove_file(folder.join("large")).unwrap();
    begin("short").unwrap();
    let report = verify(&ledger, &Outside::default(), &|_, _| {}).unwrap();
    assert!(report.is_sound() && report.torn_bytes == 0, "{report:?}");
}
