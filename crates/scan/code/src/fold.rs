//! Functions whose answer is known where what they are given is: how programs hide texts, and how we read them anyway.

use crate::decode;
use crate::limits::LONGEST_TEXT;
use crate::names;
use crate::value::{DECODED, HOLE, Item, Value};

/// `name(items)`, or `base.method(items)`.
pub(crate) fn call(name: &str, base: &Value, items: &[Item]) -> Option<Value> {
    let positional: Vec<&Value> = items.iter().filter(|item| item.key.is_none()).map(|item| &item.value).collect();
    let first = positional.first().copied();
    let last = names::last(name);
    let made = match name {
        "chr" | "String.fromCharCode" | "String.fromCodePoint" => characters(items),
        "ord" => Value::of_number(i64::from(*first?.bytes()?.first()?)),
        "bytes" | "bytearray" | "str" | "String" | "Buffer.from" | "list" | "tuple" | "bytes.fromhex"
        | "bytearray.fromhex" | "Buffer" | "Uint8Array" | "[]byte" | "string" => {
            converted(name, first?, positional.get(1).copied())?
        }
        "base64.b64decode"
        | "base64.standard_b64decode"
        | "base64.urlsafe_b64decode"
        | "base64.decodebytes"
        | "atob"
        | "base64_decode"
        | "binascii.a2b_base64"
        | "Base64.decode64"
        | "Base64.strict_decode64"
        | "Base64.urlsafe_decode64"
        | "java.util.Base64.getDecoder().decode"
        | "Base64.getDecoder().decode"
        | "encoding/base64.StdEncoding.DecodeString"
        | "encoding/base64.URLEncoding.DecodeString"
        | "encoding/base64.RawStdEncoding.DecodeString" => decoded(decode::base64(first?.bytes()?)?, "base64"),
        "base64.b32decode" => decoded(decode::base32(first?.bytes()?)?, "base32"),
        "base64.b16decode" | "binascii.unhexlify" | "binascii.a2b_hex" | "hex2bin" | "encoding/hex.DecodeString" => {
            decoded(decode::hexadecimal(first?.bytes()?)?, "hexadecimal")
        }
        "base64.b85decode" | "base64.a85decode" => return Some(Value { labels: DECODED, ..Value::default() }),
        "zlib.decompress"
        | "gzip.decompress"
        | "gzuncompress"
        | "gzinflate"
        | "gzdecode"
        | "zlib.inflateSync"
        | "zlib.gunzipSync"
        | "Zlib.Inflate.inflate"
        | "Zlib.inflate"
        | "zlib.unzipSync"
        | "zlib.inflateRawSync"
        | "bz2.decompress"
        | "lzma.decompress" => decoded(decode::inflated(first?.bytes()?)?, "compressed"),
        "codecs.decode" => coded(first?, positional.get(1)?.exact()?)?,
        "str_rot13" => decoded(decode::rot13(first?.bytes()?), "rot13"),
        "strrev" => reversed(first?)?,
        "reversed" => reversed(first?)?,
        "unescape" | "decodeURIComponent" | "decodeURI" | "urllib.parse.unquote" | "rawurldecode" | "urldecode" => {
            Value::of_bytes(decode::percent(first?.bytes()?), true)
        }
        "os.path.join"
        | "path.join"
        | "path.resolve"
        | "path/filepath.Join"
        | "path.Join"
        | "File.join"
        | "pathlib.Path"
        | "java.nio.file.Paths.get"
        | "java.nio.file.Path.of"
        | "Paths.get"
        | "Path.of"
        | "filepath.Join" => joined_with(b"/", &positional),
        "os.path.expanduser"
        | "os.path.abspath"
        | "os.path.expandvars"
        | "os.path.realpath"
        | "File.expand_path"
        | "os.fspath"
        | "path.normalize"
        | "pathlib.PurePath"
        | "Dir.home"
        | "String.new"
        | "String.from"
        | "PathBuf.from"
        | "std.path.PathBuf.from"
        | "std.path.Path.new"
        | "Path.new" => first?.clone(),
        // The home is called the same whoever asks for it.
        "std.env.var"
        | "env.var"
        | "std.env.var_os"
        | "java.lang.System.getenv"
        | "os.Getenv"
        | "os.getenv"
        | "getenv"
        | "java.lang.System.getProperty"
            if matches!(first?.exact(), Some("HOME" | "user.home")) =>
        {
            Value::of_bytes(b"~".to_vec(), true)
        }
        "sprintf" | "fmt.Sprintf" | "util.format" | "String.format" | "format" => percent(
            first?,
            &Value::of_items(
                positional.iter().skip(1).map(|value| Item { key: None, value: (*value).clone() }).collect(),
            ),
        ),
        "format!" | "concat!" => first?.clone(),
        "implode" => joined_with(first?.bytes()?, &each(positional.get(1)?)?),
        "str_replace" => replaced(positional.get(2)?, first?, positional.get(1)?)?,
        "array" | "Array.of" => Value::of_items(items.to_vec()),
        "Array.from" => first?.clone(),
        "compile" => first?.clone(),
        _ => return method(last, base, &positional),
    };
    Some(made)
}

