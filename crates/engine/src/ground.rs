//! What a request would stand on: the host's own programs, an image, or nothing but a module.

use std::ffi::OsStr;
use std::path::Path;

use model::{Backend, Ground, GroundKind, Outcome, Request};

use crate::judge::usage;
use crate::layers::not_set_up;

/// Languages that modules run, with the names of programs whose place they take.
const INTERPRETERS: [(&str, &[&str]); 2] =
    [("python", &["python", "python3"]), ("javascript", &["node", "nodejs", "qjs", "js", "javascript"])];

pub fn of(request: &Request, backends: &[Box<dyn Backend>]) -> Result<Ground, Outcome> {
    let kind = match &request.backend {
        None if request.image.is_some() || request.runtime.is_some() => GroundKind::Image,
        None if is_module(first(request)) => GroundKind::Module,
        None => GroundKind::Host,
        Some(name) => named(name, backends)?.ground(),
    };
    let images = [("--image", &request.image), ("--runtime", &request.runtime)];
    if let (Some((flag, _)), true) = (images.iter().find(|(_, asked)| asked.is_some()), kind != GroundKind::Image) {
        let name = request.backend.as_deref().unwrap_or_default();
        return Err(usage(
            format!("`{flag}` is for images, and the backend `{name}` runs none"),
            "leave it out, or choose `--backend container`",
        ));
    }
    match kind {
        GroundKind::Host => Ok(Ground::Host),
        GroundKind::Image => {
            // Whether it may be pulled, the policy says.
            Ok(Ground::Image { name: request.image.clone(), runtime: request.runtime.clone(), pull: false })
        }
        GroundKind::Module => module(first(request)),
    }
}

/// Whether an image is missing; looked at only where somebody would be asked about that.
pub fn looked_at(ground: Ground, backends: &[Box<dyn Backend>]) -> Result<Ground, Outcome> {
    let Ground::Image { name: Some(name), runtime, pull: _ } = ground else { return Ok(ground) };
    let engine = backends.iter().find_map(|backend| backend.images());
    let there = engine.map_or(Ok(false), |engine| engine.has(&name)).map_err(not_set_up)?;
    Ok(Ground::Image { name: Some(name), runtime, pull: !there })
}

/// The backend that somebody asked for.
pub fn named<'a>(name: &str, backends: &'a [Box<dyn Backend>]) -> Result<&'a dyn Backend, Outcome> {
    backends.iter().map(AsRef::as_ref).find(|backend| backend.name() == name).ok_or_else(|| {
        let names: Vec<_> = backends.iter().map(|backend| backend.name()).collect();
        usage(
            format!("there is no backend called `{}`", name.escape_debug()),
            &format!("the backends are: {}", names.join(", ")),
        )
    })
}

fn first(request: &Request) -> &OsStr {
    request.command.first().map(AsRef::as_ref).unwrap_or_default()
}

fn is_module(word: &OsStr) -> bool {
    Path::new(word).extension().is_some_and(|extension| extension == "wasm" || extension == "wat")
}

fn module(word: &OsStr) -> Result<Ground, Outcome> {
    if is_module(word) {
        return Ok(Ground::Module { interpreter: None });
    }
    let interpreter = INTERPRETERS.iter().find(|(_, names)| names.iter().any(|name| word == *name));
    match interpreter {
        Some((language, _)) => Ok(Ground::Module { interpreter: Some((*language).to_owned()) }),
        None => {
            let names: Vec<&str> = INTERPRETERS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
            Err(usage(
                format!("`{}` is no WebAssembly module", word.to_string_lossy().escape_debug()),
                &format!("name a `.wasm` or `.wat` file, or one of {}; or choose another backend", names.join(", ")),
            ))
        }
    }
}
