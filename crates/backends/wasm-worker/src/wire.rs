//! What is said over the pipes of a warm worker: pieces, each with its length before it.
//!
//! A request is two pieces, the asking and the input; an answer is three, how it ended, the output and the error output.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

/// Of one piece.
const LARGEST: u32 = 64 << 20;

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Asking {
    /// Which of the programs that were offered.
    pub program: usize,
    pub arguments: Vec<String>,
    #[serde(default)]
    pub variables: Vec<(String, String)>,
    /// At most; less than what was offered.
    #[serde(default)]
    pub milliseconds: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    Code(i32),
    Trap(String),
    /// It took too long.
    Late,
    /// It could not be started.
    Refused(String),
}

/// The next piece; none if there are no more.
pub fn receive(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read(&mut length[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut length[1..])?,
    }
    let length = u32::from_le_bytes(length);
    if length > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a piece of {length} bytes")));
    }
    let mut piece = vec![0; length as usize];
    from.read_exact(&mut piece)?;
    Ok(Some(piece))
}

/// All of them at once: a write for each would cost more than many a run.
pub fn send(to: &mut impl Write, pieces: &[&[u8]]) -> io::Result<()> {
    let mut all = Vec::with_capacity(pieces.iter().map(|piece| piece.len() + 4).sum());
    for piece in pieces {
        let length = u32::try_from(piece.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        all.extend_from_slice(&length.to_le_bytes());
        all.extend_from_slice(piece);
    }
    to.write_all(&all)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_received_piece_by_piece() {
        let mut sent = Vec::new();
        send(&mut sent, &[b"one", b"", b"three"]).expect("it can be done");
        let mut rest = sent.as_slice();
        let mut next = || receive(&mut rest).expect("it can be done");
        assert_eq!(
            (next(), next(), next(), next()),
            (Some(b"one".to_vec()), Some(vec![]), Some(b"three".to_vec()), None)
        );
    }

    #[test]
    fn half_a_piece_and_one_that_is_too_large_are_errors() {
        assert!(receive(&mut [3, 0, 0, 0, 1].as_slice()).is_err());
        assert!(receive(&mut [3, 0].as_slice()).is_err());
        assert!(receive(&mut [255, 255, 255, 255].as_slice()).is_err());
    }
}