/// `base.method(arguments)`.
fn method(name: &str, base: &Value, arguments: &[&Value]) -> Option<Value> {
    let made = match name {
        "join" => match base.bytes() {
            // Python: the separator is the base; elsewhere it is the argument.
            Some(separator) => joined_with(separator, &each(arguments.first()?)?),
            None => joined_with(arguments.first().and_then(|value| value.bytes()).unwrap_or(b","), &each(base)?),
        },
        "decode" | "encode" | "toString" | "to_s" | "strip" | "trim" | "rstrip" | "lstrip" | "chomp" | "to_string"
        | "into" | "to_owned" | "as_str" | "getBytes" | "expanduser" | "resolve" | "absolute" | "as_posix"
        | "unpack1" | "to_sym" | "freeze" | "c_str" | "unwrap" | "expect" | "unwrap_or_default" | "clone" => {
            match (name, arguments.first().and_then(|value| value.exact())) {
                ("decode" | "toString", Some(coding))
                    if matches!(coding, "base64" | "hex" | "rot13" | "rot_13" | "zlib" | "base64_codec") =>
                {
                    coded(base, coding)?
                }
                ("unpack1", Some("m" | "m0")) => decoded(decode::base64(base.bytes()?)?, "base64"),
                _ if base.text.is_some() => base.clone(),
                _ => return None,
            }
        }
        "pack" => pack(base, arguments.first()?.exact()?)?,
        "concat" => arguments.iter().fold(base.clone(), |all, value| all.then(value)),
        "joinpath" => {
            let mut all = vec![base];
            all.extend_from_slice(arguments);
            joined_with(b"/", &all)
        }
        "lower" | "toLowerCase" | "downcase" => {
            Value::of_bytes(base.bytes()?.to_ascii_lowercase(), base.text.as_ref()?.exact).labelled(base.labels)
        }
        "upper" | "toUpperCase" | "upcase" => {
            Value::of_bytes(base.bytes()?.to_ascii_uppercase(), base.text.as_ref()?.exact).labelled(base.labels)
        }
        "replace" | "replaceAll" | "gsub" => replaced(base, arguments.first()?, arguments.get(1)?)?,
        "reverse" => reversed(base)?,
        "split" => {
            let text = base.exact()?;
            let separator = arguments.first().and_then(|value| value.exact()).unwrap_or(" ");
            let parts: Vec<&str> = match separator {
                "" => text.split("").filter(|part| !part.is_empty()).take(65_536).collect(),
                separator => text.split(separator).take(65_536).collect(),
            };
            Value::of_items(
                parts
                    .iter()
                    .map(|part| Item { key: None, value: Value::of_bytes(part.as_bytes().to_vec(), true) })
                    .collect(),
            )
        }
        "format" => braces(base, arguments),
        "fromhex" => decoded(decode::hexadecimal(arguments.first()?.bytes()?)?, "hexadecimal"),
        "chr" => characters(&[Item { key: None, value: base.clone() }]),
        _ => return None,
    };
    Some(made)
}

