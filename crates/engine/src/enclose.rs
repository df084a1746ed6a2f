//! From a grant to a sandbox: in the first backend that holds it and is strong enough, or not at all.

use std::os::fd::OwnedFd;

use model::{
    Access, Backend, Blank, CellWork, Enforcement, FileWork, Grant, GroundKind, Held, ImageUsed, Network, Outcome,
    Request, Sandbox, SetupFailure, Stack, Streams, Strength, Zygote,
};

use crate::ground;
use crate::judge::{Admitted, usage};
use crate::record::Record;
use crate::refused;

/// A backend, and why it is this one.
pub struct Choice<'a> {
    pub backend: &'a dyn Backend,
    pub because: String,
}

pub fn choose<'a>(backends: &'a [Box<dyn Backend>], request: &Request, grant: &Grant) -> Result<Choice<'a>, Outcome> {
    let minimum = grant.accepted().minimum;
    let ground = grant.powers().files.ground.kind();
    let strong = |backend: &dyn Backend| backend.strength(grant) >= minimum;
    if let Some(name) = &request.backend {
        let backend = ground::named(name, backends)?;
        return match strong(backend) && backend.ground() == ground {
            true => Ok(Choice { backend, because: "it was asked for".to_owned() }),
            false => Err(too_weak(&format!("which `{name}` does not give"), grant)),
        };
    }
    let fit = backends.iter().map(AsRef::as_ref).filter(|backend| backend.ground() == ground && strong(*backend));
    let fit: Vec<&dyn Backend> = fit.collect();
    let Some(first) = fit.first() else {
        let on_this_ground = backends.iter().any(|backend| backend.ground() == ground);
        return Err(if on_this_ground { too_weak("which no backend here gives", grant) } else { nowhere(ground) });
    };
    // The first that holds all of it; where none does, the first says what it lacks.
    let holds = |backend: &&&dyn Backend| backend.assess(grant).gaps(grant.accepted()).next().is_none();
    let backend = if fit.len() == 1 { first } else { fit.iter().find(holds).unwrap_or(first) };
    let what = match ground {
        GroundKind::Host => "the fastest that holds the grant",
        GroundKind::Image => "the command runs in an image",
        GroundKind::Module => "the command is a module",
    };
    let because = match minimum > Strength::Namespaces {
        true => format!("{what}, with isolation by `{}` or stronger", minimum.name()),
        false => what.to_owned(),
    };
    Ok(Choice { backend: *backend, because })
}

fn nowhere(ground: GroundKind) -> Outcome {
    let what = match ground {
        GroundKind::Host => "programs of this host",
        GroundKind::Image => "images",
        GroundKind::Module => "WebAssembly modules",
    };
    usage(format!("this belljar has no backend that runs {what}"), "see `belljar doctor` for those that it has")
}

fn too_weak(who: &str, grant: &Grant) -> Outcome {
    let kind = grant.accepted().minimum.name();
    refused(
        "isolation.minimum",
        format!("the policy demands isolation by `{kind}` or stronger, {who}"),
        "see `belljar doctor` for what is missing, use a host that has it, or change `isolation.minimum` in the policy",
    )
}

pub fn in_the_fittest(
    backends: &[Box<dyn Backend>],
    request: &Request,
    admitted: &Admitted,
    stacks: &[Stack],
    record: &Record<'_>,
) -> Result<Box<dyn Sandbox>, Outcome> {
    let grant = &admitted.grant;
    let (choice, image) = chosen(backends, request, grant, record)?;
    let streams = record.digested(Streams { witness: Some(record.witness()), ..admitted.streams(record)? });
    // Written while the sandbox is raised: whoever raises it waits anyway.
    let inner = choice.backend.open(grant, stacks, streams, request.trace).map_err(Outcome::NotSetUp)?;
    record.was_told_of_the_opening()?;
    Ok(Box::new(Chosen { inner, because: choice.because, image }))
}

/// For a run that is yet to be asked for.
pub fn ready(
    backends: &[Box<dyn Backend>],
    request: &Request,
    grant: &Grant,
    stacks: &[Stack],
    zygote: &Zygote,
) -> Result<Box<dyn Blank>, Outcome> {
    let choice = choose(backends, request, grant)?;
    check(&choice.backend.assess(grant), grant)?;
    choice.backend.blank(grant, stacks, zygote).map_err(Outcome::NotSetUp)
}

/// Where somebody waits for it already.
pub fn in_a_blank(
    backends: &[Box<dyn Backend>],
    request: &Request,
    admitted: &Admitted,
    record: &Record<'_>,
    blank: Box<dyn Blank>,
) -> Result<Box<dyn Sandbox>, Outcome> {
    let grant = &admitted.grant;
    let (_, image) = recorded(backends, request, grant, record)?;
    let streams = record.digested(Streams { witness: Some(record.witness()), ..admitted.streams(record)? });
    let inner = blank.begin(grant, streams).map_err(Outcome::NotSetUp)?;
    Ok(Box::new(Chosen { inner, because: "it stood ready".to_owned(), image }))
}

