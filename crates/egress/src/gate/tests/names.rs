//! Names: granted ones stand for themselves, the others are nobody's, and a flood of questions is no flood of entries.

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;
use model::NetworkDeed;

use super::stage::{CALM, Rules, Setup, denied, only};
use crate::gate::question::tests::asked;

fn knowing(knows: &[&'static str]) -> Setup {
    Setup { rules: Rules { knows: knows.to_vec(), ..Rules::default() }, ..Setup::default() }
}

#[test]
fn a_granted_name_gets_an_address_that_it_keeps() {
    let _calm = CALM.read();
    let stage = knowing(&["a.example", ".wild.example"]).opened();
    let address = |name: &str, kind| {
        let (code, addresses) = stage.asks(name, kind);
        assert_eq!(code, ResponseCode::NoError, "{name}");
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(address("a.example.", RecordType::A), ["198.18.1.1"]);
    assert_eq!(address("x.wild.example.", RecordType::AAAA), ["fd62:656c:6c6a::1:0:1"]);
    assert_eq!(address("A.EXAMPLE.", RecordType::AAAA), ["fd62:656c:6c6a::1:0:0"]);
    assert_eq!(address("x.y.wild.example.", RecordType::A), ["198.18.1.3"]);
    assert_eq!(address("a.example.", RecordType::A), ["198.18.1.1"]);
    for other in [RecordType::TXT, RecordType::MX, RecordType::HTTPS, RecordType::SRV, RecordType::ANY] {
        assert_eq!(address("a.example.", other), [] as [&str; 0]);
    }
    assert_eq!(address("localhost.", RecordType::A), ["127.0.0.1"]);
    assert_eq!(address("app.localhost.", RecordType::AAAA), ["::1"]);
    let (events, traffic) = stage.ends();
    assert_eq!(
        events.iter().map(|event| event.host.as_str()).collect::<Vec<_>>(),
        ["a.example", "x.wild.example", "x.y.wild.example"]
    );
    assert!(events.iter().all(|event| event.what == NetworkDeed::Name && !event.denied && event.caller.is_some()));
    assert_eq!(traffic.refused, 0);
}

#[test]
fn other_names_are_nobodys_and_that_is_written_down() {
    let _calm = CALM.read();
    let stage = knowing(&["a.example"]).opened();
    for name in ["evil.example.", "b.a.example.", "xn--a.example.", "1.1.1.1.", "example."] {
        for kind in [RecordType::A, RecordType::AAAA, RecordType::TXT] {
            assert_eq!(stage.asks(name, kind), (ResponseCode::NXDomain, vec![]), "{name}");
        }
    }
    let (events, traffic) = stage.ends();
    assert_eq!(denied(&events).len(), 5, "{events:#?}");
    let evil = &events[0];
    assert_eq!((evil.host.as_str(), evil.rule.as_str()), ("evil.example", "test.rule (policy.toml:7)"));
    assert_eq!(evil.grant, "--allow-net evil.example");
    assert!(evil.caller.is_some());
    assert_eq!(traffic.denied.len(), 5);
}

#[test]
fn a_flood_of_questions_is_no_flood_of_entries() {
    let stage = knowing(&[".wild.example"]).opened();
    for _ in 0..1234 {
        stage.asks("secret.evil.example.", RecordType::A);
    }
    let (events, traffic) = stage.ends();
    let times: Vec<Option<u64>> = denied(&events).iter().map(|event| event.times).collect();
    assert_eq!(times, [None, Some(10), Some(100), Some(1000), Some(1234)]);
    assert_eq!(traffic.refused, 1234);
}

#[test]
fn there_is_an_end_to_granted_names_as_well() {
    let mut setup = knowing(&[".wild.example"]);
    setup.limits.names = 3;
    let stage = setup.opened();
    let codes: Vec<ResponseCode> =
        (0..5).map(|number| stage.asks(&format!("n{number}.wild.example."), RecordType::A).0).collect();
    use ResponseCode::{NoError, ServFail};
    assert_eq!(codes, [NoError, NoError, NoError, ServFail, ServFail]);
    assert_eq!(stage.asks("n1.wild.example.", RecordType::A).0, NoError);
    let (events, _) = stage.ends();
    assert_eq!(denied(&events).len(), 2);
}

#[test]
fn garbage_is_told_so_or_met_with_silence() {
    let stage = knowing(&["a.example"]).opened();
    assert_eq!(stage.says(b"x"), None);
    assert_eq!(stage.says(&[0xff; 600]), None);
    let answer = Message::from_vec(&stage.says(&[0; 40]).expect("an answer")).expect("a message");
    assert_eq!(answer.metadata.response_code, ResponseCode::FormErr);
    assert_eq!(stage.asks("a.example.", RecordType::A).0, ResponseCode::NoError);
}

#[test]
fn long_questions_come_over_streams() {
    let stage = knowing(&["a.example"]).opened();
    let answer = stage.says_long(&asked("a.example.", RecordType::A));
    assert_eq!(Message::from_vec(&answer).expect("a message").answers.len(), 1);
    let answer = stage.says_long(&asked("b.example.", RecordType::A));
    assert_eq!(Message::from_vec(&answer).expect("a message").metadata.response_code, ResponseCode::NXDomain);
    let (events, _) = stage.ends();
    assert_eq!(only(&events, NetworkDeed::Name).len(), 2);
}

#[test]
fn without_a_record_no_name_is_known() {
    let mut setup = knowing(&["a.example", "b.example"]);
    setup.rules.room = Some(1);
    let stage = setup.opened();
    assert_eq!(stage.asks("a.example.", RecordType::A).0, ResponseCode::NoError);
    assert_eq!(stage.asks("b.example.", RecordType::A).0, ResponseCode::ServFail);
    assert_eq!(stage.asks("a.example.", RecordType::A).0, ResponseCode::ServFail);
    let (_, traffic) = stage.ends();
    assert!(traffic.lost);
}

/// The seeds of the fuzz targets, made anew: `BELLJAR_SEEDS=fuzz/corpus cargo test -p belljar-egress seeds -- --ignored`.
#[test]
#[ignore = "writes files"]
fn seeds() {
    use crate::gate::hello::tests::{HIDING, said_to, with_extensions};
    let folder = std::path::PathBuf::from(std::env::var_os("BELLJAR_SEEDS").expect("a folder"));
    let hello = said_to("example.org", &[b"h2", b"http/1.1"]);
    let mut split = hello[..5].to_vec();
    split[3..5].copy_from_slice(&100u16.to_be_bytes());
    split.extend(&hello[5..105]);
    split.extend([22, 3, 1]);
    split.extend(((hello.len() - 105) as u16).to_be_bytes());
    split.extend(&hello[105..]);
    let mut extended = Message::from_vec(&asked("a.example.", RecordType::HTTPS)).expect("a message");
    extended.set_edns(hickory_proto::op::Edns::new());
    let seeds = [
        ("hello/name", hello.clone()),
        ("hello/address", said_to("192.0.2.1", &[])),
        ("hello/split", split),
        ("hello/hidden", with_extensions(&hello, &[(0xfe0d, HIDING.to_vec())])),
        ("hello/twice", with_extensions(&hello, &[(0, vec![0, 4, 0, 0, 1, b'x'])])),
        ("hello/request", b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n".to_vec()),
        ("hello/ssh", b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
        ("names/a", asked("a.example.", RecordType::A)),
        ("names/aaaa", asked("Some.Long-er.name.example.", RecordType::AAAA)),
        ("names/root", asked(".", RecordType::NS)),
        ("names/extended", extended.to_vec().expect("bytes")),
        ("names/empty", vec![0; 12]),
    ];
    for (name, bytes) in seeds {
        std::fs::write(folder.join(name), bytes).expect("written");
    }
}
