//! What a policy says to what is handed over.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::bench::Bench;

pub const ALL: &[(&str, Check)] = &[
    ("a_rule_on_release_withholds_and_what_is_withheld_is_not_kept", rules),
    ("where_release_is_denied_nothing_leaves", denied),
    ("what_a_person_would_be_asked_about_is_withheld", asked),
];

const RULE: &str =
    "[[rule]]\nwhen = { action = \"release\", name = \"*.pem\" }\nthen = \"deny\"\nwhy = \"keys stay\"\n";

fn rules(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let script = "mkdir out && echo secret > out/a.pem && echo secret > out/B.PEM && echo fine > out/fine && \
                  head -c 2000 /dev/zero > out/long";
    let control = bench.run(&["--artifact", "out"], script)?;
    control.released("out/a.pem").map_err(|why| format!("the control failed: {why}"))?;
    let bench = Bench::of(who)?;
    bench.policy(&format!("[release]\nlargest = \"1K\"\n{RULE}"))?;
    let handed = bench.run(&["--artifact", "out"], script)?;
    handed.released("out/fine")?;
    handed.withheld("out/a.pem", "rule.1")?;
    handed.withheld("out/B.PEM", "rule.1")?;
    handed.withheld("out/long", "release.largest")?;
    bench.never_kept(b"secret")?;
    let id = handed.one("out/a.pem")?["id"].as_str().ok_or("an id")?.to_owned();
    let said = bench.say(&["artifacts", "get", &id])?;
    match said.code == Some(123) && said.error.contains("keys stay") && said.out.is_empty() {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn denied(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    bench.policy("[defaults]\nrelease = \"deny\"\n")?;
    let handed = bench.run(&["--artifact", "out"], "mkdir out && echo fine > out/fine")?;
    handed.withheld("out/fine", "defaults.release")?;
    bench.never_kept(b"fine")
}

fn asked(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    bench.policy(&RULE.replace("deny", "ask"))?;
    let handed = bench.run(&["--artifact", "out"], "mkdir out && echo secret > out/a.pem && echo fine > out/fine")?;
    handed.withheld("out/a.pem", "rule.1")?;
    handed.released("out/fine")?;
    bench.never_kept(b"secret")
}
