//! What is no HTTP goes by host and port, and nowhere else.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_testkit::Who;

use crate::needing::{Needing, PYTHON, found, python};
use crate::served::{Served, free_port};
use crate::told;
use crate::world::{NAME, World};

pub const ALL: &[Needing] = &[
    ("ssh_runs_a_command_on_a_granted_host", &["ssh", "ssh-keygen", PYTHON], ssh),
    ("redis_cli_reaches_a_granted_server", &["redis-cli", "redis-check-rdb"], redis),
    ("psql_reaches_a_granted_server", &["psql", "postgres"], psql),
];

/// With and without its port granted.
fn reaches(world: &World, port: u16, script: &str, said: &str) -> Result<(), String> {
    let grants = [format!("--allow-net={NAME}:{port}"), format!("--allow-net=127.0.0.1:{port}")];
    world.expect(&[&grants[0], &grants[1]], &["sh", "-c", script], 0, said)?;
    let other = [format!("--allow-net={NAME}:{}", world.raw), format!("--allow-net=127.0.0.1:{}", world.raw)];
    let refused = world.run(&[&other[0], &other[1]], &["sh", "-c", script])?;
    match refused.code == Some(0) || String::from_utf8_lossy(&refused.out).contains(said) {
        true => Err(format!("another port was granted: {refused:?}")),
        false => Ok(()),
    }
}

/// Lets in who has the key, and says what was to be run.
const SHELL: &str = "import asyncio, asyncssh, sys
folder = sys.argv[1]
def talk(process):
    process.stdout.write('from ssh: ' + (process.command or 'nothing') + '\\n'); process.exit(0)
async def main():
    server = await asyncssh.listen('127.0.0.1', 0, server_host_keys=[asyncssh.generate_private_key('ssh-ed25519')],
        authorized_client_keys=folder + '/authorized', process_factory=talk)
    print(server.get_port(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())";

fn ssh(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let own = world.desk.project.work.join("key");
    let made = told(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&own).output())?;
    if !made.status.success() {
        return Err(format!("{made:?}"));
    }
    told(world.desk.project.give(&own))?;
    told(fs::copy(own.with_extension("pub"), world.folder.join("authorized")))?;
    let served = Served::telling(Command::new(python()).args(["-c", SHELL]).arg(&world.folder))?;
    let script = format!(
        "ssh -F none -i key -p {} -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
         -o ConnectTimeout=10 me@{NAME} uptime",
        served.port
    );
    reaches(&world, served.port, &script, "from ssh: uptime")
}

fn redis(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let port = free_port()?;
    // Debian's tools have the server in them: what it does depends on its name.
    let mut server = Command::new("redis-check-rdb");
    server.arg0("redis-server");
    server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    let _served = Served::at(port, server.arg(&world.folder))?;
    let script = format!("redis-cli -h {NAME} -p {port} set a 'from redis' && redis-cli -h {NAME} -p {port} get a");
    reaches(&world, port, &script, "OK\nfrom redis")
}

fn psql(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let port = free_port()?;
    let base = Base::new()?;
    let programs = told(found("postgres").ok_or("postgres").and_then(|place| {
        place
            .canonicalize()
            .map_err(|_| "postgres")
            .and_then(|place| place.parent().map(Path::to_owned).ok_or("a folder"))
    }))?;
    let mut made = base.command(&programs.join("initdb"));
    let made = told(made.args(["-A", "trust", "-U", "test", "-N", "-D"]).arg(&base.0).output())?;
    if !made.status.success() {
        return Err(format!("{made:?}"));
    }
    let mut server = base.command(&programs.join("postgres"));
    server.arg("-D").arg(&base.0).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", "", "-F"]);
    let _served = Served::at(port, &mut server)?;
    let psql = ["psql"].iter().map(|name| programs.join(name)).find(|place| place.exists());
    let psql = psql.unwrap_or_else(|| PathBuf::from("psql"));
    // It answers before it lets anybody in.
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do PGSSLMODE=prefer {} -X -At -h {NAME} -p {port} -U test postgres \
         -c \"select 'from psql ' || 6 * 7\" && exit; test $i = 10 || sleep 0.2; done; exit 1",
        psql.display()
    );
    reaches(&world, port, &script, "from psql 42")
}

/// The data of a server that does not want to be root.
struct Base(PathBuf);

impl Base {
    fn new() -> Result<Base, String> {
        let folder = PathBuf::from(format!("/var/tmp/belljar-base-{}", std::process::id()));
        told(fs::create_dir_all(&folder))?;
        if rustix::process::geteuid().is_root() {
            let user = Who::Ordinary.user_id();
            told(std::os::unix::fs::chown(&folder, Some(user), Some(user)))?;
        }
        Ok(Base(folder))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if rustix::process::geteuid().is_root() {
            command.uid(Who::Ordinary.user_id()).gid(Who::Ordinary.user_id());
        }
        command.current_dir(&self.0).env("LC_ALL", "C");
        command
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("left behind: {}: {error}", self.0.display());
        }
    }
}