/// `map(chr, […])`.
pub(crate) fn mapped(function: &str, list: &Value) -> Option<Value> {
    match function {
        "chr" => {
            let items = list.items.as_ref()?;
            let each = items.iter().map(|item| Item { key: None, value: characters(std::slice::from_ref(item)) });
            Some(Value::of_items(each.collect()).labelled(DECODED))
        }
        "str" => Some(list.clone()),
        _ => None,
    }
}

fn decoded(bytes: Vec<u8>, _via: &'static str) -> Value {
    Value::of_bytes(bytes, true).labelled(DECODED)
}

fn characters(items: &[Item]) -> Value {
    let mut bytes = Vec::new();
    let mut exact = true;
    let flat = items.iter().flat_map(|item| match &item.value.items {
        Some(inner) => inner.as_ref().clone(),
        None => vec![item.clone()],
    });
    for item in flat {
        match item.value.number.and_then(|number| u32::try_from(number).ok()).and_then(char::from_u32) {
            Some(letter) => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            None => {
                bytes.extend_from_slice(HOLE.as_bytes());
                exact = false;
            }
        }
        if bytes.len() > LONGEST_TEXT {
            break;
        }
    }
    Value::of_bytes(bytes, exact)
}

fn converted(name: &str, value: &Value, coding: Option<&Value>) -> Option<Value> {
    if name.ends_with("fromhex") {
        return Some(decoded(decode::hexadecimal(value.bytes()?)?, "hexadecimal"));
    }
    if let Some(coding) = coding.and_then(Value::exact)
        && matches!(coding, "base64" | "hex")
    {
        return coded(value, coding);
    }
    if let Some(items) = &value.items
        && !items.is_empty()
        && items.iter().all(|item| item.value.number.is_some_and(|number| (0..256).contains(&number)))
        && !matches!(name, "list" | "tuple")
    {
        let bytes = items.iter().filter_map(|item| item.value.number).map(|number| number as u8).collect();
        return Some(decoded(bytes, "numbers"));
    }
    (value.text.is_some() || value.items.is_some()).then(|| value.clone())
}

fn coded(value: &Value, coding: &str) -> Option<Value> {
    let bytes = value.bytes()?;
    Some(match coding.to_ascii_lowercase().replace('-', "_").as_str() {
        "base64" | "base64_codec" => decoded(decode::base64(bytes)?, "base64"),
        "hex" | "hex_codec" => decoded(decode::hexadecimal(bytes)?, "hexadecimal"),
        "rot13" | "rot_13" => decoded(decode::rot13(bytes), "rot13"),
        "zlib" | "zip" => decoded(decode::inflated(bytes)?, "compressed"),
        _ => value.clone(),
    })
}

fn pack(base: &Value, format: &str) -> Option<Value> {
    match format {
        "H*" => Some(decoded(decode::hexadecimal(base.at(0)?.bytes()?)?, "hexadecimal")),
        "c*" | "C*" | "U*" => Some(characters(&base.items.as_ref()?.to_vec())),
        _ => None,
    }
}

fn reversed(value: &Value) -> Option<Value> {
    if let Some(items) = &value.items {
        return Some(Value::of_items(items.iter().rev().cloned().collect()).labelled(value.labels));
    }
    let text = value.exact()?;
    Some(Value::of_bytes(text.chars().rev().collect::<String>().into_bytes(), true).labelled(value.labels))
}

