//! The table of the README.

use testkit::Who;

use super::super::samples::Table;
use super::contest::{Contest, Contestant, Lane};
use super::figures::{Figures, What};
use super::{bulk, idle, latency, start};

type Cell<'a> = Box<dyn Fn(Who, Lane) -> Option<(String, bool)> + 'a>;

pub fn table(figures: &Figures, contest: &Contest) -> Table {
    let mut table = Table::new("The way out", &["", "as a user", "as root", "goal", ""]);
    let lanes = "TCP, TLS, TLS that is read";
    let of_all =
        |cell: &dyn Fn(Who, Lane) -> Option<(String, bool)>, who| joined(Lane::ALL.map(|lane| cell(who, lane)));
    let rows: [(String, Cell<'_>, String); 5] = [
        (
            format!("a new connection, added at p50: {lanes}"),
            added(figures, What::New, latency::NEW),
            format!("< {} ms", latency::NEW),
        ),
        (
            "a request over one that stays, added at p50".to_owned(),
            added(figures, What::Kept, latency::KEPT),
            format!("< {} ms", latency::KEPT),
        ),
        (
            "a download, of that with nothing between".to_owned(),
            Box::new(|who, lane| {
                let share = figures.share(What::Bulk, lane, Contestant::Belljar, who)?;
                let rate = figures.middle(What::Bulk, lane, Contestant::Belljar, who)?;
                let enough = share >= bulk::wanted(lane) || rate >= bulk::ENOUGH;
                Some((format!("{:.0} %", share * 100.0), enough))
            }),
            format!(
                "≥ {:.0} %, read ≥ {:.0} %, or 1 GB/s",
                bulk::wanted(Lane::Tls) * 100.0,
                bulk::wanted(Lane::ReadTls) * 100.0
            ),
        ),
        (
            "many connections at once: until all have theirs, memory of the gate".to_owned(),
            Box::new(|who, lane| {
                let of = |what| figures.middle(what, lane, Contestant::Belljar, who);
                let failed = figures.at(1.0, What::Failed, lane, Contestant::Belljar, who)?;
                let words = format!("{:.1} s {:.0} MiB", of(What::Crowd)? / 1e3, of(What::Peak)?);
                Some((words, failed == 0.0))
            }),
            "none fails".to_owned(),
        ),
        (
            "memory of a connection that is idle".to_owned(),
            Box::new(|who, lane| {
                let each = figures.middle(What::Idle, lane, Contestant::Belljar, who)?;
                Some((format!("{each:.0} KiB"), each < idle::MOST))
            }),
            format!("< {:.0} KiB", idle::MOST),
        ),
    ];
    for (name, cell, goal) in rows {
        let (user, fine_for_user) = of_all(&cell, Who::Ordinary);
        let (root, fine_for_root) = of_all(&cell, Who::Root);
        table.rows.push(vec![name, user, root, goal, verdict(fine_for_user && fine_for_root)]);
    }
    let starts = |who| {
        joined([start::PLAIN, start::READS].map(|name| {
            let ratio = start::ratio(figures, name, who)?;
            Some((format!("{ratio:.2} ×"), ratio <= start::MOST))
        }))
    };
    let (user, root) = (starts(Who::Ordinary), starts(Who::Root));
    table.rows.push(vec![
        "a start with a network granted and not used: plain, read".to_owned(),
        user.0,
        root.0,
        format!("≤ {} ×", start::MOST),
        verdict(user.1 && root.1),
    ]);
    for peer in Contestant::PEERS {
        let Some(title) = contest.title(peer) else { continue };
        for (what, words) in [
            (What::New, "adds to a new connection"),
            (What::Kept, "adds to a request over one that stays"),
            (What::Bulk, "lets through"),
            (What::Idle, "keeps for an idle connection"),
        ] {
            let cell = |who: Who, lane: Lane| {
                let of = |contestant| match what {
                    What::New | What::Kept => figures.added(what, lane, contestant, who),
                    _ => figures.middle(what, lane, contestant, who),
                };
                let ratio = of(peer)? / of(Contestant::Belljar)?;
                let digits = if ratio < 10.0 { 1 } else { 0 };
                Some((format!("{ratio:.digits$} ×"), true))
            };
            let ((user, _), (root, _)) = (of_all(&cell, Who::Ordinary), of_all(&cell, Who::Root));
            table.rows.push(vec![format!("{title} {words}, of ours"), user, root, String::new(), String::new()]);
        }
    }
    table
}

fn added(figures: &Figures, what: What, most: f64) -> Cell<'_> {
    Box::new(move |who, lane| {
        let added = figures.added(what, lane, Contestant::Belljar, who)?;
        Some((format!("{added:.2} ms"), added < most))
    })
}

/// All of them, and whether each is as wanted. What was not measured is not shown, and is not as wanted.
fn joined<const N: usize>(cells: [Option<(String, bool)>; N]) -> (String, bool) {
    let fine = cells.iter().all(|cell| cell.as_ref().is_some_and(|(_, fine)| *fine));
    let words = cells.map(|cell| cell.map_or_else(|| "–".to_owned(), |(words, _)| words));
    (words.join(", "), fine)
}

fn verdict(fine: bool) -> String {
    if fine { "met" } else { "not met" }.to_owned()
}
