//! Looks up what a judge must know: what is where, what it is, what it is a link to. Changes nothing.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use model::paths::is_within;
use model::{Access, Ground, Origin, Outcome, Place, Principal, Request, StartFailure, WorkspaceMode};
use policy::{
    ETC, Facts, LOOSE, Located, OFTEN_LINKED, PRIVATE, PathPattern, Policy, ROOTS, SYS, TOOLCHAIN_VARIABLES,
    store_below,
};
use sys::paths::Neighbourhood;

use crate::approvals;
use crate::judge::usage;
use crate::policies::Loaded;
use crate::record;
use crate::refused;
use crate::toolchains;
use crate::user::User;

/// Where a path leads.
fn real_path(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    sys::paths::real(path.as_ref())
}

/// `made_inside`: whether a path that the host does not have is a file in the sandbox that is meant.
pub fn look(
    request: &Request,
    ground: Ground,
    user: &User,
    loaded: &Loaded,
    made_inside: &dyn Fn(&Path) -> bool,
) -> Result<Facts, Outcome> {
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let variable = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str());
    let directory = current_directory()?;
    let mut around = Neighbourhood::default();
    let (home, homes) = homes(variable("HOME"), user, &mut around);
    let (system, links) = system();
    // Of another ground, the host's own is no part; that it is the system's still counts.
    let on_the_host = ground == Ground::Host;
    let start = match &request.directory {
        None => start_in(&directory, request)?,
        Some(asked) => real_path(directory.join(asked)).map_err(|error| {
            usage(format!("cannot start in `{}`: {error}", asked.display()), "choose a folder that exists with `--cwd`")
        })?,
    };
    if !start.is_dir() {
        return Err(usage(
            format!("cannot start in `{}`: it is not a folder", start.display()),
            "choose a folder with `--cwd`",
        ));
    }
    let linked_stores = linked_stores(&homes);
    let workspaces_named = !request.workspaces.is_empty();
    let here = workspace(&directory, request.workspace_mode, &homes, &system, &linked_stores);
    let mut theirs: Vec<PathBuf> = here.iter().map(|place| place.path.clone()).collect();
    let workspaces = match workspaces_named {
        true => named_workspaces(&directory, request)?,
        false => here.into_iter().collect(),
    };
    theirs.extend(workspaces.iter().map(|place| place.path.clone()));
    theirs.extend(request.write.iter().filter_map(|path| real_path(directory.join(path)).ok()));
    let mut asked = Vec::new();
    for (paths, access) in [(&request.write, Access::Write), (&request.read, Access::Read)] {
        for path in paths {
            let place = asked_place(&directory, &theirs, path, access)?;
            if !asked.iter().any(|known: &Place| known.path == place.path) {
                asked.push(place);
            }
        }
    }
    let mut hide = hidden(&directory, &request.hide)?;
    hide.extend(hidden_by_policy(&loaded.policy, &workspaces));
    let given = given(&loaded.policy, &workspaces);

    let mut toolchains = Toolchains {
        homes: &homes,
        granted: asked.iter().chain(&given).chain(&workspaces).map(|place| place.path.clone()).collect(),
        shown: Vec::new(),
        visible: Vec::new(),
        looked_at: HashSet::new(),
        around,
    };
    let visible = system.iter().chain(&asked).chain(&given).chain(&workspaces);
    toolchains.visible.extend(visible.map(|place| place.path.clone()));
    let asked_path =
        request.environment.iter().find(|(name, _)| name == "PATH").and_then(|(_, value)| value.as_deref());
    let search_path = asked_path.or(variable("PATH")).unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    if on_the_host {
        for entry in std::env::split_paths(search_path) {
            toolchains.show_programs(&entry);
        }
        for name in TOOLCHAIN_VARIABLES {
            if let Some(value) = variable(name) {
                toolchains.show_root(name, Path::new(value));
            }
        }
    }
    let java = !on_the_host || std::env::split_paths(search_path).any(|folder| folder.join("java").exists());
    let program = match &ground {
        Ground::Host => {
            let named = by_letter(&start.join(&request.command[0]));
            let by_path = request.command[0].as_bytes().contains(&b'/');
            // Below a workspace, where the sandbox has its own: what its path leads to is found there and nowhere else.
            let there = by_path && toolchains.is_granted(&named) && !named.exists() && made_inside(&named);
            match there {
                true => Located { path: named },
                false => program(&request.command[0], &start, search_path, &mut toolchains)?,
            }
        }
        // Whoever has the image looks for it there.
        Ground::Image { .. } | Ground::Module { interpreter: Some(_) } => {
            Located { path: request.command[0].clone().into() }
        }
        Ground::Module { interpreter: None } => module(&request.command[0], &start, &toolchains)?,
    };
    let Toolchains { shown: toolchains, mut around, .. } = toolchains;
    let (system, links) = if on_the_host { (system, links) } else { Default::default() };

    let elsewhere: Vec<Place> = asked.iter().chain(&given).cloned().collect();
    let loose_secrets = loose_secrets(&elsewhere);
    let agent = agent(request, &environment)?;
    Ok(Facts {
        principal: Principal { user: user.name.clone(), agent },
        workspace_mode: request.workspace_mode,
        given,
        policies: loaded.folders.iter().flat_map(|folder| spellings(folder, &mut around)).collect(),
        policy_files: policy_files(&loaded.project_files),
        user_name: user_name(variable("USER")),
        memory: memory(),
        inherited_size: inherited_size(),
        directory,
        start,
        home,
        homes,
        environment,
        ground,
        system,
        links,
        toolchains,
        workspaces,
        workspaces_named,
        asked,
        hide,
        linked_stores,
        state: state(user, &mut around),
        loose_secrets,
        program,
        // Looked for when it is known that it may run at all.
        findings: Vec::new(),
        code: None,
        reasons: Vec::new(),
        // Filled in by whoever looks into the vault.
        stored: Vec::new(),
        seed: seed(request)?,
        java,
    })
}

