//! Nothing of a repository's settings runs on the host, whatever command of belljar looks at the tree.

use belljar_testkit::Who;

use crate::Attack;
use crate::bench::Bench;

pub const ATTACKS: &[Attack] = &[("canary/no_setting_of_a_repository_runs", settings)];

fn settings(who: Who) {
    let bench = Bench::new(who);
    let canary = bench.outside("ran");
    let touch = format!("touch {}", canary.display());
    let plant = format!(
        "git config core.fsmonitor '{touch}; false'; git config diff.external '{touch}; false'; git config core.pager '{touch}'
         git config core.hooksPath hooks; mkdir -p hooks; printf '#!/bin/sh\\n{touch}\\n' > hooks/post-index-change
         chmod +x hooks/*; git config filter.x.clean '{touch}; cat'; git config filter.x.smudge '{touch}; cat'
         git config alias.status '!{touch}'; git config core.sshCommand '{touch}'; git config core.editor '{touch}'
         echo '* filter=x diff=x' > .gitattributes; git config diff.x.textconv '{touch}; cat'; echo b > a"
    );
    // In the real repository, and once more in the layer: whoever runs git here is had.
    bench.host(&format!("git init -q .; echo a > a; git add a; {plant}"));
    let id = bench.create();
    bench.exec(&id, &format!("{plant}; echo more >> a; echo new > new"));
    bench.exec(&id, "echo again >> a");
    assert!(!canary.exists(), "it ran inside, and wrote outside");
    let commands: &[&[&str]] = &[
        &["diff", &id],
        &["diff", &id, "--patch"],
        &["diff", &id, "--json"],
        &["ps"],
        &["show", &id],
        &["apply", &id, "--check"],
        &["snapshot", &id],
        &["fork", &id],
        &["diff", &id, "last"],
        &["apply", &id],
        &["apply", &id, ".git", ".git/config"],
        &["rollback", &id],
        &["discard", &id],
        &["gc"],
        &["doctor"],
        &["run", "--", "/bin/true"],
        &["explain", "--", "/bin/true"],
        &["rm", &id],
    ];
    for words in commands {
        bench.belljar(words);
        assert!(!canary.exists(), "{words:?} ran a setting of the repository");
    }
    // The control: git runs it.
    let mut git = bench.command("git");
    git.args(["status"]);
    bench.run(git);
    assert!(canary.exists(), "the control proves nothing");
}
