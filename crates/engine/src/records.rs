//! The record as front-ends read it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ledger::{Envelope, Ledger, Outside, PublicKey, anchor, micros_now, time_text};
use model::{Against, Anchor, Archived, Entry, EntryQuery, HttpsAnchor, KeyShown, Records, Soundness, Trouble};
use serde_json::{Value, json};

use crate::Engine;
use crate::outside;

impl Records for Engine {
    fn newest(&self, query: &EntryQuery, most: usize) -> Result<Vec<Entry>, Trouble> {
        self.kept_record()?.newest(query, most).map_err(trouble)
    }

    fn each(&self, query: &EntryQuery, each: &mut dyn FnMut(Entry) -> bool) -> Result<(), Trouble> {
        self.kept_record()?.each(query, each).map_err(trouble)
    }

    fn follow(&self, query: &EntryQuery, each: &mut dyn FnMut(Entry) -> bool) -> Result<(), Trouble> {
        self.kept_record()?.follow(query, each).map_err(trouble)
    }

    fn verify(&self, against: &Against) -> Result<Soundness, Trouble> {
        let Against { key, anchors, archives, folder } = against;
        let own;
        let ledger = match folder {
            Some(folder) => {
                own = Ledger::at(folder.clone());
                &own
            }
            None => self.kept_record()?,
        };
        let mut outside = Outside { archives: archives.clone(), ..Outside::default() };
        outside.key = key.as_deref().map(PublicKey::read).transpose().map_err(trouble)?;
        // Files that are anchors of this record are looked at unasked.
        let mut files: Vec<PathBuf> = anchors.clone();
        for (known, _) in ledger.anchors().map_err(trouble)? {
            if let Anchor::File(path) = known
                && folder.is_none()
                && path.is_file()
                && !files.contains(&path)
            {
                files.push(path);
            }
        }
        for file in &files {
            outside.anchored.extend(anchor::kept_in(file).map_err(trouble)?);
        }
        let watch = self.workspaces.watch();
        let (send, receive) = std::sync::mpsc::channel();
        // Who watches need not be able to do so from several threads.
        let found = std::thread::scope(|scope| {
            let reading = scope.spawn(move || {
                ledger::verify(ledger, &outside, &|done, total| {
                    // Nobody listens any more: then it is only not shown.
                    send.send((done, total)).ok();
                })
            });
            for (done, total) in receive {
                watch.progress("verifying", done, total);
            }
            reading.join()
        });
        match found {
            Ok(found) => found.map_err(trouble),
            Err(_) => Err(Trouble {
                message: "the record could not be read to its end".to_owned(),
                fix: "please report this".to_owned(),
            }),
        }
    }

    fn receipt(&self, which: &str) -> Result<Value, Trouble> {
        let kinds = vec!["run.receipt".to_owned()];
        let run = (which != "last").then(|| which.to_owned());
        let found =
            self.kept_record()?.newest(&EntryQuery { run, kinds, ..EntryQuery::default() }, 2).map_err(trouble)?;
        let same = found.first().zip(found.last()).is_none_or(|(first, last)| first.run == last.run);
        match found.into_iter().next_back() {
            Some(_) if which != "last" && !same => Err(Trouble {
                message: format!("several runs begin with `{}`", which.escape_debug()),
                fix: "give more of the id; see `belljar log --type run.ended`".to_owned(),
            }),
            Some(entry) => Ok(entry.data),
            None => Err(Trouble {
                message: format!("there is no receipt of `{}`", which.escape_debug()),
                fix: "runs that were refused have none; see `belljar log --type run.ended`".to_owned(),
            }),
        }
    }

    fn open_receipt(&self, envelope: &Value, key: Option<&Path>) -> Result<Value, Trouble> {
        let key = match key {
            Some(key) => PublicKey::read(key),
            None => self.own_record()?.public_key(),
        };
        let bad = |why: String| Trouble {
            message: format!("the receipt does not hold: {why}"),
            fix: "name the key of whoever ran it with `--key`; they get it with `belljar ledger key`".to_owned(),
        };
        let envelope: Envelope =
            serde_json::from_value(envelope.clone()).map_err(|error| bad(format!("it is no envelope: {error}")))?;
        let payload = envelope.open(&key.map_err(trouble)?).map_err(bad)?;
        serde_json::from_slice(&payload).map_err(|error| bad(format!("what is signed is no JSON: {error}")))
    }

    fn key(&self) -> Result<KeyShown, Trouble> {
        let ledger = self.own_record()?;
        let key = ledger.key().map_err(trouble)?.public();
        Ok(KeyShown { id: key.id(), public_key: key.pem(), file: ledger.folder().join("key.pub.pem") })
    }

    fn archive(&self, older_than: Duration, folder: &Path, only_tell: bool) -> Result<Archived, Trouble> {
        let before = micros_now().saturating_sub(u64::try_from(older_than.as_micros()).unwrap_or(u64::MAX));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        self.kept_record()?.archive(&time_text(before), &folder, only_tell).map_err(trouble)
    }

    fn anchors(&self) -> Result<Vec<(Anchor, usize)>, Trouble> {
        self.own_record()?.anchors().map_err(trouble)
    }

    fn add_anchor(&self, anchor: &Anchor) -> Result<(), Trouble> {
        let anchor = absolute(anchor);
        if let Anchor::Https(https) = &anchor {
            outside::is_an_address(&https.url)?;
        }
        self.record_deed("ledger.anchor-added", json!({"anchor": anchor.to_string()}))?;
        self.own_record()?.add_anchor(anchor).map_err(trouble)
    }

    fn remove_anchor(&self, anchor: &Anchor) -> Result<bool, Trouble> {
        let anchor = absolute(anchor);
        self.record_deed("ledger.anchor-removed", json!({"anchor": anchor.to_string()}))?;
        self.own_record()?.remove_anchor(&anchor).map_err(trouble)
    }
}

impl Engine {
    fn own_record(&self) -> Result<&Ledger, Trouble> {
        self.ledger().map_err(|failure| Trouble { message: failure.message, fix: failure.fix })
    }

    /// The record, if one was begun.
    pub(crate) fn kept_record(&self) -> Result<&Ledger, Trouble> {
        let ledger = self.own_record()?;
        if ledger.folder().is_dir() {
            return Ok(ledger);
        }
        Err(trouble(ledger::Error::None { path: ledger.folder().to_owned() }))
    }
}

/// What it names is read from other folders later.
fn absolute(anchor: &Anchor) -> Anchor {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    match anchor {
        Anchor::File(path) => Anchor::File(absolute(path)),
        Anchor::Https(HttpsAnchor { url, header_file, authorities }) => Anchor::Https(HttpsAnchor {
            url: url.clone(),
            header_file: header_file.as_ref().map(absolute),
            authorities: authorities.as_ref().map(absolute),
        }),
        Anchor::Command(command) => Anchor::Command(command.clone()),
    }
}

pub(crate) fn trouble(error: ledger::Error) -> Trouble {
    Trouble { message: error.to_string(), fix: error.fix().to_owned() }
}