/// Of the machine, in bytes.
fn memory() -> u64 {
    let known = rustix::system::sysinfo();
    known.totalram * u64::from(known.mem_unit)
}

/// As it says itself, or as its variables do. Both are claims; who makes two that differ could shake off the rules for one.
fn agent(request: &Request, environment: &[(OsString, OsString)]) -> Result<Option<String>, Outcome> {
    let detected = model::agents::detected(environment.iter().cloned());
    match (&request.agent, detected) {
        (Some(said), Some(detected)) if *said != detected => Err(refused(
            "agent.name",
            format!("`--agent {said}` is asked for by `{detected}`, as its variables tell"),
            &format!("leave `--agent` out, or say `--agent {detected}`"),
        )),
        (said, detected) => Ok(said.clone().or(detected)),
    }
}

/// Where a request would work, for those who look for a project's policy.
pub fn workspace_folders(request: &Request) -> Result<Vec<PathBuf>, Outcome> {
    let directory = current_directory()?;
    let named = named_workspaces(&directory, request)?;
    Ok(if named.is_empty() { vec![directory] } else { named.into_iter().map(|place| place.path).collect() })
}

/// Where the caller is; or, where that is not part of a workspace that was named, in the first of them.
fn start_in(directory: &Path, request: &Request) -> Result<PathBuf, Outcome> {
    let named = named_workspaces(directory, request)?;
    match named.first() {
        Some(first) if !named.iter().any(|place| is_within(directory, &place.path)) => Ok(first.path.clone()),
        _ => Ok(directory.to_owned()),
    }
}

fn current_directory() -> Result<PathBuf, Outcome> {
    sys::paths::here().map_err(|error| {
        usage(
            format!("the current folder can't be found: {error}"),
            "change to a folder that exists and that you may enter",
        )
    })
}

/// The home that programs are told of, and all homes whose credentials count.
fn homes(variable: Option<&OsStr>, user: &User, around: &mut Neighbourhood) -> (PathBuf, Vec<PathBuf>) {
    let mut spellings: Vec<PathBuf> =
        variable.map(PathBuf::from).filter(|home| home.is_absolute()).into_iter().collect();
    spellings.extend(user.home.clone().filter(|home| !spellings.contains(home)));
    let canonical: Vec<PathBuf> = spellings.iter().filter_map(|home| around.real(home).ok()).collect();
    // Not where the system is: a service's home can be anything.
    let fit = |home: &&PathBuf| {
        let system = ROOTS.iter().chain(PRIVATE).chain(&["/etc", "/tmp"]).map(Path::new);
        !system.into_iter().any(|root| is_within(home, root) || is_within(root, home)) && home.components().count() > 1
    };
    let home = canonical.iter().chain(&spellings).find(fit).cloned().unwrap_or_else(|| PathBuf::from("/home/user"));
    let mut homes: Vec<PathBuf> = Vec::new();
    for spelling in spellings.into_iter().chain(canonical) {
        if spelling != Path::new("/") && !homes.contains(&spelling) {
            homes.push(spelling);
        }
    }
    (home, homes)
}

