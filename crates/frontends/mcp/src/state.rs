//! What a client holds while a person is asked: nothing but a name for a call that we keep, sealed for one caller and one call.

use rmcp::model::{JsonObject, RequestStateCodec, SealOptions};
use serde_json::Value;

use crate::said::Failure;

/// Seals with a key that lives as long as this process, as what it names does.
pub struct Seal(RequestStateCodec);

/// Of a tool and its arguments, as a client wrote them.
pub type Digest = [u8; 32];

impl Seal {
    pub fn new() -> Result<Seal, String> {
        let mut key = [0_u8; 32];
        let mut filled = 0;
        while filled < key.len() {
            let more = rustix::rand::getrandom(&mut key[filled..], rustix::rand::GetRandomFlags::empty());
            filled += more.map_err(|error| format!("the kernel has no random bytes: {error}"))?;
        }
        RequestStateCodec::try_new(key).map(Seal).map_err(|error| error.to_string())
    }

    pub fn close(&self, call: &str, caller: &str, digest: &Digest) -> String {
        let bound = bound(caller, digest);
        self.0.seal_with(call.as_bytes(), &SealOptions::new().associated_data(&bound))
    }

    /// The call's name. One answer to everything that is wrong: what exactly it was helps only whoever tries.
    pub fn open(&self, sealed: &str, caller: &str, digest: &Digest) -> Result<String, Failure> {
        let opened = self.0.open_with(sealed, &bound(caller, digest)).ok();
        opened.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(refused)
    }
}

/// Changed, made up, somebody else's, of another call, or used already.
pub fn refused() -> Failure {
    Failure::new("request-state", "this `requestState` is not one of this call that is still open")
        .rule("mcp.request-state")
        .fix("call the tool anew, without `requestState`; it asks again if it must")
}

/// A caller has no byte of value 0 in its name, so where it ends is clear.
fn bound(caller: &str, digest: &Digest) -> Vec<u8> {
    [caller.as_bytes(), &[0], digest].concat()
}

/// The same for the same arguments, however their names are ordered.
pub fn digest(tool: &str, arguments: Option<&JsonObject>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tool.as_bytes()).update(&[0]);
    match arguments {
        Some(arguments) => feed_object(&mut hasher, arguments),
        None => feed_object(&mut hasher, &JsonObject::new()),
    }
    *hasher.finalize().as_bytes()
}

fn feed(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Object(object) => feed_object(hasher, object),
        Value::Array(list) => {
            hasher.update(b"[").update(&(list.len() as u64).to_le_bytes());
            list.iter().for_each(|value| feed(hasher, value));
        }
        Value::String(text) => {
            hasher.update(b"s").update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        // Their text ends where a mark begins that no such text has.
        plain => {
            hasher.update(b"p").update(plain.to_string().as_bytes()).update(b"\n");
        }
    }
}

fn feed_object(hasher: &mut blake3::Hasher, object: &JsonObject) {
    let mut names: Vec<&String> = object.keys().collect();
    names.sort();
    hasher.update(b"{").update(&(names.len() as u64).to_le_bytes());
    for name in names {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        feed(hasher, &object[name.as_str()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> JsonObject {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_state_opens_for_its_caller_and_its_call_alone() {
        let seal = Seal::new().expect("a key");
        let (one, other) = (digest("apply", None), digest("diff", None));
        let sealed = seal.close("call", "local/t1", &one);
        assert_eq!(seal.open(&sealed, "local/t1", &one), Ok("call".to_owned()));
        assert!(seal.open(&sealed, "local/t2", &one).is_err());
        assert!(seal.open(&sealed, "local/t1", &other).is_err());
        assert!(Seal::new().expect("a key").open(&sealed, "local/t1", &one).is_err());
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("text");
            assert!(changed == sealed || seal.open(&changed, "local/t1", &one) != Ok("call".to_owned()), "at {at}");
        }
        for made_up in ["", "rs1", "rs1..", "x.y.z", "\0", &"a".repeat(100_000)] {
            assert!(seal.open(made_up, "local/t1", &one).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_was_not_sealed_here_opens(text in ".{0,200}", dots in "rs[12]\\.[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,60}") {
            let seal = Seal::new().expect("a key");
            proptest::prop_assert!(seal.open(&text, "local/t1", &[0; 32]).is_err());
            proptest::prop_assert!(seal.open(&dots, "local/t1", &[0; 32]).is_err());
        }
    }

    #[test]
    fn arguments_that_differ_have_digests_that_do() {
        let of = |value| digest("t", Some(&arguments(value)));
        assert_eq!(of(json!({"a": 1, "b": [2]})), of(json!({"b": [2], "a": 1})));
        let all = [
            json!({}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1]}),
            json!({"a": [[1]]}),
            json!({"a": [1, 1]}),
            json!({"a": null}),
            json!({"a": "null"}),
            json!({"ab": ""}),
            json!({"a": "b"}),
            json!({"a": {"b": 1}}),
            json!({"a": 12}),
            json!({"a": [1, 2]}),
            json!({"a": true}),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| of(one.clone()) != of(other.clone())), "{one}");
        }
        assert_ne!(digest("a", None), digest("b", None));
    }
}
