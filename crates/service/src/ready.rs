//! A carrier that stands ready: the sandbox is there before the job is.

use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use model::{Service, Zygote};
use sys::descriptors;

use crate::carrier::{frame, say, stand_on};
use crate::job::{Answer, Files, Job, Said, Task};
use crate::task::{self, Place};

/// What comes before the job: these bytes, with input, output and error output.
pub const COMES: &[u8] = b"run";

/// Makes it ready, waits for its job, and does that. Nothing: there was none.
pub fn wait(
    job: Job,
    zygote: Zygote,
    service: &dyn Service,
    talk: &Rc<RefCell<UnixStream>>,
) -> io::Result<Option<(Answer, Option<Place>)>> {
    let Job { setting, task } = job;
    let Task::MakeReady { wish, folder, interpreter: _ } = task else {
        return Err(io::Error::other("nothing is to be made ready"));
    };
    let made = wish.request(&setting).map_err(task::wrong).and_then(|request| {
        let place = Place::new(&setting, &folder, &Files::default())?;
        match service.make_ready(&request, zygote) {
            Ok(ready) => Ok((place, ready)),
            Err(outcome) => {
                drop(task::leave(place));
                Err(task::told(&outcome, service))
            }
        }
    });
    let (place, ready) = match made {
        Ok(made) => made,
        Err(answer) => return Ok(Some((answer, None))),
    };
    say(&mut talk.borrow_mut(), &Said::Ready(serde_json::Value::Null))?;
    let mut words = [0; COMES.len() + 1];
    let received = descriptors::receive(talk.borrow().as_fd(), &mut words);
    let (count, streams) = match received {
        Ok((0, _)) | Err(_) => {
            drop(task::leave(place));
            return Ok(None);
        }
        Ok(received) => received,
    };
    if &words[..count] != COMES || streams.len() != 3 {
        return Err(io::Error::other("what was handed over is no job"));
    }
    stand_on(&streams)?;
    drop(streams);
    let job: Job = serde_json::from_slice(&frame(&talk.borrow())?)?;
    let Task::Run { wish, folder: _, files } = job.task else {
        return Err(io::Error::other("what was made ready is for a run"));
    };
    Ok(Some(task::run_ready(&setting, wish, &files, place, service, ready)))
}
