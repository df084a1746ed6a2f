//! Isolation by a container engine (Docker, Podman) of this host: a hardened container, asked for through its API.
//!
//! `plan` decides, purely; `launch` follows; `supervise` watches to the end; `assess` and `diagnose` tell the truth. What
//! would break isolation can't be asked for: see `configuration`.

mod api;
mod assess;
mod configuration;
mod diagnose;
mod doors;
mod facts;
#[cfg(test)]
mod golden;
mod http;
mod images;
mod keeper;
mod labels;
mod launch;
mod plan;
mod pool;
mod profile;
mod proof;
mod remembered;
mod screen;
mod sockets;
mod streams;
mod supervise;
mod tar;
mod trouble;
mod work;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use model::{
    Backend, BackendReport, Enforcement, Gated, Grant, Ground, GroundKind, ImageShown, ImageUsed, Images, Kept,
    Network, Plan, Powers, Sandbox, SetupFailure, Stack, Streams, Strength, Trouble,
};

pub use pool::Warm;

/// Times of runs in containers that wait. Not for use: for whoever measures.
#[doc(hidden)]
pub mod measured {
    pub use crate::pool::{cold_and_warm, trivial};
}

use api::Api;
use assess::Can;
use facts::{Engine, Facts, ImageFacts};
use trouble::{Result, Unusable};

const NAME: &str = "container";

/// The container backend. The engine is looked for when it is first needed.
#[derive(Default)]
pub struct Container {
    /// Where belljar keeps its state, and no sandbox ever sees anything; none if there is no such place.
    state: Option<PathBuf>,
    connected: OnceCell<Result<Connected>>,
    image: OnceCell<Result<(Asked, ImageFacts)>>,
}

struct Connected {
    api: Api,
    engine: Engine,
}

/// What was asked for: which image, and whether it may be pulled.
type Asked = (Option<String>, bool);

impl Container {
    /// `state`: the folder in which everything is kept that no sandbox may see.
    pub fn new(state: Option<PathBuf>) -> Container {
        Container { state, ..Container::default() }
    }

    fn connected(&self) -> std::result::Result<&Connected, &Unusable> {
        let connect = || {
            let api = Api::find()?;
            let engine = remembered::engine(self.state.as_deref(), &api)?;
            Ok(Connected { api, engine })
        };
        self.connected.get_or_init(connect).as_ref()
    }

    /// The image of a grant. Looked up once: what is reported is what is started.
    fn image(&self, powers: &Powers) -> std::result::Result<&ImageFacts, SetupFailure> {
        let asked = asked(powers);
        let connected = self.connected().map_err(failure)?;
        let find = || {
            let (name, image) = images::find(&connected.api, asked.0.as_deref(), asked.1)?;
            Ok((asked.clone(), ImageFacts::new(&name, &image)))
        };
        match self.image.get_or_init(find) {
            Ok((known, image)) if *known == asked => Ok(image),
            Ok(_) => Err(SetupFailure {
                wall: None,
                message: "one backend runs one image".to_owned(),
                fix: "please report this".to_owned(),
                layers: false,
            }),
            Err(error) => Err(failure(error)),
        }
    }

    fn facts(&self, powers: &Powers, stacks: &[Stack]) -> std::result::Result<(&Api, Facts), SetupFailure> {
        let connected = self.connected().map_err(failure)?;
        let image = self.image(powers)?.clone();
        let id = new_id().map_err(SetupFailure::from)?;
        let gated = matches!(powers.network, Network::Gated(_));
        let waiting_image = match gated {
            true => images::own(&connected.api).map(|(_, image)| image.id).map_err(SetupFailure::from)?,
            false => String::new(),
        };
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let pid = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
        let reads = matches!(&powers.network, Network::Gated(Gated { reads: true, .. }));
        let trust = reads.then(|| facts::trust_folder(&id));
        // Of an engine that is root; root itself can remove what that leaves.
        let work =
            if user != 0 && !connected.engine.rootless { first_layer(stacks).and_then(work::beside) } else { None };
        let profile = match connected.engine.podman {
            true => Some(remembered::profile(self.state.as_deref()).map_err(SetupFailure::from)?),
            false => None,
        };
        let facts = Facts {
            user_processes: facts::user_processes(&connected.engine),
            engine: connected.engine.clone(),
            image,
            caller: (user, group),
            stranger: facts::NOBODY_ELSE + (pid & 0x003f_ffff),
            labels: labels::own(&id),
            id,
            waiting_image,
            trust,
            profile,
            work,
        };
        Ok((&connected.api, facts))
    }
}

