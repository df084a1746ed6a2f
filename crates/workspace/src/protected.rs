//! Paths that programs of the host act on by themselves: shown apart, and taken only when named.
