//! From a grant to a sandbox: in the strongest backend that holds it, or not at all.

use model::{
    Accepted, Access, Backend, Enforcement, Grant, Held, Outcome, Request, Sandbox, SetupFailure, Stack, Streams,
};

use crate::judge::Admitted;
use crate::record::Record;
use crate::refused;

pub fn choose<'a>(
    backends: &'a [Box<dyn Backend>],
    request: &Request,
    accepted: &Accepted,
) -> Result<&'a dyn Backend, Outcome> {
    let strong = |backend: &dyn Backend| backend.strength() >= accepted.minimum;
    let mut all = backends.iter().map(AsRef::as_ref);
    let found = match &request.backend {
        None => all.find(|backend| strong(*backend)),
        Some(name) => all.find(|backend| backend.name() == name),
    };
    if found.is_none_or(|backend| !strong(backend)) && (request.backend.is_none() || found.is_some()) {
        let kind = accepted.minimum.name();
        return Err(refused(
            "isolation.minimum",
            format!("the policy demands isolation by `{kind}` or stronger, which no backend here gives"),
            "use a host that has one, or change `isolation.minimum` in the policy",
        ));
    }
    found.ok_or_else(|| {
        let names: Vec<_> = backends.iter().map(|backend| backend.name()).collect();
        crate::judge::usage(
            format!("there is no backend called `{}`", request.backend.as_deref().unwrap_or_default().escape_debug()),
            &format!("the backends are: {}", names.join(", ")),
        )
    })
}

pub fn in_the_strongest(
    backends: &[Box<dyn Backend>],
    request: &Request,
    admitted: &Admitted,
    stacks: &[Stack],
    record: &Record<'_>,
) -> Result<Box<dyn Sandbox>, Outcome> {
    let grant = &admitted.grant;
    let backend = choose(backends, request, grant.accepted())?;
    let enforcement = backend.assess(grant);
    check(&enforcement, grant)?;
    let direct = grant.powers().files.places.iter().any(|place| place.access == Access::Write);
    record.opening(backend.name(), &enforcement, direct)?;
    let streams = record.digested(Streams { witness: Some(record.witness()), ..admitted.streams(record)? });
    backend.open(grant, stacks, streams, request.trace).map_err(Outcome::NotSetUp)
}

/// Every wall is held as well as the grant demands, and a wall nobody speaks of is not held.
fn check(enforcement: &Enforcement, grant: &Grant) -> Result<(), Outcome> {
    if let Some(wall) = enforcement.unreported().next() {
        return Err(refused(
            "walls.reported",
            format!("the backend says nothing of the wall `{wall}`"),
            "please report this",
        ));
    }
    let gaps: Vec<_> = enforcement.gaps(grant.accepted()).collect();
    let Some(first) = gaps.first() else {
        return Ok(());
    };
    let why = match &first.held {
        Held::Fully => String::new(),
        Held::Partly(why) => format!("is only partly held: {why}"),
        Held::Not(why) => format!("is not held: {why}"),
    };
    let others = match gaps.len() {
        1 => String::new(),
        count => format!(" (and {} more walls)", count - 1),
    };
    let flags: Vec<_> = gaps.iter().map(|gap| format!("--accept-gap {}", gap.wall)).collect();
    Err(Outcome::NotSetUp(SetupFailure {
        wall: Some(first.wall),
        message: format!("the wall `{}` {why}{others}", first.wall),
        fix: format!("{}; or run without, which the result will say: {}", first.fix, flags.join(" ")),
        layers: false,
    }))
}