impl Container {
    fn walls(&self, powers: &Powers) -> Enforcement {
        let can = |engine: &Engine| Can { enter_networks: doors::can_enter(engine) };
        // Without an engine or an image nothing is opened, so no wall is missing; `open` says what is.
        let usable =
            Engine { seccomp: true, memory: true, swap: true, processes: true, processors: true, ..Engine::default() };
        match (self.connected(), self.image(powers)) {
            (Ok(connected), Ok(image)) => {
                let shown = format!("{} ({})", image.name, image.id);
                assess::assess(powers, &connected.engine, &shown, can(&connected.engine))
            }
            (Ok(connected), Err(_)) => {
                assess::assess(powers, &connected.engine, "that is not there", can(&connected.engine))
            }
            (Err(_), _) => assess::assess(powers, &usable, "of an engine that is not there", can(&usable)),
        }
    }
}

fn first_layer(stacks: &[Stack]) -> Option<&Path> {
    stacks.iter().find_map(|stack| match &stack.kept {
        Kept::Overlay { layer, .. } => Some(layer.as_path()),
        Kept::Copy { .. } => None,
    })
}

fn asked(powers: &Powers) -> Asked {
    match &powers.files.ground {
        Ground::Image { name, pull, .. } => (name.clone(), *pull),
        Ground::Host | Ground::Module { .. } => (None, false),
    }
}

fn failure(error: &Unusable) -> SetupFailure {
    SetupFailure { wall: None, message: error.to_string(), fix: error.fix(), layers: false }
}

fn new_id() -> Result<String> {
    let mut random = [0u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Unusable::Failed { what: "choose a name".to_owned(), source: error.into() })?;
    Ok(format!("{:016x}", u64::from_le_bytes(random)))
}

impl Backend for Container {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ground(&self) -> GroundKind {
        GroundKind::Image
    }

    fn strength(&self, grant: &Grant) -> Strength {
        match &grant.powers().files.ground {
            Ground::Image { runtime: Some(name), .. } if name.starts_with("runsc") || name.starts_with("gvisor") => {
                Strength::UserKernel
            }
            Ground::Image { runtime: Some(name), .. } if name.starts_with("kata") => Strength::Machine,
            _ => Strength::Namespaces,
        }
    }

    fn assess(&self, grant: &Grant) -> Enforcement {
        self.walls(grant.powers())
    }

    fn plan(&self, grant: &Grant, stacks: &[Stack]) -> std::result::Result<Plan, SetupFailure> {
        let (_, facts) = self.facts(grant.powers(), stacks)?;
        let powers = grant.powers();
        // As the engine does where layers can't be laid over files: in copies.
        let blueprint = plan::plan(powers, stacks, &facts).or_else(|error| match error {
            Unusable::Layers { .. } => plan::plan(powers, &copies(stacks), &facts),
            error => Err(error),
        });
        let blueprint = blueprint.map_err(SetupFailure::from)?;
        let lossy = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
        Ok(Plan {
            backend: NAME.to_owned(),
            because: String::new(),
            program: powers.command.program.clone(),
            arguments: powers.command.arguments.iter().map(lossy).collect(),
            directory: powers.command.directory.clone(),
            environment: blueprint.container.env.clone(),
            steps: plan::describe(&blueprint, &facts),
            enforcement: self.assess(grant),
        })
    }

