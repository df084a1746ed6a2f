//! What contexts tell of their cells: what is taken for a frame is one, byte by byte, however it is cut; no cell has more results than
//! it may; and after the first byte that is none, nothing is heard.

use model::{MOST_PARTS, MOST_RESULT_BYTES};
use native::hostile::{CellFrame, CellFrames, LARGEST_CELL_FRAME};

pub fn law(bytes: &[u8]) {
    let mut whole = CellFrames::default();
    let frames = whole.push(bytes);
    let again: Vec<u8> = frames.iter().flat_map(CellFrame::encode).collect();
    assert!(bytes.starts_with(&again), "frames are encoded as something else: {frames:?}");
    assert!(!whole.is_between() || again.len() == bytes.len(), "something was left out");
    let (mut parts, mut total) = (0, 0);
    for frame in &frames {
        match frame {
            CellFrame::Part { kind, bytes, .. } => {
                assert!(bytes.len() <= LARGEST_CELL_FRAME);
                assert!(kind.is_binary() || std::str::from_utf8(bytes).is_ok(), "{kind:?} is no text");
                (parts, total) = (parts + 1, total + bytes.len());
            }
            CellFrame::Failed { .. } => parts += 1,
            CellFrame::Done { .. } => (parts, total) = (0, 0),
        }
        assert!(parts <= MOST_PARTS && total <= MOST_RESULT_BYTES, "more of one cell than there may be");
    }
    if whole.is_broken() {
        let one = CellFrame::Done { cell: 1, exit: 0, interrupted: false, left_out: 0 }.encode();
        assert!(whole.push(&one).is_empty(), "something was heard after nonsense");
    }
    for cut in [1, 3, 7] {
        let mut pieces = CellFrames::default();
        let read: Vec<CellFrame> = bytes.chunks(cut).flat_map(|piece| pieces.push(piece)).collect();
        assert_eq!(read, frames, "cut at {cut}");
        assert_eq!(pieces.is_broken(), whole.is_broken(), "cut at {cut}");
    }
}
