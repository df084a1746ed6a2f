//! The words of `image`.

use clap::{Arg, ArgAction, Command, value_parser};
use std::path::PathBuf;

use super::json;

const HELP: &str = "\
What sandboxes of a container engine stand on. No registry is needed:

  belljar image from-host                                belljar's own small one, from this host's static busybox
  belljar image from-host --debootstrap bookworm --include python3
  belljar image import rootfs.tar --name mine            a root as an archive; also a folder, an OCI layout, `docker save`
  belljar run --image mine -- python3 -V
  belljar image ls
  belljar image rm mine

What is imported is handed to the engine as it is, and never unpacked by belljar. An image that the engine does not have is
pulled only where the policy says so: `[isolation] pull = \"allow\"`.";

pub fn command() -> Command {
    Command::new("image").about("List, import, make and remove images for containers").defer(|image| {
        image
            .after_help(HELP)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(Command::new("ls").about("List the engine's images").arg(json("As JSON")))
            .subcommand(
                Command::new("import")
                    .about("Make an image from a folder or an archive")
                    .arg(
                        Arg::new("from")
                            .value_name("DIR|TAR|OCI-LAYOUT")
                            .required(true)
                            .value_parser(value_parser!(PathBuf))
                            .help("A root, an OCI layout, or what `docker save` wrote"),
                    )
                    .arg(name())
                    .arg(json("Print the image as one JSON object")),
            )
            .subcommand(
                Command::new("from-host")
                    .about("Make an image from what is on this host")
                    .arg(
                        Arg::new("busybox")
                            .long("busybox")
                            .action(ArgAction::SetTrue)
                            .conflicts_with("debootstrap")
                            .help("From the static busybox [default]"),
                    )
                    .arg(
                        Arg::new("debootstrap")
                            .long("debootstrap")
                            .value_name("SUITE")
                            .help("A small Debian of this suite, fetched by `debootstrap`; as root"),
                    )
                    .arg(
                        Arg::new("include")
                            .long("include")
                            .value_name("PACKAGE")
                            .action(ArgAction::Append)
                            .requires("debootstrap")
                            .help("With this package; may be repeated"),
                    )
                    .arg(name())
                    .arg(json("Print the image as one JSON object")),
            )
            .subcommand(
                Command::new("rm")
                    .about("Remove an image, if nothing uses it")
                    .arg(Arg::new("which").value_name("IMAGE").required(true).help("Its name or digest"))
                    .arg(json("Print what was removed as one JSON object")),
            )
    })
}

fn name() -> Arg {
    Arg::new("name").long("name").value_name("NAME").help("What to call it")
}