/// A name that every program takes for one.
fn user_name(variable: Option<&OsStr>) -> String {
    let fit = |name: &&str| {
        !name.is_empty()
            && name.len() <= 32
            && *name != "root"
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-')
            && name.as_bytes()[0].is_ascii_lowercase()
    };
    variable.and_then(OsStr::to_str).filter(fit).unwrap_or("user").to_owned()
}

type Links = Vec<(PathBuf, PathBuf)>;

/// The part of the closed list that exists here: folders and files to show, links to make again.
fn system() -> (Vec<Place>, Links) {
    let mut places = Vec::new();
    let mut links = Vec::new();
    for path in ROOTS.iter().chain(ETC).chain(SYS).map(Path::new) {
        let Ok(stat) = std::fs::symlink_metadata(path) else {
            continue;
        };
        if stat.is_symlink() {
            if let Ok(target) = std::fs::read_link(path) {
                links.push((path.to_owned(), target));
            }
        } else if stat.is_dir() || stat.is_file() {
            places.push(place(path.to_owned(), &stat, Access::Read, Origin::System));
        }
    }
    (places, links)
}

fn place(path: PathBuf, stat: &std::fs::Metadata, access: Access, origin: Origin) -> Place {
    Place { path, access, folder: stat.is_dir(), origin, owner: (stat.uid(), stat.gid()) }
}

/// The caller's folder, unless it is a home, holds one, or is the system's: then it is nobody's project.
fn workspace(
    directory: &Path,
    mode: WorkspaceMode,
    homes: &[PathBuf],
    system: &[Place],
    linked: &[PathBuf],
) -> Option<Place> {
    let holds_a_home = homes.iter().any(|home| is_within(home, directory));
    let shared = ["/", "/tmp", "/var", "/var/tmp", "/run", "/srv", "/mnt", "/media", "/home", "/etc", "/boot"];
    let of_the_system = shared.iter().any(|shared| directory == Path::new(shared))
        || ["/run", "/etc", "/var/lib", "/var/run"].iter().chain(PRIVATE).any(|root| is_within(directory, root))
        || system.iter().any(|place| directory == place.path);
    if holds_a_home || of_the_system || store_below(directory, homes, linked).is_some() {
        return None;
    }
    let stat = std::fs::symlink_metadata(directory).ok()?;
    Some(place(directory.to_owned(), &stat, access(mode), Origin::Workspace))
}

/// Those that were named, by their real paths.
fn named_workspaces(directory: &Path, request: &Request) -> Result<Vec<Place>, Outcome> {
    let mut places: Vec<Place> = Vec::new();
    for path in &request.workspaces {
        let shown = path.display();
        let missing = |error: io::Error| {
            usage(format!("cannot use `{shown}` as a workspace: {error}"), "name a folder that exists")
        };
        let real = real_path(directory.join(path)).map_err(missing)?;
        let stat = std::fs::symlink_metadata(&real).map_err(missing)?;
        if !stat.is_dir() {
            return Err(usage(format!("cannot use `{shown}` as a workspace: it is not a folder"), "name a folder"));
        }
        if !places.iter().any(|known| known.path == real) {
            places.push(place(real, &stat, access(request.workspace_mode), Origin::Workspace));
        }
    }
    Ok(places)
}

fn access(mode: WorkspaceMode) -> Access {
    match mode {
        WorkspaceMode::Cow => Access::Layered,
        WorkspaceMode::Direct => Access::Write,
        WorkspaceMode::Readonly => Access::Read,
    }
}

/// As it is called, and where that leads; also where it is not there yet, since the next run makes it.
fn state(user: &User, around: &mut Neighbourhood) -> Vec<PathBuf> {
    let record = record::folder(user).and_then(|ledger| Some(ledger.parent()?.to_owned()));
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in workspace::state_folder().into_iter().chain(record) {
        if !found.contains(&folder) {
            found.extend(spellings(&folder, around));
        }
    }
    // What the service keeps lies beside the user's own: tokens, and the state of all tenants.
    let services: Vec<PathBuf> =
        found.iter().map(|folder| of_the_service(folder)).filter(|folder| folder.exists()).collect();
    for folder in services {
        if !found.contains(&folder) {
            found.push(folder);
        }
    }
    // Whoever wrote there could put questions and answers before people.
    found.extend(Path::new(approvals::SPOOL).exists().then(|| approvals::SPOOL.into()));
    found
}

