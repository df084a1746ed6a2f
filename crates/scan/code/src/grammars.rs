//! One file a language: what its nodes mean. To add one, write its table here, name it in [`crate::grammar`] and
//! [`crate::Language`], and tell in `imports` how it takes in modules.

pub(crate) mod c;
pub(crate) mod go;
pub(crate) mod java;
pub(crate) mod javascript;
pub(crate) mod php;
pub(crate) mod python;
pub(crate) mod ruby;
pub(crate) mod rust;
