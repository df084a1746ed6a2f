//! Sandboxes that stand before anybody asks for them. Nothing is decided by that: the request that comes is judged, scanned and
//! recorded as ever, and is let in only if the walls are exactly those that it was granted.

use model::{Blank, Outcome, Ready, Request, Zygote};
use policy::Facts;
use workspace::Run;

use crate::inspect::{Begun, Eyes};
use crate::judge::Admitted;
use crate::record::Record;
use crate::told::Telling;
use crate::{Engine, enclose, inspect, layers};

pub struct Prepared<'a> {
    engine: &'a Engine,
    blank: Box<dyn Blank>,
    /// Its layers, if it has any.
    run: Option<Run>,
    /// What was looked at when it was made. Nothing is decided by it.
    facts: Facts,
}

impl Engine {
    pub(crate) fn prepare(&self, request: &Request, zygote: &Zygote) -> Result<Prepared<'_>, Outcome> {
        let (grant, facts) = self.foresee(request)?;
        let places = layers::places(&grant);
        let told = Telling::of(request).request(request);
        let run = match places.is_empty() {
            true => None,
            false => {
                let run = self.workspaces.make_ready(&places, &told, &layers::here());
                Some(run.map_err(layers::not_set_up)?)
            }
        };
        let stacks = run.as_ref().map(Run::stacks).unwrap_or_default();
        match enclose::ready(&self.backends, request, &grant, &stacks, zygote) {
            Ok(blank) => {
                // As good as at hand: without it, the code is read by one that begins then.
                self.reader.replace(inspect::Reader::begin().ok());
                Ok(Prepared { engine: self, blank, run, facts })
            }
            Err(outcome) => {
                abandoned(run)?;
                Err(outcome)
            }
        }
    }
}

fn abandoned(run: Option<Run>) -> Result<(), Outcome> {
    run.map_or(Ok(()), Run::abandon).map_err(|error| layers::not_set_up(error.into()))
}

impl Ready for Prepared<'_> {
    fn run(self: Box<Self>, request: &Request) -> Outcome {
        let engine = self.engine;
        // While the request is judged: what it would run is in all likelihood what it would have run a moment ago.
        if let Some(reader) = engine.reader.borrow_mut().as_mut() {
            let eyes = Eyes::new(&engine.workspaces, None);
            reader.read_ahead(&inspect::gather(request, &self.facts, &Begun::default(), &eyes));
        }
        let record = match engine.record_run(request) {
            Ok(record) => record,
            Err(outcome) => return outcome,
        };
        engine.last.replace(Some(record.run().to_owned()));
        // What it read may have taken it over: it is not to live as long as what runs. At once, its end would take time from that.
        let spent = engine.spent.clone();
        record.rail.once_it_lasts(move || spent.borrow_mut().iter_mut().for_each(inspect::Reader::end));
        let mut outcome = match engine.admit(request, None, &record) {
            Ok(admitted) => self.carry_out(request, &admitted, &record),
            Err(outcome) => self.abandon().err().unwrap_or(outcome),
        };
        record.watched_to_the_end(&mut outcome);
        Telling::of(request).outcome(record.ended(request, outcome))
    }
}

impl Prepared<'_> {
    fn carry_out(self, request: &Request, admitted: &Admitted, record: &Record<'_>) -> Outcome {
        let engine = self.engine;
        // Judged now, and so other walls than those that were foreseen: they are raised anew.
        if self.blank.fits(&admitted.grant).is_err() {
            return match self.abandon() {
                Ok(()) => engine.carry_out(request, admitted, None, record),
                Err(outcome) => outcome,
            };
        }
        let collecting = match engine.collecting(request, &admitted.grant) {
            Ok(collecting) => collecting,
            Err(outcome) => return self.abandon().err().unwrap_or(outcome),
        };
        let Prepared { engine, blank, mut run, facts: _ } = self;
        if let Some(run) = &mut run {
            if let Err(error) = run.come_true() {
                return layers::not_set_up(error.into());
            }
            record.is_over(&run.record().id);
        }
        let outcome = match enclose::in_a_blank(&engine.backends, request, admitted, record, blank) {
            Ok(sandbox) => {
                let places = (engine.backends.as_slice(), &engine.workspaces);
                layers::ended(places, run, record, sandbox.supervise(), collecting.as_ref())
            }
            Err(outcome) => abandoned(run).err().unwrap_or(outcome),
        };
        layers::told_whole(admitted, record, outcome)
    }

    fn abandon(self) -> Result<(), Outcome> {
        self.blank.abandon();
        abandoned(self.run)
    }
}
