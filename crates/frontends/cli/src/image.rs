//! `belljar image`: what sandboxes of an engine stand on.

use std::path::PathBuf;

use clap::ArgMatches;
use model::{ImageShown, Images, Trouble};
use serde::Serialize;

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept};

pub fn image(matches: &ArgMatches, images: Option<&dyn Images>) -> u8 {
    let Some(images) = images else {
        return kept::complain(&Trouble {
            message: "no backend of this belljar runs images".to_owned(),
            fix: "use one that was built with the container backend".to_owned(),
        });
    };
    let text = |matches: &ArgMatches, name: &str| matches.get_one::<String>(name).cloned();
    let done = match matches.subcommand() {
        Some(("ls", matches)) => images.list().map(|list| tell(matches, &list, || table(&list))),
        Some(("import", matches)) => {
            let from = matches.get_one::<PathBuf>("from").cloned().unwrap_or_default();
            images.import(&from, text(matches, "name").as_deref()).map(|image| told(matches, &image))
        }
        Some(("from-host", matches)) => {
            let name = text(matches, "name");
            let made = match text(matches, "debootstrap") {
                Some(suite) => {
                    let include: Vec<String> =
                        matches.get_many::<String>("include").into_iter().flatten().cloned().collect();
                    images.make_from_debootstrap(&suite, &include, name.as_deref())
                }
                None => images.make_from_busybox(name.as_deref()),
            };
            made.map(|image| told(matches, &image))
        }
        Some(("rm", matches)) => {
            let which = text(matches, "which").unwrap_or_default();
            images
                .remove(&which)
                .map(|()| tell(matches, &Gone { removed: &which }, || vec![format!("{which} removed")]))
        }
        _ => return NOT_SET_UP,
    };
    done.unwrap_or_else(|trouble| kept::complain(&trouble))
}

#[derive(Serialize)]
struct Gone<'a> {
    removed: &'a str,
}

fn told(matches: &ArgMatches, image: &ImageShown) -> u8 {
    tell(matches, image, || vec![format!("{} {}", image.names.join(", "), image.id)])
}

fn tell(matches: &ArgMatches, value: &impl Serialize, lines: impl FnOnce() -> Vec<String>) -> u8 {
    let text = match matches.get_flag("json") {
        true => words::json(value, Layout::Page),
        false => Ok(words::page(lines())),
    };
    if words::print(text) { 0 } else { NOT_SET_UP }
}

fn table(list: &[ImageShown]) -> Vec<String> {
    if list.is_empty() {
        return vec!["the engine has no images; `belljar image from-host` makes one".to_owned()];
    }
    let mut rows = vec![["NAME", "ID", "SIZE", "MADE"].map(str::to_owned)];
    for image in list {
        let id = image.id.strip_prefix("sha256:").unwrap_or(&image.id);
        let made = if image.made_by_belljar { "by belljar" } else { "" };
        let short: String = id.chars().take(12).collect();
        let name = if image.names.is_empty() { "–".to_owned() } else { image.names.join(", ") };
        rows.push([name, short, words::size(image.bytes), made.to_owned()]);
    }
    words::columns(&rows)
}