/// Around a tenant's state, or beside the user's own.
fn of_the_service(state: &Path) -> PathBuf {
    const NAME: &str = "belljar-service";
    let around = state.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == NAME));
    around.map_or_else(|| state.with_file_name(NAME), Path::to_owned)
}

/// A path as it is called, and where that leads.
fn spellings(folder: &Path, around: &mut Neighbourhood) -> Vec<PathBuf> {
    let real = folder.ancestors().find_map(|above| {
        let real = around.real(above).ok()?;
        Some(real.join(folder.strip_prefix(above).ok()?))
    });
    let mut found = vec![folder.to_owned()];
    found.extend(real.filter(|real| !found.contains(real)));
    found
}

/// Where links in the places of credential stores lead to.
fn linked_stores(homes: &[PathBuf]) -> Vec<PathBuf> {
    let stores = homes.iter().flat_map(|home| OFTEN_LINKED.iter().map(move |store| home.join(store)));
    let linked = stores.filter(|store| std::fs::symlink_metadata(store).is_ok_and(|stat| stat.is_symlink()));
    linked.filter_map(|store| real_path(store).ok()).collect()
}

/// Files with secrets, at the top of folders that are only to be read.
fn loose_secrets(asked: &[Place]) -> Vec<(PathBuf, bool)> {
    let folders = asked.iter().filter(|place| place.folder && place.access == Access::Read);
    let files = folders.flat_map(|place| LOOSE.iter().map(move |name| place.path.join(name)));
    files
        .filter_map(|file| {
            std::fs::symlink_metadata(&file).ok().filter(|stat| !stat.is_symlink()).map(|stat| (file, stat.is_dir()))
        })
        .collect()
}

/// `path` with `.` and `..` taken out by their letters, links left as they are.
pub fn by_letter(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// `theirs`: folders that guests write to, or did when they were here before.
fn asked_place(directory: &Path, theirs: &[PathBuf], path: &Path, access: Access) -> Result<Place, Outcome> {
    let shown = path.display();
    let full = directory.join(path);
    let missing = |error: io::Error| {
        usage(format!("cannot grant `{shown}`: {error}"), "check the path; only what exists can be granted")
    };
    let stat = std::fs::symlink_metadata(&full).map_err(missing)?;
    let real = real_path(&full).map_err(missing)?;
    // What a link points at can change between now and then, and is not what was named. Where guests write, whoever ran
    // there before may have planted it.
    let planted = by_letter(&full) != real && theirs.iter().any(|folder| is_within(by_letter(&full), folder));
    if stat.is_symlink() || planted {
        return Err(usage(
            format!("cannot grant `{shown}`: it leads over a link to `{}`", real.display()),
            "name what it leads to",
        ));
    }
    if !stat.is_dir() && !stat.is_file() {
        return Err(usage(format!("cannot grant `{shown}`: it is neither a folder nor a file"), "leave it out"));
    }
    Ok(place(real, &stat, access, Origin::Asked))
}

fn hidden(directory: &Path, paths: &[PathBuf]) -> Result<Vec<(PathBuf, bool)>, Outcome> {
    let mut hidden = Vec::new();
    for path in paths {
        let full = directory.join(path);
        match real_path(&full) {
            Ok(real) => {
                let folder = real.is_dir();
                hidden.push((real, folder));
            }
            // What is not there can't be covered, and would be seen as soon as somebody makes it.
            Err(error) => {
                return Err(usage(
                    format!("cannot hide `{}`: {error}", path.display()),
                    "make it first, or leave it out",
                ));
            }
        }
    }
    Ok(hidden)
}

/// What the policy gives to every sandbox, as far as it is there.
fn given(policy: &Policy, workspaces: &[Place]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let writes = policy.write().map(|pattern| (pattern, Access::Write));
    for (pattern, access) in writes.chain(policy.read().map(|pattern| (pattern, Access::Read))) {
        for path in paths(pattern, workspaces) {
            let Ok(real) = real_path(&path) else { continue };
            // A link in a workspace is the guest's: it must not choose what is given.
            let planted = real != path && workspaces.iter().any(|workspace| is_within(&path, &workspace.path));
            let Ok(stat) = std::fs::symlink_metadata(&real) else { continue };
            let fit = (stat.is_dir() || stat.is_file()) && !planted;
            if fit && !places.iter().any(|known| known.path == real) {
                places.push(place(real, &stat, access, Origin::Asked));
            }
        }
    }
    places
}

/// What the policy hides, as far as it is there.
fn hidden_by_policy(policy: &Policy, workspaces: &[Place]) -> Vec<(PathBuf, bool)> {
    let paths = policy.hide().flat_map(|pattern| paths(pattern, workspaces));
    let real = paths.filter_map(|path| real_path(path).ok());
    real.map(|path| {
        let folder = path.is_dir();
        (path, folder)
    })
    .collect()
}

/// Where a pattern without wild letters leads: one place, or one in each workspace.
fn paths(pattern: &PathPattern, workspaces: &[Place]) -> Vec<PathBuf> {
    match pattern.literal().map(PathBuf::from) {
        None => Vec::new(),
        Some(path) if path.is_absolute() => vec![path],
        Some(path) => workspaces.iter().map(|workspace| workspace.path.join(&path)).collect(),
    }
}

/// Project files, to be read but not written even where everything around them is.
fn policy_files(files: &[PathBuf]) -> Vec<Place> {
    let real = files.iter().filter_map(|file| real_path(file).ok());
    let look = |path: PathBuf| {
        let stat = std::fs::symlink_metadata(&path).ok()?;
        Some(place(path, &stat, Access::Read, Origin::Workspace))
    };
    real.filter_map(look).collect()
}

/// Tool-chains outside the system, collected while programs are looked for.
struct Toolchains<'a> {
    homes: &'a [PathBuf],
    granted: Vec<PathBuf>,
    shown: Vec<Place>,
    visible: Vec<PathBuf>,
    looked_at: HashSet<PathBuf>,
    around: Neighbourhood,
}

