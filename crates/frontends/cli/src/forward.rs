//! `belljar forward`: says where visitors can come, and what became of them.

use clap::ArgMatches;
use model::{Led, Visits};

use crate::words::{self, Layout};
use crate::{arguments, kept};

pub fn forward(matches: &ArgMatches, visits: &dyn Visits) -> u8 {
    let which = matches.get_one::<String>("which").map_or("last", String::as_str);
    let json = matches.get_flag("json");
    let hears = Box::new(move |led: &Led| {
        if json {
            words::print(words::json(led, Layout::Line).map(|line| line + "\n"));
        } else if let Some(line) = line(led) {
            words::say(&line);
        }
    });
    match visits.lead(which, &arguments::forwarded(matches), hears) {
        Ok(()) => 0,
        Err(trouble) => kept::complain(&trouble),
    }
}

/// Nothing for what is as it should be.
fn line(led: &Led) -> Option<String> {
    let short = |run: &str| run.chars().take(8).collect::<String>();
    Some(match led {
        Led::Open { run, ports, listens } => {
            let later = match listens {
                true => "",
                false => "; nobody listens there yet, and visitors are refused until somebody does",
            };
            let (host, guest, run) = (ports.host, ports.guest, short(run));
            format!("belljar: 127.0.0.1:{host} leads to port {guest} of run {run}, until it ends or Ctrl-C{later}")
        }
        Led::Left { guest, why, .. } if !why.is_empty() => format!("belljar: a visit to port {guest}: {why}"),
        Led::Visit { .. } | Led::Left { .. } => return None,
        Led::Refused { guest, why } => format!("belljar: a visit to port {guest} was refused: {why}"),
        Led::Ended { run, with_the_run: true } => format!("belljar: run {} has ended", short(run)),
        Led::Ended { with_the_run: false, .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use model::Published;

    use super::*;

    #[test]
    fn only_what_somebody_needs_to_know_is_said() {
        let ports = Published { host: 8080, guest: 3000 };
        let open = |listens| line(&Led::Open { run: "0123456789abcdef".to_owned(), ports, listens });
        assert_eq!(
            open(true).as_deref(),
            Some("belljar: 127.0.0.1:8080 leads to port 3000 of run 01234567, until it ends or Ctrl-C")
        );
        assert!(open(false).is_some_and(|line| line.contains("nobody listens there yet")));
        assert_eq!(line(&Led::Visit { connection: 1, guest: 3000 }), None);
        let left =
            |why: &str| line(&Led::Left { connection: 1, guest: 3000, sent: 1, received: 2, why: why.to_owned() });
        assert_eq!(left(""), None);
        assert_eq!(left("cannot connect").as_deref(), Some("belljar: a visit to port 3000: cannot connect"));
    }
}
