//! Whatever is done to the record is found, and named.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use belljar_ledger::anchor::Moment;
use belljar_ledger::{Draft, Durable, Ledger, Outside, verify};
use model::{Fault, Soundness};
use proptest::prelude::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("belljar-ledger-{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const ENTRIES: u64 = 20;

/// Several small segments, with a checkpoint now and then.
fn written(folder: &Path) -> Ledger {
    let ledger = Ledger::at(folder.to_owned()).with_segments_of(3000);
    for number in 0..ENTRIES {
        let draft = Draft {
            denied: number % 7 == 3,
            run: Some(format!("{number:032x}")),
            user: Some("somebody".to_owned()),
            ..Draft::now("run.ended", format!(r#"{{"exit":{number}}}"#))
        };
        let durable = Durable { checkpoint: number % 5 == 4, ..Durable::default() };
        ledger.append(&[draft], durable).unwrap();
    }
    ledger
}

fn report(ledger: &Ledger) -> Soundness {
    verify(ledger, &Outside::default(), &|_, _| {}).unwrap()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    paths
}

/// The entry whose line this is.
fn number_of(line: &[u8]) -> u64 {
    let json: serde_json::Value = serde_json::from_slice(&line[65..]).unwrap();
    json["n"].as_u64().unwrap()
}

fn names(fault: &Fault, entry: u64) -> bool {
    match fault {
        Fault::Edited { entry: at, .. }
        | Fault::Replaced { entry: at, .. }
        | Fault::Moved { entry: at, .. }
        | Fault::Repeated { entry: at, .. }
        | Fault::Signature { entry: at, .. } => *at == entry,
        Fault::Missing { from, to } | Fault::Truncated { from, to } => (*from..=*to).contains(&entry),
        _ => false,
    }
}

#[test]
fn what_nobody_touched_is_sound() {
    let folder = Folder::new("untouched");
    let ledger = written(&folder.0);
    let report = report(&ledger);
    assert!(report.is_sound(), "{report:?}");
    assert!(report.segments > 2, "{report:?}");
    assert_eq!(report.checkpoints, 4);
    assert_eq!(report.entries, report.last);
    assert_eq!(report.unsigned, 0);
}

#[test]
fn a_change_of_any_byte_of_any_entry_names_that_entry() {
    let folder = Folder::new("bytes");
    let ledger = written(&folder.0);
    let mut tried = 0;
    for path in segments(&folder.0) {
        let whole = fs::read(&path).unwrap();
        let mut place = 0;
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            let entry = number_of(line);
            for within in 0..line.len() {
                let mut copy = whole.clone();
                copy[place + within] ^= if within % 2 == 0 { 1 } else { 0x80 };
                fs::write(&path, &copy).unwrap();
                let report = report(&ledger);
                let last_of_all = within == line.len() - 1 && entry == report.last + 1;
                // Without its end of line, the last one is torn, and the note of it says that it was there.
                assert!(
                    report.faults.iter().any(|fault| names(fault, entry)) || last_of_all && report.torn_bytes > 0,
                    "entry {entry} byte {within} of {}: {report:?}",
                    path.display()
                );
                tried += 1;
            }
            place += line.len();
        }
        fs::write(&path, &whole).unwrap();
    }
    assert!(tried > 5_000, "{tried}");
    assert!(report(&ledger).is_sound());
}

/// All lines, of all segments.
fn lines(folder: &Path) -> Vec<Vec<u8>> {
    let whole = segments(folder).iter().flat_map(|path| fs::read(path).unwrap()).collect::<Vec<u8>>();
    whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Puts them into one segment.
fn rewrite(folder: &Path, lines: &[Vec<u8>]) {
    let paths = segments(folder);
    for path in &paths[1..] {
        fs::remove_file(path).unwrap();
    }
    fs::write(&paths[0], lines.concat()).unwrap();
}

#[test]
fn a_line_that_is_gone_moved_or_there_twice_is_named() {
    let folder = Folder::new("lines");
    let ledger = written(&folder.0);
    let all = lines(&folder.0);
    for place in 0..all.len() - 1 {
        let entry = number_of(&all[place]);
        let mut gone = all.clone();
        gone.remove(place);
        rewrite(&folder.0, &gone);
        let faults = report(&ledger).faults;
        assert!(faults.contains(&Fault::Missing { from: entry, to: entry }), "{entry}: {faults:?}");

        let mut swapped = all.clone();
        swapped.swap(place, place + 1);
        rewrite(&folder.0, &swapped);
        let faults = report(&ledger).faults;
        assert!(
            faults.iter().any(|fault| matches!(fault, Fault::Moved { entry: moved, .. } if *moved == entry))
                || place == 0 && !faults.is_empty(),
            "{entry}: {faults:?}"
        );

        let mut twice = all.clone();
        twice.insert(place + 1, all[place].clone());
        rewrite(&folder.0, &twice);
        let faults = report(&ledger).faults;
        assert!(
            faults.iter().any(|fault| matches!(fault, Fault::Repeated { entry: again, .. } if *again == entry)),
            "{entry}: {faults:?}"
        );
    }
    rewrite(&folder.0, &all);
    assert!(report(&ledger).is_sound());
}

/// An entry with other data, hashed anew as whoever knows the format would.
fn forged(line: &[u8], prev: Option<&str>) -> Vec<u8> {
    let text = String::from_utf8(line[65..line.len() - 1].to_vec()).unwrap();
    let mut text = text.replace(r#""user":"somebody""#, r#""user":"nobodyyy""#);
    if let Some(prev) = prev {
        let start = text.find(r#""prev":""#).unwrap() + 8;
        text.replace_range(start..start + 64, prev);
    }
    format!("{} {text}\n", blake3(&text)).into_bytes()
}

fn blake3(text: &str) -> String {
    ::blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn hash_of(line: &[u8]) -> String {
    String::from_utf8(line[..64].to_vec()).unwrap()
}

#[test]
fn an_entry_that_was_hashed_anew_is_named_and_not_the_one_after_it() {
    let folder = Folder::new("rehashed");
    let ledger = written(&folder.0);
    let all = lines(&folder.0);
    for (place, line) in all[..all.len() - 1].iter().enumerate() {
        let entry = number_of(line);
        let mut copy = all.clone();
        copy[place] = forged(line, None);
        if copy[place] == *line {
            continue;
        }
        rewrite(&folder.0, &copy);
        let faults = report(&ledger).faults;
        assert!(
            faults.iter().any(|fault| matches!(fault, Fault::Replaced { entry: other, .. } if *other == entry)),
            "{entry}: {faults:?}"
        );
        assert!(!faults.iter().any(|fault| names(fault, entry + 1)), "{entry}: {faults:?}");
    }
}

#[test]
fn a_chain_that_was_made_anew_has_no_signature() {
    let folder = Folder::new("anew");
    let ledger = written(&folder.0);
    let mut all = lines(&folder.0);
    let from = 4;
    for place in from..all.len() {
        let before = hash_of(&all[place - 1]);
        all[place] = forged(&all[place], Some(&before));
    }
    rewrite(&folder.0, &all);
    let faults = report(&ledger).faults;
    assert!(faults.iter().all(|fault| matches!(fault, Fault::Signature { .. })), "{faults:?}");
    assert_eq!(faults.len(), 4, "{faults:?}");
}

#[test]
fn an_end_that_was_cut_off_is_told_by_the_note_and_by_an_anchor() {
    let folder = Folder::new("cut");
    let ledger = written(&folder.0);
    let anchored = folder.0.join("anchor");
    ledger.add_anchor(model::Anchor::File(anchored.clone())).unwrap();
    let durable = Durable { checkpoint: true, ..Durable::default() };
    let appended = ledger.append(&[Draft::now("run.ended", String::new())], durable).unwrap();
    let checkpoint = appended.checkpoint.as_ref().unwrap();
    ledger.tell_anchors(checkpoint, Moment::AtTheEnd, &|_, _, _| Err("nobody".to_owned())).unwrap();
    let outside = Outside { anchored: belljar_ledger::anchor::kept_in(&anchored).unwrap(), ..Outside::default() };
    let sound = verify(&ledger, &outside, &|_, _| {}).unwrap();
    assert!(sound.is_sound() && sound.anchored == 1, "{sound:?}");

    let all = lines(&folder.0);
    rewrite(&folder.0, &all[..all.len() - 4]);
    let last = number_of(&all[all.len() - 5]);
    assert_eq!(report(&ledger).faults, [Fault::Truncated { from: last + 1, to: last + 4 }]);
    // Whoever also removes the note is told by the anchor alone.
    fs::remove_file(folder.0.join("head")).unwrap();
    assert!(report(&ledger).is_sound());
    let faults = verify(&ledger, &outside, &|_, _| {}).unwrap().faults;
    assert_eq!(faults, [Fault::RolledBack { anchored: last + 3, last }]);
    // And goes on writing: the anchor has another head for that entry.
    for _ in 0..5 {
        ledger.append(&[Draft::now("run.ended", String::new())], durable).unwrap();
    }
    let faults = verify(&ledger, &outside, &|_, _| {}).unwrap().faults;
    assert_eq!(faults, [Fault::Rewritten { entry: last + 3 }]);
}

#[test]
fn another_key_does_not_do() {
    let folder = Folder::new("key");
    let ledger = written(&folder.0);
    let other = Folder::new("otherkey");
    let key = written(&other.0).public_key().unwrap();
    let outside = Outside { key: Some(key), ..Outside::default() };
    let faults = verify(&ledger, &outside, &|_, _| {}).unwrap().faults;
    assert_eq!(faults.len(), 4);
    assert!(faults.iter().all(|fault| matches!(fault, Fault::Signature { .. })), "{faults:?}");
}

#[test]
fn segments_that_were_moved_away_still_verify() {
    let folder = Folder::new("archive");
    let ledger = written(&folder.0);
    let archive = folder.0.join("archive");
    let before = segments(&folder.0).len();
    let archived = ledger.archive("9999", &archive, false).unwrap();
    assert_eq!(archived.segments.len(), before - 1);
    let here = report(&ledger);
    assert!(here.is_sound(), "{here:?}");
    assert_eq!(here.archived, archived.to);
    let all = verify(&ledger, &Outside { archives: vec![archive.clone()], ..Outside::default() }, &|_, _| {}).unwrap();
    assert!(all.is_sound() && all.first == 1, "{all:?}");
    let there = verify(&Ledger::at(archive.clone()), &Outside::default(), &|_, _| {}).unwrap();
    assert!(there.is_sound() && there.last == archived.to, "{there:?}");
    // One that is still here too was being moved when something ended it.
    let twice = &segments(&archive)[0];
    fs::copy(twice, folder.0.join(twice.file_name().unwrap())).unwrap();
    let both = verify(&ledger, &Outside { archives: vec![archive.clone()], ..Outside::default() }, &|_, _| {}).unwrap();
    assert!(both.is_sound(), "{both:?}");
    fs::remove_file(folder.0.join(twice.file_name().unwrap())).unwrap();
    // One that is gone from the archive is missing.
    fs::remove_file(&segments(&archive)[1]).unwrap();
    let faults =
        verify(&ledger, &Outside { archives: vec![archive], ..Outside::default() }, &|_, _| {}).unwrap().faults;
    assert!(matches!(faults[..], [Fault::Missing { .. }]), "{faults:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn bytes_in_any_place_are_found(place in 0usize..100_000, put in prop::collection::vec(any::<u8>(), 1..40), cut in 0usize..600) {
        let folder = Folder::new(&format!("any{place}-{cut}"));
        let ledger = written(&folder.0);
        let path = &segments(&folder.0)[0];
        let whole = fs::read(path).unwrap();
        let place = place % whole.len();
        let end = (place + cut).min(whole.len());
        let copy = [&whole[..place], &put, &whole[end..]].concat();
        prop_assume!(copy != whole);
        fs::write(path, copy).unwrap();
        let report = report(&ledger);
        prop_assert!(!report.is_sound());
        prop_assert!(report.faults.len() < 20, "{:?}", report.faults);
    }
}