impl Toolchains<'_> {
    fn is_visible(&self, path: &Path) -> bool {
        self.visible.iter().any(|place| is_within(path, place))
    }

    /// In the workspace, or in something that was asked for.
    fn is_granted(&self, path: &Path) -> bool {
        self.granted.iter().any(|place| is_within(path, place))
    }

    /// Shows what the programs in a folder need.
    fn show_programs(&mut self, folder: &Path) {
        if !folder.is_absolute() || !self.looked_at.insert(folder.to_owned()) || self.is_visible(folder) {
            return;
        }
        let Ok(real) = self.around.real(folder) else {
            return;
        };
        if self.is_visible(&real) || !self.is_fit(&real) {
            return;
        }
        for shown in toolchains::folders_for(&real, self.homes) {
            self.show(&shown);
        }
    }

    fn show_root(&mut self, variable: &str, root: &Path) {
        if !root.is_absolute() || self.is_visible(root) {
            return;
        }
        match variable {
            // Credentials live beside the caches: only the parts.
            "CARGO_HOME" => {
                ["bin", "registry", "git", "config.toml", "config"].iter().for_each(|part| self.show(&root.join(part)))
            }
            "GOPATH" => ["bin", "pkg/mod"].iter().for_each(|part| self.show(&root.join(part))),
            _ => self.show(root),
        }
    }

    fn show(&mut self, path: &Path) {
        if self.is_visible(path) || !self.is_fit(path) {
            return;
        }
        let Ok(real) = self.around.real(path) else {
            return;
        };
        let Ok(stat) = std::fs::symlink_metadata(&real) else {
            return;
        };
        if !self.is_visible(&real) && self.is_fit(&real) && (stat.is_dir() || stat.is_file()) {
            self.visible.push(real.clone());
            self.shown.push(place(real, &stat, Access::Read, Origin::Toolchain));
        }
    }

    /// Never a home, nor what holds one, nor what a sandbox has of its own.
    fn is_fit(&self, path: &Path) -> bool {
        let private = PRIVATE.iter().chain(&["/tmp", "/run", "/etc", "/var"]).any(|root| path.as_os_str() == *root);
        path.components().count() > 1
            && !private
            && !self.homes.iter().any(|home| is_within(home, path))
            && !PRIVATE.iter().any(|root| is_within(path, root))
    }

    /// A program that lives elsewhere, by itself if its folder is no tool-chain.
    fn show_program(&mut self, real: &Path) {
        if let Some(folder) = real.parent() {
            let is_private = [Path::new("/tmp")].contains(&folder) || self.homes.iter().any(|home| home == folder);
            if is_private { self.show(real) } else { self.show_programs(folder) }
        }
        self.show(real);
    }
}