/// `x[::-1]` turns around, `x[a:b]` cuts; of anything else only where it comes from is known.
pub(crate) fn sliced(value: &Value, written: &str) -> Value {
    let bare: String = written.chars().filter(|letter| !letter.is_whitespace()).collect();
    if bare == "::-1" {
        return reversed(value).unwrap_or_else(|| value.clone());
    }
    let cut = || -> Option<Value> {
        let (from, to) = bare.split_once(':')?;
        let text = value.exact().filter(|text| text.is_ascii())?;
        let place = |written: &str, other: usize| -> Option<usize> {
            match written {
                "" => Some(other),
                _ => match written.parse::<i64>().ok()? {
                    place if place < 0 => Some(text.len().saturating_sub(place.unsigned_abs() as usize)),
                    place => Some((place as usize).min(text.len())),
                },
            }
        };
        let (from, to) = (place(from, 0)?, place(to, text.len())?);
        Some(Value::of_bytes(text.get(from..to.max(from))?.as_bytes().to_vec(), true).labelled(value.labels))
    };
    cut().unwrap_or_else(|| Value { labels: value.labels, ..Value::default() })
}

fn each(value: &Value) -> Option<Vec<&Value>> {
    value.items.as_ref().map(|items| items.iter().map(|item| &item.value).collect())
}

fn joined_with(separator: &[u8], parts: &[&Value]) -> Value {
    let (mut bytes, mut exact, mut labels) = (Vec::new(), true, 0);
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            bytes.extend_from_slice(separator);
        }
        exact &= part.append_to(&mut bytes);
        labels |= part.labels;
        if bytes.len() > LONGEST_TEXT {
            break;
        }
    }
    Value::of_bytes(bytes, exact).labelled(labels)
}

fn replaced(value: &Value, from: &Value, to: &Value) -> Option<Value> {
    let (text, from, to) = (value.exact()?, from.exact()?, to.exact()?);
    if from.is_empty() || text.len().saturating_mul(to.len().max(1)) > LONGEST_TEXT {
        return None;
    }
    Some(Value::of_bytes(text.replace(from, to).into_bytes(), true).labelled(value.labels))
}

/// `"a" * 3`.
pub(crate) fn repeated(left: &Value, right: &Value) -> Value {
    let labels = left.labels | right.labels;
    match (left.bytes(), right.number) {
        (Some(bytes), Some(times)) if (0..=4096).contains(&times) && bytes.len() * times as usize <= 65_536 => {
            Value::of_bytes(bytes.repeat(times as usize), true).labelled(labels)
        }
        _ => Value { labels, ..Value::default() },
    }
}

/// `"%s/%s" % (a, b)`, and what prints alike elsewhere.
pub(crate) fn percent(format: &Value, values: &Value) -> Value {
    let labels = format.labels | values.labels;
    let Some(text) = format.shown() else { return Value { labels, ..Value::default() } };
    let single = [values];
    let parts: Vec<&Value> = each(values).unwrap_or_else(|| single.to_vec());
    let (mut bytes, mut exact, mut next) = (Vec::new(), true, 0);
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let after = &rest[at + 1..];
        let length = after.find(|letter: char| letter.is_ascii_alphabetic() || letter == '%').unwrap_or(after.len());
        match after.as_bytes().get(length) {
            Some(b'%') => bytes.push(b'%'),
            Some(_) => {
                exact &= parts.get(next).copied().unwrap_or(&Value::default()).append_to(&mut bytes);
                next += 1;
            }
            None => {}
        }
        rest = after.get(length + 1..).unwrap_or("");
        if bytes.len() > LONGEST_TEXT {
            break;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Value::of_bytes(bytes, exact).labelled(labels)
}

/// `"{}/{}".format(a, b)`.
fn braces(format: &Value, values: &[&Value]) -> Value {
    let labels = values.iter().fold(format.labels, |labels, value| labels | value.labels);
    let Some(text) = format.shown() else { return Value { labels, ..Value::default() } };
    let (mut bytes, mut exact, mut next) = (Vec::new(), true, 0);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        bytes.extend_from_slice(before.as_bytes());
        let Some((inside, after)) = after.split_once('}') else { break };
        let place = inside.parse().unwrap_or(next);
        exact &= values.get(place).copied().unwrap_or(&Value::default()).append_to(&mut bytes);
        next += 1;
        rest = after;
        if bytes.len() > LONGEST_TEXT {
            break;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Value::of_bytes(bytes, exact).labelled(labels)
}
