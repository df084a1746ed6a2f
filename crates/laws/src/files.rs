//! What whoever works on files inside tells: what is taken for a frame is one, byte by byte, however it is cut; and nothing is
//! heard after the last word. An archive's headers lead to nothing absurd.

use guest::files::{Frame, Frames, LARGEST_FRAME, LONGEST_PATH, Operation};

pub fn law(bytes: &[u8]) {
    let mut whole = Frames::default();
    let frames = whole.push(bytes);
    let again: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
    assert!(bytes.starts_with(&again), "frames are encoded as something else: {frames:?}");
    let last = |frame: &Frame| matches!(frame, Frame::Done { .. } | Frame::Failed { .. });
    assert!(frames.iter().rev().skip(1).all(|frame| !last(frame)), "something was heard after the last word");
    assert!(!whole.is_whole() || frames.last().is_some_and(last), "an end that nobody told");
    for frame in &frames {
        let path = match frame {
            Frame::Content(content) => {
                assert!((1..=LARGEST_FRAME).contains(&content.len()));
                continue;
            }
            Frame::Entry(entry) => {
                assert!(entry.mode <= 0o7777 && !entry.target.contains(&0));
                &entry.path
            }
            Frame::Match { path, .. } | Frame::Event { path, .. } => path,
            Frame::Failed { errno, about, .. } => {
                assert!((0..4096).contains(errno));
                about
            }
            Frame::Done { .. } => continue,
        };
        assert!(path.len() <= LONGEST_PATH && !path.contains(&0), "no path of any kernel");
    }
    // The same, however it is cut: as far as it is the same.
    for cut in [1, 3, 7] {
        let mut pieces = Frames::default();
        let read: Vec<Frame> = bytes.chunks(cut).flat_map(|piece| pieces.push(piece)).collect();
        assert_eq!(read, frames, "cut at {cut}");
        assert_eq!((pieces.is_whole(), pieces.is_broken()), (whole.is_whole(), whole.is_broken()), "cut at {cut}");
    }
    if let Some(operation) = Operation::decode(bytes) {
        assert_eq!(operation.encode(), bytes, "{operation:?} is encoded as something else");
    }
    guest::files::try_to_read(bytes);
}
