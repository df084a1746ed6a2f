//! Who is told checkpoints: each of them, in their order, and what could not be told waits.

#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use belljar_ledger::anchor::Moment;
use belljar_ledger::{Checkpoint, Draft, Durable, Ledger};
use model::{Anchor, HttpsAnchor};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("belljar-anchors-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn checkpoint(ledger: &Ledger) -> Checkpoint {
    let durable = Durable { checkpoint: true, ..Durable::default() };
    ledger.append(&[Draft::now("run.ended", String::new())], durable).unwrap().checkpoint.unwrap()
}

fn https(url: &str) -> Anchor {
    Anchor::Https(HttpsAnchor { url: url.to_owned(), header_file: None, authorities: None })
}

fn waiting(ledger: &Ledger) -> Vec<usize> {
    ledger.anchors().unwrap().into_iter().map(|(_, waiting)| waiting).collect()
}

#[test]
fn what_a_place_did_not_take_waits_and_is_told_in_its_order() {
    let folder = Folder::new("waits");
    let ledger = Ledger::at(folder.0.clone());
    ledger.add_anchor(https("https://a.example")).unwrap();
    let (told, most) = (RefCell::new(Vec::new()), Cell::new(0));
    let post = |anchor: &HttpsAnchor, text: &str, _| {
        assert_eq!(anchor.url, "https://a.example");
        if told.borrow().len() >= most.get() {
            return Err("it is away".to_owned());
        }
        told.borrow_mut().push(serde_json::from_str::<Checkpoint>(text).unwrap());
        Ok(())
    };
    let mut made = Vec::new();
    for away in 1..=3 {
        made.push(checkpoint(&ledger));
        let said = ledger.tell_anchors(made.last().unwrap(), Moment::AtTheEnd, &post).unwrap_err().to_string();
        assert!(said.contains("https https://a.example") && said.contains("it is away"), "{said}");
        assert_eq!(waiting(&ledger), [away]);
    }
    // It takes two of four, and then breaks off.
    most.set(2);
    made.push(checkpoint(&ledger));
    assert!(ledger.tell_anchors(&made[3], Moment::AtTheEnd, &post).is_err());
    assert_eq!(waiting(&ledger), [2]);
    most.set(9);
    made.push(checkpoint(&ledger));
    ledger.tell_anchors(&made[4], Moment::AtTheEnd, &post).unwrap();
    assert_eq!(waiting(&ledger), [0]);
    assert_eq!(*told.borrow(), made);
}

#[test]
fn nobody_on_the_network_is_told_while_something_goes_on() {
    let folder = Folder::new("middle");
    let ledger = Ledger::at(folder.0.clone());
    let file = folder.0.join("anchor");
    ledger.add_anchor(https("https://a.example")).unwrap();
    ledger.add_anchor(Anchor::File(file.clone())).unwrap();
    let posts = Cell::new(0);
    let post = |_: &HttpsAnchor, _: &str, _| {
        posts.set(posts.get() + 1);
        Ok(())
    };
    ledger.tell_anchors(&checkpoint(&ledger), Moment::InTheMiddle, &post).unwrap();
    assert_eq!((posts.get(), waiting(&ledger)), (0, vec![1, 0]));
    assert_eq!(belljar_ledger::anchor::kept_in(&file).unwrap().len(), 1);
    ledger.tell_anchors(&checkpoint(&ledger), Moment::AtTheEnd, &post).unwrap();
    assert_eq!((posts.get(), waiting(&ledger)), (2, vec![0, 0]));
}

#[test]
fn an_anchor_that_is_added_while_others_are_told_stays() {
    let folder = Folder::new("added");
    let ledger = Ledger::at(folder.0.clone());
    ledger.add_anchor(https("https://a.example?token=1")).unwrap();
    let post = |_: &HttpsAnchor, _: &str, _| {
        ledger.add_anchor(https("https://b.example")).unwrap();
        Err("slow".to_owned())
    };
    let said = ledger.tell_anchors(&checkpoint(&ledger), Moment::AtTheEnd, &post).unwrap_err().to_string();
    assert!(!said.contains("token"), "{said}");
    assert_eq!(waiting(&ledger), [1, 0]);
    // By its place alone, whatever it was told to send along.
    let same = HttpsAnchor { url: "https://b.example".into(), header_file: Some("/x".into()), authorities: None };
    assert!(ledger.remove_anchor(&Anchor::Https(same)).unwrap());
    assert_eq!(waiting(&ledger), [1]);
}
