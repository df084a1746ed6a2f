//! How programs that mine are known by what they are called and told. Names are easily changed, so this finds the careless
//! at once; for others there is the load that they can't hide.

use std::net::IpAddr;

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing else is called or told that.
    Clear(String),
    /// Others are told that, too: full load is believed sooner, and it is no alert by itself.
    Hint(String),
}

/// Programs that do nothing else.
const NAMES: &[&str] = &[
    "xmrig", "xmrig-notls", "xmrig-proxy", "xmr-stak", "xmr-stak-rx", "xmr-stak-cpu", "minerd", "cpuminer",
    "cpuminer-multi", "cpuminer-opt", "cpuminer-avx2", "cpuminer-sse2", "ccminer", "ethminer", "nbminer", "lolminer",
    "phoenixminer", "teamredminer", "trex-miner", "gminer", "bfgminer", "cgminer", "sgminer", "nanominer", "rigel",
    "srbminer", "srbminer-multi", "nheqminer", "wildrig-multi", "bzminer", "xmrigcc", "kdevtmpfsi", "kinsing",
];
/// How pools are spoken to.
const PROTOCOLS: &[&str] = &[
    "stratum+tcp://", "stratum+ssl://", "stratum+tls://", "stratum+udp://", "stratum1+tcp://", "stratum1+ssl://",
    "stratum2+tcp://", "stratum2+ssl://", "stratum+http://", "stratums://", "ethproxy+tcp://", "ethstratum+tcp://",
    "zilliqa+tcp://", "daemon+http://",
];
/// Flags that only miners have, as words of their own or before `=`.
const FLAGS: &[&str] = &["--donate-level", "--donate-over-proxy", "--randomx-mode", "--randomx-1gb-pages", "--rig-id"];
/// Parts of names of hosts that are pools.
const POOLS: &[&str] = &[
    "minexmr.", "supportxmr.", "nanopool.", "moneroocean.", "hashvault.", "2miners.", "ethermine.", "f2pool.",
    "nicehash.", "unmineable.", "herominers.", "c3pool.", "poolin.", "miningpoolhub.", "xmrpool.", "monerohash.",
];
/// Ports that pools like, and that others have too.
const PORTS: &[u16] = &[3333, 3334, 4444, 5555, 6666, 7777, 8888, 9999, 14433, 14444, 45560, 45700];
/// What looks for texts, or passes them on, names them without meaning them.
const READERS: &[&str] = &[
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "git", "echo", "printf", "cat", "sed", "awk", "gawk", "mawk",
    "find", "fd", "test", "[", "expr", "jq", "diff", "less", "head", "tail", "tee", "wc", "sort", "cut", "tr", "env",
    "sh", "bash", "dash", "zsh", "fish", "busybox", "python", "python3", "perl", "ruby", "node", "cargo", "rustc",
];
/// Nobody's words are longer where it matters.
const LONGEST: usize = 4096;

/// What a program's name and words tell. The first word is what it calls itself.
pub fn sign(program: &str, arguments: &[String]) -> Option<Sign> {
    let names = [Some(program), arguments.first().map(String::as_str)];
    let names: Vec<String> = names.into_iter().flatten().map(base).collect();
    if let Some(name) = names.iter().find(|name| NAMES.contains(&name.as_str())) {
        return Some(Sign::Clear(format!("a program called `{name}` was started, which is a known miner")));
    }
    let reads = names.iter().any(|name| READERS.contains(&name.as_str()));
    let words = || arguments.iter().skip(1).map(|word| told(word).to_ascii_lowercase());
    if !reads {
        for word in words() {
            if let Some(protocol) = PROTOCOLS.iter().find(|protocol| word.starts_with(*protocol)) {
                return Some(Sign::Clear(format!("a program was told to speak `{protocol}…`, as miners do to pools")));
            }
        }
        let is_flag = |word: &&String| {
            let flag = short(word).split('=').next().unwrap_or_default();
            FLAGS.contains(&flag)
        };
        if let Some(word) = arguments.iter().skip(1).find(is_flag) {
            let flag = short(word).split('=').next().unwrap_or_default();
            return Some(Sign::Clear(format!("a program was told `{flag}`, which only miners know")));
        }
    }
    words().find_map(|word| {
        let (host, port) = word.rsplit_once(':')?;
        pool(host, port.parse().ok()?)
    })
}

/// What a host and a port tell.
pub fn pool(host: &str, port: u16) -> Option<Sign> {
    let host = short(host).to_ascii_lowercase();
    if let Some(name) = POOLS.iter().find(|name| host.contains(*name)) {
        return Some(Sign::Hint(format!("`{}` is a mining pool", name.trim_end_matches('.'))));
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
    let is_far = match bare.parse() {
        Ok(address) => !is_near(address),
        Err(_) => {
            host.contains('.')
                && host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter))
                && !host.ends_with(".localhost")
        }
    };
    (PORTS.contains(&port) && is_far).then(|| Sign::Hint(format!("port {port} is one that mining pools use")))
}

/// Of this machine, or of the network around it: no pool is there.
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_unspecified() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
        }
    }
}

fn base(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    short(name).trim_end_matches(".exe").to_ascii_lowercase()
}

/// Behind `--url=`.
fn told(word: &str) -> &str {
    let word = short(word);
    match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => value,
        _ => word.strip_prefix("-o").unwrap_or(word),
    }
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Sign> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        sign(&words[0], &words)
    }

    #[test]
    fn miners_are_known_by_name_protocol_and_flags() {
        for line in [
            "./worker -o stratum+tcp://pool.example:443 -u x", "./a --url=stratum+ssl://1.2.3.4:14433",
            "./a -ostratum+tcp://x:1", "./kworker --donate-level=1", "./xmrig", "/tmp/.x/XMRig --help",
        ] {
            assert!(matches!(of(line), Some(Sign::Clear(_))), "{line}");
        }
        assert!(matches!(sign("/usr/bin/kworker", &["xmrig".to_owned()]), Some(Sign::Clear(_))));
    }

    #[test]
    fn who_reads_about_miners_is_none() {
        for line in [
            "grep -rn stratum+tcp:// src", "rg --donate-level", "git log --grep=stratum+tcp://", "which xmrig",
            "cat xmrig.c", "cargo test --test stratum", "sh -c ./worker -o stratum+tcp://x",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn a_port_is_a_hint_and_no_more() {
        assert!(matches!(of("./a pool.example.org:3333"), Some(Sign::Hint(_))));
        assert!(matches!(pool("xmr.nanopool.org", 443), Some(Sign::Hint(_))));
        assert!(matches!(pool("2606:4700::1111", 3333), Some(Sign::Hint(_))));
        assert!(matches!(pool("203.0.113.9", 14444), Some(Sign::Hint(_))));
        for near in ["127.0.0.1", "::1", "[::1]", "::ffff:10.1.2.3", "172.16.0.9", "fd00::1", "fe80::1", "a.localhost"]
        {
            assert_eq!(pool(near, 3333), None, "{near}");
        }
        for line in ["npm run dev localhost:3333", "psql 10.0.0.1:4444", "./a example.org:443", "node inspect:9999"] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