/// With nothing started in it.
pub fn to_stay(
    backends: &[Box<dyn Backend>],
    request: &Request,
    admitted: &Admitted,
    stacks: &[Stack],
    record: &Record<'_>,
    visitors: OwnedFd,
) -> Result<Box<dyn Sandbox>, Outcome> {
    let grant = &admitted.grant;
    let (choice, image) = recorded(backends, request, grant, record)?;
    let streams = Streams { witness: Some(record.witness()), ..admitted.streams(record)? };
    let inner = choice.backend.host(grant, stacks, streams, visitors).map_err(Outcome::NotSetUp)?;
    Ok(Box::new(Chosen { inner, because: choice.because, image }))
}

/// Behind walls that stand already.
pub fn visiting(
    backends: &[Box<dyn Backend>],
    request: &Request,
    admitted: &Admitted,
    record: &Record<'_>,
    host: OwnedFd,
) -> Result<Box<dyn Sandbox>, Outcome> {
    let grant = &admitted.grant;
    let (choice, image) = recorded(backends, request, grant, record)?;
    let streams = record.digested(admitted.streams_inside());
    let inner = choice.backend.visit(grant, streams, host).map_err(Outcome::NotSetUp)?;
    Ok(Box::new(Chosen { inner, because: "the sandbox is open".to_owned(), image }))
}

/// In a context behind walls that stand already.
pub fn to_run_a_cell(
    backends: &[Box<dyn Backend>],
    request: &Request,
    admitted: &Admitted,
    record: &Record<'_>,
    work: CellWork,
    host: OwnedFd,
) -> Result<Box<dyn Sandbox>, Outcome> {
    let grant = &admitted.grant;
    let (choice, image) = recorded(backends, request, grant, record)?;
    let streams = record.digested(admitted.streams_inside());
    let inner = choice.backend.run_cell(grant, streams, work, host).map_err(Outcome::NotSetUp)?;
    Ok(Box::new(Chosen { inner, because: "the sandbox is open".to_owned(), image }))
}

/// Code of ours in place of the command: behind walls that stand already, or in a sandbox that is raised for it.
pub fn to_work_on_files(
    backends: &[Box<dyn Backend>],
    request: &Request,
    admitted: &Admitted,
    stacks: &[Stack],
    record: &Record<'_>,
    (streams, work, host): (Streams, FileWork, Option<OwnedFd>),
) -> Result<Box<dyn Sandbox>, Outcome> {
    let grant = &admitted.grant;
    let (choice, image) = recorded(backends, request, grant, record)?;
    let inner = choice.backend.work_on_files(grant, stacks, streams, work, host).map_err(Outcome::NotSetUp)?;
    Ok(Box::new(Chosen { inner, because: choice.because, image }))
}

/// The same, on the record before it is opened.
fn recorded<'a>(
    backends: &'a [Box<dyn Backend>],
    request: &Request,
    grant: &Grant,
    record: &Record<'_>,
) -> Result<(Choice<'a>, Option<ImageUsed>), Outcome> {
    let chosen = chosen(backends, request, grant, record)?;
    record.write_opening()?;
    Ok(chosen)
}

/// Which one, with every wall as well held as the grant demands. That is said, and has yet to be written.
fn chosen<'a>(
    backends: &'a [Box<dyn Backend>],
    request: &Request,
    grant: &Grant,
    record: &Record<'_>,
) -> Result<(Choice<'a>, Option<ImageUsed>), Outcome> {
    let choice = choose(backends, request, grant)?;
    // A gate is forked beside the sandbox, and has no business with who waits in one.
    let alone = grant.powers().network == Network::Closed;
    let others = backends.iter().filter(|backend| !alone || backend.name() != choice.backend.name());
    others.for_each(|backend| backend.expect_no_more());
    let enforcement = choice.backend.assess(grant);
    check(&enforcement, grant)?;
    let direct = grant.powers().files.places.iter().any(|place| place.access == Access::Write);
    let image = choice.backend.image(grant);
    record.opening(&choice, &enforcement, image.as_ref(), direct);
    Ok((choice, image))
}

/// Says in the end why it was this backend, and what it stood on.
struct Chosen {
    inner: Box<dyn Sandbox>,
    because: String,
    image: Option<ImageUsed>,
}

impl Sandbox for Chosen {
    fn supervise(self: Box<Self>) -> Outcome {
        let mut outcome = self.inner.supervise();
        if let Outcome::Ran(finished) = &mut outcome {
            finished.because = self.because;
            finished.image = self.image;
        }
        outcome
    }
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