    fn open(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        mut streams: Streams,
        trace: bool,
    ) -> std::result::Result<Box<dyn Sandbox>, SetupFailure> {
        let (api, facts) = self.facts(grant.powers(), stacks)?;
        let blueprint = plan::plan(grant.powers(), stacks, &facts).map_err(SetupFailure::from)?;
        if let Some(witness) = &mut streams.witness {
            let unwritten = |Trouble { message, fix }| SetupFailure { wall: None, message, fix, layers: false };
            witness.raising().map_err(unwritten)?;
        }
        if let (Some(folder), Some(outside)) = (&facts.trust, &mut streams.outside) {
            facts::write_trust(folder, outside.files()).map_err(SetupFailure::from)?;
        }
        let raised = launch::launch(api, &blueprint, grant.powers(), &facts, streams, trace)?;
        let own = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
            (name == "PATH").then(|| value.to_string_lossy().into_owned())
        };
        let search_path = grant.powers().environment.iter().find_map(own).unwrap_or(facts.image.search_path);
        Ok(Box::new(supervise::Supervised {
            raised,
            powers: grant.powers().clone(),
            enforcement: self.assess(grant),
            search_path,
        }))
    }

    fn diagnose(&self) -> BackendReport {
        let connected = self.connected().map(|connected| (&connected.api, &connected.engine));
        let walls = if connected.is_ok() { self.walls(&pool::trivial()) } else { Enforcement::default() };
        diagnose::diagnose(connected, walls)
    }

    fn image(&self, grant: &Grant) -> Option<ImageUsed> {
        let image = Container::image(self, grant.powers()).ok()?;
        Some(ImageUsed { name: image.name.clone(), digest: image.id.clone() })
    }

    fn images(&self) -> Option<&dyn Images> {
        Some(self)
    }

    fn clean_up(&self) -> std::result::Result<u64, Trouble> {
        match self.connected() {
            Ok(connected) => Ok(labels::clean_up(&connected.api)?),
            // Nothing of ours is where nobody answers.
            Err(_) => Ok(0),
        }
    }
}

fn copies(stacks: &[Stack]) -> Vec<Stack> {
    let copy = |stack: &Stack| {
        let kept = match &stack.kept {
            Kept::Overlay { layer, .. } => Kept::Copy { tree: layer.join("tree") },
            copy @ Kept::Copy { .. } => copy.clone(),
        };
        Stack { kept, ..stack.clone() }
    };
    stacks.iter().map(copy).collect()
}

fn trouble(error: &Unusable) -> Trouble {
    Trouble { message: error.to_string(), fix: error.fix() }
}

impl Images for Container {
    fn list(&self) -> std::result::Result<Vec<ImageShown>, Trouble> {
        Ok(images::list(&self.connected().map_err(trouble)?.api)?)
    }

    fn has(&self, name: &str) -> std::result::Result<bool, Trouble> {
        images::check_name(name)?;
        match self.connected().map_err(trouble)?.api.image(name) {
            Ok(_) => Ok(true),
            Err(Unusable::NoImage { .. }) => Ok(false),
            Err(other) => Err(other.into()),
        }
    }

    fn import(&self, from: &Path, name: Option<&str>) -> std::result::Result<ImageShown, Trouble> {
        Ok(images::shown(images::import(&self.connected().map_err(trouble)?.api, from, name)?))
    }

    fn make_from_busybox(&self, name: Option<&str>) -> std::result::Result<ImageShown, Trouble> {
        Ok(images::shown(images::from_busybox(&self.connected().map_err(trouble)?.api, name)?))
    }

    fn make_from_debootstrap(
        &self,
        suite: &str,
        include: &[String],
        name: Option<&str>,
    ) -> std::result::Result<ImageShown, Trouble> {
        let api = &self.connected().map_err(trouble)?.api;
        Ok(images::shown(images::from_debootstrap(api, suite, include, name)?))
    }

    fn remove(&self, name: &str) -> std::result::Result<(), Trouble> {
        images::check_name(name)?;
        Ok(self.connected().map_err(trouble)?.api.remove_image(name)?)
    }
}
