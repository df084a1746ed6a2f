//! Questions about names, as bytes, and answers to them. Pure: nobody else is asked.

use std::net::IpAddr;

use hickory_proto::op::{Edns, Message, MessageType, Metadata, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use model::HostName;

/// Names are told what they stand for anew after this, in seconds.
const LIFE: u32 = 60;
const HEADER: usize = 12;
/// As answers to those who can take more than 512 bytes say.
const PAYLOAD: u16 = 1232;
const LONGEST_SHOWN: usize = 256;

pub enum Heard {
    /// Not worth an answer, or answering it would be a loop.
    Noise,
    /// Answered without knowing any name.
    Answer(Vec<u8>),
    Question(Box<Question>),
}

pub struct Question {
    metadata: Metadata,
    query: Query,
    extended: bool,
    /// `Err`: no name that anybody could be granted, made safe to look at.
    pub name: Result<HostName, String>,
    pub wants: Wants,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    Version4,
    Version6,
    Other,
}

pub enum Reply {
    Address(IpAddr),
    /// The name is there, but there is nothing of this type.
    Nothing,
    NoSuchName,
    Fails,
}

pub fn read(bytes: &[u8]) -> Heard {
    if bytes.len() < HEADER {
        return Heard::Noise;
    }
    // The first bit of the third byte says that it is an answer itself.
    if bytes.get(2).is_some_and(|byte| byte & 0x80 != 0) {
        return Heard::Noise;
    }
    let bare = |id: u16, code: OpCode, response: ResponseCode| {
        Message::error_msg(id, code, response).to_vec().map_or(Heard::Noise, Heard::Answer)
    };
    let id = u16::from_be_bytes([bytes[0], bytes[1]]);
    let Ok(message) = Message::from_vec(bytes) else {
        return bare(id, OpCode::Query, ResponseCode::FormErr);
    };
    if message.metadata.message_type != MessageType::Query {
        return Heard::Noise;
    }
    if message.metadata.op_code != OpCode::Query {
        return bare(id, message.metadata.op_code, ResponseCode::NotImp);
    }
    let [query] = message.queries.as_slice() else {
        return bare(id, OpCode::Query, ResponseCode::FormErr);
    };
    let wants = match query.query_type() {
        RecordType::A => Wants::Version4,
        RecordType::AAAA => Wants::Version6,
        _ => Wants::Other,
    };
    let name = match query.query_class() {
        DNSClass::IN => host_name(query.name()),
        _ => None,
    };
    Heard::Question(Box::new(Question {
        metadata: message.metadata,
        query: query.clone(),
        extended: message.edns.is_some(),
        name: name.ok_or_else(|| shown(query.name())),
        wants,
    }))
}

impl Question {
    /// Nothing if it can't be written, which is no answer.
    pub fn answer(&self, reply: &Reply) -> Option<Vec<u8>> {
        let mut message = Message::response(self.metadata.id, OpCode::Query);
        message.metadata.recursion_desired = self.metadata.recursion_desired;
        message.metadata.recursion_available = true;
        message.metadata.response_code = match reply {
            Reply::Address(_) | Reply::Nothing => ResponseCode::NoError,
            Reply::NoSuchName => ResponseCode::NXDomain,
            Reply::Fails => ResponseCode::ServFail,
        };
        message.add_query(self.query.clone());
        if let Reply::Address(address) = reply {
            let data = match *address {
                IpAddr::V4(address) => RData::A(address.into()),
                IpAddr::V6(address) => RData::AAAA(address.into()),
            };
            message.add_answer(Record::from_rdata(self.query.name().clone(), LIFE, data));
        }
        if self.extended {
            let mut extension = Edns::new();
            extension.set_max_payload(PAYLOAD).set_version(0);
            message.set_edns(extension);
        }
        message.to_vec().ok()
    }
}

fn host_name(name: &Name) -> Option<HostName> {
    let mut text = String::new();
    for label in name.iter() {
        // A dot within a label would look like one between two: `evil\.good.example` is not below `good.example`.
        if label.contains(&b'.') || !label.is_ascii() {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(std::str::from_utf8(label).ok()?);
    }
    HostName::read(&text)
}

fn shown(name: &Name) -> String {
    let safe = |letter: char| if letter.is_ascii_graphic() { letter } else { '?' };
    name.to_ascii().chars().take(LONGEST_SHOWN).map(safe).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn asked(name: &str, kind: RecordType) -> Vec<u8> {
        let mut message = Message::new(77, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_ascii(name).expect("a name"), kind));
        message.to_vec().expect("bytes")
    }

    fn question(bytes: &[u8]) -> Box<Question> {
        let Heard::Question(question) = read(bytes) else { unreachable!("no question") };
        question
    }

    #[test]
    fn a_question_is_read_and_answered_in_its_own_letters() {
        let mut bytes = asked("ExAmple.org.", RecordType::AAAA);
        let question = question(&bytes);
        assert_eq!(question.name, Ok(HostName::read("example.org").expect("a name")));
        assert_eq!(question.wants, Wants::Version6);
        let answer = question.answer(&Reply::Address("::1".parse().expect("an address"))).expect("an answer");
        let answer = Message::from_vec(&answer).expect("a message");
        assert_eq!((answer.metadata.id, answer.metadata.recursion_desired), (77, true));
        assert_eq!(answer.queries[0].name().to_ascii(), "ExAmple.org.");
        assert_eq!((answer.answers.len(), answer.answers[0].ttl), (1, LIFE));
        // Our own answer, sent back to us, is no question.
        bytes[2] |= 0x80;
        assert!(matches!(read(&bytes), Heard::Noise));
    }

    #[test]
    fn a_dot_within_a_label_is_no_dot() {
        let mut bytes = asked("evil-good.example.", RecordType::A);
        let at = bytes.iter().position(|byte| *byte == b'-').expect("a dash");
        bytes[at] = b'.';
        assert!(question(&bytes).name.is_err());
        bytes[at] = 0;
        assert!(question(&bytes).name.is_err());
        bytes[at] = 0xc3;
        let shown = question(&bytes).name.expect_err("no name");
        assert!(shown.bytes().all(|byte| byte.is_ascii_graphic()), "{shown}");
        assert!(question(&asked(".", RecordType::A)).name.is_err());
        assert!(question(&asked("127.0.0.1.", RecordType::A)).name.is_err());
    }

    #[test]
    fn garbage_is_told_so_or_nothing() {
        let code = |bytes: &[u8]| match read(bytes) {
            Heard::Answer(answer) => Some(Message::from_vec(&answer).expect("a message").metadata.response_code),
            _ => None,
        };
        assert_eq!(code(b""), None);
        assert_eq!(code(&[0; 11]), None);
        assert_eq!(code(&[0; 12]), Some(ResponseCode::FormErr));
        let sound = asked("a.example.", RecordType::A);
        assert_eq!(code(&sound[..sound.len() - 3]), Some(ResponseCode::FormErr));
        let mut two = sound.clone();
        two[5] = 2;
        two.extend_from_within(12..);
        assert_eq!(code(&two), Some(ResponseCode::FormErr));
        let mut update = sound.clone();
        update[2] |= 5 << 3;
        assert!(matches!(code(&update), Some(ResponseCode::NotImp | ResponseCode::FormErr)));
        let mut status = sound;
        status[2] |= 2 << 3;
        assert_eq!(code(&status), Some(ResponseCode::NotImp));
    }

    #[test]
    fn extensions_are_tolerated() {
        let mut message = Message::from_vec(&asked("a.example.", RecordType::TXT)).expect("a message");
        message.set_edns(Edns::new());
        let question = question(&message.to_vec().expect("bytes"));
        assert_eq!(question.wants, Wants::Other);
        let answer = Message::from_vec(&question.answer(&Reply::Nothing).expect("an answer")).expect("a message");
        assert!(answer.edns.is_some() && answer.answers.is_empty());
    }
}
