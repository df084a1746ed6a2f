//! Every bound of the scanner in one place: hostile input costs no more than this, and what is left out is said.

/// Longer programs are not parsed; rules on text see their beginning and their end.
pub(crate) const LONGEST_PARSED: usize = 4 << 20;
/// How much of the beginning and of the end of a longer text is looked at.
pub(crate) const WINDOW: usize = 1 << 20;
/// Deeper parts of a tree are not looked at.
pub(crate) const DEEPEST: usize = 1_500;
/// Nodes of one tree that are looked at.
pub(crate) const NODES: usize = 4_000_000;
/// How often the parser may call back before it is stopped: a count, so that the answer is the same on every machine.
pub(crate) const PARSE_STEPS_A_BYTE: usize = 8;
pub(crate) const PARSE_STEPS_AT_LEAST: usize = 200_000;
/// Rounds over one tree, until what functions are given and give back is known.
pub(crate) const ROUNDS: usize = 3;
/// A folded text grows no further.
pub(crate) const LONGEST_TEXT: usize = 1 << 20;
/// All folded texts of one tree together.
pub(crate) const TEXTS: usize = 32 << 20;
/// Items of a folded list.
pub(crate) const ITEMS: usize = 65_536;
/// A dotted name grows no further.
pub(crate) const LONGEST_NAME: usize = 160;
/// Code within code within code.
pub(crate) const DEPTH_OF_CODE: usize = 4;
/// Pieces of code within one source, and their bytes together.
pub(crate) const PIECES: usize = 200;
pub(crate) const PIECES_BYTES: usize = 4 << 20;
/// A decoded payload is cut here.
pub(crate) const LONGEST_DECODED: usize = 1 << 20;
/// Findings of one source.
pub(crate) const FINDINGS: usize = 1_000;
/// Letters of an excerpt.
pub(crate) const EXCERPT: usize = 120;
/// A share of a program, in thousandths, that may be wrong before it counts as unparsable.
pub(crate) const WRONG_SHARE: usize = 50;