fn program(
    name: &OsStr,
    start: &Path,
    search_path: &OsStr,
    toolchains: &mut Toolchains<'_>,
) -> Result<Located, Outcome> {
    let found = if name.as_bytes().contains(&b'/') {
        let path = start.join(name);
        match path.metadata() {
            Ok(stat) if stat.is_dir() => {
                return Err(cannot_execute(format!("`{}` is a folder", path.display()), "name a program in it"));
            }
            Ok(stat) if stat.permissions().mode() & 0o111 == 0 => {
                return Err(cannot_execute(
                    format!("`{}` is not executable", path.display()),
                    "`chmod +x` it, or name its interpreter: `belljar run -- sh FILE`",
                ));
            }
            Ok(_) => Some(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(cannot_execute(format!("`{}`: {error}", path.display()), "check who may read it"));
            }
            Err(_) => None,
        }
    } else {
        std::env::split_paths(search_path).map(|entry| start.join(entry).join(name)).find(|candidate| {
            candidate.metadata().is_ok_and(|stat| stat.is_file() && stat.permissions().mode() & 0o111 != 0)
        })
    };
    let Some(path) = found else {
        let shown = name.to_string_lossy().escape_debug().to_string();
        let (message, fix) = match name.as_bytes().contains(&b'/') {
            true => (format!("there is no program at `{shown}`"), "check the path"),
            false => {
                (format!("there is no program `{shown}` in the search path"), "install it, or add its folder to PATH")
            }
        };
        return Err(Outcome::NotStarted(StartFailure { found: false, message, fix: fix.to_owned() }));
    };
    // Both the name it is called by and what that leads to.
    let real =
        real_path(&path).map_err(|error| cannot_execute(format!("`{}`: {error}", path.display()), "check the path"))?;
    let folder = path.parent().and_then(|folder| toolchains.around.real(folder).ok()).unwrap_or_default();
    let by_name = path.file_name().map_or_else(|| real.clone(), |name| folder.join(name));
    leads_out(&path, &real, toolchains)?;
    toolchains.show_program(&real);
    let path = if toolchains.is_visible(&by_name) { by_name } else { real };
    Ok(Located { path })
}

/// A module is read, and not executed by the host: it needs no right to be.
fn module(name: &OsStr, start: &Path, known: &Toolchains<'_>) -> Result<Located, Outcome> {
    let path = start.join(name);
    let missing = |error: io::Error| {
        let found = error.kind() != io::ErrorKind::NotFound;
        let message = format!("there is no module at `{}`: {error}", path.display());
        Outcome::NotStarted(StartFailure { found, message, fix: "check the path".to_owned() })
    };
    let real = real_path(&path).map_err(missing)?;
    if !real.metadata().map_err(missing)?.is_file() {
        return Err(cannot_execute(format!("`{}` is no file", path.display()), "name a `.wasm` or `.wat` file"));
    }
    leads_out(&path, &real, known)?;
    Ok(Located { path: real })
}

/// A link in a folder that others write to: it must not choose what is shown.
fn leads_out(path: &Path, real: &Path, known: &Toolchains<'_>) -> Result<(), Outcome> {
    if !known.is_granted(&by_letter(path)) || known.is_visible(real) {
        return Ok(());
    }
    Err(refused(
        "files.program",
        format!("`{}` leads over a link to `{}`, which is outside the grant", path.display(), real.display()),
        &format!("grant it with `--read {}`, if it is what you mean", real.display()),
    ))
}

fn cannot_execute(message: String, fix: &str) -> Outcome {
    Outcome::NotStarted(StartFailure { found: true, message: format!("cannot run it: {message}"), fix: fix.to_owned() })
}

/// What the files passed as input and output hold already: their size must not count as the payload's.
fn inherited_size() -> u64 {
    let sizes = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()].map(|fd| {
        match rustix::fs::fstat(fd) {
            Ok(stat) if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() => stat.st_size.max(0) as u64,
            _ => 0,
        }
    });
    sizes.into_iter().max().unwrap_or(0)
}

/// What stands in for secrets is guessed by nobody. Most runs have none.
fn seed(request: &Request) -> Result<[u8; 32], Outcome> {
    let mut seed = [0; 32];
    if !request.network.secrets.is_empty() {
        let mut rest = seed.as_mut_slice();
        while !rest.is_empty() {
            let count = rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty());
            let count = count.map_err(|error| usage(format!("there is no randomness: {error}"), "try again"))?;
            rest = &mut rest[count..];
        }
    }
    Ok(seed)
}
