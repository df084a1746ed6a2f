//! Bytes in JSON: as text where they are text, and never changed on the way.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that become `{"text": …}`; where they are no UTF-8, `text` is for people and `base64` has them all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lossless(pub Vec<u8>);

impl Serialize for Lossless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = String::from_utf8_lossy(&self.0);
        let is_text = matches!(text, std::borrow::Cow::Borrowed(_));
        let mut object = serializer.serialize_struct("Lossless", if is_text { 1 } else { 2 })?;
        object.serialize_field("text", &text)?;
        if !is_text {
            object.serialize_field("base64", &STANDARD.encode(&self.0))?;
        }
        object.end()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    text: String,
    #[serde(default)]
    base64: Option<String>,
}

impl<'de> Deserialize<'de> for Lossless {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lossless, D::Error> {
        let Written { text, base64 } = Written::deserialize(deserializer)?;
        let Some(base64) = base64 else { return Ok(Lossless(text.into_bytes())) };
        let bytes = STANDARD.decode(base64).map_err(|_| D::Error::custom("`base64` is not base64"))?;
        // Two that differ would be two answers to one question.
        if String::from_utf8_lossy(&bytes) != text {
            return Err(D::Error::custom("`text` is not what `base64` says"));
        }
        Ok(Lossless(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_text_and_nothing_else() {
        assert_eq!(serde_json::to_string(&Lossless("grün\n".into())).unwrap(), r#"{"text":"grün\n"}"#);
    }

    #[test]
    fn other_bytes_come_twice() {
        let json = serde_json::to_string(&Lossless(b"a\xff".to_vec())).unwrap();
        assert_eq!(json, "{\"text\":\"a\u{fffd}\",\"base64\":\"Yf8=\"}");
    }

    #[test]
    fn two_answers_are_none() {
        for json in
            [r#"{"text":"a","base64":"Yg=="}"#, r#"{"text":"a","base64":"?"}"#, r#"{"text":"a","more":1}"#, "{}"]
        {
            assert!(serde_json::from_str::<Lossless>(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let json = serde_json::to_vec(&Lossless(bytes.clone())).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Lossless>(&json).unwrap().0, bytes);
        }
    }
}
