//! Landlock: the same powers once more, held by paths rather than by mounts.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use landlock::{
    Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use rustix::fs::{Mode, OFlags};

use crate::step::{Access, Landlock};

/// Everything Landlock knows of is refused but for the rules, and for what the caller passed in as 0, 1 and 2. `keep`: the
/// same rules, for somebody else to be under.
pub(crate) fn restrict(order: &Landlock, keep: bool) -> io::Result<Option<OwnedFd>> {
    let refused = |_| io::Error::from(rustix::io::Errno::NOTSUP);
    let abi = order.abi.into();
    let everything = AccessFs::from_all(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(everything)
        .map_err(refused)?;
    if !Scope::from_all(abi).is_empty() {
        ruleset = ruleset.scope(Scope::from_all(abi)).map_err(refused)?;
    }
    if order.refuse_tcp && !AccessNet::from_all(abi).is_empty() {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi)).map_err(refused)?;
    }
    let mut created = ruleset.create().map_err(refused)?;
    let open = OFlags::PATH | OFlags::CLOEXEC;
    for (path, access) in &order.rules {
        let place = rustix::fs::open(path.as_c_str(), open, Mode::empty())?;
        let folder = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode).is_dir();
        let kind = if folder { everything } else { AccessFs::from_file(abi) };
        created = created.add_rule(PathBeneath::new(place, rights(*access, abi) & kind)).map_err(refused)?;
    }
    for (number, fd) in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()].iter().enumerate() {
        // What a descriptor may be used for, its other names (/dev/stdout) may be used for, and nothing more.
        let Some(access) = rights_of_open(*fd, abi)? else {
            continue;
        };
        let names = [c"/proc/self/fd/0", c"/proc/self/fd/1", c"/proc/self/fd/2"];
        match rustix::fs::open(names[number], open, Mode::empty()) {
            Ok(place) => created = created.add_rule(PathBeneath::new(place, access)).map_err(refused)?,
            // Not visible by name from inside, so there is no other name to allow.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let kept = if keep { created.try_clone()?.into() } else { None };
    created.no_new_privs(true).restrict_self().map_err(refused)?;
    Ok(kept)
}

fn rights(access: Access, abi: landlock::ABI) -> BitFlags<AccessFs> {
    let everything = AccessFs::from_all(abi);
    match access {
        Access::Read => AccessFs::from_read(abi),
        Access::Write => {
            everything & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix)
        }
        Access::Devices => {
            everything
                & (AccessFs::ReadFile
                    | AccessFs::ReadDir
                    | AccessFs::WriteFile
                    | AccessFs::Truncate
                    | AccessFs::IoctlDev)
        }
    }
}

/// The rights that match how a descriptor was opened; `None` for pipes and sockets, which Landlock leaves alone.
fn rights_of_open(fd: BorrowedFd<'_>, abi: landlock::ABI) -> io::Result<Option<BitFlags<AccessFs>>> {
    let kind = match rustix::fs::fstat(fd) {
        Ok(stat) => rustix::fs::FileType::from_raw_mode(stat.st_mode),
        Err(rustix::io::Errno::BADF) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let device = kind.is_char_device();
    if !device && !kind.is_file() {
        return Ok(None);
    }
    let mode = rustix::fs::fcntl_getfl(fd)?;
    let writes = mode.intersects(OFlags::WRONLY | OFlags::RDWR);
    let reads = !mode.contains(OFlags::WRONLY);
    let mut access = BitFlags::empty();
    if reads {
        access |= AccessFs::ReadFile;
    }
    if writes {
        access |= AccessFs::WriteFile | AccessFs::Truncate;
    }
    if device {
        access |= AccessFs::IoctlDev;
    }
    Ok(Some(access & AccessFs::from_file(abi)))
}
