//! Files that make others run code: scripts of packages, build files, pipelines.

use model::Finding;

use crate::evaluate::Piece;
use crate::found::Places;

pub fn is(_name: &str) -> bool {
    false
}

pub(crate) fn pieces(_name: &str, _bytes: &[u8], _depth: usize) -> Vec<Piece> {
    Vec::new()
}

pub(crate) fn findings(_places: &Places<'_>, _name: &str, _pieces: &[Piece]) -> Vec<Finding> {
    Vec::new()
}
